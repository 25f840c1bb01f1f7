"""Output shapes that an operand holds, as far as its elements are known by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

from serde.ir import dim_expr
from serde.ir.graph import Dim, Shape, Value

# Operators, and the input that tells a shape or a part of it.
SHAPE_FUNCTION_OPS = {
    "Concat": 0, "ConstantOfShape": 0, "Expand": 1, "Range": 1, "Reshape": 1, "Resize": 3,
    "Tile": 1, "TopK": 1,
}  # fmt: skip
RANK = 64  # the longest list followed


def refine_shape(
    op: str, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any], onnx_shape: Shape | None
) -> Shape | None:
    """What ONNX's inference said of the first output's shape, and what is known besides."""
    if op == "Resize" and len(inputs) == 3:
        shape = _scale_shape(inputs[0], inputs[2], attrs.get("axes"))
    elif len(inputs) <= SHAPE_FUNCTION_OPS[op]:
        return onnx_shape
    elif op == "Concat":
        shape = _concat_shapes(
            [None if v is None else v.shape for v in inputs], attrs.get("axis", 1)
        )
    else:
        shape = _apply_shape_function(op, inputs, attrs)
    if shape is not None:
        shape = tuple([None if isinstance(d, int) and d < 0 else d for d in shape])
    if onnx_shape is None or shape is None or len(onnx_shape) != len(shape):
        return shape or onnx_shape
    return tuple(_prefer_static(a, b) for a, b in zip(onnx_shape, shape, strict=True))


def refine_window(
    op: str, inputs: Sequence[Value | None], attrs: Mapping[str, Any], onnx_shape: Shape | None
) -> Shape | None:
    """What ONNX's inference said of the shape of a window's results, with sizes by name.

    ``attrs`` have the kernel, strides, dilations and pads written out. The kernel tells the rank
    where that of the operand is not known.
    """
    x = inputs[0]
    if onnx_shape is None and "kernel_shape" in attrs:
        return (None,) * (2 + len(attrs["kernel_shape"]))
    if x is None or x.shape is None or onnx_shape is None or len(onnx_shape) != len(x.shape):
        return onnx_shape
    if "kernel_shape" not in attrs or all(isinstance(d, int) for d in onnx_shape):
        return onnx_shape
    n = len(attrs["kernel_shape"])
    count = _count_outputs if op == "ConvTranspose" else _count_windows
    sizes = [count(size, axis, attrs) for axis, size in zip(range(n), x.shape[2:], strict=True)]
    return tuple(map(_prefer_known, onnx_shape, (x.shape[0], onnx_shape[1], *sizes)))


def refine_stft(
    inputs: Sequence[Value | None], attrs: Mapping[str, Any], onnx_shape: Shape | None
) -> Shape | None:
    """The shape of ``STFT``: samples, frames, frequencies and the two parts of a number."""
    x, step, window, length = (*inputs, None, None)[:4]
    if onnx_shape is not None or x is None or x.shape is None:
        return onnx_shape
    told = dim_expr.shape_data_of(length) or (window.shape if window is not None else None)
    frame, *_ = told or (None,)
    stride, *_ = dim_expr.shape_data_of(step) or (None,)
    if not isinstance(frame, int) or not isinstance(stride, int) or min(frame, stride) < 1:
        return (x.shape[0], None, None, 2)
    count = dim_expr.combine("/", dim_expr.add(x.shape[1], stride - frame), stride)
    return (x.shape[0], count, frame // 2 + 1 if attrs.get("onesided", 1) else frame, 2)


def _count_windows(size: Dim, axis: int, attrs: Mapping[str, Any]) -> Dim:
    """How many places a window has along an axis; None where a size by name does not tell."""
    stride, reach = attrs["strides"][axis], _reach(attrs, axis)
    if attrs.get("auto_pad", "NOTSET") != "NOTSET":
        return dim_expr.combine("/", dim_expr.add(size, stride - 1), stride)
    pads = attrs["pads"]
    end = pads[axis + len(pads) // 2]
    rest = reach - pads[axis] - end
    if not attrs.get("ceil_mode"):
        return dim_expr.combine("/", dim_expr.add(size, stride - rest), stride)
    if end or stride > reach:
        return None  # the last window may begin behind the end, and counts for none
    return dim_expr.combine("/", dim_expr.add(size, 2 * stride - 1 - rest), stride)


def _count_outputs(size: Dim, axis: int, attrs: Mapping[str, Any]) -> Dim:
    """The size of a transposed convolution along an axis; None where other attributes tell it."""
    if "pads" not in attrs or attrs.get("output_shape"):
        return None
    stride, pads = attrs["strides"][axis], attrs["pads"]
    more = (attrs.get("output_padding") or (0,) * len(pads))[axis]
    rest = _reach(attrs, axis) - pads[axis] - pads[axis + len(pads) // 2] + more
    return dim_expr.add(dim_expr.combine("*", size, stride), rest - stride)


def _reach(attrs: Mapping[str, Any], axis: int) -> int:
    """How many places a window covers, with the gaps in it."""
    dilations = attrs.get("dilations")  # which AveragePool has from opset 19 on
    kernel: int = attrs["kernel_shape"][axis]
    return (dilations[axis] if dilations else 1) * (kernel - 1) + 1


def _concat_shapes(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    """The first shape, as long along the axis as all together."""
    ranks = {None if s is None else len(s) for s in shapes}
    rank = ranks.pop()
    if rank is None or ranks or not -rank <= axis < rank:
        return None
    known = [s for s in shapes if s is not None]
    sizes = list(known[0])
    sizes[axis] = reduce(partial(dim_expr.combine, "+"), (s[axis] for s in known))
    return tuple(sizes)


def _scale_shape(x: Value | None, scales: Value | None, axes: Sequence[int] | None) -> Shape | None:
    """The shape of ``Resize`` by constant scales, rounded down."""
    if x is None or x.shape is None or scales is None or scales.tensor is None:
        return None
    sizes, factors = list(x.shape), scales.array().ravel().tolist()
    places = range(len(sizes)) if axes is None else axes
    if len(factors) == len(places):
        for axis, factor in zip(places, factors, strict=True):
            sizes[axis] = _scale(sizes[axis], factor)
    return tuple(sizes) if len(factors) == len(places) else None


def _scale(dim: Dim, factor: float) -> Dim:
    """A size times a whole number or through a power of two; None for other factors."""
    if factor >= 1 and factor.is_integer():
        return dim_expr.combine("*", dim, int(factor))
    if 0 < factor < 1 and math.frexp(factor)[0] == 0.5:
        return dim_expr.combine("/", dim, int(1 / factor))
    return None


def _apply_shape_function(
    op: str, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any]
) -> Shape | None:
    """The shape by the rule of the operator, as far as an operand tells."""
    x, operand = inputs[0], inputs[SHAPE_FUNCTION_OPS[op]]
    target = dim_expr.shape_data_of(operand)
    if target is None and (length := _static_length(operand)) is not None:
        target = (None,) * length  # so many sizes, all unknown
    if target is None or x is None:
        return None
    if op == "ConstantOfShape":
        return target
    if op == "Range":
        return _count_range(*map(dim_expr.shape_data_of, inputs))
    shape = x.shape
    if shape is None:
        return None
    if op == "Expand":
        return _broadcast(shape, target)
    if op == "Reshape":
        return infer_reshape(shape, target, bool(attrs.get("allowzero", 0)))
    if op == "TopK":
        axis = attrs.get("axis", -1) % max(len(shape), 1)
        return (*shape[:axis], target[0] if len(target) == 1 else None, *shape[axis + 1 :])
    if len(target) != len(shape):
        return None
    if op == "Tile":
        return tuple(dim_expr.combine("*", d, n) for d, n in zip(shape, target, strict=True))
    fixed = attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch"
    return None if fixed or attrs.get("axes") else target  # Resize


def _count_range(first: Shape | None, limit: Shape | None, step: Shape | None) -> Shape | None:
    """As many steps of 1 from 0 as a size, which is not negative, tells."""
    if first != (0,) or step != (1,) or limit is None or "-" in str(limit[0]):
        return None
    return limit


def _static_length(value: Value | None) -> int | None:
    """How many elements a list has, if it is one worth following."""
    if value is None or value.shape is None or len(value.shape) != 1:
        return None
    (size,) = value.shape
    return size if isinstance(size, int) and size <= RANK else None


def _prefer_known(a: Dim, b: Dim) -> Dim:
    return b if a is None else a


def _prefer_static(a: Dim, b: Dim) -> Dim:
    return b if a is None or (isinstance(b, int) and not isinstance(a, int)) else a


def infer_reshape(shape: Shape, expected: Shape, allowzero: bool) -> Shape:
    """Dimensions of a Reshape: 0 copies, -1 is what is left over."""
    out = [
        shape[i] if d == 0 and not allowzero and i < len(shape) else d
        for i, d in enumerate(expected)
    ]
    if -1 not in out:
        return tuple(out)
    place = out.index(-1)
    rest, left = [d for i, d in enumerate(out) if i != place], list(shape)
    for dim in list(rest):  # cancel what stands on both sides, names first
        if dim is not None and dim in left:
            left.remove(dim)
            rest.remove(dim)
    above, below = dim_expr.product(tuple(left)), dim_expr.product(tuple(rest))
    exact = isinstance(above, int) and isinstance(below, int)
    out[place] = above if below == 1 else dim_expr.combine("/", above, below)
    if exact and below == 0:
        out[place] = None
    return tuple(out)


def _broadcast(a: Shape, b: Shape) -> Shape:
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b, strict=True)
    return tuple(_broadcast_dim(x, y) for x, y in pairs)


def _broadcast_dim(x: Dim, y: Dim) -> Dim:
    if x == 1:
        return y
    if y == 1 or x == y:
        return x
    if isinstance(x, int):
        return x
    return y if isinstance(y, int) else None
