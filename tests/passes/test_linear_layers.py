"""Linear layers as Gemm, where that takes fewer nodes."""

from __future__ import annotations

import pytest

from tests.passes.merged_nodes import check_branches, check_nodes, list_for_branches

CASES = {
    "a product of matrices and a row": (
        "(float[3,4] x) => (float[3,5] y)", "p = MatMul(x, w) y = Add(b, p)", "Gemm",
    ),
    "a row of two axes": (
        "(float[3,4] x, float[4,5] z) => (float[3,5] y)", "p = MatMul(x, z) y = Add(p, r)", "Gemm",
    ),
    "a product with a matrix that is transposed": (
        "(float[3,4] x, float[5,4] z) => (float[3,5] y)",
        "t = Transpose<perm = [1, 0]>(z) p = MatMul(x, t) y = Add(p, b)", "Gemm",
    ),
    "a transposed matrix that others read": (
        "(float[3,4] x, float[5,4] z) => (float[3,5] y, float[4,5] q)",
        "t = Transpose<perm = [1, 0]>(z) p = MatMul(x, t) y = Add(p, b) q = Relu(t)",
        "Transpose Gemm Relu",
    ),
    "a product and a column": (
        "(float[3,4] x) => (float[3,5] y)", "p = MatMul(x, w) y = Add(p, o)", "MatMul Add",
    ),
    "a product and a number": (
        "(float[3,4] x) => (float[3,5] y)", "p = MatMul(x, w) y = Add(p, e)", "MatMul Add",
    ),
    "a product that others read": (
        "(float[3,4] x) => (float[3,5] y, float[3,5] z)",
        "p = MatMul(x, w) y = Add(p, b) z = Relu(p)", "MatMul Add Relu",
    ),
    "a vector and a matrix": (
        "(float[4] x) => (float[5] y)", "p = MatMul(x, w) y = Add(p, b)", "MatMul Add",
    ),
    "layers that share an operand": (
        "(float[2,3,4] x) => (float[2,3,5] y, float[2,3,6] z)",
        "p = MatMul(x, w) q = MatMul(x, v) y = Add(p, b) z = Add(c, q)",
        "MatMul MatMul Add Add",
    ),
    "layers between Reshapes": (
        "(float[2,3,4] x) => (float[6,5] y, float[36] z)",
        "p = MatMul(x, w) q = MatMul(x, v) r = Add(p, b) t = Add(c, q) "
        "s = Constant<value_ints = [-1, 5]>() y = Reshape(r, s) n = Constant<value_ints = [-1]>() "
        "z = Reshape(t, n)",
        "Reshape Gemm Gemm Reshape",
    ),
    "a Reshape between layers": (
        "(float[24] x) => (float[45] y)",
        "s = Constant<value_ints = [2, 3, 4]>() a = Reshape(x, s) p = MatMul(a, v) q = Add(p, c) "
        "t = Constant<value_ints = [3, 3, 4]>() d = Reshape(q, t) e = MatMul(d, w) f = Add(e, b) "
        "u = Constant<value_ints = [45]>() y = Reshape(f, u)",
        "Reshape Gemm Reshape Gemm Reshape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    check_nodes(*CASES[name], tmp_path)


WHOLE = {"a Reshape between layers"}  # of more axes, which are looked at in the main graph


@pytest.mark.parametrize("name", [n for n in list_for_branches(CASES) if n not in WHOLE])
def test_fewer_nodes_in_branches(name, tmp_path):
    check_branches(*CASES[name], tmp_path)
