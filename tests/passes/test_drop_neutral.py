"""Sums with zero, products with one, reductions of one element, and orderly look-ups."""

from __future__ import annotations

import pytest

from tests.passes.merged_nodes import check_branches, check_nodes, list_for_branches

CASES = {
    "a sum with zero that is an output": (
        "(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z)",
        "a = Exp(x) y = Add(a, zeros) z = Neg(a)",
        "Exp Neg",
    ),
    "sums with zero of inputs and outputs": (
        "(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z, float[2,3,4] a)",
        "y = Add(x, zeros) z = Exp(x) a = Add(z, zeros)",
        "Add Exp Add",
    ),
    "a mean of one element behind a Reshape": (
        "(float[6,20] x) => (float[6,20] y)",
        "r = Reshape(x, segments) m = ReduceMean<axes = [1], keepdims = 0>(r) y = Neg(m)",
        "Neg",
    ),
    "reductions over axes of one element": (
        "(float[N,1,4] x) => (float[N,4] y, float[N,4] z, float[N,1] a)",
        "r = ReduceMax<axes = [-2], keepdims = 0>(x) y = Neg(r) m = ReduceMin<axes = [1]>(x) "
        "z = ReduceProd<axes = [1], keepdims = 0>(m) a = ReduceMax<axes = [2], keepdims = 0>(x)",
        "Squeeze Neg Squeeze ReduceMax",
    ),
    "a norm of one element": (
        "(float[N,1,4] x) => (float[N,4] y)",
        "y = ReduceL2<axes = [1], keepdims = 0>(x)",
        "ReduceL2",
    ),
    "a sum with zero and a product with one": (
        "(float[4] x) => (float[4] y)",
        "o = Constant<value_float = 0.0>() i = Constant<value_float = 1.0>() a = Add(x, o) "
        "b = Mul(i, a) c = Div(b, i) d = Sub(c, o) y = Relu(d)",
        "Relu",
    ),
    "less than zero": (
        "(float[4] x) => (float[4] y)",
        "o = Constant<value_float = 0.0>() i = Constant<value_float = 1.0>() a = Sub(o, x) "
        "b = Div(i, a) y = Relu(b)",
        "Sub Div Relu",
    ),
    "a list of zeros and of ones": (
        "(float[2,3] x) => (float[2,3] y)",
        "z = Constant<value_floats = [0.0, 0.0, 0.0]>() o = Constant<value_floats = [1.0, 1.0, 1.0]>() "
        "a = Add(x, z) b = Div(a, o) y = Relu(b)", "Relu",
    ),
    "a list of zeros that makes more of it": (
        "(float[2,1] x) => (float[2,3] y)",
        "z = Constant<value_floats = [0.0, 0.0, 0.0]>() a = Add(x, z) y = Relu(a)", "Add Relu",
    ),
    "look-ups of all in order": (
        "(float[N,3] x) => (float[N,3] y, float[N,3,1] z)",
        "i = Constant<value_ints = [0, 1, -1]>() a = Gather<axis = -1>(x, i) y = Relu(a) "
        "s = Constant<value_ints = [3, 1]>() j = Reshape(i, s) b = Gather<axis = 1>(x, j) "
        "z = Neg(b)",
        "Reshape Relu Neg",
    ),
    "look-ups of some, and in another order": (
        "(float[3] x) => (float[3] y, float[2] z)",
        "i = Constant<value_ints = [0, 2, 1]>() j = Constant<value_ints = [0, 1]>() "
        "y = Gather(x, i) z = Gather(x, j)",
        "Gather Gather",
    ),
    "zeros among others": (
        "(float[2,3] x) => (float[2,3] y)",
        "z = Constant<value_floats = [0.0, 0.0, 0.5]>() a = Add(x, z) y = Relu(a)", "Add Relu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    check_nodes(*CASES[name], tmp_path)


@pytest.mark.parametrize("name", list_for_branches(CASES))
def test_fewer_nodes_in_branches(name, tmp_path):
    check_branches(*CASES[name], tmp_path)
