"""Output shapes that an operand holds, as far as its elements are known by name."""

from __future__ import annotations

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
    if len(inputs) <= SHAPE_FUNCTION_OPS[op]:
        return onnx_shape
    if op == "Concat":
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
    own = x.shape
    if own is None:
        return None
    if op == "Expand":
        return _broadcast(own, target)
    if op == "Reshape":
        return infer_reshape(own, target, bool(attrs.get("allowzero", 0)))
    if op == "TopK":
        axis = attrs.get("axis", -1) % max(len(own), 1)
        return (*own[:axis], target[0] if len(target) == 1 else None, *own[axis + 1 :])
    if len(target) != len(own):
        return None
    if op == "Tile":
        return tuple(dim_expr.combine("*", d, n) for d, n in zip(own, target, strict=True))
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
