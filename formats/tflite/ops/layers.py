"""Convolutions, pools, products and resized images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.decompositions.elementwise import gemm
from serde.decompositions.normalization import drop_nothing
from serde.errors import require
from serde.ir.dim_expr import add, combine
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Shape, Value
from serde.passes.layout.place import to_first, to_last
from serde.version_converter.adapters.indexing import extreme_value

from ..target import TfliteBuilder, is_weight, legalizations, padded_shape, writes
from .elementwise import broadcast_shape
from .shapes import find_lengths

SAME, VALID = 0, 1  # of the enumeration Padding
FIXED = {"auto_pad": ("NOTSET",)}


def agrees_with_same(sizes, covers, strides, pads) -> bool:
    """Whether pads are those that ``SAME`` stands for."""
    n = len(covers)
    for size, cover, stride, begin, end in zip(
        sizes, covers, strides, pads[:n], pads[n:], strict=True
    ):
        if isinstance(size, int):
            total = max((-(-size // stride) - 1) * stride + cover - size, 0)
        elif stride == 1:
            total = cover - 1
        else:
            return False
        if (begin, end) != (total // 2, total - total // 2):
            return False
    return True


def crops_as_same(sizes, kernel, strides, pads) -> bool:
    """Whether a transposed convolution is cropped to what ``SAME`` stands for, of any size."""
    n, sizes = len(kernel), [d if isinstance(d, int) else 1 for d in sizes]
    crops = [a + b for a, b in zip(pads[:n], pads[n:], strict=True)]
    results = [
        (size - 1) * s + k - crop
        for size, s, k, crop in zip(sizes, strides, kernel, crops, strict=True)
    ]
    is_size = all(-(-r // s) == size for r, s, size in zip(results, strides, sizes, strict=True))
    return is_size and agrees_with_same(results, kernel, strides, pads)


def pad_image(t: TfliteBuilder, x: Value, pads: Ints, fill: float = 0.0) -> Value:
    """An image with channels last, padded by a PAD, or a PADV2 of another number than 0."""
    require(min(pads) >= 0, "negative pads. Cut the data with a Slice")
    half = len(pads) // 2
    ends = [[0, 0], *[[a, b] for a, b in zip(pads[:half], pads[half:], strict=True)], [0, 0]]
    shape = padded_shape(x, ends)
    operands = [x, t.ints(ends)]
    if fill == 0:
        return t.make("PAD", operands, x.dtype, shape)
    return t.make("PADV2", [*operands, t.const(np.asarray(fill, x.type.numpy))], x.dtype, shape)


def place_window(t: TfliteBuilder, x: Value, covers, strides, pads, fill: float = 0.0):
    """The image with channels last that windows move over, and the kind of padding."""
    image = t.last(x)
    if not any(pads):
        return image, VALID
    if agrees_with_same(x.ranked_shape[2:], covers, strides, pads):
        return image, SAME
    return pad_image(t, image, pads, fill), VALID


def last_shape(shape):
    """A shape with channels first, in the order of channels last."""
    return (shape[0], *shape[2:], shape[1])


def window_result(x: Value, channels: int, covers, strides, pads):
    """The shape with channels first of what windows make of an image; None has no name."""
    frame = zip(x.ranked_shape[2:], pads[:2], pads[2:], covers, strides, strict=True)
    sizes = [
        (d + a + b - c) // s + 1 if isinstance(d, int)
        else d if s == 1 and a + b == c - 1 else None
        for d, a, b, c, s in frame
    ]  # fmt: skip
    return (x.ranked_shape[0], channels, *sizes)


@writes("Conv", only=FIXED, ignore=("kernel_shape",))
def write_conv(t: TfliteBuilder, x: Value, w: Value, b: Value | None = None, *, strides: Ints,
               dilations: Ints, pads: Ints, group: int):  # fmt: skip
    if x.rank == 5:
        return convolve_volume(t, x, w, b, strides, dilations, pads)
    outs, per_group, *kernel = w.static_shape
    covers = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    image, padding = place_window(t, x, covers, strides, pads)
    shape = window_result(x, outs, covers, strides, pads)
    options = {
        "padding": padding, "stride_h": strides[0], "stride_w": strides[1],
        "dilation_h_factor": dilations[0], "dilation_w_factor": dilations[1],
    }  # fmt: skip
    bias = b if b is not None else t.const(np.zeros(outs, np.float32))
    is_deep = per_group == 1 and group == x.ranked_shape[1]
    if is_deep:
        weights = t.transpose(w, (1, 2, 3, 0))
        options["depth_multiplier"] = outs // group
    else:
        weights = t.transpose(w, (0, 2, 3, 1))
    code = "DEPTHWISE_CONV_2D" if is_deep else "CONV_2D"
    return t.first(t.make(code, [image, weights, bias], x.dtype, last_shape(shape), **options))


def count_all_but_samples(x: Value) -> list[int]:
    """The sizes of an image, of which the number of samples may have a name."""
    sizes = [d for d in x.ranked_shape[1:] if isinstance(d, int)]
    require(len(sizes) == x.rank - 1, "a size by name. Give numbers (--static, --input)")
    return sizes


def convolve_volume(t: TfliteBuilder, x, w, b, strides, dilations, pads) -> Value:
    """A CONV_3D of one group."""
    outs, _, *kernel = w.static_shape
    covers = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    image, padding = place_window(t, x, covers, strides, pads)
    _, *sizes = count_all_but_samples(x)
    ends = zip(sizes, pads[:3], pads[3:], covers, strides, strict=True)
    planes = [(n + a + b - c) // s + 1 for n, a, b, c, s in ends]
    shape = (x.ranked_shape[0], *planes, outs)
    operands = [image, t.transpose(w, (2, 3, 4, 1, 0)), *(() if b is None else (b,))]
    options = name_axes("stride", strides) | name_axes("dilation", dilations, "_factor")
    return t.first(t.make("CONV_3D", operands, x.dtype, shape, padding=padding, **options))


def name_axes(name: str, sizes: Ints, end: str = ""):
    """Options of three axes."""
    return {f"{name}_{axis}{end}": n for axis, n in zip("dhw", sizes, strict=True)}


@writes("ConvTranspose", only={**FIXED, "group": (1,)}, ignore=("kernel_shape",))
def write_conv_transpose(
    t: TfliteBuilder, x: Value, w: Value, b: Value | None = None, *, strides: Ints,
    dilations: Ints, pads: Ints, output_padding: Ints = (),
):  # fmt: skip
    _, outs, *kernel = w.static_shape
    batch, _, *sizes = x.ranked_shape
    is_same = any(pads) and x.rank == 4 and crops_as_same(sizes, kernel, strides, pads)
    require((is_same or not any(pads)) and not any(output_padding) and {*dilations} == {1},
            "pads, output_padding or dilations. Write it as a Conv of a spread image")  # fmt: skip
    half = len(kernel)
    frame = zip(strides, kernel, pads[:half], pads[half:], strict=True)
    more = [k - s - a - b for s, k, a, b in frame]
    grown = [combine("*", n, s) for n, s in zip(sizes, strides, strict=True)]
    shape = (batch, *(add(n, m) for n, m in zip(grown, more, strict=True)), outs)
    bias = () if b is None else (b,)
    image = t.last(x)
    sizes_operand = count_result(t, image, shape, strides, more)
    if x.rank == 5:
        operands = [sizes_operand, t.transpose(w, (2, 3, 4, 1, 0)), image, *bias]
        return t.first(t.make("CONV_3D_TRANSPOSE", operands, x.dtype, shape, padding=VALID,
                              **name_axes("stride", strides)))  # fmt: skip
    operands = [sizes_operand, t.transpose(w, (1, 2, 3, 0)), image, *bias]
    y = t.make("TRANSPOSE_CONV", operands, x.dtype, shape, padding=SAME if is_same else VALID,
               stride_h=strides[0], stride_w=strides[1])  # fmt: skip
    return t.first(y)


def count_result(
    t: TfliteBuilder, x: Value, shape: Shape, strides: Ints, more: Sequence[int]
) -> Value:
    """A shape as an operand; sizes by name are those of ``x``, times strides, and some more."""
    if all(isinstance(d, int) for d in shape):
        return t.ints(shape)  # type: ignore[arg-type]
    batch, ends = find_lengths(t, x, range(1), DType.INT32), t.ints(shape[-1:])  # type: ignore[arg-type]
    if all(isinstance(d, int) for d in shape[1:]):
        rows = t.ints(shape[1:-1])  # type: ignore[arg-type]
    else:
        rows = find_lengths(t, x, range(1, x.rank - 1), DType.INT32)
        rows = t.make("MUL", [rows, t.ints(strides)], DType.INT32, rows.shape)
        rows = t.make("ADD", [rows, t.ints(more)], DType.INT32, rows.shape)
    return t.make("CONCATENATION", [batch, rows, ends], DType.INT32, (len(shape),), axis=0)


@writes.for_each({"MaxPool": "MAX_POOL_2D", "AveragePool": "AVERAGE_POOL_2D"},
                 only={**FIXED, "ceil_mode": (0,)},
                 ignore=("storage_order", "count_include_pad", "dilations"))  # fmt: skip
def write_pool(code: str, t: TfliteBuilder, x: Value, *, kernel_shape: Ints, strides: Ints,
               pads: Ints):  # fmt: skip
    fill = float(extreme_value(x.type, False)) if code == "MAX_POOL_2D" else 0.0
    image, padding = place_window(t, x, kernel_shape, strides, pads, fill)
    require(code == "MAX_POOL_2D" or padding == SAME or not any(pads), "pads of a mean")
    shape = window_result(x, x.ranked_shape[1], kernel_shape, strides, pads)
    return t.first(t.make(
        code, [image], x.dtype, last_shape(shape), padding=padding, stride_h=strides[0],
        stride_w=strides[1], filter_height=kernel_shape[0], filter_width=kernel_shape[1],
    ))  # fmt: skip


@writes("LRN")
def write_lrn(t: TfliteBuilder, x: Value, *, size: int, alpha: float, beta: float, bias: float):
    """A kernel adds up, and ONNX takes the mean."""
    return t.first(t.make(
        "LOCAL_RESPONSE_NORMALIZATION", [t.last(x)], x.dtype, last_shape(x.ranked_shape),
        radius=size // 2, bias=bias, alpha=alpha / size, beta=beta,
    ))  # fmt: skip


@legalizations("GlobalAveragePool")
def legalize_global_average(g, x: Value):
    return g.ReduceMean(x, list(range(2, x.rank)))


@legalizations("GlobalMaxPool")
def legalize_global_max(g, x: Value):
    return g.ReduceMax(x, list(range(2, x.rank)))


@legalizations("Dropout")
def legalize_dropout(g, x: Value, ratio=None, mode=None, *, seed=None, outputs: int = 1):
    """One of inference drops nothing."""
    return drop_nothing(g, x, ratio, mode, seed=seed, outputs=outputs)


@legalizations("InstanceNormalization")
def legalize_instance_norm(g, x: Value, scale: Value, b: Value, *, epsilon: float):
    """A difference and a quotient by sample and channel; of many axes of each those are one."""
    if x.rank > 4:
        y = g.InstanceNormalization(g.Reshape(x, [0, 0, -1]), scale, b, epsilon=epsilon)
        return g.reshape(y, [*g.sizes_of(x)])
    return scale_channels(g, standardize(g, x, list(range(2, x.rank)), epsilon), scale, b)


@legalizations("GroupNormalization")
def legalize_group_norm(
    g, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float, stash_type: int
):
    """A difference and a quotient by sample and group, with channels last where these are split.

    So no axis but those of channels and places is of another size.
    """
    count, channels, sizes = num_groups, x.ranked_shape[1], g.sizes_of(x)[2:]
    if x.rank not in (3, 4) or x.dtype is not DType.FLOAT32 or not isinstance(channels, int):
        form = {"num_groups": count, "epsilon": epsilon, "stash_type": stash_type}
        return g.decompose("GroupNormalization", 21, x, scale, bias, **form)
    if count == 1 or count == channels:
        axes = list(range(1 if count == 1 else 2, x.rank))
        return scale_channels(g, standardize(g, x, axes, epsilon), scale, bias)
    last = g.Transpose(x, perm=to_last(x.rank))
    groups = g.Reshape(last, [0, -1, count, channels // count])
    normal = g.reshape(standardize(g, groups, [1, 3], epsilon), [0, *sizes, channels])
    return scale_channels(g, g.Transpose(normal, perm=to_first(x.rank)), scale, bias)


def standardize(g, x: Value, axes: Sequence[int], epsilon: float):  # type: ignore[no-untyped-def]
    """What is left of the mean along axes, in terms of the deviation."""
    centered = g.Sub(x, g.ReduceMean(x, axes))
    variance = g.ReduceMean(g.Mul(centered, centered), axes)
    return g.Div(centered, g.Sqrt(g.Add(variance, epsilon)))


def scale_channels(g, x: Value, scale: Value, bias: Value):  # type: ignore[no-untyped-def]
    """A factor and a summand for each channel; those that change nothing are left out."""
    places = list(range(1, x.rank - 1))
    if not is_constant_of(scale, 1):
        x = g.Mul(x, g.Unsqueeze(scale, places))
    return x if is_constant_of(bias, 0) else g.Add(x, g.Unsqueeze(bias, places))


def is_constant_of(value: Value, number: int) -> bool:
    """Whether all elements of a constant are one number."""
    return value.tensor is not None and bool((value.array() == number).all())


@legalizations("Gemm")
def legalize_gemm(g, a, b, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """A layer of constants stays; others are a product and a sum."""
    columns = b.ranked_shape[0 if transB else 1]
    is_bias = c is None or (is_weight(g, c) and c.ranked_shape in ((columns,), (1, columns)))
    if is_weight(g, b) and is_bias and alpha == 1 and beta == 1 and not transA:
        return None
    return gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@writes("Gemm", only={"alpha": (1.0,), "beta": (1.0,), "transA": (0,)})
def write_gemm(t: TfliteBuilder, a: Value, b: Value, c: Value | None = None, *, transB: int):
    weights = b if transB else t.transpose(b, (1, 0))
    bias = None if c is None else t.reshape(c, (c.ranked_shape[-1],))
    return connect(t, a, weights, bias)


def connect(t: TfliteBuilder, x: Value, weights: Value, bias: Value | None) -> Value:
    """A FULLY_CONNECTED along the last axis."""
    shape = (*x.ranked_shape[:-1], weights.static_shape[0])
    options = {"keep_num_dims": 1} if x.rank != 2 else {}
    return t.make("FULLY_CONNECTED", [x, weights, bias], x.dtype, shape, **options)


KERNEL_AXES = 5  # of a product of matrices


@legalizations("MatMul")
def legalize_matmul(g, a, b):
    """Vectors become matrices, and many axes of matrices one; kernels repeat at most five."""
    if a.rank == 1:
        return g.Squeeze(g.MatMul(g.Unsqueeze(a, [0]), b), [-1 if b.rank == 1 else -2])
    if b.rank == 1:
        return g.Squeeze(g.MatMul(a, g.Unsqueeze(b, [1])), [-1])
    return merge_matrices(g, a, b) if max(a.rank, b.rank) > KERNEL_AXES else None


def merge_matrices(g, a: Value, b: Value):
    """The product of matrices along one axis; of the rows of all with one matrix, if it is one."""
    rank = max(a.rank, b.rank)
    of_a, of_b = ([*[1] * (rank - v.rank), *g.sizes_of(v)] for v in (a, b))
    lead = [y if is_one(x) else x for x, y in zip(of_a[:-2], of_b[:-2], strict=True)]
    (rows, inner), columns = of_a[-2:], of_b[-1]
    if all(map(is_one, of_b[:-2])):
        y = g.MatMul(g.reshape(a, [-1, inner]), g.reshape(b, [inner, columns]))
    else:
        a, b = (g.Expand(v, g.shape_from([*lead, *matrix]))
                for v, matrix in ((a, (rows, inner)), (b, (inner, columns))))  # fmt: skip
        y = g.MatMul(g.reshape(a, [-1, rows, inner]), g.reshape(b, [-1, inner, columns]))
    return g.reshape(y, [*lead, rows, columns])


def is_one(size: int | Value) -> bool:
    """Whether a size is known to be 1."""
    return isinstance(size, int) and size == 1


@writes("MatMul")
def write_matmul(t: TfliteBuilder, a: Value, b: Value):
    if t.is_weight(b) and b.rank == 2 and a.rank > 1:
        return connect(t, a, t.transpose(b, (1, 0)), None)
    lead = broadcast_shape([Value("", None, v.ranked_shape[:-2]) for v in (a, b)])
    shape = (*lead, a.ranked_shape[-2], b.ranked_shape[-1])
    return t.make("BATCH_MATMUL", [a, b], a.dtype, shape)


@writes.for_each({"DepthToSpace": "DEPTH_TO_SPACE", "SpaceToDepth": "SPACE_TO_DEPTH"})
def write_space(code: str, t: TfliteBuilder, x: Value, *, blocksize: int, mode: str = "DCR"):
    require(mode == "DCR", f"mode={mode}. Use DCR")
    c, h, w = count_all_but_samples(x)
    b = blocksize
    sizes = (h * b, w * b, c // b**2) if code == "DEPTH_TO_SPACE" else (h // b, w // b, c * b**2)
    shape = (x.ranked_shape[0], *sizes)
    return t.first(t.make(code, [t.last(x)], x.dtype, shape, block_size=b))
