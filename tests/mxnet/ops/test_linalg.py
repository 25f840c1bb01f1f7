"""Linear algebra."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from serde.errors import Unconvertible
from testing.mxnet.cases import case, f32, f64, operator_test

SIZE = "needs to know the size of the matrices"
ELEMENTS = "how many elements the triangle has"
A, B = f32(2, 3, 3), f32(2, 3, 3, seed=1)
SQUARE = f32(2, 4, 4) + 3 * np.eye(4, dtype="float32")
FLIPS = [(ta, tb) for ta in (0, 1) for tb in (0, 1)]
TRIANGLES = [(0, True), (0, False), (1, True), (-1, False), (2, True)]
SINGULAR = np.zeros((2, 2), "float32"), np.eye(2, dtype="float32")[::-1].copy(), f32(2, 1, 1)


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


def product(op, ta, tb, *more, **attrs):
    a = f32(2, *((4, 3) if ta else (3, 4)))
    b = f32(2, *((5, 4) if tb else (4, 5)))
    return case(op, a, b, *more, transpose_a=ta, transpose_b=tb, **attrs)


CASES = [
    *(product("_linalg_gemm2", ta, tb, alpha=1.5) for ta, tb in FLIPS),
    case("_linalg_gemm2", f32(3, 4), f32(4, 5)),
    case("_linalg_gemm2", f64(2, 2, 3, 4), f64(2, 2, 4, 5)),
    case("_linalg_gemm2", f32(2, 3, 4), f32(2, 4, 5), axis=-2),
    case("_linalg_gemm2", f32(3, 2, 4), f32(4, 2, 5), axis=0),
    case("_linalg_gemm2", f32(2, 3, 2, 4), f32(2, 4, 2, 5), axis=1),
    *(product("_linalg_gemm", ta, tb, f32(2, 3, 5), alpha=1.5, beta=-2) for ta, tb in FLIPS),
    case("_linalg_gemm", f32(3, 4), f32(4, 5), f32(3, 5)),
    case("_linalg_gemm", f32(3, 2, 4), f32(4, 2, 5), f32(3, 2, 5), axis=0),
    *(case("_linalg_syrk", f32(2, 3, 4), transpose=t, alpha=1.5) for t in (0, 1)),
    case("_linalg_syrk", f64(3, 4)),
    *(
        case("_linalg_trmm", A, B, transpose=t, rightside=r, lower=lower, alpha=1.5)
        for t in (0, 1)
        for r in (0, 1)
        for lower in (0, 1)
    ),
    case("_linalg_trmm", f64(3, 3), f64(3, 3, seed=1)),
    *(case(op, x) for op in ("_linalg_det", "_linalg_slogdet") for x in (SQUARE, -SQUARE[0])),
    *(
        case("_linalg_extracttrian", x, offset=k, lower=low).but(fixed=SIZE)
        for x in (A, f64(4, 4))
        for k, low in TRIANGLES
    ),
    *(
        case("_linalg_maketrian", f32(*s, 6), offset=k, lower=low).but(fixed=ELEMENTS)
        for s in ((), (2,))
        for k, low in TRIANGLES
    ),
    case("khatri_rao", f32(2, 3), f32(4, 3), num_args=2).but(fixed="the number of columns"),
    case("khatri_rao", f32(2, 3), f32(4, 3), f32(2, 3, seed=1), num_args=3).but(
        fixed="the number of columns"
    ),
    *(
        numpy("_np_dot", f32(*a), f32(*b))
        for a, b in (
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((2, 3), (3, 2)),
            ((2, 3, 4), (4,)),
            ((2, 3, 4), (4, 2)),
            ((2, 3, 4), (5, 4, 2)),
            ((), (2, 3)),
            ((2, 3), ()),
            ((3,), (3, 2)),
        )
    ),
    *(
        numpy("_npi_matmul", f32(*a), f32(*b))
        for a, b in (
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((4, 2, 3), (3, 2)),
            ((4, 2, 3), (4, 3, 2)),
            ((2, 1, 2, 3), (4, 3, 2)),
        )
    ),
    numpy("_npi_matmul", f64(2, 3), f64(3, 2)),
    numpy(
        "_npi_tensordot", f32(2, 3, 4), f32(4, 3, 5), a_axes_summed="(1, 2)", b_axes_summed="(1, 0)"
    ),
    numpy("_npi_tensordot", f32(2, 3), f32(4, 3), a_axes_summed="(-1,)", b_axes_summed="(1,)"),
    *(
        numpy("_npi_tensordot_int_axes", f32(2, 3, 4), f32(*s), axes=n)
        for n, s in ((2, (3, 4, 5)), (1, (4, 2)), (0, (2,)))
    ),
    *(
        numpy("_npi_einsum", *xs, subscripts=text, num_args=len(xs))
        for text, xs in (
            ("ij,jk->ik", (f32(2, 3), f32(3, 4))),
            ("ij, jk", (f32(2, 3), f32(3, 4))),
            ("ii", (f32(3, 3),)),
            ("ij->ji", (f32(2, 3),)),
            ("...ij->...ji", (f32(2, 2, 3),)),
            ("bij,bjk->bik", (f64(2, 2, 3), f64(2, 3, 2))),
            ("i,j->ij", (f32(2), f32(3))),
        )
    ),
    *(case(op, x) for op in ("_linalg_det", "_linalg_slogdet") for x in SINGULAR),
    case("_linalg_det", f64(1, 3, 3)).but(gap="Det of float64"),
    numpy("_npi_tensordot", f32(2, 3), f32(3, 2), a_axes_summed="(0, 1)", b_axes_summed="(1, 0)"),
    numpy("_npi_tensordot", f64(2, 3), f64(4), a_axes_summed="()", b_axes_summed="()"),
    case("khatri_rao", f64(1, 2), f64(3, 2), num_args=2).but(fixed="the number of columns"),
]

test_linalg = operator_test(CASES)


@pytest.mark.parametrize("count", [2, 4, 5, 1 << 20])
def test_what_fills_no_triangle_is_refused(count, tmp_path):
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "_linalg_maketrian", "name": "y", "inputs": [[0, 0, 0]]},
    ]
    path = tmp_path / "m-symbol.json"
    path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))
    with pytest.raises(Unconvertible, match=f"{count} elements fill no triangle"):
        serde.convert(path, tmp_path / "m.onnx", inputs={"x": (2, count)})
