"""Systems of linear equations, inverses and Cholesky's factors."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, f64, i32, of, operator_test


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


def square(*shape, make=f32):
    x = make(*shape, shape[-1])
    return x + 2 * np.eye(shape[-1], dtype=x.dtype)


def positive(*shape, make=f32):
    x = make(*shape, shape[-1])
    return (x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])).astype(x.dtype)


CASES = [
    *(
        case(op, x)
        for op in ("_linalg_potrf", "_linalg_potri", "_npi_cholesky", "_linalg_inverse")
        for x in (positive(3), positive(2, 4), positive(2, 3, 1), positive(5, make=f64))
    ),
    case("_linalg_potrf", f32(3, 3) * 0.1 + 3 * np.eye(3, dtype="float32")),
    case("_linalg_potri", square(3)),
    case("_linalg_inverse", of([[0, 1], [1, 0]])),
    case("_linalg_inverse", f32(6, 6)),
    *(
        case("_linalg_trsm", square(2, 3), f32(2, *((2, 3) if right else (3, 2))),
             transpose=t, rightside=right, lower=lower, alpha=1.5)
        for t in (0, 1)
        for right in (0, 1)
        for lower in (0, 1)
    ),
    case("_linalg_trsm", square(3, make=f64), f64(3, 1)),
    *(case("_linalg_gelqf", f32(*s)) for s in ((2, 3), (3, 3), (1, 4), (2, 3, 5), (2, 2, 4, 6))),
    case("_linalg_gelqf", f64(4, 7)),
    case("_linalg_gelqf", of([[0, 0, 2], [0, 3, 0], [-4, 0, 0]])),
    case("_linalg_gelqf", of([[5, 0, 0], [1, -3, 0]])),
    numpy("_npi_solve", square(3), f32(3, 2)),
    numpy("_npi_solve", square(3), f32(3)),
    numpy("_npi_solve", square(2, 3), f32(2, 3, 2)),
    numpy("_npi_solve", f64(3, 3), f64(3)),
    numpy("_npi_solve", i32(3, 3), i32(3)),
    numpy("_npi_tensorinv", square(6).reshape(2, 3, 6)),
    numpy("_npi_tensorinv", square(6).reshape(6, 2, 3), ind=1),
    numpy("_npi_tensorinv", square(4, make=f64).reshape(2, 2, 2, 2)),
    numpy("_npi_tensorsolve", square(6).reshape(2, 3, 2, 3), f32(2, 3)),
    numpy("_npi_tensorsolve", square(6).reshape(6, 2, 3), f32(6)),
    numpy(
        "_npi_tensorsolve",
        square(6, make=f64).reshape(2, 3, 6).transpose(2, 0, 1).copy(),
        f64(2, 3),
        a_axes="(0,)",
    ),
]  # fmt: skip
test_solving = operator_test(CASES)
