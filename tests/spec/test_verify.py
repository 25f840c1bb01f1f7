"""The IR's invariants: each one, broken, is found; and what the builder makes breaks none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serde.errors import InvalidGraph
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.spec.verify import check
from testing.onnx_live import ir_of

F32 = DType.FLOAT32
GOOD = """
g (float[N,4] x, bool c) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}>
{
    a = Softmax<axis=-1>(x)
    y = If (c) <
        then_branch = t () => (float[N,4] u) { u = Add(a, w) },
        else_branch = e () => (float[N,4] v) { v = LeakyRelu(a) }>
}
"""


def value(name, tensor=None):
    return Value(name, F32, (2,), tensor)


def with_attrs(graph, at, **attrs):
    """``graph`` with other attributes on one node; None leaves one out."""
    node = graph.nodes[at]
    kept = {k: v for k, v in {**node.attrs, **attrs}.items() if v is not None}
    return replace(
        graph, nodes=(*graph.nodes[:at], replace(node, attrs=kept), *graph.nodes[at + 1 :])
    )


def inside(graph, change):
    """``graph`` with its If's ``then_branch`` changed."""
    return with_attrs(graph, 1, then_branch=change(graph.nodes[1].attrs["then_branch"]))


def shadowing(graph):
    def change(body):
        body.nodes[0].outputs[0].name = "a"
        return body

    return inside(graph, change)


def constant_node(graph):
    constant = value("k")
    node = Node("Constant", (), (constant,), {"value_float": 1.0})
    return replace(graph, nodes=(node, *graph.nodes))


BROKEN = {
    "another opset": (lambda g: replace(g, opset=17), "graph 'g' is of opset 17"),
    "another domain": (lambda g: replace(g, domain="mxnet"), "graph 'g' is of mxnet"),
    "two values of one name": (
        lambda g: replace(g, inputs=(*g.inputs, value("a"))), "two values are called 'a'"),
    "a subgraph's value of an outer name": (shadowing, "two values are called 'a'"),
    "a constant of another's name": (
        lambda g: replace(g, outputs=(*g.outputs, value("x", Tensor.of(np.zeros(2))))),
        "two values are called 'x'"),
    "a value read before it is computed": (
        lambda g: replace(g, nodes=g.nodes[::-1]), "reads 'a' before it is computed"),
    "a value read within a body before it is computed": (
        lambda g: inside(g, lambda b: replace(b, nodes=(replace(b.nodes[0], inputs=(
            value("stray"), None)),))), "reads 'stray' before it is computed"),
    "an output nothing computes": (
        lambda g: replace(g, outputs=(value("lost"),)), "output 'lost' is not computed"),
    "an output of a body nothing computes": (
        lambda g: inside(g, lambda b: replace(b, outputs=(value("lost"),))),
        "output 'lost' is not computed"),
    "an operator the standard has not": (
        lambda g: replace(g, nodes=(replace(g.nodes[0], op="Softmacks"), *g.nodes[1:])),
        "node 'a': ONNX opset 28 has no operator 'Softmacks'"),
    "a Constant node": (constant_node, "node '' is a Constant"),
    "a default left out": (
        lambda g: with_attrs(g, 0, axis=None), r"node 'a' \(Softmax\) leaves out axis"),
    "a default left out in a body": (
        lambda g: with_attrs(g, 1, else_branch=with_attrs(
            g.nodes[1].attrs["else_branch"], 0, alpha=None)), "leaves out alpha"),
    "an axis counted from the back": (
        lambda g: with_attrs(g, 0, axis=-1), r"\(Softmax\) counts axis -1 from the back"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "why"), BROKEN.values(), ids=BROKEN)
def test_every_broken_invariant_is_found(damage, why):
    graph = ir_of(GOOD)
    check(graph)
    with pytest.raises(InvalidGraph, match=why):
        check(damage(graph))


def test_nodes_of_other_domains_are_not_looked_into():
    x, y = value("x"), value("y")
    check(Graph("g", (x,), (y,), (Node("Whatever", (x,), (y,), {"axis": -1}, "custom"),)))


def test_an_axis_of_a_value_of_unknown_rank_may_count_from_the_back():
    x, y = Value("x", F32), Value("y", F32)
    check(Graph("g", (x,), (y,), (Node("Softmax", (x,), (y,), {"axis": -1}),)))


def test_auto_pad_may_stay_where_sizes_are_unknown():
    graph = ir_of(
        'g (float[1,1,H,W] x, float[1,1,3,3] w) => (y) { y = Conv<auto_pad="SAME_UPPER", '
        "strides=[2,2]>(x, w) }"
    )
    assert "pads" not in graph.nodes[0].attrs
    check(graph)
