"""Means, variances and deviations over axes."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, i32, operator_test, refuses

X = f32(2, 3, 4)

CASES = [
    case("moments", X, axes=1),
    case("moments", X, axes="(0, -1)", keepdims=True),
    case("moments", f64(2, 3), axes="(0, 1)"),
    case("moments", f64(2, 3), axes="(0, 1)", keepdims=True),
    case("moments", f16(2, 3, 4), axes="(0, 2)"),
    *(
        case(op, x, **a).but(np_shape=True)
        for op in ("_npi_var", "_npi_std")
        for x, a in (
            (X, {}),
            (X, {"axis": 1}),
            (X, {"axis": "(0, -1)", "keepdims": True}),
            (X, {"axis": "(0, -1)", "ddof": 1}),
            (f64(2, 3), {"ddof": 1, "keepdims": True}),
            (f16(2, 3), {"axis": 1, "dtype": "float32"}),
        )
    ),
    *(
        case("_npi_average", *xs, **a).but(np_shape=True)
        for xs, a in (
            ([X], {"axis": 1, "weighted": False}),
            ([X], {"weighted": False, "returned": True}),
            ([X, f32(3, low=1)], {"axis": 1}),
            ([X, f32(2, 3, 4, low=1)], {"axis": "(0, 2)"}),
            ([X, f32(2, 3, 4, low=1)], {}),
            ([f64(2, 3), f64(3, low=1)], {"axis": -1, "returned": True}),
        )
    ),
    refuses("_npi_var", i32(2, 3), says="the variance of int32 numbers"),
    *(case("_npi_var", f32(2, 3, 4), axis=1, ddof=n) for n in (3, 5)),
]

test_statistics = operator_test(CASES)
