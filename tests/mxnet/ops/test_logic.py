"""Comparisons, logic and choosing by a condition."""

from __future__ import annotations

import numpy as np

from serde.formats.mxnet.ops.logic import COMPARISONS, LOGIC, TESTS
from testing.mxnet.cases import (
    case,
    f16,
    f32,
    f64,
    flags,
    i8,
    i32,
    i64,
    ints,
    of,
    operator_test,
    u8,
)

NUMPY = [numpy for _, numpy in COMPARISONS.values()]
A, B = ints(2, 3, high=2), ints(2, 3, high=2, seed=1)
EDGES = of([1, np.nan, np.inf, -np.inf, 0])
TYPES = ("float16", "float64", "int8", "int32", "int64", "uint8")
CASES = [
    *(case(f"_{op}", A.astype(t), B.astype(t)) for op in COMPARISONS for t in TYPES),
    *(case(f"broadcast_{op}", A.astype(t), B[:1].astype(t)) for op in COMPARISONS for t in TYPES),
    *(case(f"_npi_{op}", A.astype(t), B[:1].astype(t)) for op in NUMPY for t in (*TYPES, "bool")),
    *(
        case(f"_{op}_scalar", A.astype(t), scalar=s)
        for op in COMPARISONS
        for t in (*TYPES, "bool")
        for s in (1, 1.5)
    ),
    *(case(f"_{op}_scalar", A) for op in COMPARISONS),
    *(case(f"_{op}_scalar", A.astype("int32"), scalar=1.5, is_int=False) for op in COMPARISONS),
    *(
        case(f"_npi_{op}_scalar", A.astype(t), scalar=s)
        for op in NUMPY
        for t in (*TYPES, "bool")
        for s in (1, 1.5)
    ),
    *(case(f"_npi_{op}_scalar", A.astype("int32"), scalar=1.5, is_int=False) for op in NUMPY),
    *(case(f"_{op}", EDGES, EDGES[::-1].copy()) for op in COMPARISONS),
    *(
        case(f"_logical_{op}", A.astype(t), B.astype(t))
        for op in LOGIC
        for t in ("float32", "int32", "float16")
    ),
    *(
        case(f"broadcast_logical_{op}", A.astype(t), B[:, :1].astype(t))
        for op in LOGIC
        for t in ("float32", "int32", "uint8")
    ),
    *(
        case(f"_logical_{op}_scalar", A.astype(t), scalar=2)
        for op in LOGIC
        for t in ("float32", "int32", "float16")
    ),
    *(case(f"_logical_{op}_scalar", A.astype("int32"), scalar=2, is_int=False) for op in LOGIC),
    case("logical_not", A),
    case("logical_not", i32(2, 3)),
    case("logical_not", EDGES),
    *(case("_npi_logical_not", A.astype(t)) for t in ("float32", "int32", "bool")),
    *(
        case(f"_npi_bitwise_{op}", a, b)
        for op in LOGIC
        for a, b in (
            (i32(2, 3), i32(2, 3, seed=1)),
            (u8(2, 3), u8(3, seed=1)),
            (flags(2, 3), flags(2, 3, seed=1)),
        )
    ),
    *(
        case(f"_npi_bitwise_{op}_scalar", a, scalar=5)
        for op in LOGIC
        for a in (i32(2, 3), u8(2, 3), flags(2, 3))
    ),
    case("_npi_bitwise_not", i32(2, 3)),
    case("_npi_bitwise_not", flags(2, 3)),
    *(
        case(f"_npi_{op}", x)
        for op in (*TESTS, "isfinite")
        for x in (EDGES, EDGES.astype("float16"), EDGES.astype("float64"), i32(3), flags(3))
    ),
    *(
        case("where", c, f32(2, 3), f32(2, 3, seed=1))
        for c in (A, B.astype("int32"), B.astype("uint8"), ints(2, high=1))
    ),
    case("where", ints(2, high=1), i64(2, 3, 2), i64(2, 3, 2, seed=1)),
    case("where", EDGES, f16(5), f16(5, seed=1)),
    case("_npi_where", flags(2, 1), f32(3), f32(1, 3, seed=1)),
    case("_npi_where", A, i32(2, 3), i32(2, 3, seed=1)),
    case("_npi_where_lscalar", flags(2, 3), f32(2, 3), scalar=2.5),
    case("_npi_where_lscalar", flags(2, 3), i32(2, 3), scalar=2.5),
    case("_npi_where_rscalar", flags(2, 1), f64(2, 3), scalar=2.5),
    case("_npi_where_scalar2", flags(2, 3), x=1.5, y=-2),
    *(case("_npi_nan_to_num", EDGES.astype(t)) for t in ("float32", "float64", "float16")),
    case("_npi_nan_to_num", EDGES, nan=1, posinf=2, neginf=3),
    case("_npi_nan_to_num", i32(3)),
    *(case("_npi_bitwise_not", x).but(np_shape=True) for x in (i8(3), u8(2, 2), i64())),
    *(
        case("_npi_where", *xs).but(np_shape=True)
        for xs in (
            (flags(), f32(2), f32()),
            (i32(2, 1, low=0, high=1), f64(2), f64(2, seed=1)),
            (f32(2), flags(2), flags(2, seed=1)),
        )
    ),
    *(
        case("_npi_where_lscalar", *xs, scalar=1).but(np_shape=True)
        for xs in ((f32(2), f64(3, 2)), (flags(2), flags(2, seed=2)), (flags(0), f32(0)))
    ),
    case("_npi_where_rscalar", flags(2), i32(3, 2), scalar=-3),
    case("_npi_where_rscalar", i64(2, low=0, high=1), f16(), scalar=0.5).but(np_shape=True),
    case("_npi_where_rscalar", flags(2), flags(2, seed=2), scalar=0),
    case("_npi_where_scalar2", i32(3, low=0, high=1)),
    case("_npi_where_scalar2", f32(2, 2), x=0.1, y=1e10),
    case("_npi_where_scalar2", flags(), x=1).but(np_shape=True),
    *(
        case("_npx_constraint_check", np.ones(shape, bool), **a).but(np_shape=True)
        for shape, a in ((3, {}), ((2, 2), {"msg": "all are positive"}), ((), {}))
    ),
    *(
        case(f"_npi_{op}_scalar", A.astype(bool), scalar=s)  # the number is a boolean as well
        for op in NUMPY
        for s in (0.5, -2)
    ),
    case("_npi_bitwise_or_scalar", A.astype(bool), scalar=-0.5),
]
test_logic = operator_test(CASES)
