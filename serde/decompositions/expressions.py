"""Expressions several formats need: each takes a builder and returns a Value.

They are written for any shape; the builder folds what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.geometry import Ints, swap_axes_perm
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

Size = int | Value  # a size known now, or a tensor of one int64
END = 2**63 - 1  # a Slice ends here where it takes all that is left


def cast(g: Any, x: Value, dtype: DType) -> Value:
    """``x`` as elements of ``dtype``."""
    return g.Cast(x, to=ELEMENT_CODES[dtype])  # type: ignore[no-any-return]


def compute_in_float32(g: Any, function: Callable[..., Value], *xs: Value) -> Value:
    """``function``, computed in float32 for float16 operands, whose counts and sums overflow."""
    if xs[0].type is not DType.FLOAT16:
        return function(g, *xs)
    return cast(g, function(g, *(cast(g, x, DType.FLOAT32) for x in xs)), DType.FLOAT16)


def cast_like(g: Any, x: Value, like: Value) -> Value:
    """``x`` as elements of the type of ``like``."""
    return cast(g, x, like.type)


def scalar(g: Any, number: float, like: Value) -> Value:
    """A constant of no dimensions, of the element type of ``like``."""
    with np.errstate(over="ignore"):  # a half's infinity begins at 65520
        return g.const(np.array(number, like.type.numpy))  # type: ignore[no-any-return]


def number(value: Value | None) -> int | float | None:
    """The one number a constant holds, None for anything else."""
    if value is None or value.tensor is None or value.tensor.size != 1:
        return None
    return value.array().reshape(-1)[0].item()


def size_of(g: Any, x: Value, axis: int) -> Size:
    """The size of ``x`` along ``axis``, which counts from the front."""
    dim = x.shape[axis] if x.shape is not None else None
    if isinstance(dim, int):
        return dim
    return g.Shape(x, start=axis, end=axis + 1)  # type: ignore[no-any-return]


def sizes_of(g: Any, x: Value) -> list[Size]:
    """The sizes of ``x`` along all its axes."""
    return [size_of(g, x, axis) for axis in range(x.rank)]


def index_range(g: Any, size: Size) -> Value:
    """``0, 1, … size - 1``."""
    return g.Range(0, size if isinstance(size, int) else g.Squeeze(size, [0]), 1)  # type: ignore


def multiply_sizes(g: Any, sizes: Iterable[Size]) -> Size:
    """The product of sizes."""
    known, rest = 1, []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            rest.append(size)
    total: Size = known
    for size in rest:
        total = size if total == 1 else g.Mul(size, total)
    return total


def shape_from(g: Any, sizes: Sequence[Size]) -> Value:
    """A shape tensor made of sizes."""
    if all(isinstance(s, int) for s in sizes):
        return g.const(list(sizes), DType.INT64, "shape")  # type: ignore[no-any-return]
    parts: list[Any] = []
    for size in sizes:
        if isinstance(size, Value):
            parts.append(size)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(size)
        else:
            parts.append([size])
    return g.Concat(*parts, axis=0)  # type: ignore[no-any-return]


def reshape(g: Any, x: Value, sizes: Sequence[Size]) -> Value:
    """``x`` in the shape ``sizes`` spell; 0 and -1 mean what they do in ONNX."""
    return g.Reshape(x, shape_from(g, sizes))  # type: ignore[no-any-return]


def multiply_add(g: Any, x: Value, factor: Value, y: Value) -> Value:
    """``x`` times ``factor``, plus ``y``, rounded once (float32).

    Where ``factor`` is one number and ``y`` has the shape of ``x``, by a matrix product: ONNX
    Runtime adds a matrix to a multiple of a product so, on processors that have an instruction for
    it, in a fraction of the time that doubles take.
    """
    if factor.tensor is None or factor.shape != () or x.shape != y.shape:
        x, factor, y = (cast(g, v, DType.FLOAT64) for v in (x, factor, y))
        return cast(g, g.Add(g.Mul(x, factor), y), DType.FLOAT32)
    rows = (g.Reshape(v, [1, -1]) for v in (x, y))
    one = g.const(np.ones((1, 1), np.float32))
    return reshape(g, g.Gemm(one, *rows, alpha=factor.array().item()), sizes_of(g, y))


def slice_axis(g: Any, x: Value, axis: int, start: Any, end: Any, step: int = 1) -> Value:
    """``x[start:end:step]`` along one axis."""
    bounds = [[b] if isinstance(b, int) else b for b in (start, end)]
    return g.Slice(x, *bounds, [axis], [step])  # type: ignore[no-any-return]


def slice_like(g: Any, x: Value, like: Value, *, axes: Ints = ()) -> Value:
    """Crop ``x`` to the size of ``like`` along ``axes``, all of them when none is given."""
    chosen = [a % x.rank for a in axes] or list(range(x.rank))
    there = [a % like.rank for a in axes] or chosen
    ends = g.Gather(g.Shape(like), there)
    return g.Slice(x, [0] * len(chosen), ends, chosen, [1] * len(chosen))  # type: ignore


def apply_on_axis(g: Any, x: Value, axis: int, target: int, apply: Any) -> Value:
    """Apply a function of ``x`` with ``axis`` and ``target`` exchanged, and exchange them back."""
    if axis == target:
        return apply(x)  # type: ignore[no-any-return]
    order = swap_axes_perm(x.rank, axis, target)
    return g.Transpose(apply(g.Transpose(x, perm=order)), perm=order)  # type: ignore[no-any-return]


def full_like(g: Any, x: Value, number: float, dtype: DType | None = None) -> Value:
    """A tensor of the shape of ``x`` that holds one number throughout."""
    kind = (dtype or x.type).numpy
    if x.is_static and int(np.prod(x.static_shape, dtype=np.int64)) <= 1024:
        return g.const(np.full(x.static_shape, number, kind))  # type: ignore[no-any-return]
    return g.ConstantOfShape(g.Shape(x), value=_tensor(np.array([number], kind)))  # type: ignore


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    from serde.ir.graph import Tensor

    return Tensor.of(array)


def is_true(g: Any, x: Value) -> Value:
    """Whether each element is not zero."""
    return x if x.dtype is DType.BOOL else g.Cast(x, to=ELEMENT_CODES[DType.BOOL])


def lowest_value(x: Value) -> float:
    """The lowest finite number of the element type of ``x``."""
    dtype = x.type
    if dtype.kind == "f":
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).min)
    if dtype.kind in "iu":
        return int(np.iinfo(dtype.numpy).min)
    raise ConversionError(f"{dtype.value} has no lowest number")
