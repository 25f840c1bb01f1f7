"""Expressions that rules share, as methods of the builder beside its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.builder import Builder, ensure_distinct_outputs
from serde.ir.geometry import Ints, axis_of, swap_axes_perm
from serde.ir.graph import DType, Tensor, Value
from serde.spec.schema import ELEMENT_CODES

Size = int | Value  # a size known now, or a tensor of one int64
END = 2**63 - 1  # a Slice ends here where it takes all that is left
LANES = 16  # numbers of float32 that an instruction computes at a time


class Expressions(Builder):
    """A builder of ONNX operators (``g.Cast``) and of expressions of them (``g.cast``).

    They are written for any shape; the builder folds what is known.
    """

    def cast(self, x: Value, dtype: DType) -> Any:
        """``x`` as elements of ``dtype``."""
        return self.Cast(x, to=ELEMENT_CODES[dtype])

    def cast_like(self, x: Value, like: Value) -> Any:
        """``x`` as elements of the type of ``like``."""
        return self.cast(x, like.type)

    def compute_in_float32(self, function: Callable[..., Any], *xs: Value) -> Any:
        """``function`` of float16 operands in float32: their counts and sums overflow."""
        if xs[0].type is not DType.FLOAT16:
            return function(self, *xs)
        return self.cast(function(self, *(self.cast(x, DType.FLOAT32) for x in xs)), DType.FLOAT16)

    def scalar(self, number: float, like: Value) -> Any:
        """A constant of no dimensions, of the element type of ``like``."""
        with np.errstate(over="ignore"):  # a half's infinity begins at 65520
            return self.const(np.array(number, like.type.numpy))

    def size_of(self, x: Value, axis: int) -> Any:
        """The size of ``x`` along ``axis``, which counts from the front."""
        dim = x.shape[axis] if x.shape is not None else None
        return dim if isinstance(dim, int) else self.Shape(x, start=axis, end=axis + 1)

    def sizes_of(self, x: Value) -> list[Any]:
        """The sizes of ``x`` along all its axes."""
        return [self.size_of(x, axis) for axis in range(x.rank)]

    def index_range(self, size: Size) -> Any:
        """``0, 1, … size - 1``."""
        return self.Range(0, size if isinstance(size, int) else self.Squeeze(size, [0]), 1)

    def multiply_sizes(self, sizes: Iterable[Size]) -> Any:
        """The product of sizes."""
        known, rest = 1, []
        for size in sizes:
            if isinstance(size, int):
                known *= size
            else:
                rest.append(size)
        total: Any = known
        for size in rest:
            total = size if isinstance(total, int) and total == 1 else self.Mul(size, total)
        return total

    def shape_from(self, sizes: Sequence[Size]) -> Any:
        """A shape tensor made of sizes."""
        if all(isinstance(s, int) for s in sizes):
            return self.const(list(sizes), DType.INT64, "shape")
        parts: list[Any] = []
        for size in sizes:
            if isinstance(size, Value):
                parts.append(size)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(size)
            else:
                parts.append([size])
        return self.Concat(*parts, axis=0)

    def reshape(self, x: Value, sizes: Sequence[Size]) -> Any:
        """``x`` in the shape of ``sizes``; 0 and -1 mean what they do in ONNX."""
        return self.Reshape(x, self.shape_from(sizes))

    def multiply_add(self, x: Value, factor: Value, y: Value) -> Any:
        """``x`` times ``factor``, plus ``y``, rounded once (float32).

        Where ``factor`` is one number and ``y`` has the shape of ``x``, all of which has to be
        finite, by a matrix product: ONNX Runtime adds a matrix to a multiple of a product so, on
        processors that have an instruction for it, in a fraction of the time that doubles take.
        """
        if factor.tensor is None or factor.shape != () or x.shape != y.shape:
            x, factor, y = (self.cast(v, DType.FLOAT64) for v in (x, factor, y))
            return self.cast(self.Add(self.Mul(x, factor), y), DType.FLOAT32)
        last = y.shape[-1] if y.shape else None
        in_lanes = isinstance(last, int) and last % LANES == 0
        rows, sums = [self.Reshape(v, [-1, LANES] if in_lanes else [1, -1]) for v in (x, y)]
        same = self.const(np.eye(LANES if in_lanes else 1, dtype=np.float32))
        operands = (rows, same) if in_lanes else (same, rows)
        total = self.Gemm(*operands, sums, alpha=factor.array().item())
        return self.reshape(total, self.sizes_of(y))

    def slice_axis(self, x: Value, axis: int, start: Any, end: Any, step: int = 1) -> Any:
        """``x[start:end:step]`` along one axis."""
        bounds = [[b] if isinstance(b, int) else b for b in (start, end)]
        return self.Slice(x, *bounds, [axis], [step])

    def slice_like(self, x: Value, like: Value, *, axes: Ints = ()) -> Any:
        """Crop ``x`` to the size of ``like`` along ``axes``, all of them when none is given."""
        chosen = [a % x.rank for a in axes] or list(range(x.rank))
        there = [a % like.rank for a in axes] or chosen
        ends = self.Gather(self.Shape(like), there)
        return self.Slice(x, [0] * len(chosen), ends, chosen, [1] * len(chosen))

    def apply_on_axis(self, x: Value, axis: int, target: int, apply: Callable[[Value], Any]) -> Any:
        """Apply a function of ``x`` with ``axis`` and ``target`` exchanged; exchange them back."""
        if axis == target:
            return apply(x)
        order = swap_axes_perm(x.rank, axis, target)
        return self.Transpose(apply(self.Transpose(x, perm=order)), perm=order)

    def full_like(self, x: Value, number: float, dtype: DType | None = None) -> Any:
        """A tensor of the shape of ``x`` that holds one number throughout."""
        kind = (dtype or x.type).numpy
        if x.is_static and int(np.prod(x.static_shape, dtype=np.int64)) <= 1024:
            return self.const(np.full(x.static_shape, number, kind))
        return self.ConstantOfShape(self.Shape(x), value=Tensor.of(np.array([number], kind)))

    def stack(self, xs: Iterable[Value], axis: int) -> Any:
        """Tensors side by side along a new axis, which may count from the end."""
        xs = list(xs)
        axis = axis_of(axis, xs[0].rank + 1)
        return self.Concat(*(self.Unsqueeze(x, [axis]) for x in xs), axis=axis)

    def tile(self, x: Value, reps: Ints) -> Any:
        """Copies side by side, as NumPy counts them: the last number is for the last axis."""
        reps = (1,) * (x.rank - len(reps)) + reps
        extra = len(reps) - x.rank
        return self.Tile(self.Unsqueeze(x, list(range(extra))) if extra else x, reps)

    def repeat(self, x: Value, repeats: int, axis: int) -> Any:
        """Each slice along ``axis``, which counts from the front, ``repeats`` times in a row."""
        sizes = self.sizes_of(x)
        spread = [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]]
        sizes[axis] = self.multiply_sizes([sizes[axis], repeats])
        return self.reshape(
            self.Expand(self.Unsqueeze(x, [axis + 1]), self.shape_from(spread)), sizes
        )

    def loop(self, step: Callable[..., Any], turns: Any, go: Any, *states: Value) -> Any:
        """A Loop; ``step(body, turn, go, *states)`` gives whether to go on, the next states, and
        what is kept of each turn. All its outputs, as a tuple.
        """
        body = self.child("body")
        turn, on = body.input("turn", DType.INT64, ()), body.input("go", DType.BOOL, ())
        state_inputs = [body.input("state", v.dtype, v.shape) for v in states]
        results = list(step(body, turn, on, *state_inputs))
        graph = body.build(ensure_distinct_outputs(body, results))
        result = self.Loop(turns, go, *states, body=graph, outputs=len(results) - 1)
        return result if isinstance(result, tuple) else (result,)

    def scan(
        self, step: Callable[..., Any], states: Sequence[Value], over: Sequence[Value], **attrs: Any
    ) -> Any:
        """A Scan; ``step(body, *states, *rows)`` gives the next states, and what is kept of each
        row. All its outputs, as a tuple.
        """
        body = self.child("body")
        state_inputs = [body.input("state", v.dtype, v.shape) for v in states]
        rows = [body.input("row", v.dtype, v.shape and v.shape[1:]) for v in over]
        results = list(step(body, *state_inputs, *rows))
        graph = body.build(ensure_distinct_outputs(body, results))
        attrs |= {"body": graph, "num_scan_inputs": len(over), "outputs": len(results)}
        result = self.Scan(*states, *over, **attrs)
        return result if isinstance(result, tuple) else (result,)

    def is_true(self, x: Value) -> Any:
        """Whether each element is not zero."""
        return x if x.dtype is DType.BOOL else self.cast(x, DType.BOOL)


def number(value: Value | None) -> int | float | None:
    """The one number a constant holds, None for anything else."""
    if value is None or value.tensor is None or value.tensor.size != 1:
        return None
    return value.array().reshape(-1)[0].item()  # type: ignore[no-any-return]


def lowest_value(x: Value) -> float:
    """The lowest finite number of the element type of ``x``."""
    dtype = x.type
    if dtype.kind == "f":
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).min)  # type: ignore[no-untyped-call]
    if dtype.kind in "iu":
        return int(np.iinfo(dtype.numpy).min)
    raise ConversionError(f"{dtype.value} has no lowest number")
