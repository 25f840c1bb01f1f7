"""Products of one tensor with several matrices, as one."""

from __future__ import annotations

import pytest

from tests.passes.merged_nodes import check_branches, check_nodes, list_for_branches

CASES = {
    "products of one tensor": (
        "(float[N,3,4] x) => (float[N,3,5] y, float[N,3,5] z, float[N,3,5] a)",
        "y = MatMul(x, w) z = MatMul(x, w2) a = MatMul(x, w3)",
        "MatMul Split",
    ),
    "products of one tensor with unlike matrices": (
        "(float[N,3,4] x) => (float[N,3,5] y, float[N,3,5] z, float[N,3,6] a)",
        "y = MatMul(x, w) z = MatMul(x, w2) a = MatMul(x, v)",
        "MatMul MatMul MatMul",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    check_nodes(*CASES[name], tmp_path)


@pytest.mark.parametrize("name", list_for_branches(CASES))
def test_fewer_nodes_in_branches(name, tmp_path):
    check_branches(*CASES[name], tmp_path)
