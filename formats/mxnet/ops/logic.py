"""Comparisons, logic and choosing by a condition."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.ir.graph import Dim, DType, Value
from serde.spec.expressions import lowest_value

from ..rules import reads
from ..target import scalar_value, storage_type_name, writes
from .binary import promote_scalar
from .dynamic_shapes import broadcast_axes_to, broadcast_shapes, broadcast_together

COMPARISONS = {  # MXNet's name: ONNX's, NumPy's
    "equal": ("Equal", "equal"),
    "greater": ("Greater", "greater"),
    "greater_equal": ("GreaterOrEqual", "greater_equal"),
    "lesser": ("Less", "less"),
    "lesser_equal": ("LessOrEqual", "less_equal"),
    "not_equal": ("unequal", "not_equal"),
}
LOGIC = {"and": "And", "or": "Or", "xor": "Xor"}
OF_ZERO_AND_ONE = {  # the same of booleans, which are numbers, before MXNet 1.3
    "broadcast_logical_and": "broadcast_mul",
    "broadcast_logical_or": "broadcast_maximum",
    "broadcast_logical_xor": "broadcast_not_equal",
}


def compare(op, g, a: Value, b: Value):
    """The truth of a comparison; booleans are compared as numbers."""
    if a.dtype is DType.BOOL:
        a, b = g.cast(a, DType.INT32), g.cast(b, DType.INT32)
    return g.Not(g.Equal(a, b)) if op == "unequal" else g[op](a, b)


def read_comparison(op, g, a: Value, b: Value):
    """MXNet gives 0 and 1 in the type of its operands."""
    return g.cast_like(compare(op, g, a, b), a)


def read_scalar_comparison(op, g, x: Value, *, scalar=1.0, is_int=True):
    return read_comparison(op, g, *promote_scalar(g, x, scalar, is_int))


def read_numpy_scalar_comparison(op, g, x: Value, *, scalar=1.0, is_int=True):
    """Beside booleans a number is one."""
    if x.dtype is DType.BOOL:
        x, scalar, is_int = g.cast(x, DType.INT32), bool(scalar), True
    return compare(op, g, *promote_scalar(g, x, scalar, is_int))


for _name, (_op, _numpy) in COMPARISONS.items():
    reads(f"broadcast_{_name}", f"_{_name}")(partial(read_comparison, _op))
    reads(f"_{_name}_scalar")(partial(read_scalar_comparison, _op))
    reads(f"_npi_{_numpy}")(partial(compare, _op))
    reads(f"_npi_{_numpy}_scalar")(partial(read_numpy_scalar_comparison, _op))


def read_numpy_logical(op, g, a: Value, b: Value):
    return g[op](g.is_true(a), g.is_true(b))


def read_numpy_logical_scalar(op, g, x: Value, *, scalar=1.0):
    return g[op](g.is_true(x), g.const(bool(scalar), DType.BOOL))


def read_logical(op, g, a: Value, b: Value):
    return g.cast_like(read_numpy_logical(op, g, a, b), a)


def read_logical_scalar(op, g, x: Value, *, scalar=1.0, is_int=True):
    return read_logical(op, g, *promote_scalar(g, x, scalar, is_int))


for _name, _op in LOGIC.items():
    reads(f"broadcast_logical_{_name}", f"_logical_{_name}")(partial(read_logical, _op))
    reads(f"_logical_{_name}_scalar")(partial(read_logical_scalar, _op))
    reads(f"_npi_logical_{_name}")(partial(read_numpy_logical, _op))
    reads(f"_npi_logical_{_name}_scalar", ignore=("is_int",))(
        partial(read_numpy_logical_scalar, _op)
    )


reads("logical_not")(lambda g, x: g.cast_like(g.Not(g.is_true(x)), x))
reads("_npi_logical_not")(lambda g, x: g.Not(g.is_true(x)))


def read_bitwise(op, g, a: Value, b: Value):
    return g[op if a.dtype is DType.BOOL else f"Bitwise{op}"](a, b)


def read_bitwise_scalar(op, g, x: Value, *, scalar=1.0):
    if x.dtype is DType.BOOL:
        return read_bitwise(op, g, x, g.const(bool(scalar), DType.BOOL))
    return read_bitwise(op, g, x, g.const(np.int64(scalar).astype(x.type.numpy)))


for _name, _op in LOGIC.items():
    reads(f"_npi_bitwise_{_name}")(partial(read_bitwise, _op))
    reads(f"_npi_bitwise_{_name}_scalar", ignore=("is_int",))(partial(read_bitwise_scalar, _op))


reads("_npi_bitwise_not")(lambda g, x: g.Not(x) if x.dtype is DType.BOOL else g.BitwiseNot(x))


def read_test(test, g, x: Value):
    """A question only floats can answer with yes."""
    if x.type.kind == "f":
        return test(g, x)
    return g.And(g.Not(yes := g.is_true(x)), yes)


TESTS = {
    "isnan": lambda g, x: g.IsNaN(x),
    "isinf": lambda g, x: g.IsInf(x),
    "isposinf": lambda g, x: g.IsInf(x, detect_negative=0),
    "isneginf": lambda g, x: g.IsInf(x, detect_positive=0),
}
for _name, _test in TESTS.items():
    reads(f"_npi_{_name}")(partial(read_test, _test))


@reads("_npi_isfinite")
def read_isfinite(g, x):
    return g.Not(read_test(lambda g, x: g.Or(g.IsNaN(x), g.IsInf(x)), g, x))


@reads("where")
def read_where(g, condition, x, y):
    """A condition of one axis chooses whole rows."""
    chosen = g.is_true(condition)
    if condition.rank == 1 and x.rank > 1:
        chosen = g.Unsqueeze(chosen, list(range(1, x.rank)))
    return select(g, chosen, x, y)


def select(g, chosen, x: Value, y: Value):
    """``x`` where the condition holds, else ``y``; runtimes do not choose between booleans."""
    if x.dtype is not DType.BOOL:
        return g.Where(chosen, x, y)
    return g.Or(g.And(chosen, x), g.And(g.Not(chosen), y))


@reads("_npi_where")
def read_numpy_where(g, condition, x, y):
    return select(g, g.is_true(condition), x, y)


def scalar_like(g, number: float, x: Value):
    """A number as an element of the type of ``x``, cut off where that is whole."""
    return g.const(np.array(number).astype(x.type.numpy))


@reads("_npi_where_lscalar")
def read_where_lscalar(g, condition, x, *, scalar=0.0):
    return select(g, g.is_true(condition), scalar_like(g, scalar, x), x)


@reads("_npi_where_rscalar")
def read_where_rscalar(g, condition, y, *, scalar=0.0):
    return select(g, g.is_true(condition), y, scalar_like(g, scalar, y))


@reads("_npi_where_scalar2")
def read_where_scalar2(g, condition, *, x=0.0, y=0.0):
    return g.Where(g.is_true(condition), np.float32(x), np.float32(y))


@reads("_npx_constraint_check", ignore=("msg",))
def read_constraint_check(g, x):
    """Whether all are true, where MXNet raises an error if they are not."""
    flat = g.cast(g.Reshape(g.is_true(x), [-1]), DType.INT32)
    return g.is_true(g.ReduceMin(flat, [0], keepdims=0))


@reads("_npi_nan_to_num", ignore=("copy",))
def read_nan_to_num(
    g, x, *, nan=0.0, posinf: float | None = None, neginf: float | None = None
):  # fmt: skip
    """Infinities become the largest numbers of their type unless others are given."""
    if x.type.kind != "f":
        return x
    most = -lowest_value(x)
    for mask, replacement in (
        (g.IsNaN(x), nan),
        (g.IsInf(x, detect_negative=0), most if posinf is None else posinf),
        (g.IsInf(x, detect_positive=0), -most if neginf is None else neginf),
    ):
        x = g.Where(mask, g.scalar(replacement, x), x)
    return x


def write_comparison(name, s, a, b):
    """MXNet's answer is 0 or 1 in the operands' type."""
    answer = s[name if s.release.has(name) else OF_ZERO_AND_ONE[name]](a, b)
    plain = a.type in (DType.FLOAT32, DType.BOOL)
    return answer if plain else s.Cast(answer, dtype="float32")


for _name, (_op, _) in COMPARISONS.items():
    if _op != "unequal":
        writes(_op)(partial(write_comparison, f"broadcast_{_name}"))
for _name, _op in LOGIC.items():
    writes(_op)(partial(write_comparison, f"broadcast_logical_{_name}"))


@writes("Not")
def write_not(s, x):
    return s.logical_not(x) if s.release.has("logical_not") else s["_equal_scalar"](x, scalar=0)


@writes("Where")
def write_where(s, condition, x, y):
    """MXNet wants all three in one shape."""
    parts = (condition, x, y)
    sizes = broadcast_shapes([v.ranked_shape for v in parts])
    if sizes is None:
        return s.where(*broadcast_together(s, parts))
    full = next((v for v in parts if list(v.ranked_shape) == sizes), None)
    return s.where(*(broadcast_to_shape(s, v, full, sizes) for v in parts))


def broadcast_to_shape(s, value: Value, full: Value | None, sizes: list[Dim]):
    """``value`` spread out to ``sizes``, the shape of ``full`` if that is there."""
    if full is None or (n := scalar_value(value)) is None:
        return value if list(value.ranked_shape) == sizes else broadcast_axes_to(s, value, sizes)
    zeros = s.Cast(s.zeros_like(full), dtype=storage_type_name(value.type))
    zeros.dtype = value.dtype
    return s["_plus_scalar"](zeros, scalar=n)
