"""Diagonals and triangles of matrices."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, f64, i32, operator_test, refuses

X = f32(2, 3, 4)
AXES = [{}, {"axis1": 2, "axis2": 1}, {"axis1": -1, "axis2": 0}]
OFFSETS = (0, 1, -1, 2)


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


CASES = [
    *(case("diag", X, k=k, **a) for k in (0, 1, -1) for a in AXES),
    *(case("diag", f32(3, 5), k=k) for k in OFFSETS),
    *(case("diag", f32(3), k=k) for k in OFFSETS),
    case("diag", i32(3)),
    case("diag", f64(3, 3)),
    *(numpy("_np_diag", x, k=k) for x in (f32(3), f32(3, 5), i32(4, 2)) for k in (0, 1, -1)),
    *(numpy("_np_diagflat", x, k=k) for x in (f32(3), f32(2, 2)) for k in (0, 1, -1)),
    *(
        numpy(op, X, offset=k, **a)
        for op in ("_np_diagonal", "_np_trace")
        for k in (0, 1, -1)
        for a in AXES
    ),
    *(numpy(op, f64(3, 5)) for op in ("_np_diagonal", "_np_trace")),
    *(numpy("_npi_tril", x, k=k) for x in (f32(3, 4), X, f32(3)) for k in (0, 1, -1)),
    numpy("_npi_diag_indices_from", f32(3, 3)),
    *(
        case("_linalg_extractdiag", x, offset=k)
        for x in (f32(3, 3), f32(2, 4, 4))
        for k in (0, 1, -2)
    ),
    *(case("_linalg_makediag", x, offset=k) for x in (f32(3), f32(2, 4)) for k in (0, 1, -2)),
    *(case("_linalg_sumlogdiag", x) for x in (f32(3, 3, low=0.1), f64(2, 4, 4, low=0.1))),
    refuses("diag", X, axis1=1, axis2=1, says="axis1=1 and axis2=1 are one axis"),
    *(numpy("_npi_diag_indices_from", x) for x in (f32(1, 1), i32(4, 4), f64(2, 2, 2))),
    case("_linalg_sumlogdiag", f32(2, 2, 1, 1, low=0.1)),
]

test_diagonals = operator_test(CASES)
