"""Nodes that are merged when ONNX is written: fewer of them, and the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from testing.onnx_live import error, model_of, run_model

W = {"w": (4, 5), "b": (5,), "v": (4, 6), "c": (6,), "r": (1, 5), "o": (3, 1), "e": (1,)}
NORM = {"s": (3,), "t": (3,), "m": (3,), "u": (3,), "f": (3, 1, 1), "k": (2, 3, 3, 3)}
W |= {"w2": (4, 5), "w3": (4, 5)}
HELD = {
    "zeros": np.zeros(4, np.float32), "one": np.float32(1), "flat": np.array([6, 4, 5]),
    "mask": np.tri(4, 5, dtype=np.float32)[None, None], "heads": np.array([1, 6, 4, 5]),
    "mask2": np.stack([np.tri(40, 30, k, np.float32)[None] for k in range(2)]),
    "segments": np.array([6, 1, 20]), "one_axis": np.array([1]), "last_axis": np.array([3]),
    "heads2": np.array([2, 3, 40, 30]), "flat2": np.array([6, 40, 30]),
}  # fmt: skip
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
    "a norm of one element": (
        "(float[N,1,4] x) => (float[N,4] y)",
        "y = ReduceL2<axes = [1], keepdims = 0>(x)",
        "ReduceL2",
    ),
    "a mask that is expanded, reshaped and cast": (
        "(float[6,4,5] x) => (float[6,4,5] y)",
        "m = Expand(mask, heads) r = Reshape(m, flat) c = Cast<to = 9>(r) y = Where(c, x, one)",
        "Where",
    ),
    "a mask of which a part is expanded": (
        "(float[6,40,30] x) => (float[6,40,30] y)",
        "m = Expand(mask2, heads2) r = Reshape(m, flat2) c = Cast<to = 9>(r) y = Where(c, x, one)",
        "Where",
    ),
    "an expanded operand of any operator that broadcasts": (
        "(float[6,4,5] x, float[1,1,4,5] z) => (float[1,6,4,5] y)",
        "m = Expand(z, heads) y = Mean(x, m)",
        "Mean",
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
    "ones of the other operand's size": (
        "(float[40,50] x) => (float[40,50] y)",
        "s = Constant<value_ints = [40, 50]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "y = Add(a, x)",
        "Add",
    ),
    "ones that make the result larger": (
        "(float[50] x) => (float[400,50] y)",
        "s = Constant<value_ints = [400, 50]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "y = Add(a, x)",
        "ConstantOfShape Add",
    ),
    "constants that were expanded": (
        "(bool[40,50] x, float[40,50] z) => (float[40,50] y)",
        "s = Constant<value_ints = [40, 1]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "c = Constant<value_float = 3.0>() d = Mul(a, c) y = Where(x, d, z)",
        "Where",
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
    "Concats that Concats read": (
        "(float[2] x, float[3] z) => (float[8] y, float[7] q)",
        "a = Concat<axis = 0>(x, z) y = Concat<axis = 0>(a, z) q = Concat<axis = 0>(a, x)",
        "Concat Concat",
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
    "zeros among others": (
        "(float[2,3] x) => (float[2,3] y)",
        "z = Constant<value_floats = [0.0, 0.0, 0.5]>() a = Add(x, z) y = Relu(a)", "Add Relu",
    ),
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


def made_of(signature, body, tmp_path, **options):
    """A model, what it is run with, and what is written of it."""
    draws = np.random.default_rng(0)
    model = model_of(f"g {signature} {{ {body} }}", opset=17, ir_version=8)
    nodes = [*model.graph.node]
    nodes += [n for node in nodes for a in node.attribute for n in a.g.node]
    used = {n for node in nodes for n in node.input} - {n for node in nodes for n in node.output}
    held = {n: s for n, s in {**W, **NORM}.items() if n in used}
    for name, shape in held.items():
        array = draws.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(from_array(array, name))
    model.graph.initializer.extend(
        from_array(np.asarray(HELD[n]), n) for n in HELD if n in used
    )  # fmt: skip
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        array = draws.standard_normal(shape)
        is_bool = value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        feeds[value.name] = np.asarray(
            array > 0 if is_bool else array, np.bool_ if is_bool else "f"
        )
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)
    return model, feeds, onnx.load(tmp_path / "b.onnx")


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    signature, body, ops = CASES[name]
    model, feeds, new_model = made_of(signature, body, tmp_path)
    assert sorted(n.op_type for n in new_model.graph.node) == sorted(ops.split())
    for got, expected in zip(run_model(new_model, feeds), run_model(model, feeds), strict=True):
        assert got.shape == expected.shape and error(got, expected) < 1e-6


WHOLE = {"a Reshape between layers"}  # layers of more axes, which are looked at in the main graph
IN_BODIES = [n for n, (signature, *_) in CASES.items()
             if signature.split("=>")[1].count("[") == 1 and n not in WHOLE]  # fmt: skip


@pytest.mark.parametrize("name", IN_BODIES)
def test_fewer_nodes_in_branches(name, tmp_path):
    """What is merged in a graph is merged in a branch, which reads the inputs from around it."""
    signature, body, ops = CASES[name]
    inputs, output = signature.split("=>")
    inputs = f"{inputs.strip()[:-1]}, bool condition)"
    body = (
        f"{output.strip()[1:-1].rsplit(' ', 1)[1]} = If(condition) <"
        f"then_branch = one () => {output} {{ {body} }}, "
        f"else_branch = other () => {output} {{ {body} }}>"
    )
    model, feeds, new_model = made_of(f"{inputs} => {output}", body, tmp_path)
    (branch,) = new_model.graph.node
    for attribute in branch.attribute:
        assert sorted(n.op_type for n in attribute.g.node) == sorted(ops.split())
    for got, expected in zip(run_model(new_model, feeds), run_model(model, feeds), strict=True):
        assert got.shape == expected.shape and error(got, expected) < 1e-6


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
    (got,), (expected,) = run_model(new_model, feeds), run_model(model, feeds)
    assert error(got, expected) < 1e-6
