"""Functions of each element."""

from __future__ import annotations

import numpy as np

from serde.formats.mxnet.ops.unary import FLOATS, NUMBERS, ROUNDING, TWINS
from testing.mxnet.cases import case, f16, f32, f64, i8, i32, i64, of, operator_test, refuses, u8

# ONNX Runtime has no float64 kernel of these; nor of what is made of them.
NO_FLOAT64 = {"erf": "Erf", "softsign": "Softsign", "tan": "Tan", "arctan": "Atan",
              "arccos": "Acos", "arcsin": "Asin", "arcsinh": "Asinh", "arccosh": "Acosh",
              "arctanh": "Atanh", "sinh": "Sinh", "cosh": "Cosh"}  # fmt: skip
LOWEST = {"arccosh": 1.1}  # where the domain of a function begins, and
HIGHEST = {"arcsin": 0.9, "arccos": 0.9, "arctanh": 0.9}  # where it ends
HALVES = of([-2.5, -1.5, -0.5, -0.2, 0.0, 0.2, 0.5, 1.5, 2.5, 7.5])
EDGES = of([-np.inf, np.inf, np.nan, 0.0, -1.0, 1e30])
EVERYWHERE = "abs ceil exp floor log negative reciprocal relu sigmoid sqrt square tanh".split()


def domain(name, make, *shape):
    return make(*shape, low=LOWEST.get(name, 0.1), high=HIGHEST.get(name, 3.0))


def large(dtype):
    """Integers that are no float32."""
    return of([-(2**31) + 1, -(2**24) - 1, 2**24 + 1, 2**30 + 7, 3], dtype)


CASES = [
    *(case(op, domain(op, f32, 2, 3, 4)) for op in (*FLOATS, *NUMBERS)),
    *(case(twin, domain(op, f32, 5)) for twin, op in TWINS.items()),
    *(case(op, domain(op, f16, 2, 3)) for op in (*FLOATS, *NUMBERS)),
    *(
        case(op, domain(op, f64, 2, 3)).but(gap=NO_FLOAT64.get(op, ""))
        for op in (*FLOATS, *NUMBERS)
    ),
    *(
        case(op, of([1, 2, 3], dtype))
        for op in FLOATS
        for dtype in ("int32", "uint8")
        if op not in HIGHEST
    ),
    *(case(op, make(2, 3)) for op in NUMBERS for make in (i8, i32, i64, u8)),
    *(case(op, f32(2, 3)) for op in NUMBERS),
    *(case(op, HALVES) for op in ("rint", "round", "fix", "trunc", "ceil", "floor", "cbrt")),
    *(case(op, EDGES) for op in EVERYWHERE),
    case("_npi_around", HALVES),
    case("_npi_around", of([1.25, -2.35, 7.0]), decimals=1),
    case("_npi_around", i32(3)),
    case("clip", f32(2, 3), a_min=-0.5, a_max=0.25),
    case("clip", of([np.nan, np.inf, -np.inf]), a_min=-1, a_max=1),
    case("clip", f16(2, 3), a_min=-1e10, a_max=0.5),
    case("clip", i32(2, 3), a_min=0.5, a_max=3.7),
    case("clip", u8(2, 3), a_min=-1, a_max="inf"),
    case("smooth_l1", f32(2, 3)),
    case("smooth_l1", f32(2, 3), scalar=3.0),
    case("smooth_l1", f64(2, 3), scalar=0.5),
    case("_contrib_quadratic", f32(2, 3), a=1.5, b=-2, c=3),
    case("_contrib_quadratic", f64(4)),
    *(
        case("clip", of(range(0 if dtype == "uint8" else -7, 8), dtype), a_min=low, a_max=high).but(
            gap="Clip of opset 11" if dtype == "float64" and not float(low) > float(high) else ""
        )
        for low, high in ((2, -2), (5, 1), (-1, -5), (2.5, 1.5), ("nan", 1), (1, "nan"), (-1, 300))
        for dtype in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64")
    ),
    *(case("clip", u8(2, 3), a_min=low, a_max=high) for low, high in ((300, 400), (-9, -3))),
    *(case("clip", f32(2, 3), a_min=low, a_max=0.5) for low in ("inf", "-inf", "0.25f", "1e1F")),
    case("clip", of([np.nan, np.inf, -np.inf]), a_min=1, a_max=-1),
    case("clip", of([2**24 + 1, 5, -9], "int32"), a_min=2**24 + 1, a_max=2**25),
    refuses("clip", i32(2), a_min=2, a_max="-inf", says="a bound of -inf for int32 elements"),
    *(case(op, large(dtype)) for op in ROUNDING for dtype in ("int32", "int64")),
    *(case("cbrt", of([-28, -27, -26, 0, 7, 8, 9, 64, 125], dtype)) for dtype in ("int8", "int32")),
    *(case("cbrt", large(dtype)) for dtype in ("int32", "int64")),
    *(case("square", of([-46340, 4097, 46339], dtype)) for dtype in ("int32", "int64")),
    *(case(op, of([1, 10, 999, 1000, 10**9], "int32")) for op in ("log10", "log", "log1p")),
    *(case("log2", of([1, 8, 2**29, 2**30 - 1], dtype)) for dtype in ("int32", "int64")),
    *(case(op, of([1, 17, 20, 21], "int32")) for op in ("exp", "expm1", "degrees")),
    *(case(op, of([2, 4, 16777217, 2147395599], "int64")) for op in ("sqrt", "radians")),
    *(
        case(twin, x).but(np_shape=True)
        for twin, op in TWINS.items()
        for x in (domain(op, f32), domain(op, f16, 2, 3), domain(op, f32, 0, 3))
    ),
    *(
        case(twin, of([1, 2, 3], dtype))
        for twin, op in TWINS.items()
        for dtype in ("int32", "uint8")
        if op not in HIGHEST
    ),
    case("_contrib_quadratic", f16(2, 3), a=2, c=1),
    *(case("_contrib_quadratic", make(3), a=1.5, b=1.5, c=-0.7) for make in (i32, u8)),
    *(case(op, of([-1.5, -0.5, 0.5, 2.5])) for op in ("_contrib_round_ste", "_contrib_sign_ste")),
    refuses("_npi_around", i32(3), decimals=-1, says="which MXNet cuts off"),
]

test_unary = operator_test(CASES)
