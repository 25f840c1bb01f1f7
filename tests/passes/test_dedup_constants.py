"""Equal constants are one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.ir.graph import DType, FileSlice, Node, Tensor, Value
from serde.passes import share_constants
from serde.passes.dedup_constants import COMPARED
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of, model_of

F32 = DType.FLOAT32


def constant(name, array, where=None):
    tensor = Tensor.of(np.asarray(array))
    return Value(
        name, tensor.dtype, tensor.shape, Tensor(tensor.dtype, tensor.shape, tensor.load, where)
    )


def make_sum(*constants):
    g = OnnxBuilder("g")
    for value in constants:
        g.names.claim(value.name)
    node = Node("Sum", constants, (Value("y", F32, (1,)),), {})
    g.nodes.append(node)
    return g.build([node.outputs[0]])


class TestShareConstants:
    @pytest.mark.parametrize(
        ("a", "b", "shared"),
        [
            (np.float32([1]), np.float32([1]), True),
            (np.float32([1]), np.float32([2]), False),
            (np.float32([1]), np.float64([1]), False),
            (np.float32([1]), np.float32([[1]]), False),
            (np.float32([0.0]), np.float32([-0.0]), False),
            (np.float32([np.nan]), np.float32([np.nan]), True),
            (np.array(["a"], object), np.array(["a"], object), False),
            (np.zeros(COMPARED // 4, np.float32), np.zeros(COMPARED // 4, np.float32), True),
            (
                np.zeros(COMPARED // 4 + 1, np.float32),
                np.zeros(COMPARED // 4 + 1, np.float32),
                False,
            ),
        ],
    )
    def test_constants_of_the_same_type_and_contents_become_one(self, a, b, shared):
        done = share_constants(make_sum(constant("a", a), constant("b", b)))
        assert (done.nodes[0].inputs[0] is done.nodes[0].inputs[1]) is shared

    def test_the_same_bytes_of_a_file_are_the_same_without_looking(self):
        def loud():
            raise AssertionError("loaded")

        where = [FileSlice("w", 0, 4), FileSlice("w", 0, 4), FileSlice("w", 4, 4)]
        values = [
            Value(n, F32, (1,), Tensor(F32, (1,), loud, w))
            for n, w in zip("abc", where, strict=True)
        ]
        inputs = share_constants(make_sum(*values)).nodes[0].inputs
        assert inputs[0] is inputs[1] and inputs[2] is values[2]

    def test_constants_of_subgraphs_are_shared_with_those_around(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y) {"
            "a = Constant<value = float[2] {1, 2}>()\n b = Constant<value = float[2] {1, 2}>()\n"
            "z = Add(x, a)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Add(z, b) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        assert len(list(share_constants(graph).constants())) == 1

    def test_weights_the_source_named_keep_their_names(self):
        graph = ir_of(
            "g (float[2] x) => (float[2] y) <float[2] a = {0, 0}, float[2] b = {0, 0}>"
            "{ z = Add(x, a)\n c = Constant<value = float[2] {0, 0}>()\n w = Mul(z, c)"
            "\n y = Add(w, b) }"
        )
        assert [v.name for v in share_constants(graph).constants()] == ["a", "c_1", "b"]


def test_a_weight_of_both_branches_is_in_the_file_once(tmp_path):
    text = """g (float[2,64] x, bool c) => (float[2,64] y) { y = If(c) <
        then_branch = t () => (float[2,64] a) { a = MatMul(x, w) },
        else_branch = e () => (float[2,64] b) { d = MatMul(x, w) b = Relu(d) }> }"""
    model = model_of(text)
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert weight.nbytes < (tmp_path / "b.onnx").stat().st_size < weight.nbytes + 1000
    assert [t.name for t in onnx.load(tmp_path / "b.onnx").graph.initializer] == ["w"]
