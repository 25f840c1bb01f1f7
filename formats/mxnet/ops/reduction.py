"""Reductions over axes, and positions of extremes."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of, other_axes
from serde.ir.graph import DType, Value

from ..rules import dtype_of, note_old_meaning, reads, reads_between, reads_second
from ..target import legalizations, writes

REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
}
EXTREMES = {"argmax": "ArgMax", "argmin": "ArgMin"}
NARROW = (DType.BOOL, DType.INT8, DType.UINT8)  # types ONNX's reductions do not take
# Wider types that integers are added up in: ONNX Runtime does not wrap around, MXNet does.
WIDER = dict.fromkeys(NARROW, DType.INT32) | {DType.INT32: DType.INT64}
FARTHEST = 1 << 31  # no place along an axis is as far


def reduce_axes(g, op, x: Value, axes: Ints, keepdims):
    """A reduction over ``axes``, which may be none of them; what integers cannot hold wraps."""
    if not axes:
        return x
    if op == "ReduceProd" and x.type.kind != "f":
        return product(g, x, axes, keepdims)
    if x.type in NARROW or (op == "ReduceSum" and x.type in WIDER):
        reduced = g[op](g.cast(x, WIDER[x.type]), axes, keepdims=int(keepdims))
        return g.cast_like(reduced, x)
    return g[op](x, axes, keepdims=int(keepdims))


def product(g, x: Value, axes: Ints, keepdims):
    """A product of integers, which ONNX Runtime computes in float64: by multiplication alone."""
    if x.type in NARROW:
        reduced = product(g, g.cast(x, WIDER[x.type]), axes, keepdims)
        return g.cast_like(reduced, x)
    kept, sizes = other_axes(axes, x.rank), g.sizes_of(x)
    count = g.multiply_sizes([sizes[a] for a in axes])
    order = (*axes, *kept)
    rows = x if order == tuple(range(x.rank)) else g.Transpose(x, perm=order)
    if len(axes) > 1:
        rows = g.reshape(rows, [count, *(sizes[a] for a in kept)])
    y = multiply_rows(g, rows, count) if isinstance(count, int) else multiply_rows_in_order(g, rows)
    return g.Unsqueeze(y, list(axes)) if keepdims else y


def multiply_rows(g, rows: Value, count: int):
    """The first half of the rows times the second, and so on."""
    if count == 0:
        return g.ReduceProd(rows, [0], keepdims=0)
    while count > 1:
        half = count // 2
        parts = [g.slice_axis(rows, 0, at, at + half) for at in (0, half)]
        rest = [g.slice_axis(rows, 0, 2 * half, count)] if count % 2 else []
        y = g.Mul(*parts)
        rows = g.Concat(y, *rest, axis=0) if rest else y
        count = half + len(rest)
    return g.Squeeze(rows, [0])


def multiply_rows_in_order(g, rows: Value):
    """One row after another."""
    one = g.const(np.ones((), rows.type.numpy))
    start = g.Expand(one, g.Shape(rows, start=1)) if rows.rank > 1 else one
    return g.scan(lambda g, total, row: [g.Mul(total, row)], [start], [rows])[0]


def choose_axes(x: Value, axis: Ints | None, exclude: bool) -> Ints:
    """The axes a reduction runs over: all where none is named, the others with ``exclude``."""
    named = axes_of(axis or (), x.rank)
    if not named:
        return tuple(range(x.rank))
    return other_axes(named, x.rank) if exclude else named


def reduce_to_vector(g, op, x: Value, axes: Ints, keepdims):
    """MXNet's older operators have no scalars: a reduction of all axes has the shape (1,)."""
    y = reduce_axes(g, op, x, axes, keepdims)
    return g.Reshape(y, [1]) if len(axes) == x.rank and not keepdims else y


def read_reduction(op, g, x, *, axis: Ints | None = None, keepdims=False, exclude=False):
    """The mean of nothing is NaN. Integers are added up in their own type."""
    axes = choose_axes(x, axis, exclude)
    if op == "ReduceMean" and are_empty(x, axes):
        return g.Div(reduce_to_vector(g, "ReduceSum", x, axes, keepdims), g.scalar(0, x))
    if op == "ReduceMean" and x.dtype is DType.BOOL:
        return reduce_to_vector(g, "ReduceMax", x, axes, keepdims)
    if op == "ReduceMean" and x.type.kind != "f":
        total = g.cast(reduce_to_vector(g, "ReduceSum", x, axes, keepdims), DType.INT64)
        return g.cast_like(g.Div(total, count_of(g, x, axes)), x)
    return reduce_to_vector(g, op, x, axes, keepdims)


def count_of(g, x: Value, axes: Ints):
    """How many elements are along the axes, as a list of one."""
    return g.shape_from([g.multiply_sizes([g.size_of(x, a) for a in axes])])


def are_empty(x: Value, axes: Ints) -> bool:
    """Whether there is nothing along the axes."""
    return any(x.ranked_shape[a] == 0 for a in axes)


def read_nan_reduction(
    op, neutral, g, x, *, axis: Ints | None = None, keepdims=False, exclude=False
):
    """NaN does not count."""
    known = g.Where(g.IsNaN(x), g.scalar(neutral, x), x) if x.type.kind == "f" else x
    return reduce_to_vector(g, op, known, choose_axes(x, axis, exclude), keepdims)


for _name, _op in REDUCTIONS.items():
    reads(_name)(partial(read_reduction, _op))
for _name, _neutral in {"sum": 0, "prod": 1}.items():
    reads(f"nan{_name}")(partial(read_nan_reduction, REDUCTIONS[_name], _neutral))


@reads("norm", only={"out_dtype": ("None",)})
def read_norm(g, x, *, ord=2, axis: Ints | None = None, keepdims=False):
    require(ord in (1, 2), f"ord={ord}")
    require(x.type.kind == "f", f"norm of {x.type.value}, which MXNet computes wrongly")
    op = "ReduceL1" if ord == 1 else "ReduceL2"
    return reduce_to_vector(g, op, x, choose_axes(x, axis, False), keepdims)


@reads("_npi_norm")
def read_numpy_norm(g, x, *, ord=2.0, axis: Ints | None = None, keepdims=False, flag=-1):
    """``flag`` tells the kind: -2 the whole tensor's, 1 Frobenius', -1 of vectors; else singular
    values count.
    """
    require(flag in (-2, -1, 1), f"flag={flag}: a norm of singular values")
    require(x.type.kind == "f", f"norm of {x.type.value}, which MXNet computes wrongly")
    axes = normalize_axes(x, axis)
    require(flag != -1 or len(axes) == 1, f"ord={ord} over {len(axes)} axes")
    if not axes:
        return g.Abs(x)
    if flag != -1 or ord == 2.0:
        return reduce_axes(g, "ReduceL2", x, axes, keepdims)
    if ord == 0.0:
        hit = g.cast_like(g.is_true(x), x)
        return reduce_axes(g, "ReduceSum", hit, axes, keepdims)
    total = reduce_axes(g, "ReduceSum", g.Pow(g.Abs(x), ord), axes, keepdims)
    return g.Pow(total, 1 / ord)


def read_arg(op, g, x, *, axis: int | None = None, keepdims=False):
    """Indices come in the type of the data."""
    y = find_extreme(g, op, x, axis, keepdims or x.rank == 1)
    return g.cast_like(y if axis is not None or keepdims else g.Reshape(y, [1]), x)


def read_numpy_arg(op, g, x, *, axis: int | None = None, keepdims=False):
    return find_extreme(g, op, x, axis, keepdims)


def find_extreme(g, op, x: Value, axis: int | None, keepdims):
    """Where the extreme is along an axis, or in the tensor flattened."""
    if axis is not None:
        return g[op](x, axis=axis_of(axis, x.rank), keepdims=int(keepdims))
    y = g[op](g.Reshape(x, [-1]), axis=0, keepdims=0)
    return g.Reshape(y, [1] * x.rank) if keepdims else y


def read_arg_of_1_6(op, g, x, *, axis: int | None = None, keepdims=False):
    """Before MXNet 1.7 indices are float32."""
    note_old_meaning(g, "1.7")
    return g.cast(find_extreme(g, op, x, axis, keepdims), DType.FLOAT32)


for _name, _op in EXTREMES.items():
    reads(_name)(partial(read_arg, _op))
    reads(f"_npi_{_name}")(partial(read_numpy_arg, _op))
    reads_between(10600, 10700)(f"_npi_{_name}")(partial(read_arg_of_1_6, _op))


@reads("argmax_channel")
def read_argmax_channel(g, x):
    return g.cast_like(g.ArgMax(x, axis=1, keepdims=0), x)


def normalize_axes(x: Value, axis: Ints | None) -> Ints:
    """NumPy's axes: None is all of them, () is none."""
    return tuple(range(x.rank)) if axis is None else axes_of(axis, x.rank)


def read_numpy_reduction(
    op, g, x, *, axis: Ints | None = None, dtype: str | None = None, keepdims=False
):
    """Sums count booleans in int64; a mean of integers is a float32. What is made of
    floats is cut to an integer at the end.
    """
    accum = DType.FLOAT32 if op == "ReduceMean" else DType.INT64 if x.dtype is DType.BOOL else None
    expected = dtype_of(dtype) if dtype else accum if x.type.kind != "f" and accum else x.type
    axes = normalize_axes(x, axis)
    op = "ReduceSum" if are_empty(x, axes) else op  # MXNet makes 0 of nothing, products too
    if x.type.kind == "f" and expected.kind != "f":
        return g.cast(reduce_axes(g, op, x, axes, keepdims), expected)
    return reduce_axes(g, op, g.cast(x, expected), axes, keepdims)


def read_numpy_extreme(op, g, x, *, axis: Ints | None = None, keepdims=False):
    return reduce_axes(g, op, x, normalize_axes(x, axis), keepdims)


def read_truth(op, g, x, *, axis: Ints | None = None, keepdims=False):
    axes = normalize_axes(x, axis)
    if op == "ReduceMax" and are_empty(x, axes):
        return g.cast(reduce_axes(g, "ReduceSum", x, axes, keepdims), DType.BOOL)
    return reduce_axes(g, op, g.is_true(x), axes, keepdims)


def read_second_prod(g, x, *, axis: Ints | None = None, dtype: str | None = None, keepdims=False):
    """The product of nothing is 1."""
    if not are_empty(x, normalize_axes(x, axis)):
        return read_numpy_reduction("ReduceProd", g, x, axis=axis, dtype=dtype, keepdims=keepdims)
    zero = read_numpy_reduction("ReduceSum", g, x, axis=axis, dtype=dtype, keepdims=keepdims)
    return g.Add(zero, g.scalar(1, zero))


def read_second_mean(g, x, *, axis: Ints | None = None, dtype: str | None = None, keepdims=False):
    """The mean of nothing is NaN."""
    y = read_numpy_reduction("ReduceMean", g, x, axis=axis, dtype=dtype, keepdims=keepdims)
    return g.Div(y, g.scalar(0, y)) if are_empty(x, normalize_axes(x, axis)) else y


reads_second("_npi_prod", only={"initial": ("None",)})(read_second_prod)
reads_second("_npi_mean", only={"initial": ("None",)})(read_second_mean)
for _name, _op in REDUCTIONS.items():
    _ops = ("_npi_mean",) if _name == "mean" else (f"_np_{_name}", f"_npi_{_name}")
    _rule = read_numpy_extreme if _name in ("max", "min") else read_numpy_reduction
    reads(*_ops, only={"initial": ("None",)})(partial(_rule, _op))
for _name, _op in {"any": "ReduceMax", "all": "ReduceMin"}.items():
    reads(f"_np_{_name}", f"_npi_{_name}")(partial(read_truth, _op))


@reads("multi_sum_sq", ignore=("num_arrays",), only={"scale": (1.0,)})
def read_multi_sum_sq(g, *xs):
    """One sum of squares a tensor."""
    arrays_of_floats = (x if x.dtype is DType.FLOAT64 else g.cast(x, DType.FLOAT32) for x in xs)
    sums = (g.ReduceSumSquare(x, range(x.rank), keepdims=0) for x in arrays_of_floats)
    return g.cast(g.Concat(*(g.Reshape(s, [1]) for s in sums), axis=0), DType.FLOAT32)


@reads("all_finite", ignore=("init_output",))
def read_all_finite(g, x):
    return read_multi_all_finite(g, x)


@reads("multi_all_finite", ignore=("num_arrays", "init_output"))
def read_multi_all_finite(g, *xs):
    """1 where no element of any tensor is infinite or NaN."""
    flat = (g.Reshape(g.cast(x, DType.FLOAT32), [-1]) for x in xs)
    bad = [g.cast(g.Or(g.IsNaN(x), g.IsInf(x)), DType.INT32) for x in flat]
    bad = g.Concat(*bad, g.const([0], DType.INT32), axis=0)
    return g.Sub(1.0, g.cast(g.ReduceMax(bad, [0], keepdims=1), DType.FLOAT32))


@reads("_contrib_allclose")
def read_allclose(g, a, b, *, rtol=1e-5, atol=1e-8, equal_nan=True):
    """Whether all elements differ by no more than ``atol + rtol · |b|``."""
    bound = g.Add(g.Mul(g.Abs(b), rtol), atol)
    near = g.Or(g.Equal(a, b), g.LessOrEqual(g.Abs(g.Sub(a, b)), bound))
    near = g.Or(near, g.And(g.IsNaN(a), g.IsNaN(b))) if equal_nan else near
    flat = g.Concat(g.Reshape(g.cast(near, DType.INT32), [-1]), g.const([1], DType.INT32), axis=0)
    return g.cast(g.ReduceMin(flat, [0], keepdims=0), DType.UINT8)


def write_reduction(name, extra, s, x, axes=None, *, keepdims, noop_with_empty_axes):
    require(name != "norm" or x.type.kind == "f", f"a norm of {x.type.value} elements")
    chosen = axes.ints() if axes is not None else ()
    if not chosen:
        if noop_with_empty_axes:
            return s.abs(x) if name == "norm" else x
        chosen = tuple(range(x.rank))
    return s[name](x, axis=chosen or (0,), keepdims=bool(keepdims), **extra)


for _name, _op in REDUCTIONS.items():
    writes(_op)(partial(write_reduction, _name, {}))
writes("ReduceL2")(partial(write_reduction, "norm", {"ord": 2}))


def write_arg(name, s, x, *, axis, keepdims):
    """MXNet's positions are float32: exact below 2**24. Before 1.7 it asks floats only."""
    if x.type.kind != "f" and not s.release.has_doubles:
        require(x.type is not DType.INT64, f"{name} of int64 elements before MXNet 1.7")
        x = s.Cast(x, dtype="float64")
    return s.Cast(s[name](x, axis=axis, keepdims=bool(keepdims)), dtype="int64")


for _name, _op in EXTREMES.items():
    writes(_op, only={"select_last_index": (0,)})(partial(write_arg, _name))


def legalize_bool(op, g, x, axes=None, *, keepdims, noop_with_empty_axes):
    """Whether any, or all, are true."""
    if x.dtype is not DType.BOOL:
        return None
    more = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    return g.decompose(op, 20, x, axes, **more)


for _op in ("ReduceMax", "ReduceMin"):
    legalizations(_op)(partial(legalize_bool, _op))


def legalize_last_extreme(op, g, x, *, axis, keepdims, select_last_index):
    """The last of equals is the first when counted from the end."""
    if not select_last_index:
        return None
    return g.decompose(op, 12, x, axis=axis, keepdims=keepdims, select_last_index=1)


for _op in EXTREMES.values():
    legalizations(_op)(partial(legalize_last_extreme, _op))
