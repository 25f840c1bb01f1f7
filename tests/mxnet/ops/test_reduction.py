"""Reductions over axes."""

from __future__ import annotations

import numpy as np

from serde.formats.mxnet.ops.reduction import REDUCTIONS
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

SHAPES = [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)]
X = f32(2, 3, 4)
HOLES = of([[np.nan, 1, 2], [3, 1, np.nan]])
LEGACY = [*REDUCTIONS, "nansum", "nanprod"]
NUMPY = ("_np_sum", "_np_prod", "_npi_mean")
EXTREMES = ["_np_max", "_np_min"]
TRUTH = ["_np_any", "_np_all"]
ARGS = ["argmax", "argmin"]
KEPT = [
    {},
    {"axis": 1},
    {"axis": -1},
    {"axis": "(0, 2)"},
    {"axis": "(0, -1)", "keepdims": True},
    {"axis": "()"},
    {"axis": "None"},
    {"keepdims": True},
    {"axis": "(0, 1, 2)"},
]
EXCLUDED = [
    {"axis": 1, "exclude": True},
    {"axis": "(0, 2)", "exclude": True, "keepdims": True},
    {"axis": "()", "exclude": True},
    {"exclude": True},
    {"axis": "(0, 1, 2)", "exclude": True},
]
WRAPPING = [  # integers whose sums and products leave their type, and the axes reduced
    *((make(2, 5, 3), axis) for make in (i8, i32, i64, u8) for axis in (0, 1, "(0, 2)", "None")),
    (i32(3, 40, low=-(2**31), high=2**31 - 1), 1),
    (i32(3, 40, low=-(2**31), high=2**31 - 1), "None"),
    (i32(2, 1, 3), 1),
    (i8(3, 40, low=-128, high=127), 1),
    (u8(3, 40, high=255), 1),
]

CASES = [
    *(case(op, x, axis=axis) for op in LEGACY for x, axis in WRAPPING if op not in ("max", "min")),
    *(case(op, x, axis=axis) for op in ("_np_sum", "_np_prod") for x, axis in WRAPPING),
    *(
        case(op, of([[2**62 - 9, 3], [5, 7]], "int64"), axis=1, keepdims=keepdims)
        for op in ("prod", "_np_prod")
        for keepdims in (True, False)
    ),
    *(case(op, f32(*s)) for op in LEGACY for s in SHAPES),
    *(case(op, X, **a) for op in LEGACY for a in (*KEPT, *EXCLUDED)),
    *(case(op, make(2, 3), axis=1) for op in LEGACY for make in (f16, f64, i8, u8, i32, i64)),
    *(case(op, HOLES, axis=1) for op in LEGACY if op not in ("max", "min")),
    *(case("norm", f32(*s)) for s in SHAPES),
    *(case("norm", X, ord=o, **a) for o in (1, 2) for a in KEPT),
    *(case("norm", make(2, 3, 4), axis=1, ord=o) for o in (1, 2) for make in (f16, f64)),
    *(case(op, f32(*s)) for op in ARGS for s in SHAPES),
    *(case(op, X, axis=a, keepdims=k) for op in ARGS for a in (0, 1, -1, None) for k in (0, 1)),
    *(case(op, f32(5), axis=0) for op in ARGS),
    *(case(op, of([[1, 1, 0, 1, 0]]), axis=1) for op in ARGS),
    *(case(op, make(2, 3), axis=1) for op in ARGS for make in (f16, f64, i32, u8)),
    *(case("argmax_channel", f32(*s)) for s in SHAPES[1:]),
    case("argmax_channel", f16(2, 3)),
    *(
        case(f"_npi_{op}", x, **a).but(np_shape=True)
        for op in ARGS
        for x in (X, i32(2, 3, 4))
        for a in ({}, {"keepdims": True}, {"axis": 1}, {"axis": -1, "keepdims": True})
    ),
    *(case(op, X, **a).but(np_shape=True) for op in (*NUMPY, *EXTREMES) for a in KEPT),
    *(
        case(op, make(2, 3), axis=1).but(np_shape=True)
        for op in (*NUMPY, *EXTREMES, *TRUTH)
        for make in (f16, f64, i8, u8, i32, i64, flags)
    ),
    *(case(op, i32(2, 3), dtype="float64").but(np_shape=True) for op in NUMPY),
    *(case(op, flags(2, 3, 4), **a).but(np_shape=True) for op in TRUTH for a in KEPT),
    case("multi_sum_sq", f32(2, 3), f32(4), num_arrays=2),
    case("multi_sum_sq", f32(2), num_arrays=1),
    *(
        case("all_finite", of(x, t))
        for x in ([1, 2], [1, np.nan], [[np.inf], [0]])
        for t in ("float32", "float16")
    ),
    case("multi_all_finite", of([1, 2]), f32(2, 3), num_arrays=2),
    case("multi_all_finite", of([1, np.inf]), f32(2, 3), num_arrays=2),
    *(
        case("_contrib_allclose", of([1, np.nan, np.inf, 3]), of(b), **a).but(np_shape=True)
        for b in ([1, np.nan, np.inf, 3.00001], [1, np.nan, np.inf, 3.1], [1, 2, np.inf, 3])
        for a in ({}, {"equal_nan": False}, {"rtol": 0.1, "atol": 0.01})
    ),
    refuses("norm", X, ord=3, says="ord=3"),
    refuses("norm", i32(2, 3), says="norm of int32"),
    refuses("norm", X, out_dtype="float64", says="out_dtype"),
    refuses("sum", X, axis=3, says="axis 3 is outside a tensor of rank 3"),
    refuses("_np_sum", X, initial=1, says="initial=1"),
    case("multi_sum_sq", f16(3), f16(2, 2), num_arrays=2),
    case("multi_sum_sq", f64(3), f64(2, 2), num_arrays=2),
    case("multi_all_finite", f32(3), num_arrays=1),
    case("multi_all_finite", f16(3), of([np.nan, 1], "float16"), num_arrays=2),
    *(case("_npi_norm", x, flag=-2).but(np_shape=True) for x in (X, f64(2, 3), f32(), f16(3))),
    *(
        case("_npi_norm", X, axis=axis, **a).but(np_shape=True)
        for axis, a in (
            ("(0, 1)", {"flag": 1}),
            ("(1,)", {"flag": 1, "keepdims": True}),
            ("(1,)", {}),
            ("(-1,)", {"ord": 1}),
            ("(0,)", {"ord": 3}),
            ("(0,)", {"ord": 0}),
            ("(0,)", {"ord": -2}),
            ("(0,)", {"ord": 0.5, "keepdims": True}),
        )
    ),
    refuses("_npi_norm", f32(2, 3), flag=2, says="a norm of singular values"),
    refuses("_npi_norm", f32(2, 3), says="ord=2.0 over 2 axes"),
    case("_contrib_allclose", f32(0), f32(0)).but(np_shape=True),
    case("all_finite", f32(0)).but(np_shape=True),
    case("multi_sum_sq", f16(2, 300), num_arrays=1).but(tolerance=1e-3),  # squares are halves
    *(
        case(op, f32(2, 3, 4, low=-3, high=3), axis=1, dtype=t)  # cut at the end
        for op in ("_np_sum", "_np_prod", "_npi_mean")
        for t in ("int8", "int64")
    ),
    *(case("mean", x, axis=1) for x in (u8(2, 3, 4, low=0, high=255), i8(2, 9, low=-128))),
    case("mean", flags(2, 3), axis=1),
]

CASES += [  # of nothing
    case(op, f32(0, 3), **a).but(np_shape=True)
    for op in (
        "_np_sum", "_np_prod", "_npi_mean", "_np_any", "_np_all", "_npi_var", "_npi_std", "mean",
        "sum", "prod",
    )
    for a in ({}, {"axis": "0"})
]  # fmt: skip
test_reductions = operator_test(CASES)
