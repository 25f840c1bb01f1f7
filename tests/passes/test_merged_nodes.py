"""Nodes that are merged when ONNX is written: fewer of them, and the same numbers."""

from __future__ import annotations

import pytest

from tests.passes.merged_nodes import (
    check_branches,
    check_nodes,
    check_results,
    list_for_branches,
    made_of,
)

CASES = {
    "unit axes of a Transpose": (
        "(float[1,6,4] x) => (float[4,6] y)",
        "a = Transpose<perm = [1, 0, 2]>(x) s = Constant<value_ints = [4, 6]>() y = Reshape(a, s)",
        "Reshape",
    ),
    "a Transpose that moves elements": (
        "(float[2,6,4] x) => (float[8,6] y)",
        "a = Transpose<perm = [1, 0, 2]>(x) s = Constant<value_ints = [8, 6]>() y = Reshape(a, s)",
        "Transpose Reshape",
    ),
    "Reshape and Unsqueeze": (
        "(float[2,6] x) => (float[3,1,4] y)",
        "s = Constant<value_ints = [3, 4]>() a = Reshape(x, s) i = Constant<value_ints = [1]>() "
        "y = Unsqueeze(a, i)",
        "Reshape",
    ),
    "Reshape and Unsqueeze of a batch": (
        "(float[N,2,6] x) => (float[N,3,1,4] y)",
        "s = Constant<value_ints = [-1, 3, 4]>() a = Reshape(x, s) "
        "i = Constant<value_ints = [2]>() y = Unsqueeze(a, i)",
        "Reshape",
    ),
    "a batch of a size that stays in its place": (
        "(float[N,M,1,6] x) => (float[N,M,2,1,3] y)",
        "i = Constant<value_ints = [2]>() j = Constant<value_ints = [3]>() a = Squeeze(x, i) "
        "s = Constant<value_ints = [0, 0, 2, 3]>() b = Reshape(a, s) y = Unsqueeze(b, j)",
        "Reshape",
    ),
    "two sizes of which one moves": (
        "(float[N,1,M,6] x) => (float[N,M,2,3] y)",
        "i = Constant<value_ints = [1]>() a = Squeeze(x, i) "
        "s = Constant<value_ints = [0, 0, 2, 3]>() y = Reshape(a, s)",
        "Squeeze Reshape",
    ),
    "a Transpose of a batch that moves elements": (
        "(float[N,6,4] x) => (float[N,4,1,6] y)",
        "a = Transpose<perm = [0, 2, 1]>(x) i = Constant<value_ints = [2]>() y = Unsqueeze(a, i)",
        "Transpose Unsqueeze",
    ),
    "a Transpose of a batch and an axis of 1": (
        "(float[N,1,4] x) => (float[N,4] y)",
        "a = Transpose<perm = [1, 0, 2]>(x) i = Constant<value_ints = [0]>() y = Squeeze(a, i)",
        "Reshape",
    ),
    "a mean of means": (
        "(float[N,3,4,5] x) => (float[N,3] y)",
        "m = ReduceMean<axes = [3], keepdims = 0>(x) y = ReduceMean<axes = [-1], keepdims = 0>(m)",
        "ReduceMean",
    ),
    "the largest of the largest of the largest": (
        "(float[N,3,4,5] x) => (float[4] y)",
        "m = ReduceMax<axes = [1], keepdims = 0>(x) k = ReduceMax<axes = [-1], keepdims = 0>(m) "
        "y = ReduceMax<axes = [0], keepdims = 0>(k)",
        "ReduceMax",
    ),
    "sums that keep axes": (
        "(float[N,3,4,5] x) => (float[N,1,4,1] y, float[N,3,1,1] z, float[1,3,4,1] a)",
        "k = ReduceSum(x, one_axis) y = ReduceSum(k, last_axis) m = ReduceL2<axes = [2]>(x) "
        "z = ReduceL2<axes = [3]>(m) b = ReduceL1<axes = [0]>(x) a = ReduceL1<axes = [-1]>(b)",
        "ReduceSum ReduceL2 ReduceL2 ReduceL1",
    ),
    "sums that others read, and of unlike rank": (
        "(float[N,3,4,5] x) => (float[N,3,4] y, float[N,3] z, float[N,4] a)",
        "y = ReduceMean<axes = [3], keepdims = 0>(x) z = ReduceMean<axes = [2], keepdims = 0>(y) "
        "b = ReduceMean<axes = [1]>(x) c = ReduceMean<axes = [3], keepdims = 0>(b) "
        "i = Constant<value_ints = [1]>() a = Squeeze(c, i)",
        "ReduceMean ReduceMean ReduceMean ReduceMean Squeeze",
    ),
    "a mean of means of integers": (
        "(float[2,3,5] x) => (int32[2] y)",
        "h = Constant<value_float = 100.0>() s = Mul(x, h) i = Cast<to = 6>(s) "
        "m = ReduceMean<axes = [2], keepdims = 0>(i) y = ReduceMean<axes = [1], keepdims = 0>(m)",
        "Mul Cast ReduceMean ReduceMean",
    ),
    "axes that are added and taken away": (
        "(float[2,6] x) => (float[2,6] y)",
        "i = Constant<value_ints = [1]>() e = Exp(x) a = Unsqueeze(e, i) b = Squeeze(a, i) y = Neg(b)",
        "Exp Neg",
    ),
    "axes that are added one after the other": (
        "(float[N,6] x) => (float[N,1,6,1] y)",
        "i = Constant<value_ints = [1]>() j = Constant<value_ints = [-1]>() a = Unsqueeze(x, i) "
        "y = Unsqueeze(a, j)",
        "Unsqueeze",
    ),
    "a Reshape that others read": (
        "(float[2,6] x) => (float[3,1,4] y, float[3,4] z)",
        "s = Constant<value_ints = [3, 4]>() a = Reshape(x, s) i = Constant<value_ints = [1]>() "
        "y = Unsqueeze(a, i) z = Relu(a)",
        "Reshape Unsqueeze Relu",
    ),
    "Slices of other axes": (
        "(float[5,6] x) => (float[2,3] y, float[2,2] z)",
        "o = Constant<value_ints = [0]>() i = Constant<value_ints = [1]>() "
        "two = Constant<value_ints = [2]>() e = Constant<value_ints = [4]>() "
        "a = Slice(x, two, e, o) y = Slice(a, i, e, i) z = Slice(a, two, e, i)",
        "Slice Slice",
    ),
    "Slices of one axis": (
        "(float[5,6] x) => (float[2,6] y)",
        "o = Constant<value_ints = [0]>() i = Constant<value_ints = [1]>() "
        "e = Constant<value_ints = [4]>() t = Constant<value_ints = [3]>() "
        "a = Slice(x, i, e, o) y = Slice(a, i, t, o)",
        "Slice Slice",
    ),
    "a Slice within a Pad": (
        "(float[3,4] x) => (float[2,4] y)",
        "p = Constant<value_ints = [0, 0, 5, 0]>() a = Pad(x, p) o = Constant<value_ints = [0]>() "
        "e = Constant<value_ints = [2]>() y = Slice(a, o, e, o)",
        "Slice",
    ),
    "a Slice of what a Pad cuts": (
        "(float[3,4] x) => (float[1,4] y)",
        "p = Constant<value_ints = [0, 0, -1, 0]>() a = Pad(x, p) "
        "o = Constant<value_ints = [1]>() i = Constant<value_ints = [0]>() "
        "e = Constant<value_ints = [3]>() y = Slice(a, o, e, i)",
        "Pad Slice",
    ),
    "a Slice of what a Pad adds": (
        "(float[3,4] x) => (float[4,4] y)",
        "p = Constant<value_ints = [0, 0, 5, 0]>() a = Pad(x, p) o = Constant<value_ints = [0]>() "
        "e = Constant<value_ints = [4]>() y = Slice(a, o, e, o)",
        "Pad Slice",
    ),
    "Concats that Concats read": (
        "(float[2] x, float[3] z) => (float[8] y, float[7] q)",
        "a = Concat<axis = 0>(x, z) y = Concat<axis = 0>(a, z) q = Concat<axis = 0>(a, x)",
        "Concat Concat",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    check_nodes(*CASES[name], tmp_path)


@pytest.mark.parametrize("name", list_for_branches(CASES))
def test_fewer_nodes_in_branches(name, tmp_path):
    check_branches(*CASES[name], tmp_path)


@pytest.mark.parametrize(
    "body, ops",
    [
        ("n = BatchNormalization(x, s, t, m, u) a = Mul(n, f) y = Add(f, a)", "BatchNormalization"),
        ("a = Mul(x, f) y = Conv<pads = [1, 1, 1, 1]>(a, k)", "Conv"),
        ("a = Mul(x, f) z = Relu(a) b = Conv<pads = [1, 1, 1, 1]>(a, k) y = Concat<axis = 1>(z, b)",
         "Mul Relu Conv Concat"),
        ("a = Add(x, f) y = Conv<pads = [1, 1, 1, 1]>(a, k)", "Add Conv"),
    ],
)  # fmt: skip
def test_factors_by_channel(body, ops, tmp_path):
    signature = "(float[2,3,4,5] x) => (float[2,C,4,5] y)"
    model, feeds, new_model = made_of(signature, body, tmp_path, fold_batchnorm=True)
    assert [n.op_type for n in new_model.graph.node] == ops.split()
    check_results(new_model, model, feeds)
