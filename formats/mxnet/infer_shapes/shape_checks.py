"""Refuse the shapes that MXNet's own shape inference refuses, where a rule converts them.

ONNX takes more: it broadcasts what MXNet wants to be alike, and cuts slices to what there is. A
symbol that MXNet refuses would become a model that fails later, or computes what nobody meant. The
reasons are MXNet's; tests/mxnet/test_shape_checks.py asks it again. Sizes that are not known are
taken to fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import Dim, Node, Shape, Value, show_shape

from ..bind.declared import SHAPES
from ..rules import Bounds, parse
from .relations import ALIKE

Attrs = Mapping[str, Any]
Check = Callable[[Attrs, Sequence[Shape]], None]
CHECKS: dict[str, Check] = {}
MAY_BE_EMPTY = frozenset({"_split_v2"})  # MXNet's own tests split off parts without elements


def check_shapes(
    has_numpy_shapes: bool, node: Node, inputs: Sequence[Value | None],
    results: Sequence[Value | None],
) -> None:  # fmt: skip
    """Refuse a node whose operands MXNet does not take, or whose result has no elements.

    MXNet takes a size of 0 as one that is not known, unless the symbol ``has_numpy_shapes``, which
    operators of NumPy's and scalars tell as well. Parts of a split may have no elements.

    Raises:
        ConversionError: with the shapes.
    """
    shapes = [v.shape for v in inputs if v is not None and v.shape is not None]
    if len(shapes) == len(inputs):
        if node.op in CHECKS:
            CHECKS[node.op](node.attrs, shapes)
        if node.op in SHAPES:
            for shape, declared in zip(shapes[1:], SHAPES[node.op](node.attrs), strict=False):
                require_same(shape, declared)
    has_numpy_shapes = has_numpy_shapes or node.op.startswith("_np") or () in shapes
    may_be_empty = has_numpy_shapes or node.op in MAY_BE_EMPTY
    if may_be_empty or not shapes or any(0 in s for s in shapes):
        return
    for v in results[: len(node.outputs)]:
        if v is not None and v.shape is not None and 0 in v.shape:
            raise ConversionError(f"the result has no elements: its shape is {show_shape(v.shape)}")


def register_check(*ops: str) -> Callable[[Check], Check]:
    """Enter a check for operators."""

    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(ops, check))
        return check

    return register


def are_different(a: Dim, b: Dim) -> bool:
    """Whether two sizes are known and not the same."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def require_same(a: Shape, b: Shape) -> None:
    """Refuse shapes that differ; a scalar stands for one of a single element."""
    same = len(a) == len(b) and not any(map(are_different, a, b))
    require(same or {a, b} == {(), (1,)}, f"operands of shapes {show_shape(a)} and {show_shape(b)}")


@register_check(*ALIKE, "_scatter_elemwise_div", "_logical_and", "_logical_or", "_logical_xor")
def _check_elementwise(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    for other in shapes[1:]:
        require_same(shapes[0], other)


@register_check("slice", "_slice_assign_scalar")
def _check_slice(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    require(0 not in parse(Bounds, attrs.get("step", "()")), f"step={attrs.get('step')}")


@register_check("slice_axis")
def _check_slice_axis(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    size = shapes[0][axis_of(parse(int, attrs["axis"]), len(shapes[0]))]
    if not isinstance(size, int):
        return
    begin, end = parse(int, attrs["begin"]), parse(int | None, attrs.get("end", "None"))
    begin = begin + size if begin < 0 else begin
    end = size if end is None else end + size if end < 0 else end
    bounds = f"begin={attrs['begin']}, end={attrs.get('end', 'None')}"
    require(0 <= begin < end <= size, f"{bounds} of an axis of {size}")


@register_check("_split_v2")
def _check_split(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    size = shapes[0][axis_of(parse(int, attrs.get("axis", "1")), len(shapes[0]))]
    indices = parse(Ints, attrs.get("indices", "()"))
    inside = not isinstance(size, int) or max(indices, default=0) <= size
    fits = inside and list(indices) == sorted(indices)
    require(parse(int, attrs.get("sections", "0")) or fits, f"{indices=} of an axis of {size}")


@register_check("squeeze")
def _check_squeeze(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    axes = axes_of(parse(Ints | None, attrs.get("axis", "None")) or (), len(shapes[0]))
    wide = [shapes[0][a] for a in axes if are_different(shapes[0][a], 1)]
    require(not wide, f"axis={attrs.get('axis')} of shape {show_shape(shapes[0])}")


@register_check("transpose")
def _check_transpose(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    axes, rank = parse(Ints, attrs.get("axes", "()")), len(shapes[0])
    require(len(axes) in (0, rank), f"{axes=} of a tensor of {rank} axes")


@register_check("Pad")
def _check_pad(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    width, rank = parse(Ints, attrs["pad_width"]), len(shapes[0])
    require(rank in (4, 5), f"a tensor of {rank} axes; MXNet pads those of 4 and 5")
    require(not any(width[:4]), f"pad_width={width}: MXNet pads neither of the first two axes")
    if attrs.get("mode") == "reflect":
        pairs = zip(shapes[0], width[::2], width[1::2], strict=True)
        fits = all(not isinstance(d, int) or max(a, b) < d for d, a, b in pairs)
        require(fits, f"pad_width={width} of shape {show_shape(shapes[0])}, which is no larger")


@register_check("broadcast_to")
def _check_broadcast_to(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    wide = parse(Ints, attrs.get("shape", "()"))
    fits = len(wide) == len(shapes[0]) and not any(
        e and d != 1 and are_different(d, e) for d, e in zip(shapes[0], wide, strict=True)
    )
    require(fits, f"shape={wide} for a tensor of shape {show_shape(shapes[0])}")


@register_check("broadcast_axis")
def _check_broadcast_axis(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    axes = parse(Ints, attrs.get("axis", "()"))
    require(min(axes, default=0) >= 0, f"axis={axes}: MXNet counts them from the front")
    wide = [a for a in axes if a >= len(shapes[0]) or are_different(shapes[0][a], 1)]
    require(not wide, f"axis={axes} of shape {show_shape(shapes[0])}, which are not all of size 1")


@register_check("broadcast_like")
def _check_broadcast_like(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    x, like = shapes
    mine = parse(Ints | None, attrs.get("lhs_axes", "None"))
    other = parse(Ints | None, attrs.get("rhs_axes", "None"))
    if mine is None or other is None:
        require(len(x) == len(like), f"shapes {show_shape(x)} and {show_shape(like)}")
        mine = other = tuple(range(len(x)))
    pairs = [(x[a], like[b]) for a, b in zip(axes_of(mine, len(x)), axes_of(other, len(like)),
                                             strict=True)]  # fmt: skip
    fits = not any(d != 1 and are_different(d, e) for d, e in pairs)
    require(fits, f"shape {show_shape(x)} like {show_shape(like)}")


@register_check("dot")
def _check_dot(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    turned = any(parse(bool, attrs.get(f"transpose_{x}", "False")) for x in "ab")
    require(max(map(len, shapes)) > 1 or not turned, "a vector has nothing to transpose")


@register_check("batch_dot")
def _check_batch_dot(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    a, b = shapes
    require(
        len(a) == len(b) >= 3, f"shapes {show_shape(a)} and {show_shape(b)}, not of 3 axes or more"
    )
    require_same(a[:-2], b[:-2])


@register_check("_linalg_gemm2")
def _check_gemm2(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    a, b = shapes
    require(
        len(a) == len(b) >= 2, f"shapes {show_shape(a)} and {show_shape(b)}, not of 2 axes or more"
    )
    if parse(int, attrs.get("axis", "-2")) == -2:
        require_same(a[:-2], b[:-2])


@register_check("pick")
def _check_pick(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    axis = parse(int | None, attrs.get("axis", "-1"))
    if axis is None:
        return
    x, index = shapes
    at = axis_of(axis, len(x))
    kept = tuple(1 if i == at else d for i, d in enumerate(x))
    require_same(kept if len(index) == len(x) else kept[:at] + kept[at + 1 :], index)


@register_check("where")
def _check_where(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    condition, x, y = shapes
    require_same(x, y)
    if len(condition) != 1 or len(x) < 2:
        require_same(condition, x)


@register_check("gather_nd")
def _check_gather_nd(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    require(len(shapes[1]) > 1, f"indices of shape {show_shape(shapes[1])}, which has one axis")


@register_check("slice_like")
def _check_slice_like(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    x, like = shapes
    axes = parse(Ints, attrs.get("axes", "()"))
    require(axes or len(x) == len(like), f"shape {show_shape(x)} like {show_shape(like)}")
    for axis in axes_of(axes, len(x)) or range(len(x)):
        require(axis < len(like), f"axis {axis} of shape {show_shape(like)}")
        d, e = x[axis], like[axis]
        fits = not (isinstance(d, int) and isinstance(e, int)) or d >= e
        require(fits, f"shape {show_shape(x)} like {show_shape(like)}, which is larger")


@register_check("reshape_like")
def _check_reshape_like(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    whole = not any(k in attrs for k in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end"))
    static = all(isinstance(d, int) for s in shapes for d in s)
    if whole and static:
        sizes = [math.prod(d for d in s if isinstance(d, int)) for s in shapes]
        require(sizes[0] == sizes[1], f"{sizes[0]} elements in the shape {show_shape(shapes[1])}")


@register_check("depth_to_space")
def _check_depth(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    _require_blocks(shapes[0], {1: parse(int, attrs["block_size"]) ** 2})


@register_check("space_to_depth")
def _check_space(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    block = parse(int, attrs["block_size"])
    _require_blocks(shapes[0], {2: block, 3: block})


def _require_blocks(shape: Shape, blocks: Mapping[int, int]) -> None:
    require(len(shape) == 4, f"data of shape {show_shape(shape)}, which is no image")
    for axis, block in blocks.items():
        size = shape[axis]
        fits = block > 0 and (not isinstance(size, int) or size % block == 0)
        require(fits, f"blocks of {block} in axis {axis} of shape {show_shape(shape)}")


@register_check("FullyConnected")
def _check_dense(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    x, w = shapes[:2]
    sizes = x[1:] if parse(bool, attrs.get("flatten", "True")) else x[-1:]
    count = None
    if all(isinstance(d, int) for d in sizes):
        count = math.prod(d for d in sizes if isinstance(d, int))
    require_same(w, (parse(int, attrs["num_hidden"]), count))


@register_check("LayerNorm")
def _check_layer_norm(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    size = shapes[0][axis_of(parse(int, attrs.get("axis", "-1")), len(shapes[0]))]
    for row in shapes[1:]:
        _require_row(row, size)


@register_check("GroupNorm")
def _check_group_norm(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    x = shapes[0]
    require(len(x) > 2, f"data of shape {show_shape(x)}, which has fewer than three axes")
    for row in shapes[1:]:
        require(len(row) == 1, f"parameters of shape {show_shape(row)}, which is not a row")


@register_check("InstanceNorm")
def _check_instance_norm(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    require(len(shapes[0]) > 1, f"data of shape {show_shape(shapes[0])}, which has no channels")
    for row in shapes[1:]:
        _require_row(row, shapes[0][1])


@register_check("RNN")
def _check_rnn(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    x = shapes[0]
    require(len(x) == 3, f"data of shape {show_shape(x)}, which has not three axes")


def _require_row(row: Shape, size: Dim) -> None:
    fits = len(row) == 1 and not are_different(row[0], size)
    require(fits, f"parameters of shape {show_shape(row)}, and there are {size} channels")


@register_check("L2Normalization")
def _check_l2(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    mode, rank = attrs.get("mode", "instance"), len(shapes[0])
    require(mode == "instance" or rank >= 3, f"{mode=} of a tensor of {rank} axes")


@register_check("SequenceLast", "SequenceMask", "SequenceReverse")
def _check_sequence(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    axis, rank = parse(int, attrs.get("axis", "0")), len(shapes[0])
    require(rank > 1, f"a sequence of shape {show_shape(shapes[0])}, which has no axis for samples")
    require(axis in (0, 1), f"axis={axis}; MXNet takes 0 and 1")


@register_check("Crop")
def _check_crop(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    require(len(shapes[0]) == 4, f"data of shape {show_shape(shapes[0])}, which is no image")
    size = parse(Ints, attrs.get("h_w", "(0,0)")) if len(shapes) == 1 else shapes[1][2:]
    is_centered = parse(bool, attrs.get("center_crop", "False"))
    offset = (0, 0) if is_centered else parse(Ints, attrs.get("offset", "(0,0)"))
    for d, e, o in zip(shapes[0][2:], size, offset, strict=True):
        fits = not (isinstance(d, int) and isinstance(e, int)) or o + e <= d
        require(fits, f"h_w={tuple(size)} at {offset} of shape {show_shape(shapes[0])}")


@register_check("Pooling", "Pooling_v1", "Convolution", "Convolution_v1", "im2col")
def _check_window(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    if parse(bool, attrs.get("global_pool", "False")):
        return
    kernel, x = parse(Ints, attrs.get("kernel", "()")), shapes[0]
    require(len(x) == len(kernel) + 2, f"{kernel=} over data of shape {show_shape(x)}")
    space = x[1:-1] if str(attrs.get("layout")).endswith("C") else x[2:]
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    dilate = parse(Ints, attrs.get("dilate", "()")) or ones
    pad = parse(Ints, attrs.get("pad", "()")) or zeros
    for d, k, w, p in zip(space, kernel, dilate, pad, strict=True):
        fits = not isinstance(d, int) or w * (k - 1) + 1 <= d + 2 * p
        require(fits, f"{kernel=}, {dilate=}, {pad=} over data of shape {show_shape(x)}")


@register_check(
    "_contrib_AdaptiveAvgPooling2D", "_contrib_BilinearResize2D", "UpSampling", "BilinearSampler"
)
def _check_image(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    require(len(shapes[0]) == 4, f"data of shape {show_shape(shapes[0])}, which is no image")
    scale = attrs.get("scale", "1")
    require(parse(float, scale) > 0, f"{scale=}")


@register_check(
    "_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt"
)
def _check_attention(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    for shape in shapes:
        require(len(shape) == 3, f"an operand of shape {show_shape(shape)}, not of three axes")


@register_check("_contrib_index_copy")
def _check_index_copy(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    old, index, new = shapes
    require(len(index) == 1, f"indices of shape {show_shape(index)}, which are not in a row")
    require_same((*index, *old[1:]), new)


@register_check("batch_take")
def _check_batch_take(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    a, index = shapes
    require(len(a) > 1, f"data of shape {show_shape(a)}, which has one axis")
    if all(isinstance(d, int) for d in (*a, *index)):
        rows, count = (math.prod(d for d in s if isinstance(d, int)) for s in (a[:-1], index))
        require(rows == count, f"{count} indices of {rows} rows")


@register_check("_slice_assign")
def _check_slice_assign(attrs: Attrs, shapes: Sequence[Shape]) -> None:
    bounds = [parse(Bounds, attrs.get(k, "()")) for k in ("begin", "end", "step")]
    begin, end = bounds[:2]
    step = bounds[2] + (None,) * (len(begin) - len(bounds[2]))
    if not all(isinstance(d, int) for d in shapes[0]):
        return
    cut = [
        len(range(d)[slice(a, b, s)])
        for d, a, b, s in zip(shapes[0], begin, end, step, strict=False)
        if isinstance(d, int)
    ]
    require_same((*cut, *shapes[0][len(cut) :]), shapes[1])
