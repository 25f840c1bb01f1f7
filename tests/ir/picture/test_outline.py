"""What pictures show of a graph."""

from __future__ import annotations

import pytest

from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.ir.picture.outline import make_outline, select_near
from testing.onnx_live import ir_of
from tests.layer_chains import layer_chain


def test_subgraphs_count_as_readers_of_what_is_around_them():
    graph = ir_of(
        "g (bool c, float[2] x, float[2] z) => (float[2] y) { a = Neg(x)\n"
        "  y = If(c) <then_branch = t () => (float[2] p) { p = Relu(a) },"
        "             else_branch = e () => (float[2] q) { q = Identity(z) }> }"
    )
    outline = make_outline(graph)
    branch = next(n for n in outline.nodes if n.op == "If")
    assert {outline.nodes[r].name for r in branch.reads} >= {"c", "z"}
    assert len(branch.reads) == 3


def names_near(outline, chosen, most, steps=2):
    near = select_near(outline, chosen, most, steps)
    assert all(read < len(near.nodes) for n in near.nodes for read in n.reads)
    return [n.name for n in near.nodes]


@pytest.mark.parametrize(("chosen", "most", "steps", "names"), [
    ({5}, 100, 2, ["layer2", "layer3", "layer4", "layer5", "layer6"]),
    ({5}, 100, 0, ["layer4"]), ({5}, 2, 2, ["layer3", "layer4"]), ({0}, 100, 1, ["x", "layer0"]),
    ({2, 9}, 100, 1, ["layer0", "layer1", "layer2", "layer7", "layer8", "layer9"]),
])  # fmt: skip
def test_what_is_near_chosen_nodes(chosen, most, steps, names):
    outline = make_outline(layer_chain(12))
    assert names_near(outline, chosen, most, steps) == names


def test_types_and_sources_of_nodes():
    x, y = Value("x", None, None), Value("y", DType.INT64, ("N", None, 3))
    sources = tuple(Source("mxnet", "Foo", n) for n in ("a", "b"))
    outline = make_outline(Graph("g", (x,), (y,), (Node("Neg", (x,), (y,), sources=sources),)))
    first, node, last = outline.nodes
    assert (first.type, node.type, last.type) == ("?", "int64[N,?,3]", "int64[N,?,3]")
    assert (node.name, node.layers, node.source) == ("y", ("a", "b"), "mxnet Foo a and 1 more")
    assert outline.node_count == 1 and last.reads == (1,)
