"""Passes over the IR: each does what it says, in subgraphs too, and keeps what must stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.ir.graph import DType, FileSlice, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.passes import drop_dead, merge_repeats, share_constants, tidy
from serde.passes.dedup_constants import COMPARED
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of, model_of, run

F32 = DType.FLOAT32


def lines(graph):
    return [line.strip() for line in str(graph).splitlines()[1:]]


def ops(graph):
    return [n.op for n in graph.nodes]


class TestDropDead:
    def test_what_no_output_needs_goes(self):
        graph = ir_of("g (float[2] x) => (float[2] y) { a = Exp(x)\n b = Sin(a)\n y = Abs(x) }")
        assert ops(drop_dead(graph)) == ["Abs"]

    def test_one_live_output_keeps_a_node(self):
        graph = ir_of("g (float[4] x) => (float[2] y) { a, y = Split<num_outputs=2>(x) }")
        assert drop_dead(graph) is graph

    def test_what_only_a_subgraph_reads_stays(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y) { a = Exp(x)\n b = Sin(x)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(a)\n w = Abs(b) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        kept = drop_dead(graph)
        assert ops(kept) == ["Exp", "If"]
        (node,) = (n for n in kept.nodes if n.op == "If")
        assert [ops(g) for g in node.graphs()] == [["Neg"], ["Abs"]]

    def test_bodies_are_cleaned_at_any_depth(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y) { y = If (c) <"
            "then_branch = t () => (float[2] u) { u = If (c) <"
            "  then_branch = t2 () => (float[2] p) { p = Neg(x)\n dead = Exp(x) },"
            "  else_branch = e2 () => (float[2] q) { q = Abs(x) }> },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        assert "Exp" not in str(drop_dead(graph)) and "Exp" in str(graph)

    def test_inputs_stay_though_nothing_reads_them(self):
        graph = ir_of("g (float[2] x, float[2] z) => (float[2] y) { y = Abs(x) }")
        assert [v.name for v in drop_dead(graph).inputs] == ["x", "z"]


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


class TestMergeRepeats:
    def merge(self, body):
        return lines(merge_repeats(ir_of(f"g (float[2,2] x) => {body}")))

    def test_the_same_operator_on_the_same_operands_becomes_one(self):
        body = (
            "(float[2,2] y) { a = Exp(x)\n b = Exp(x)\n c = Neg(a)\n d = Neg(b)\n y = Add(c, d) }"
        )
        assert self.merge(body) == [
            "%a: float32[2,2] = Exp(%x)",
            "%c: float32[2,2] = Neg(%a)",
            "%y: float32[2,2] = Add(%c, %c)",
            "return %y",
        ]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("LeakyRelu<alpha=0.5>(x)", "LeakyRelu<alpha=0.25>(x)"),
            ("Exp(x)", "Neg(x)"),
            ("RandomNormalLike(x)", "RandomNormalLike(x)"),
            ("Bernoulli(x)", "Bernoulli(x)"),
        ],
    )
    def test_what_differs_or_is_random_stays(self, first, second):
        body = f"(float[2,2] y) {{ a = {first}\n b = {second}\n y = Add(a, b) }}"
        assert len(self.merge(body)) == 4

    def test_outputs_of_the_graph_keep_their_nodes_and_names(self):
        body = "(float[2,2] y, float[2,2] z) { a = Exp(x)\n y = Exp(x)\n z = Neg(a) }"
        assert self.merge(body)[:2] == [
            "%a: float32[2,2] = Exp(%x)", "%y: float32[2,2] = Exp(%x)",
        ]  # fmt: skip

    def test_operators_with_bodies_stay_but_read_the_merged(self):
        graph = merge_repeats(ir_of(
            "g (float[2] x, bool c) => (float[2] y, float[2] z) { a = Exp(x)\n b = Exp(x)\n"
            "  z = Neg(a)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(b) },"
            "else_branch = e () => (float[2] v) { v = Abs(b) }> }"
        ))  # fmt: skip
        assert ops(graph) == ["Exp", "Neg", "If"]
        (y, _) = run(graph, {"x": np.float32([0, 1]), "c": np.array(True)})
        np.testing.assert_allclose(y, -np.exp([0, 1]), rtol=1e-6)

    def test_an_attribute_that_is_a_type_does_no_harm(self):
        from serde.spec.inference import type_proto

        g = OnnxBuilder("g")
        values = [g.Optional(type=type_proto(F32, (2,))) for _ in range(2)]
        g.OptionalHasElement(values[0])
        g.OptionalHasElement(values[1])
        assert len(merge_repeats(g.build([n.outputs[0] for n in g.nodes[2:]])).nodes) == 4


class TestReplacing:
    def test_reads_are_redirected_everywhere(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y, float[2] a) { a = Exp(x)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(a) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        a, other = graph.outputs[1], Value("other", F32, (2,))
        done = replace_values(graph, {a: other})
        assert done.outputs[1] is other and "Neg(%other)" in str(done)
        assert "other" not in str(graph) and replace_values(graph, {}) is graph


def test_tidying_twice_changes_nothing_more():
    graph = tidy(ir_of(
        "g (float[2] x) => (float[2] y) { a = Constant<value = float[2] {1, 2}>()\n"
        "b = Constant<value = float[2] {1, 2}>()\n c = Add(x, a)\n d = Add(x, b)\n dead = Exp(c)\n y = Mul(c, d) }"
    ))  # fmt: skip
    assert lines(graph) == [
        "%c: float32[2] = Add(%x, [1.0, 2.0])",
        "%y: float32[2] = Mul(%c, %c)",
        "return %y",
    ]
    assert str(tidy(graph)) == str(graph)


def test_a_large_dead_graph_is_no_recursion_and_no_square():
    body = "\n".join(f"v{i + 1} = Abs(v{i})" for i in range(2000))
    graph = ir_of(f"g (float[2] v0) => (float[2] v2000) {{ {body} }}")
    assert len(tidy(graph).nodes) == 2000


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
