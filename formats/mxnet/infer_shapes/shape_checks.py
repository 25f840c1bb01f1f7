"""Refuse the shapes that MXNet's own shape inference refuses, where a rule converts them.

ONNX takes more: it broadcasts what MXNet wants to be alike, and cuts slices to what there is. A
symbol that MXNet refuses would become a model that fails later, or computes what nobody meant. The
reasons are MXNet's; tests/mxnet/test_shape_checks.py asks it again. Sizes that are not known are
taken to fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from serde.errors import ConversionError, require
from serde.ir.geometry import Ints, axes_of, axis_of, may_be_same
from serde.ir.graph import Dim, Node, Shape, Value, show_shape
from serde.rewrite.rules import RuleTable

from ..bind.declared import SHAPES, read_shapes
from ..operators import ALIKE
from ..rules import Bounds, parse

checks = RuleTable("mxnet shapes", parse=parse, hidden=lambda _: True, unset="None")
OPEN = (
    "is one that MXNet infers, and nothing that reads the tensor tells it. Write the size into the "
    "symbol."
)
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
        if (rule := checks.rules.get(node.op)) is not None:
            rule.function(*shapes, **checks.bind(rule, node.op, node.attrs))
        if node.op in SHAPES:
            for shape, declared in zip(shapes[1:], read_shapes(node), strict=False):
                require_same(shape, declared)
    empty = [v.shape for v in results[: len(node.outputs)] if v and v.shape and 0 in v.shape]
    if not empty:
        return
    has_numpy_shapes = has_numpy_shapes or node.op.startswith("_np") or () in shapes
    may_be_empty = has_numpy_shapes or node.op in MAY_BE_EMPTY
    if may_be_empty or any(0 in s for s in shapes):
        return
    text = show_shape(empty[0])
    require(inputs, f"the size 0 in shape={text} {OPEN}")
    raise ConversionError(f"the result has no elements: its shape is {text}")


def are_different(a: Dim, b: Dim) -> bool:
    """Whether two sizes are known and not the same."""
    return not may_be_same(a, b)


def require_same(a: Shape, b: Shape) -> None:
    """Refuse shapes that differ; a scalar stands for one of a single element."""
    same = a == b or (len(a) == len(b) and not any(map(are_different, a, b)))
    if not same and {a, b} != {(), (1,)}:
        raise ConversionError(f"operands of shapes {show_shape(a)} and {show_shape(b)}")


@checks(*ALIKE.split(), "_scatter_elemwise_div", "_logical_and", "_logical_or", "_logical_xor")
def _check_elementwise(first: Shape, *others: Shape) -> None:
    for other in others:
        require_same(first, other)


@checks("slice", "_slice_assign_scalar")
def _check_slice(x: Shape, *, step: Bounds = ()) -> None:
    require(0 not in step, f"step={step}")


@checks("slice_axis")
def _check_slice_axis(x: Shape, *, axis: int, begin: int, end: int | None = None) -> None:
    size = x[axis_of(axis, len(x))]
    if not isinstance(size, int):
        return
    first = begin + size if begin < 0 else begin
    last = size if end is None else end + size if end < 0 else end
    require(0 <= first < last <= size, f"begin={begin}, end={end} of an axis of {size}")


@checks("_split_v2")
def _check_split(x: Shape, *, axis: int = 1, indices: Ints = (), sections: int = 0) -> None:
    size = x[axis_of(axis, len(x))]
    inside = not isinstance(size, int) or max(indices, default=0) <= size
    fits = inside and list(indices) == sorted(indices)
    require(sections or fits, f"{indices=} of an axis of {size}")


@checks("squeeze")
def _check_squeeze(x: Shape, *, axis: Ints | None = None) -> None:
    sizes_above_one = [x[a] for a in axes_of(axis or (), len(x)) if are_different(x[a], 1)]
    require(not sizes_above_one, f"axis={axis} of shape {show_shape(x)}")


@checks("transpose")
def _check_transpose(x: Shape, *, axes: Ints = ()) -> None:
    require(len(axes) in (0, len(x)), f"{axes=} of a tensor of {len(x)} axes")


@checks("Pad")
def _check_pad(x: Shape, *, pad_width: Ints, mode: str = "") -> None:
    require(len(x) in (4, 5), f"a tensor of {len(x)} axes; MXNet pads those of 4 and 5")
    require(not any(pad_width[:4]), f"{pad_width=}: MXNet pads neither of the first two axes")
    if mode == "reflect":
        pairs = zip(x, pad_width[::2], pad_width[1::2], strict=True)
        fits = all(not isinstance(d, int) or max(a, b) < d for d, a, b in pairs)
        require(fits, f"{pad_width=} of shape {show_shape(x)}, which is no larger")


@checks("broadcast_to")
def _check_broadcast_to(x: Shape, *, shape: Ints = ()) -> None:
    fits = len(shape) == len(x) and not any(
        e and d != 1 and are_different(d, e) for d, e in zip(x, shape, strict=True)
    )
    require(fits, f"{shape=} for a tensor of shape {show_shape(x)}")


@checks("broadcast_axis")
def _check_broadcast_axis(x: Shape, *, axis: Ints = ()) -> None:
    require(min(axis, default=0) >= 0, f"{axis=}: MXNet counts them from the front")
    axes_above_one = [a for a in axis if a >= len(x) or are_different(x[a], 1)]
    require(not axes_above_one, f"{axis=} of shape {show_shape(x)}, which are not all of size 1")


@checks("broadcast_like")
def _check_broadcast_like(
    x: Shape, like: Shape, *, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None
) -> None:
    if lhs_axes is None or rhs_axes is None:
        require(len(x) == len(like), f"shapes {show_shape(x)} and {show_shape(like)}")
        lhs_axes = rhs_axes = tuple(range(len(x)))
    pairs = zip(axes_of(lhs_axes, len(x)), axes_of(rhs_axes, len(like)), strict=True)
    fits = not any(x[a] != 1 and are_different(x[a], like[b]) for a, b in pairs)
    require(fits, f"shape {show_shape(x)} like {show_shape(like)}")


@checks("dot")
def _check_dot(a: Shape, b: Shape, *, transpose_a: bool = False, transpose_b: bool = False) -> None:
    turned = transpose_a or transpose_b
    require(max(len(a), len(b)) > 1 or not turned, "a vector has nothing to transpose")


@checks("batch_dot")
def _check_batch_dot(a: Shape, b: Shape) -> None:
    fits = len(a) == len(b) >= 3
    require(fits, f"shapes {show_shape(a)} and {show_shape(b)}, not of 3 axes or more")
    require_same(a[:-2], b[:-2])


@checks("_linalg_gemm2")
def _check_gemm2(a: Shape, b: Shape, *, axis: int = -2) -> None:
    fits = len(a) == len(b) >= 2
    require(fits, f"shapes {show_shape(a)} and {show_shape(b)}, not of 2 axes or more")
    if axis == -2:
        require_same(a[:-2], b[:-2])


@checks("pick")
def _check_pick(x: Shape, index: Shape, *, axis: int | None = -1) -> None:
    if axis is not None:
        at = axis_of(axis, len(x))
        kept = tuple(1 if i == at else d for i, d in enumerate(x))
        require_same(kept if len(index) == len(x) else kept[:at] + kept[at + 1 :], index)


@checks("where")
def _check_where(condition: Shape, x: Shape, y: Shape) -> None:
    require_same(x, y)
    if len(condition) != 1 or len(x) < 2:
        require_same(condition, x)


@checks("gather_nd")
def _check_gather_nd(x: Shape, index: Shape) -> None:
    require(len(index) > 1, f"indices of shape {show_shape(index)}, which has one axis")


@checks("slice_like")
def _check_slice_like(x: Shape, like: Shape, *, axes: Ints = ()) -> None:
    require(axes or len(x) == len(like), f"shape {show_shape(x)} like {show_shape(like)}")
    for axis in [axis_of(a, len(x)) for a in axes] or range(len(x)):
        require(axis < len(like), f"axis {axis} of shape {show_shape(like)}")
        d, e = x[axis], like[axis]
        fits = not (isinstance(d, int) and isinstance(e, int)) or d >= e
        require(fits, f"shape {show_shape(x)} like {show_shape(like)}, which is larger")


@checks("depth_to_space")
def _check_depth(x: Shape, *, block_size: int) -> None:
    _require_blocks(x, {1: block_size**2})


@checks("space_to_depth")
def _check_space(x: Shape, *, block_size: int) -> None:
    _require_blocks(x, {2: block_size, 3: block_size})


def _require_blocks(shape: Shape, blocks: Mapping[int, int]) -> None:
    _require_image(shape)
    for axis, block in blocks.items():
        size = shape[axis]
        fits = block > 0 and (not isinstance(size, int) or size % block == 0)
        require(fits, f"blocks of {block} in axis {axis} of shape {show_shape(shape)}")


def _require_image(shape: Shape) -> None:
    require(len(shape) == 4, f"data of shape {show_shape(shape)}, which is no image")


@checks("FullyConnected")
def _check_dense(
    x: Shape, w: Shape, *bias: Shape, num_hidden: int, flatten: bool = True
) -> None:  # fmt: skip
    sizes = [d for d in (x[1:] if flatten else x[-1:]) if isinstance(d, int)]
    known = len(sizes) == (len(x) - 1 if flatten else 1)
    require_same(w, (num_hidden, math.prod(sizes) if known else None))


@checks("LayerNorm")
def _check_layer_norm(x: Shape, *rows: Shape, axis: int = -1) -> None:
    for row in rows:
        _require_row(row, x[axis_of(axis, len(x))])


@checks("GroupNorm")
def _check_group_norm(x: Shape, *rows: Shape) -> None:
    require(len(x) > 2, f"data of shape {show_shape(x)}, which has fewer than three axes")
    for row in rows:
        require(len(row) == 1, f"parameters of shape {show_shape(row)}, which is not a row")


@checks("InstanceNorm")
def _check_instance_norm(x: Shape, *rows: Shape) -> None:
    require(len(x) > 1, f"data of shape {show_shape(x)}, which has no channels")
    for row in rows:
        _require_row(row, x[1])


@checks("RNN")
def _check_rnn(x: Shape, *rest: Shape) -> None:
    require(len(x) == 3, f"data of shape {show_shape(x)}, which has not three axes")


def _require_row(row: Shape, size: Dim) -> None:
    fits = len(row) == 1 and not are_different(row[0], size)
    require(fits, f"parameters of shape {show_shape(row)}, and there are {size} channels")


@checks("L2Normalization")
def _check_l2(x: Shape, *, mode: str = "instance") -> None:
    require(mode == "instance" or len(x) >= 3, f"{mode=} of a tensor of {len(x)} axes")


@checks("SequenceLast", "SequenceMask", "SequenceReverse")
def _check_sequence(x: Shape, *lengths: Shape, axis: int = 0) -> None:
    require(len(x) > 1, f"a sequence of shape {show_shape(x)}, which has no axis for samples")
    require(axis in (0, 1), f"{axis=}; MXNet takes 0 and 1")


@checks("Crop")
def _check_crop(
    x: Shape, like: Shape | None = None, *, h_w: Ints = (0, 0), center_crop: bool = False,
    offset: Ints = (0, 0),
) -> None:  # fmt: skip
    _require_image(x)
    size, start = h_w if like is None else like[2:], (0, 0) if center_crop else offset
    for d, e, o in zip(x[2:], size, start, strict=True):
        fits = not (isinstance(d, int) and isinstance(e, int)) or o + e <= d
        require(fits, f"h_w={tuple(size)} at {start} of shape {show_shape(x)}")


@checks("Pooling", "Pooling_v1", "Convolution", "Convolution_v1", "im2col")
def _check_window(
    x: Shape, *parameters: Shape, kernel: Ints = (), dilate: Ints = (), pad: Ints = (),
    global_pool: bool = False, layout: str = "",
) -> None:  # fmt: skip
    if global_pool:
        return
    if len(x) != len(kernel) + 2:
        raise ConversionError(f"{kernel=} over data of shape {show_shape(x)}")
    space = x[1:-1] if layout.endswith("C") else x[2:]
    dilate, pad = dilate or (1,) * len(kernel), pad or (0,) * len(kernel)
    for d, k, w, p in zip(space, kernel, dilate, pad, strict=True):
        if isinstance(d, int) and w * (k - 1) >= d + 2 * p:
            shape = show_shape(x)
            raise ConversionError(f"{kernel=}, {dilate=}, {pad=} over data of shape {shape}")


@checks("_contrib_AdaptiveAvgPooling2D", "_contrib_BilinearResize2D", "UpSampling",
        "BilinearSampler")  # fmt: skip
def _check_image(x: Shape, *more: Shape, scale: float = 1.0) -> None:
    _require_image(x)
    require(scale > 0, f"{scale=}")


@checks("_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt")
def _check_attention(*shapes: Shape) -> None:
    for shape in shapes:
        require(len(shape) == 3, f"an operand of shape {show_shape(shape)}, not of three axes")


@checks("_contrib_index_copy")
def _check_index_copy(old: Shape, index: Shape, new: Shape) -> None:
    require(len(index) == 1, f"indices of shape {show_shape(index)}, which are not in a row")
    require_same((*index, *old[1:]), new)


@checks("batch_take")
def _check_batch_take(a: Shape, index: Shape) -> None:
    require(len(a) > 1, f"data of shape {show_shape(a)}, which has one axis")
    if all(isinstance(d, int) for d in (*a, *index)):
        rows, count = (math.prod(d for d in s if isinstance(d, int)) for s in (a[:-1], index))
        require(rows == count, f"{count} indices of {rows} rows")


@checks("_slice_assign")
def _check_slice_assign(
    x: Shape, new: Shape, *, begin: Bounds, end: Bounds, step: Bounds = ()
) -> None:  # fmt: skip
    steps = step + (None,) * (len(begin) - len(step))
    if all(isinstance(d, int) for d in x):
        cut = [len(range(d)[slice(*part)]) for d, *part in zip(x, begin, end, steps, strict=False)
               if isinstance(d, int)]  # fmt: skip
        require_same((*cut, *x[len(cut) :]), new)
