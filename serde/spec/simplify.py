"""What a node comes to when it does nothing: the operand itself, or a smaller node.

Asked once per emitted node, so rules can write the general form. Each entry returns the Value that
stands for the node's only output, or None when the node must stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Value
from serde.spec.einsum_equation import without_broadcasting
from serde.spec.schema import ELEMENT_CODES

AXES_AS_OPERAND = 13  # the opset from which on the axes of Squeeze are an operand
MERGED = frozenset({"Reshape", "Transpose"})  # that merge with the operator that made their operand
RESHAPING = frozenset({"Reshape", "Unsqueeze"})
Inputs = tuple[Value | None, ...]
Simplify = Callable[[Any, Any, Any], "Value | None"]


def simplify(g: Any, op: str, inputs: Inputs, attrs: Mapping[str, Any]) -> Value | None:
    """The Value the node stands for, when it needs no node or another one."""
    rule = RULES.get(op)
    return rule(g, inputs, attrs) if rule and inputs and inputs[0] is not None else None


def _identity(g: Any, inputs: Any, attrs: Any) -> Value | None:
    return inputs[0]  # type: ignore[no-any-return]


def _cast(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x = inputs[0]
    return x if x.dtype is not None and ELEMENT_CODES[x.dtype] == attrs["to"] else None


def _cast_like(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x, like = inputs
    if like.dtype is None:
        return None
    return g.Cast(x, to=ELEMENT_CODES[like.dtype], **attrs)  # type: ignore[no-any-return]


def _dropout(g: Any, inputs: Any, attrs: Any) -> Value | None:
    training = inputs[2] if len(inputs) > 2 else None
    off = training is None or (training.tensor is not None and not training.array().any())
    return inputs[0] if off and not g.for_training else None


def _transpose(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x, perm = inputs[0], attrs.get("perm")
    if perm is None:
        return None
    if perm == tuple(range(len(perm))):
        return x  # type: ignore[no-any-return]
    node = g.maker(x, "Transpose")
    first: Any = node.attrs.get("perm", ()) if node is not None else ()
    if node is None or len(first) != len(perm):
        return None
    return g.Transpose(node.inputs[0], perm=tuple(first[p] for p in perm))  # type: ignore[no-any-return]


def _reshape(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x, shape = inputs
    expected = shape_data_of(shape)
    if expected is None or x.shape is None:
        return None
    if _is_unchanged(x.shape, expected, bool(attrs.get("allowzero"))):
        return x  # type: ignore[no-any-return]
    plain = None
    if shape.tensor is None:
        plain = _encode_reshape(x.shape, expected, bool(attrs.get("allowzero")))
    if plain is not None:
        return g.Reshape(x, plain)  # type: ignore[no-any-return]
    node = g.maker(x, *RESHAPING)
    absolute = all(isinstance(d, int) and d != 0 for d in expected)
    if node is not None and shape.tensor is not None and absolute:
        return g.Reshape(node.inputs[0], shape)  # type: ignore[no-any-return]
    return None


def _is_unchanged(shape: Any, expected: Any, allowzero: bool) -> bool:
    if len(shape) != len(expected) or None in expected:
        return False
    kept = [a == b or (b == 0 and not allowzero) for a, b in zip(shape, expected, strict=True)]
    inferred = [b == -1 for b in expected]
    return (
        all(k or i for k, i in zip(kept, inferred, strict=True))
        and sum(inferred) <= 1
        and (0 not in shape or not any(inferred))
    )


def _encode_reshape(shape: Any, expected: Any, allowzero: bool) -> list[int] | None:
    """Write a shape known in part as a constant: 0 copies a dimension, -1 is the one left over."""
    if 0 in shape or (allowzero and 0 in expected):
        return None  # 0 and -1 would mean something else
    plain, left = [], 0
    for at, dim in enumerate(expected):
        if isinstance(dim, int):
            plain.append(dim)
            left += dim == -1
        elif dim is not None and at < len(shape) and shape[at] == dim:
            plain.append(0)
        else:
            plain.append(-1)
            left += 1
    return plain if left <= 1 else None


def _expand(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x, expected = inputs[0], shape_data_of(inputs[1])
    if expected is None or x.shape is None or len(expected) > len(x.shape):
        return None
    tail = x.shape[len(x.shape) - len(expected) :]
    same = all(b == 1 or (a is not None and a == b) for a, b in zip(tail, expected, strict=True))
    return x if same else None


def _concat(g: Any, inputs: Any, attrs: Any) -> Value | None:
    """Without the operands that have no elements along the axis, where others have."""
    if len(inputs) == 1:
        return inputs[0]  # type: ignore[no-any-return]
    axis = attrs["axis"]
    kept = [v for v in inputs if v is None or not v.shape or v.shape[axis] != 0]
    return g.Concat(*kept, axis=axis) if 0 < len(kept) < len(inputs) else None


def _pad(g: Any, inputs: Any, attrs: Any) -> Value | None:
    pads = shape_data_of(inputs[1]) if len(inputs) > 1 else attrs["pads"]
    return inputs[0] if pads is not None and all(p == 0 for p in pads) else None


def _slice(g: Any, inputs: Any, attrs: Any) -> Value | None:
    x, bounds = inputs[0], [shape_data_of(v) for v in inputs[1:]]
    if x.shape is None or len(bounds) < 4 or None in bounds:
        return None
    alike = len({len(b) for b in bounds if b is not None}) == 1
    require(alike, "starts, ends and axes of different lengths")
    for start, end, axis, step in zip(*bounds, strict=True):  # type: ignore[arg-type]
        if not isinstance(axis, int) or not -len(x.shape) <= axis < len(x.shape):
            return None
        if start != 0 or step != 1:
            return None
        size = x.shape[axis]
        is_full = isinstance(end, int) and end >= (size if isinstance(size, int) else 2**31 - 1)
        if not is_full and (size is None or end != size):
            return None
    return x  # type: ignore[no-any-return]


def _squeeze(g: Any, inputs: Any, attrs: Any) -> Value | None:
    return inputs[0] if len(inputs) > 1 and shape_data_of(inputs[1]) == () else None


def _flatten(g: Any, inputs: Any, attrs: Any) -> Value | None:
    shape = inputs[0].shape
    return inputs[0] if shape is not None and len(shape) == 2 and attrs["axis"] == 1 else None


def _einsum(g: Any, inputs: Any, attrs: Any) -> Value | None:
    if g.current_opset < AXES_AS_OPERAND or None in inputs:
        return None
    return without_broadcasting(g, inputs, attrs["equation"])


def _tile(g: Any, inputs: Any, attrs: Any) -> Value | None:
    repeats = shape_data_of(inputs[1])
    return inputs[0] if repeats is not None and all(r == 1 for r in repeats) else None


RULES: dict[str, Simplify] = {
    "Cast": _cast,
    "CastLike": _cast_like,
    "Concat": _concat,
    "Dropout": _dropout,
    "Einsum": _einsum,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _squeeze,
}
