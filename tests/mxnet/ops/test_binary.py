"""Arithmetic of two tensors, or of a tensor and a number."""

from __future__ import annotations

import json

from serde.formats.mxnet.ops.binary import PROMOTING, REVERSED, SCALARS, TENSORS
from testing.mxnet.cases import (
    case,
    f16,
    f32,
    f64,
    flags,
    i8,
    i32,
    i64,
    of,
    operator_test,
    refuses,
    u8,
)
from testing.mxnet.make_registry import FILE

NEWEST = json.loads(FILE.read_text()).keys()  # operators of MXNet 1.9.1; others are of 2.0


def names(table):
    return [op for ops in table.values() for op in ops.split() if op in NEWEST]


def numbers(make, *shape, seed=0):
    """Small numbers none of which is 0, so that they can divide and be raised to powers."""
    return make(*shape, low=1, high=3, seed=seed)


def gap(op, dtype):
    return "Atan of float64" if "arctan2" in op and dtype == "float64" else ""


SAME_SHAPE = [op for op in names(TENSORS) if not op.startswith(("broadcast_", "_npi_"))]
BROADCASTING = [op for op in names(TENSORS) if op not in SAME_SHAPE]
FLOATS_ONLY = ("_npi_hypot", "_npi_arctan2")
NUMPY = [op for name in PROMOTING if (op := f"_npi_{name}") in NEWEST]
COUNTING = ["_npi_add", "_npi_multiply", "_npi_power"]  # that take any two kinds of integers
WITH_NUMBER = [*names(SCALARS), *names(REVERSED)]
SIGNS = [5, -5, 5, -5, 5, 0, 4], [3, 3, -3, -3, 0, 5, -2]

CASES = [
    *(
        case(op, numbers(make, 2, 3), numbers(make, 2, 3, seed=1))
        for op in SAME_SHAPE
        for make in (f32, f16, f64, i8, i32, i64, u8)
    ),
    *(case(op, numbers(f32, 2, 3, 4), numbers(f32, 2, 1, 4, seed=1)) for op in BROADCASTING),
    *(case(op, numbers(f16, 1, 2, 1), numbers(f16, 3, 1, 4, seed=1)) for op in BROADCASTING),
    *(
        case(op, numbers(f64, 2, 3), numbers(f64, 1, 3, seed=1)).but(gap=gap(op, "float64"))
        for op in BROADCASTING
    ),
    *(
        case(op, numbers(make, 2, 3), numbers(make, 2, 3, seed=1))
        for op in BROADCASTING
        if op not in FLOATS_ONLY
        for make in (i8, i32, i64, u8)
    ),
    *(
        case(op, numbers(make, 2, 3), numbers(other, 2, 3, seed=1))
        for op in NUMPY
        for make, other in ((f32, f32), (i32, f32), (f16, i64), (f64, u8))
    ),
    *(case(op, numbers(i8, 2, 3), numbers(i64, 2, 3, seed=1)) for op in COUNTING),
    *(case(op, flags(2, 3), flags(2, 3, seed=1)) for op in COUNTING),
    *(
        case(op, numbers(make, 2, 3), scalar=scalar).but(gap=gap(op, str(make(1).dtype)))
        for op in WITH_NUMBER
        for make, scalar in (
            (f32, 2.5),
            (f16, 2.5),
            (f64, 2.5),
            (i8, 2),
            (i32, 2.5),
            (i64, 2),
            (u8, 2.5),
        )
    ),
    *(
        case(op, numbers(i32, 2, 3), scalar=2.5, is_int=False).but(gap=gap(op, "float64"))
        for op in WITH_NUMBER
    ),
    *(case(op, of([True, True], "bool"), scalar=2) for op in WITH_NUMBER),
    *(case(op, f32(2, 3)) for op in WITH_NUMBER),
    *(
        case(op, of(SIGNS[0], dtype), of(SIGNS[1], dtype))
        for op in ("_mod", "broadcast_mod", "_npi_mod")
        for dtype in ("float32", "int32")
    ),
    *(
        case(op, of([5.5, -5, 0]), scalar=scalar)
        for op in ("_mod_scalar", "_rmod_scalar")
        for scalar in (3, -3, 0)
    ),
    case("_npi_arctan2", of([1, -1, 1, -1, 0, 0, 1, 0]), of([1, 1, -1, -1, 1, -1, 0, 0])),
    case("_npi_copysign", of([1, -1, 1, -1]), of([-0.0, 0.0, -3, 4])),
    *(
        case("_npi_copysign", of([5, -(2**24) - 1, 2**30 + 1], dtype), of([-1, 3, -(2**30)], dtype))
        for dtype in ("int32", "int64")
    ),
    *(
        case("_npi_true_divide", a, b)
        for a, b in (
            (f32(2, 3), f32(3, low=1)),
            (i32(2, 3), of([1, 2, 3], "int32")),
            (f16(2, 3), of([1, 2, 3], "int64")),
            (flags(2, 3), of([1, 2, 3], "float64")),
        )
    ),
    *(
        case(op, numbers(make, 2, 3), scalar=2.5)
        for op in ("_npi_true_divide_scalar", "_npi_rtrue_divide_scalar")
        for make in (f16, f32, f64, i32, u8)
    ),
    case("_npi_true_divide_scalar", flags(2, 3), scalar=2),
    case("add_n", f32(2, 3), num_args=1),
    case("add_n", f32(2, 3), f32(2, 3, seed=1), f32(2, 3, seed=2), num_args=3),
    case("add_n", i32(2, 3), i32(2, 3, seed=1), num_args=2),
    case("_mul_scalar", f32(2, 3), scalar=2).but(
        printed="""
graph case(%x0: float32[2,3]):
  %op_output: float32[2,3] = Mul(%x0, 2.0)
  return %op_output
"""
    ),
    refuses("_plus_scalar", i32(2), scalar="inf", says="scalar=inf with int32 elements"),
    *(
        case("_npi_lcm", *xs).but(np_shape=True)
        for xs in (
            (i32(2, 3), i32(2, 3, seed=1)),
            (i32(2, 3), i32(2, 1, seed=1)),
            (i8(5), i8(5, seed=1)),
            (u8(5), u8(5, seed=1)),
            (flags(3), flags(3, seed=1)),
            (i64(3) * 2**33, i64(3, seed=2)),
            (i32(0), i32(0)),
            (i32(), i32(seed=1)),
            (of([200], "uint8"), of([3], "uint8")),
        )
    ),
    *(case("_npi_lcm_scalar", i32(2, 3), scalar=s) for s in (6, 0, -4, 2.5)),
    *(
        case(op, x, scalar=s, is_int=is_int)
        for op in ("_npi_copysign_scalar", "_npi_rcopysign_scalar")
        for x, s, is_int in (
            (f32(2, 3), -2, True),
            (f64(3), 2.5, False),
            (f16(2), "-inf", False),
            (i32(4), -3, True),
            (i32(3), -2.5, False),
            (of([0.0, -0.0]), -1, True),
        )
    ),
    refuses("_npi_lcm", f32(2), f32(2), says="the least common multiple of float32 numbers"),
]

test_binary = operator_test(CASES)
