"""Sums and differences along an axis, polynomials and percentiles."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, flags, i8, i32, i64, of, operator_test, refuses

X = f32(2, 3, 4)
SHARES = of([0, 30, 50, 99.5, 100])


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


CASES = [
    *(numpy("_np_cumsum", X, **a) for a in ({}, {"axis": 0}, {"axis": 2}, {"dtype": "float64"})),
    *(numpy("_np_cumsum", make(2, 3), axis=1) for make in (f64, i8, i32, i64, flags)),
    numpy("_np_cumsum", i32(2, 3), axis=1, dtype="float32"),
    case("_np_cumsum", f32(5)),
    *(numpy("_npi_diff", X, axis=a) for a in (0, 1, 2, -1, -3)),
    numpy("_npi_diff", i32(5)),
    numpy("_npi_ediff1d", X),
    numpy("_npi_ediff1d", f64(4), to_begin_scalar=1.5, to_end_scalar=2),
    numpy("_npi_ediff1d", X, f32(2), to_begin_arr_given=True),
    numpy(
        "_npi_ediff1d", X, f32(2, seed=1), f32(3), to_begin_arr_given=True, to_end_arr_given=True
    ),
    numpy("_npi_ediff1d", X, f32(3), to_end_arr_given=True, to_begin_scalar=1),
    numpy("_npi_polyval", f32(3), f32(2, 3)).but(fixed="the degree of the polynomial"),
    numpy("_npi_polyval", f64(1), f64(4)),
    numpy("_npi_polyval", i32(4, low=-2, high=3), i32(2, 3)).but(fixed="the degree"),
    *(
        numpy("_npi_percentile", X, SHARES, interpolation=i, **a)
        for i in ("linear", "lower", "higher", "midpoint", "nearest")
        for a in ({}, {"axis": 1}, {"axis": "(0, 2)", "keepdims": True})
    ),
    numpy("_npi_percentile", X, q_scalar=30, axis=-1),
    numpy("_npi_percentile", X, q_scalar=75),
    numpy("_npi_percentile", f64(2, 5), q_scalar=75, axis=1, keepdims=True),
    numpy("_npi_percentile", i32(2, 5), SHARES, axis=1),
    refuses("_npi_percentile", f32(0, 3), SHARES, says="a percentile of no numbers"),
    refuses("_npi_diff", X, n=2, says="n=2"),
    case("_npi_percentile", f16(2, 3), of(30, "float32")).but(np_shape=True),
    case("_npi_percentile", f32(2, 5), f32(3, low=0, high=100), q_scalar=30),
    refuses(
        "_npi_ediff1d",
        f32(5),
        f32(2),
        to_end_arr_given=True,
        to_end_scalar=3,
        says="a tensor and a number for one end",
    ),
]

test_series = operator_test(CASES)
