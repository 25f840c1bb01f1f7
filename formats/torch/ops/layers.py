"""Layers with weights: modules where the weights are constants, functions elsewhere."""

from __future__ import annotations

import numpy as np

from serde.decompositions import normalization
from serde.decompositions.adaptive_pools import MEAN
from serde.decompositions.elementwise import gemm
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Shape, Tensor, Value
from serde.spec.schema import ELEMENT_TYPES
from serde.spec.weight_origins import is_weight, origins_of
from serde.version_converter.adapters.normalization import standardize

from ..modules.scopes import is_exporters_constant
from ..target import TorchBuilder, derive, freeze, legalizations, writes
from .elementwise import shorten
from .shapes import index_elements

FLOAT = next(number for number, dtype in ELEMENT_TYPES.items() if dtype is DType.FLOAT32)
FIXED_PADS = {"auto_pad": ("NOTSET",)}
NO_BATCHES = Tensor.of(np.zeros((), np.int64))  # that a normalization has been trained with


def plain(values: Ints) -> int | Ints:
    """One number for numbers that are the same along all axes."""
    return values[0] if len(set(values)) == 1 else tuple(values)


def pad_input(t: TorchBuilder, x: Value, pads: Ints):
    """``x`` with uneven pads written before the layer, and the even ones that are left."""
    count = len(pads) // 2
    begin, end = tuple(pads[:count]), tuple(pads[count:])
    if begin == end and min(pads) >= 0:
        return x, begin
    flat = tuple(p for at in reversed(range(count)) for p in (begin[at], end[at]))
    return t.F.pad(x, flat), (0,) * count


def has_weights(t: TorchBuilder, weight: Value, bias: Value | None = None) -> bool:
    """Whether a layer's arrays are constants, and its weight is one that training changes."""
    is_constant = weight.tensor is not None and (bias is None or bias.tensor is not None)
    return is_constant and (is_weight(weight) or not t.for_training)


def is_neutral(value: Value | None, number: float) -> bool:
    """Whether an operand has no effect: all its elements are ``number``, and none is trained."""
    if value is None:
        return True
    names = [name for run in origins_of(value) for name in run.names]
    is_fixed = not is_weight(value) or all(map(is_exporters_constant, names))
    return value.tensor is not None and is_fixed and bool((value.array() == number).all())


def drop_zeros(bias: Value | None) -> Value | None:
    """The bias of a layer; None for zeros that are none, as exporters make them up."""
    return None if is_neutral(bias, 0) else bias


def list_affine(scale: Value, bias: Value | None = None) -> dict[str, Value | None]:
    """The arrays of a normalization by their names; none where they have no effect."""
    is_affine = not (is_neutral(scale, 1) and is_neutral(bias, 0))
    return {"weight": scale, "bias": bias} if is_affine else {}


def window_options(strides: Ints, pads: Ints, dilations: Ints, group: int):
    """The options of a convolution that are not the defaults."""
    return {
        "stride": plain(strides) if set(strides) != {1} else None,
        "padding": plain(pads) if any(pads) else None,
        "dilation": plain(dilations) if set(dilations) != {1} else None,
        "groups": group if group != 1 else None,
    }


@writes("Conv", only=FIXED_PADS)
def write_conv(
    t: TorchBuilder, x: Value, w: Value, b: Value | None = None, *, kernel_shape: Ints,
    strides: Ints, dilations: Ints, pads: Ints, group: int,
):  # fmt: skip
    count = len(kernel_shape)
    require(count < 4, f"a convolution over {count} axes")
    x, even = pad_input(t, x, pads)
    b, options = drop_zeros(b), window_options(strides, even, dilations, group)
    if not has_weights(t, w, b):
        return t[f"F.conv{count}d"](x, w, b, **options)
    filters, channels = w.static_shape[:2]
    args = (channels * group, filters, plain(kernel_shape))
    options |= {"bias": None if b is not None else False}
    parameters = {"weight": w, "bias": b}
    return t.module(f"nn.Conv{count}d", [x], args, parameters=parameters, **options)


@writes("ConvTranspose", only=FIXED_PADS)
def write_conv_transpose(
    t: TorchBuilder, x: Value, w: Value, b: Value | None = None, *, kernel_shape: Ints,
    strides: Ints, dilations: Ints, pads: Ints, output_padding: Ints, group: int,
):  # fmt: skip
    count = len(kernel_shape)
    require(count < 4, f"a transposed convolution over {count} axes")
    even, extra = tuple(pads[:count]), tuple(output_padding)
    too_far = any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True))
    require(not too_far, f"output_padding={extra}, as large as the strides")
    b, options = drop_zeros(b), window_options(strides, even, dilations, group)
    options["output_padding"] = plain(extra) if any(extra) else None
    if not has_weights(t, w, b):
        return t[f"F.conv_transpose{count}d"](x, w, b, **options)
    channels, filters = w.static_shape[:2]
    args = (channels, filters * group, plain(kernel_shape))
    options["bias"] = None if b is not None else False
    parameters = {"weight": w, "bias": b}
    return t.module(f"nn.ConvTranspose{count}d", [x], args, parameters=parameters, **options)


@legalizations("BatchNormalization")
def legalize_batch_norm(g, *arrays: Value, training_mode: int, outputs: int = 1, **form: float):
    """By the statistics of the batch outside of training too; those it moves are written out."""
    if not training_mode:
        return None
    others = [d for axis, d in enumerate(arrays[0].ranked_shape) if axis != 1]
    is_alone = all(d == 1 for d in others)  # which PyTorch refuses
    y, *moved = normalization.train_batch_norm(g, *arrays, outputs=3, **form)
    if not is_alone:
        y, *_ = g.as_is("BatchNormalization", arrays, {"training_mode": 1, **form}, 3)
    return (y, *moved)[:outputs]


@writes("BatchNormalization")
def write_batch_norm(t: TorchBuilder, x: Value, scale: Value, bias: Value, mean: Value,
                     var: Value, *, epsilon: float, momentum: float,
                     training_mode: int):  # fmt: skip
    """PyTorch's momentum is what new statistics count for; with none, the old ones are used."""
    if training_mode:
        form = {"training": True, "eps": shorten(epsilon)}
        return t.F.batch_norm(x, None, None, scale, bias, **form), mean, var
    arrays = (scale, bias, mean, var)
    has_module = 2 <= x.rank <= 5 and all(v.tensor is not None for v in arrays)
    moves = round(1 - momentum, 9)
    if not has_module or len({v.type for v in (x, *arrays)}) > 1 or not moves:
        mean, var = (freeze(t, v) for v in (mean, var))
        return t.F.batch_norm(x, mean, var, scale, bias, eps=shorten(epsilon))
    count = scale.static_shape[0]
    affine = list_affine(scale, bias)
    parameters = {**affine, "running_mean": mean, "running_var": var,
                  "num_batches_tracked": t.const(NO_BATCHES)}  # fmt: skip
    kind = {2: 1, 3: 1, 4: 2, 5: 3}[x.rank]
    return t.module(f"nn.BatchNorm{kind}d", [x], [count], parameters=parameters,
                    eps=eps_option(epsilon), momentum=None if moves == 0.1 else moves,
                    affine=None if affine else False)  # fmt: skip


def eps_option(epsilon: float):
    """A module's ``eps``, None where it is PyTorch's default."""
    eps = shorten(epsilon)
    return None if eps == 1e-5 else eps


@legalizations("InstanceNormalization")
def legalize_instance_norm(g, x, scale, bias, *, epsilon: float):
    """PyTorch refuses instances of one element."""
    inner = x.ranked_shape[2:]
    if any(not isinstance(d, int) or d > 1 for d in inner):
        return None
    axes = list(range(2, x.rank))
    centred, _, inverse = standardize(g, x, axes, epsilon)
    scale, bias = (g.Unsqueeze(v, [a - 1 for a in axes]) for v in (scale, bias))
    return g.Add(g.Mul(g.Mul(centred, inverse), scale), bias)


@writes("InstanceNormalization")
def write_instance_norm(t: TorchBuilder, x: Value, scale: Value, bias: Value, *, epsilon: float):
    if x.rank > 5 or scale.tensor is None or bias.tensor is None:
        return t.F.instance_norm(x, weight=scale, bias=bias, eps=shorten(epsilon))
    affine = list_affine(scale, bias)
    return t.module(f"nn.InstanceNorm{x.rank - 2}d", [x], [scale.static_shape[0]],
                    parameters=affine, eps=eps_option(epsilon),
                    affine=bool(affine) or None)  # fmt: skip


@writes("GroupNormalization", only={"stash_type": (1,)})
def write_group_norm(t: TorchBuilder, x: Value, scale: Value, bias: Value, *, num_groups: int,
                     epsilon: float):  # fmt: skip
    if scale.tensor is None or bias.tensor is None:
        return t.F.group_norm(x, num_groups, scale, bias, eps=shorten(epsilon))
    affine = list_affine(scale, bias)
    return t.module("nn.GroupNorm", [x], [num_groups, scale.static_shape[0]],
                    parameters=affine, eps=eps_option(epsilon),
                    affine=None if affine else False)  # fmt: skip


@legalizations("LayerNormalization")
def legalize_layer_norm(g, x, scale, bias=None, *, axis: int, epsilon: float, stash_type: int,
                        outputs: int = 1):  # fmt: skip
    """The statistics, or sizes that are not known, are written out."""
    is_static = all(isinstance(d, int) for d in list_normalized(x, scale, axis))
    if outputs == 1 and is_static and stash_type == 1:
        return None
    return g.decompose("LayerNormalization", 17, x, scale, bias, axis=axis, epsilon=epsilon,
                       stash_type=stash_type, outputs=outputs)  # fmt: skip


def list_normalized(x: Value, scale: Value, axis: int) -> Shape:
    """The sizes that are normalized; of a tensor of unknown rank those of the scale."""
    shape = scale.shape
    if x.shape is None and shape is not None and len(shape) == -axis and 1 not in shape:
        return shape
    return x.ranked_shape[axis:]


@writes("LayerNormalization", only={"stash_type": (1,)})
def write_layer_norm(t: TorchBuilder, x: Value, scale: Value, bias: Value | None = None, *,
                     axis: int, epsilon: float):  # fmt: skip
    sizes = list_normalized(x, scale, axis)
    require(all(isinstance(d, int) for d in sizes), "a normalization over dynamic sizes")
    args = (sizes[0] if len(sizes) == 1 else tuple(sizes),)
    eps, bias = eps_option(epsilon), drop_zeros(bias)
    affine = list_affine(scale, bias)
    if not affine:
        return t.module("nn.LayerNorm", [x], args, eps=eps, elementwise_affine=False)
    arrays = [v for v in (scale, bias) if v is not None]
    if not all(v.tensor is not None and v.shape == sizes for v in arrays):
        y = t["*"](t.F.layer_norm(x, tuple(sizes), eps=shorten(epsilon)), scale)
        return y if bias is None else t["+"](y, bias)
    return t.module("nn.LayerNorm", [x], args, parameters=affine, eps=eps,
                    bias=None if bias is not None else False)  # fmt: skip


@legalizations("RMSNormalization")
def legalize_rms_norm(g, x, scale, *, axis: int, epsilon: float, stash_type: int):
    """Sizes that are not known, and scales of other shapes, are written out."""
    sizes = list_normalized(x, scale, axis)
    is_module = scale.tensor is not None and scale.shape == sizes and scale.type is x.type
    if is_module and stash_type == 1:
        return None
    return g.decompose("RMSNormalization", 23, x, scale, axis=axis, epsilon=epsilon,
                       stash_type=stash_type)  # fmt: skip


@writes("RMSNormalization", only={"stash_type": (1,)})
def write_rms_norm(t: TorchBuilder, x: Value, scale: Value, *, axis: int, epsilon: float):
    sizes, affine = scale.static_shape, list_affine(scale)
    return t.module("nn.RMSNorm", [x], [sizes[0] if len(sizes) == 1 else sizes],
                    parameters=affine, eps=shorten(epsilon),
                    elementwise_affine=None if affine else False)  # fmt: skip


@writes("MatMul")
def write_matmul(t: TorchBuilder, x: Value, w: Value):
    if not has_weights(t, w) or w.rank != 2 or w.type.kind != "f" or x.rank < 2:
        return t["@"](x, w)
    return write_linear(t, x, transpose(t, w), None)


def transpose(t: TorchBuilder, w: Value) -> Value:
    """A constant matrix with its axes exchanged, as ``nn.Linear`` has it."""
    rows, columns = w.static_shape
    return derive(t, w, lambda a: np.ascontiguousarray(a.T), (columns, rows))


def write_linear(t: TorchBuilder, x: Value, w: Value, b: Value | None):
    b = drop_zeros(b)
    if not has_weights(t, w, b):
        return t.F.linear(x, w, b)
    units, features = w.static_shape
    return t.module("nn.Linear", [x], [features, units], parameters={"weight": w, "bias": b},
                    bias=None if b is not None else False)  # fmt: skip


@legalizations("Gemm")
def legalize_gemm(g, a, b, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """A linear layer stays; others are a product and a sum."""
    is_bias = c is None or (c.tensor is not None and b.tensor is not None
                            and c.ranked_shape[-1:] == b.ranked_shape[:1 if transB else None][-1:]
                            and c.array().size == c.ranked_shape[-1] and c.rank > 0)  # fmt: skip
    is_linear = b.tensor is not None and b.type.kind == "f" and is_bias
    if is_linear and alpha == 1 and beta == 1 and not transA:
        return None
    return gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@writes("Gemm", only={"alpha": (1.0,), "beta": (1.0,), "transA": (0,)})
def write_gemm(t: TorchBuilder, a: Value, b: Value, c: Value | None = None, *, transB: int):
    weight = b if transB else transpose(t, b)
    if c is not None and c.rank != 1:
        c = derive(t, c, lambda v: v.reshape(-1), (c.array().size,))
    return write_linear(t, a, weight, c)


@writes.for_each({"MaxPool": "max", "AveragePool": "avg"}, only=FIXED_PADS,
                 ignore=("storage_order",))  # fmt: skip
def write_pool(
    kind: str, t: TorchBuilder, x: Value, *, kernel_shape: Ints, strides: Ints, pads: Ints,
    dilations: Ints = (), ceil_mode: int = 0, count_include_pad: int = 0,
):  # fmt: skip
    count = len(kernel_shape)
    require(count < 4, f"pooling over {count} axes")
    even = tuple(pads[:count])
    include = None
    if kind == "avg":
        require(set(dilations) <= {1}, "means of windows with gaps")
        include = None if count_include_pad or not any(even) else False
    options = {
        "stride": plain(strides) if tuple(strides) != tuple(kernel_shape) else None,
        "padding": plain(even) if any(even) else None,
        "dilation": plain(dilations) if dilations and set(dilations) != {1} else None,
        "ceil_mode": True if ceil_mode else None,
        "count_include_pad": include,
    }
    return t[f"F.{kind}_pool{count}d"](x, plain(kernel_shape), **options)


@writes.for_each({"GlobalAveragePool": ".mean", "GlobalMaxPool": ".amax"})
def write_global_pool(name: str, t: TorchBuilder, x: Value):
    return t[name](x, dim=tuple(range(2, x.rank)), keepdim=True)


@legalizations("Dropout")
def legalize_dropout(g, x, ratio=None, mode=None, *, seed: int | None = None, outputs: int = 1):
    """One of inference is a module, which drops when it is trained."""
    is_on = mode is not None and mode.tensor is not None and bool(mode.array().all())
    if is_on and (ratio is None or ratio.tensor is not None):
        return draw_dropped(g, x, 0.5 if ratio is None else float(ratio.array()), outputs)
    is_off = mode is None or (mode.tensor is not None and not mode.array().any())
    if is_off and outputs == 1 and (ratio is None or ratio.tensor is not None):
        return None if mode is None else g.Dropout(x, ratio)
    return normalization.drop_nothing(g, x, ratio, mode, seed=seed, outputs=outputs)


def draw_dropped(g, x: Value, rate: float, outputs: int):
    """Dropout that drops outside of training too, with the mask of what it keeps."""
    drawn = g.RandomUniformLike(x, dtype=FLOAT)
    mask = g.GreaterOrEqual(drawn, rate)
    kept = g.Where(mask, g.Div(x, 1 - rate), 0.0) if rate < 1 else g.Mul(x, 0.0)
    return (kept, mask)[:outputs] if outputs > 1 else kept


@writes("Dropout", ignore=("seed",))
def write_dropout(t: TorchBuilder, x: Value, ratio: Value | None = None):
    rate = 0.5 if ratio is None else shorten(float(ratio.array()))
    return t.module("nn.Dropout", [x], () if rate == 0.5 else (rate,))


@writes.for_each({"AlphaDropout": "nn.AlphaDropout", "FeatureDropout": "nn.Dropout{}d"})
def write_composite_dropout(name: str, t: TorchBuilder, x: Value, *, rate: float):
    """Composite operators: ``serde.decompositions.composites``."""
    require(x.rank < 6, f"{x.rank - 2} axes behind those of channels. Reshape the tensor")
    return t.module(name.format(x.rank - 2), [x], () if rate == 0.5 else (rate,))


@writes("AdaptivePool")
def write_adaptive_pool(t: TorchBuilder, x: Value, *, output_size: Ints, kind: str):
    """A composite operator: ``serde.decompositions.composites``."""
    call = "avg" if kind == MEAN else "max"
    return t[f"F.adaptive_{call}_pool{x.rank - 2}d"](x, plain(output_size))


@writes("Resize")
def write_resize(
    t: TorchBuilder, x: Value, roi: Value | None = None, scales: Value | None = None,
    sizes: Value | None = None, *, mode: str, coordinate_transformation_mode: str, antialias: int,
    **form,
):  # fmt: skip
    """Only forms that ``interpolates`` has found to be PyTorch's are left."""
    how = "nearest"
    if mode == "linear":
        how = {3: "linear", 4: "bilinear", 5: "trilinear"}[x.rank]
    elif mode == "cubic":
        how = "bicubic"
    options = {}
    if mode != "nearest":
        corners = coordinate_transformation_mode == "align_corners"
        options = {"align_corners": corners or None, "antialias": bool(antialias) or None}
    if sizes is not None:
        elements = index_elements(t, sizes, x.rank, x)
        return t.F.interpolate(x, size=tuple(elements[2:]), mode=how, **options)
    assert scales is not None
    factors = tuple(float(f) for f in scales.array()[2:])
    return t.F.interpolate(x, scale_factor=factors, mode=how, **options)


SAMPLES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


@legalizations("GridSample")
def grid_sample(g, x: Value, grid: Value, *, mode: str, **borders):
    """``GridSample``: PyTorch samples floats of two or three axes, at places of their type."""
    is_usual = x.rank == 4 or (x.rank == 5 and mode != "cubic")
    if x.type not in (DType.FLOAT32, DType.FLOAT64) or not is_usual:
        return g.decompose("GridSample", 16, x, grid, mode=mode, **borders)
    if grid.type is x.type:
        return None
    return g.GridSample(x, g.cast_like(grid, x), mode=mode, **borders)


@writes("GridSample")
def write_grid_sample(
    t: TorchBuilder, x: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: int
):
    options = {"mode": SAMPLES[mode], "padding_mode": padding_mode}
    changed = {k: v for k, v in options.items() if v not in ("bilinear", "zeros")}
    return t.F.grid_sample(x, grid, **changed, align_corners=bool(align_corners))
