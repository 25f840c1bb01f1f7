"""Sizes that a graph computes in small tensors, followed as Python's integers.

ONNX computes shapes in tensors: of the sizes of a tensor, by ``Gather``, ``Concat``, ``Where`` and
so on. In a module they are integers, ``x.shape[0] * 2``: they read better, and ``torch.export``
knows nothing of the elements of a tensor. An element is a number, a value that is an integer, or a
``Computed``. Elements of a tensor are an array of objects of its shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.ir.dim_expr import LIMIT
from serde.ir.graph import DType, Value

LONGEST = 12  # operators of one size that are worth writing
INTEGERS = (DType.INT64, DType.INT32, DType.BOOL)
Elements = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Computed:
    """An integer that is known when the module runs: ``sign`` is how Python spells it."""

    sign: str
    operands: tuple[Any, ...]
    length: int


class Unknown(Exception):
    """Elements that are not followed."""


def elements_of_constant(value: Value) -> Elements | None:
    """The numbers of a small constant of integers."""
    tensor = value.tensor
    if tensor is None or tensor.dtype not in INTEGERS or tensor.size > LIMIT:
        return None
    return value.array().astype(object)


def follow_elements(op: str, args: Sequence[Any], options: Mapping[str, Any]) -> Elements | None:
    """The elements that an expression computes; operands that are not followed are None."""
    try:
        elements = np.asarray(RULES[op](*args, **options), object)
    except (Unknown, TypeError, ValueError, IndexError, KeyError, ZeroDivisionError):
        return None
    return elements if elements.size <= LIMIT else None


def is_counted(size: Any) -> bool:
    """Whether a size cannot be less than 0."""
    if not isinstance(size, Computed):
        return isinstance(size, Value) or size >= 0
    if size.sign == "if":
        return all(map(is_counted, size.operands[1:]))
    return size.sign in ("+", "*", "//", "%", "max", "min") and all(map(is_counted, size.operands))


def compute(sign: str, *operands: Any) -> Any:
    """``operands`` combined, in as few operators as they need.

    Raises:
        Unknown: where Python would compute something else, or where it gets long.
    """
    if sign in ("//", "%") and not all(map(is_counted, operands)):
        raise Unknown  # tensors are divided towards zero
    if not any(isinstance(o, (Value, Computed)) for o in operands):
        return NUMBERS[sign](*map(int, operands))
    first, *rest = operands
    if sign == "if":
        return first if rest[0] == rest[1] else _build(sign, *operands)
    is_decided = first == rest[0] or _is_apart(first, rest[0]) or _is_apart(rest[0], first)
    if sign == "==" and is_decided:
        return int(first == rest[0])
    if (sign, rest[0]) in (("+", 0), ("-", 0), ("*", 1), ("//", 1)):
        return first
    return rest[0] if (sign, first) in (("+", 0), ("*", 1)) else _build(sign, *operands)


def _is_apart(size: Any, number: Any) -> bool:
    """Whether a number is less than 0, which no size is."""
    is_number = not isinstance(number, (Value, Computed))
    return is_number and number < 0 and is_counted(size)


def _build(sign: str, *operands: Any) -> Computed:
    length = 1 + sum(o.length for o in operands if isinstance(o, Computed))
    if length > LONGEST:
        raise Unknown
    return Computed(sign, operands, length)


NUMBERS: Mapping[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "max": max, "min": min,
    **{s: lambda a, b, compare=f: int(compare(a, b)) for s, f in (
        ("==", operator.eq), ("<", operator.lt), ("<=", operator.le), (">", operator.gt),
        (">=", operator.ge))},
}  # fmt: skip


def _elementwise(sign: str) -> Callable[..., Any]:
    combined = np.frompyfunc(lambda *operands: compute(sign, *operands), 2, 1)
    return lambda x, y, **options: combined(_require(x), _require(y))


def _choose(condition: Any, x: Any, y: Any) -> Any:
    def choose(c: Any, a: Any, b: Any) -> Any:
        if isinstance(c, (Value, Computed)):
            return a if a == b else _build("if", c, a, b)
        return a if c else b

    return np.frompyfunc(choose, 3, 1)(_require(condition), _require(x), _require(y))


def _require(elements: Any) -> Any:
    if elements is None or isinstance(elements, float):
        raise Unknown
    return np.asarray(elements, object)


def _index(x: Any, *index: Any) -> Any:
    return _require(x)[tuple(i.astype(np.int64) if isinstance(i, np.ndarray) else i for i in index)]


def _multiply_all(x: Any, dim: int = 0, keepdim: bool = False, dtype: Any = None) -> Any:
    elements = _require(x)
    if elements.ndim != 1 or not elements.size:
        raise Unknown
    total = elements[0]
    for size in elements[1:]:
        total = compute("*", total, size)
    return [total] if keepdim else total


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    for sign, end in (("max", min), ("min", max)):
        x = x if end is None else _elementwise(sign)(x, end)
    return x


def _cast(x: Any, dtype: DType) -> Any:
    if dtype not in (DType.INT64, DType.INT32):
        raise Unknown
    return _require(x)


RULES: Mapping[str, Callable[..., Any]] = {
    "torch.tensor": lambda items, **options: [_require(i).item() for i in items],
    "[]": _index,
    ".unsqueeze": lambda x, axis: np.expand_dims(_require(x), axis),
    ".squeeze": lambda x, axis: np.squeeze(_require(x), axis),
    ".reshape": lambda x, *sizes: _require(x).reshape(sizes),
    ".expand": lambda x, *sizes: np.broadcast_to(_require(x), sizes),
    ".to": _cast,
    ".prod": _multiply_all,
    ".clamp": _clamp,
    "alias": _require,
    "torch.cat": lambda items, dim: np.concatenate([_require(i) for i in items], dim),
    "torch.div": _elementwise("//"),
    "torch.remainder": _elementwise("%"),
    "torch.maximum": _elementwise("max"),
    "torch.minimum": _elementwise("min"),
    "torch.where": _choose,
    **{s: _elementwise(s) for s in ("+", "-", "*", "==", "<", "<=", ">", ">=")},
}
