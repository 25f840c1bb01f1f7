"""NumPy's ufuncs on traced arrays: element types, broadcasting and errors are NumPy's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.geometry import may_be_same

from . import hooks
from .array import TracedArray, as_array, cast_value, find_recorder, make_constant
from .elementwise import EMITTERS
from .number import TracedNumber
from .recorder import Recorder, refuse

Dims = tuple[int | str | None, ...]
COMPARISONS = frozenset("less less_equal greater greater_equal equal not_equal".split())
WEAK = (bool, int, float, complex)
# Methods of ufuncs, and the functions that they are.
REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
Apply = Callable[..., Any]
CORE_UFUNCS: dict[str, Apply] = {}  # generalized ufuncs, such as vecdot


def apply_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]
) -> Any:
    """What ``__array_ufunc__`` returns."""
    if method != "__call__":
        return _apply_method(ufunc, method, inputs, options)
    if ufunc is np.matmul:
        return np.linalg.matmul(*inputs, **options)
    signature = getattr(ufunc, "signature", None)
    if signature is not None and ufunc.__name__ in CORE_UFUNCS:
        return CORE_UFUNCS[ufunc.__name__](*inputs, **options)
    if any(map(_is_complex, inputs)):
        return hooks.apply_complex(ufunc, inputs, options)
    if ufunc.__name__ not in EMITTERS or signature is not None:
        known = getattr(np, ufunc.__name__, None) is ufunc
        refuse(f"{'np.' if known else 'ufunc '}{ufunc.__name__}", "this ufunc cannot be traced",
               "docs/reference/tracing.md lists those that can")  # fmt: skip
    out, where = options.pop("out", None), options.pop("where", True)
    if out is not None and any(o is not None and not isinstance(o, TracedArray) for o in out):
        refuse(f"np.{ufunc.__name__}", "the result would go into a NumPy array",
               "Write a = a + b, not a += b, or make the array with np.zeros in the traced function"
               )  # fmt: skip
    rec = find_recorder(inputs, out, where)
    results = _emit_ufunc(rec, ufunc, inputs, options)
    if out is not None or where is not True:
        results = _store(ufunc, results, out, where)
    return results[0] if len(results) == 1 else results


def _is_complex(x: Any) -> bool:
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind == "c"
    return hasattr(x, "imaginary") or isinstance(x, complex)


def _store(ufunc: np.ufunc, results: Any, out: Any, where: Any) -> Any:
    """Write results into the arrays that are given for them."""
    if out is None:
        refuse(f"np.{ufunc.__name__}", "where= without out= leaves elements undefined")
    stored = []
    for result, target in zip(results, out, strict=True):
        if target is None:
            stored.append(result)
            continue
        if not np.can_cast(result.dtype, target.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc {ufunc.__name__!r} output from {result.dtype!r} to "
                f"{target.dtype!r} with casting rule 'same_kind'"
            )
        if where is not True:
            result = np.where(where, result, target)
        store(target, result)
        stored.append(target)
    return tuple(stored)


def store(target: TracedArray, result: Any) -> None:
    """Let a local array hold ``result`` from now on, broadcast to its shape, in its type."""
    source = as_array(result, target.rec, target.dtype)
    if source.dims != target.dims:
        shape = broadcast_dims(source.dims, target.dims)
        fits = len(source.dims) <= len(target.dims) and all(map(may_be_same, shape, target.dims))
        if not fits:
            raise ValueError(f"non-broadcastable output operand with shape {target.dims}")
        source = np.broadcast_to(source, target.shape)
    target.replace(source)


def finish(result: Any, out: Any) -> Any:
    """A result, or the array it is written to."""
    if out is None:
        return result
    store(out, result)
    return out


def broadcast_dims(*shapes: Dims) -> Dims:
    """The shape that shapes broadcast to; a named size goes with 1 and with any other size.

    Raises:
        ValueError: as NumPy does.
    """
    rank = max(map(len, shapes), default=0)
    result: list[int | str | None] = [1] * rank
    for shape in shapes:
        for at, dim in enumerate(shape, rank - len(shape)):
            old = result[at]
            if dim == 1 or dim == old:
                continue
            if old == 1:
                result[at] = dim
            elif isinstance(old, int) and isinstance(dim, int):
                listed = " ".join(str(s).replace("'", "").replace(" ", "") for s in shapes)
                raise ValueError(f"operands could not be broadcast together with shapes {listed} ")
            elif not isinstance(old, int):
                result[at] = dim if isinstance(dim, int) else None
    return tuple(result)


@lru_cache(4096)
def _resolve(ufunc: np.ufunc, types: tuple[Any, ...], dtype: Any, casting: str) -> Any:
    expected = types + (None,) * ufunc.nout
    if dtype is None:
        return ufunc.resolve_dtypes(expected, casting=casting)
    signature = (None,) * ufunc.nin + (dtype,) * ufunc.nout
    return ufunc.resolve_dtypes(expected, signature=signature, casting=casting)


def _weak_type(x: Any) -> Any:
    """The Python type of a weak number, or the element type of an array."""
    if isinstance(x, TracedNumber):
        return int if x.is_int else float
    if type(x) in WEAK:
        return np.dtype(bool) if type(x) is bool else type(x)
    return x.dtype


def _emit_ufunc(
    rec: Recorder, ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]
) -> tuple[TracedArray, ...]:
    name = ufunc.__name__
    operands = [
        x if isinstance(x, (TracedArray, TracedNumber)) or type(x) in WEAK else _as_plain(x, rec)
        for x in inputs
    ]
    if not any(isinstance(x, TracedNumber) or (isinstance(x, TracedArray) and x.array is None)
               for x in operands):  # fmt: skip
        return _compute(ufunc, operands, options)
    dtype, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    options.pop("subok", None), options.pop("order", None)
    if signature := options.pop("signature", None):
        refuse(f"np.{name}", f"signature={signature!r} is not traced")
    types = tuple(_weak_type(x) for x in operands)
    resolved = _resolve(ufunc, types, None if dtype is None else np.dtype(dtype), casting)
    if any(d.kind not in "biuf" for d in resolved):
        refuse(f"np.{name}", f"elements of {', '.join(map(str, types))} are computed as "
               f"{resolved[0]}, which ONNX has not")  # fmt: skip
    broadcast_dims(*(x.dims if isinstance(x, TracedArray) else np.shape(x)
                     for x in operands if not isinstance(x, TracedNumber)))  # fmt: skip
    with rec.operation(name) as g:
        try:
            values = [_operand(rec, g, x, d) for x, d in zip(operands, resolved, strict=False)]
        except OverflowError:
            if name not in COMPARISONS:
                raise
            return (_compare_with_large(rec, ufunc, operands),)
        try:
            outs = EMITTERS[name](g, *values)
        except ConversionError as error:
            refuse(f"np.{name}", str(error).rstrip("."))
        results = outs if isinstance(outs, tuple) else (outs,)
        return tuple(
            TracedArray(rec, cast_value(g, v, d))
            for v, d in zip(results, resolved[ufunc.nin :], strict=True)
        )


def _as_plain(x: Any, rec: Recorder) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    return as_array(x, rec)


def _compute(ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]) -> tuple[Any, ...]:
    """A ufunc of local arrays that hold numbers."""
    arrays = [x.array if isinstance(x, TracedArray) else x for x in operands]
    outs = ufunc(*arrays, **options)
    return outs if isinstance(outs, tuple) else (outs,)


def _operand(rec: Recorder, g: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    """An operand's value in the type of the ufunc's loop."""
    if isinstance(x, TracedArray):
        return cast_value(g, x.value, dtype)
    if isinstance(x, TracedNumber):
        return cast_value(g, x.scalar(), dtype)
    if type(x) in WEAK and dtype.kind in "iu" and type(x) is int:
        return make_constant(rec, np.array(x, dtype))  # OverflowError where it does not fit
    return make_constant(rec, np.asarray(x).astype(dtype))


def _compare_with_large(rec: Recorder, ufunc: np.ufunc, operands: Sequence[Any]) -> TracedArray:
    """A comparison with a Python int that the array's type cannot hold: the same everywhere."""
    at = next(i for i, x in enumerate(operands) if isinstance(x, (TracedArray, np.ndarray)))
    array = as_array(operands[at], rec)
    pair = [0 if isinstance(x, TracedArray) else x for x in operands]
    flag = np.array(bool(ufunc(np.array(pair[0], object), np.array(pair[1], object))))
    g = rec.g
    return TracedArray(rec, g.Expand(make_constant(rec, flag), g.Shape(array.value)))


def _apply_method(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]
) -> Any:
    name = ufunc.__name__
    if method == "reduce" and name in REDUCTIONS:
        axis = options.pop("axis", 0)
        if len(inputs) > 1:
            axis, inputs = inputs[1], inputs[:1]
        options = {k: v for k, v in options.items() if v is not None}
        return getattr(np, REDUCTIONS[name])(inputs[0], axis=axis, **options)
    if method == "accumulate" and name in ACCUMULATIONS:
        options.setdefault("axis", 0)
        return getattr(np, ACCUMULATIONS[name])(*inputs, **options)
    if method == "outer":
        a, b = (as_array(x, find_recorder(inputs)) for x in inputs)
        return ufunc(np.reshape(a, (*a.shape, *(1,) * b.ndim)), b, **options)
    if method == "at":
        return hooks.apply_at(name, *inputs)
    return refuse(f"np.{name}.{method}", "this method of the ufunc is not traced")
