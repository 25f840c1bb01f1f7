"""What the functions are made of: reshaping, moving, slicing and joining of traced arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from serde.errors import ConversionError
from serde.ir.graph import Value

from .array import (
    TracedArray,
    as_array,
    cast,
    find_recorder,
    has_traced,
    make_constant,
    sizes_value,
    to_number,
)
from .number import TracedNumber
from .recorder import Recorder, refuse

FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy's functions, and what traces them
NOVALUE = np._NoValue


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what traces functions of NumPy."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def name_of(function: Any) -> str:
    """A function as users write it: ``np.linalg.norm``."""
    module = getattr(function, "__module__", "") or ""
    prefix = module.replace("numpy", "np", 1) if module.startswith("numpy") else module
    return f"{prefix}.{getattr(function, '__name__', function)}"


def apply_function(function: Any, args: Any, kwargs: Any) -> Any:
    """What ``__array_function__`` returns."""
    handler = FUNCTIONS.get(function)
    if handler is None:
        refuse(name_of(function), "this function cannot be traced",
               "docs/reference/tracing.md lists those that can")  # fmt: skip
    rec = find_recorder(args, kwargs)
    with rec.operation(function.__name__):
        try:
            return handler(*args, **kwargs)
        except ConversionError as error:
            refuse(name_of(function), str(error).rstrip("."))


def refuse_options(function: str, **options: Any) -> None:
    """Refuse options that are set and not traced."""
    for name, value in options.items():
        if value is not None:
            refuse(function, f"{name}= is not traced")


def emit(x: TracedArray, op: str, *inputs: Any, **attrs: Any) -> TracedArray:
    """One operator whose first operand is ``x``."""
    with x.rec.operation(op) as g:
        operands = (_operand(x.rec, i) for i in inputs)
        return TracedArray(x.rec, g[op](x.value, *operands, **attrs))


def _operand(rec: Recorder, thing: Any) -> Value | None:
    if thing is None or isinstance(thing, Value):
        return thing
    return thing.value if isinstance(thing, TracedArray) else make_constant(rec, thing)


def size_list(shape: Any) -> list[Any]:
    """The sizes of a shape argument: a number, a sequence of them, or a traced vector."""
    if isinstance(shape, (int, np.integer, TracedNumber)):
        return [shape]
    if isinstance(shape, TracedArray):
        return [to_number(shape)] if shape.ndim == 0 else [to_number(s) for s in shape]
    return [to_number(s) if isinstance(s, TracedArray) else
            s if isinstance(s, TracedNumber) else operator.index(s) for s in shape]  # fmt: skip


def has_shape(x: TracedArray, sizes: Sequence[Any]) -> bool:
    """Whether the shape is known to be ``sizes``."""
    dims = [s.dim if isinstance(s, TracedNumber) else s for s in sizes]
    return None not in dims and x.dims == tuple(dims)


def reshape(x: TracedArray, shape: Any) -> TracedArray:
    """``x`` in another shape, of which one size may be -1."""
    sizes = size_list(shape)
    numbers = [s for s in sizes if isinstance(s, int)]
    if numbers.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    if any(n < -1 for n in numbers):
        raise ValueError("negative dimensions not allowed")
    static = all(isinstance(d, int) for d in x.dims)
    if static and len(numbers) == len(sizes):
        total, product = math.prod(x.dims), math.prod(n for n in numbers if n != -1)
        if (-1 in numbers and (product == 0 or total % product)) or (
            -1 not in numbers and product != total
        ):  # fmt: skip
            raise ValueError(f"cannot reshape array of size {total} into shape {tuple(sizes)}")
        sizes = [total // product if n == -1 else n for n in numbers]
    if has_shape(x, sizes):
        return x
    with x.rec.operation("reshape") as g:
        allowzero = 1 if 0 in [s for s in sizes if isinstance(s, int)] else 0
        value = g.Reshape(x.value, sizes_value(x.rec, sizes), allowzero=allowzero)
        return TracedArray(x.rec, value)


def transpose(x: TracedArray, perm: Sequence[int]) -> TracedArray:
    """``x`` with its axes in another order."""
    if list(perm) == list(range(x.ndim)):
        return x
    with x.rec.operation("transpose") as g:
        return TracedArray(x.rec, g.Transpose(x.value, perm=tuple(perm)))


def expand_dims(x: TracedArray, axes: Sequence[int]) -> TracedArray:
    """``x`` with axes of size 1 where ``axes`` name them in the result."""
    if not axes:
        return x
    return emit(x, "Unsqueeze", [int(a) for a in sorted(axes)])


def squeeze(x: TracedArray, axes: Sequence[int]) -> TracedArray:
    """``x`` without ``axes``, of size 1."""
    return x if not axes else emit(x, "Squeeze", [int(a) for a in sorted(axes)])


def expand(x: TracedArray, sizes: Sequence[Any]) -> TracedArray:
    """``x`` broadcast to sizes."""
    if has_shape(x, sizes):
        return x
    with x.rec.operation("broadcast_to") as g:
        return TracedArray(x.rec, g.Expand(x.value, sizes_value(x.rec, sizes)))


def concatenate(xs: Sequence[TracedArray], axis: int) -> TracedArray:
    """Arrays of one element type joined along an axis."""
    if len(xs) == 1:
        return xs[0]
    with xs[0].rec.operation("concatenate") as g:
        return TracedArray(xs[0].rec, g.Concat(*(x.value for x in xs), axis=axis))


def take(x: TracedArray, indices: Any, axis: int) -> TracedArray:
    """``x`` at indices, an array or a number, along an axis."""
    with x.rec.operation("take") as g:
        index = indices.value if isinstance(indices, TracedArray) else g.const(
            np.asarray(indices, np.int64)
        )  # fmt: skip
        return TracedArray(x.rec, g.Gather(x.value, index, axis=axis))


def slice_axis(
    x: TracedArray, axis: int, start: Any = None, stop: Any = None, step: int = 1
) -> TracedArray:
    """``x[start:stop:step]`` along one axis."""
    key = (slice(None),) * axis + (slice(start, stop, step),)
    return x[key]


def full(rec: Recorder, sizes: Sequence[Any], number: Any, dtype: Any) -> TracedArray:
    """An array that holds one number throughout."""
    fill = as_array(number, rec, dtype)
    static = all(isinstance(s, int) for s in sizes) and fill.numbers is not None
    if static and math.prod(sizes) <= 1024:
        return as_array(np.full(tuple(sizes), fill.numbers), rec)
    return expand(fill, sizes)


def arange(rec: Recorder, size: Any) -> TracedArray:
    """``0, 1, … size - 1`` in int64."""
    if isinstance(size, int):
        return as_array(np.arange(size), rec)
    g = rec.g
    return TracedArray(rec, g.Range(0, size.scalar(), 1))


def axis_index(axis: Any, rank: int) -> int:
    """An axis counted from the front; NumPy's error for one that is not there."""
    return normalize_axis_index(operator.index(axis), rank)


def axis_tuple(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; None is all of them."""
    if axis is None:
        return tuple(range(rank))
    return normalize_axis_tuple(axis, rank)


def ravel(x: TracedArray) -> TracedArray:
    """``x`` with one axis."""
    return reshape(x, [-1]) if x.ndim != 1 else x


def flatten_axis(x: Any, axis: Any) -> tuple[TracedArray, int]:
    """An array and an axis of it counted from the front; None flattens.

    NumPy takes an array without axes for one of one axis.
    """
    x = as_array(x)
    x = ravel(x) if x.ndim == 0 else x
    return (ravel(x), 0) if axis is None else (x, axis_index(axis, x.ndim))


def promote(
    arrays: Sequence[Any], dtype: Any = None, rec: Recorder | None = None
) -> list[TracedArray]:
    """Arrays and numbers in their common element type, as ``np.concatenate`` and ``np.where``."""
    rec = rec or find_recorder(list(arrays))
    kinds = [x if type(x) in (bool, int, float) else
             (0 if x.is_int else 0.0) if isinstance(x, TracedNumber) else
             x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype if not has_traced(x) else
             as_array(x, rec).dtype for x in arrays]  # fmt: skip
    expected = np.result_type(*kinds) if dtype is None else np.dtype(dtype)
    return [as_array(x, rec, expected) for x in arrays]


def is_known(x: Any) -> bool:
    """Whether an array holds numbers."""
    return not isinstance(x, (TracedArray, TracedNumber)) and not has_traced(x)


def order_as_signed(x: TracedArray) -> TracedArray:
    """uint64 as int64 in the same order."""
    return cast(as_array(x ^ np.uint64(1 << 63)), np.int64)


def order_as_unsigned(x: TracedArray) -> TracedArray:
    """What ``order_as_signed`` was made of."""
    return as_array(cast(x, np.uint64) ^ np.uint64(1 << 63))
