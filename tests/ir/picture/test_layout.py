"""Where the nodes and the edges of a picture are."""

from __future__ import annotations

from itertools import pairwise

import serde
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.picture.layout import GAP, HEIGHT, place_nodes
from serde.ir.picture.outline import make_outline
from testing.onnx_live import DIGITS, ir_of
from tests.layer_chains import layer_chain

RESIDUAL = """g (float[N,4] x) => (float[N,4] y) {
  a = Relu(x)
  b = Sigmoid(a)
  c = Tanh(b)
  d = Neg(c)
  y = Add(d, a)
}"""


def test_nodes_of_a_rank_do_not_overlap_and_edges_point_down():
    for graph in (ir_of(RESIDUAL), serde.load(DIGITS)):
        outline = make_outline(graph)
        layout = place_nodes(outline)
        for at, node in enumerate(outline.nodes):
            for read in node.reads:
                assert layout.centers[read][1] + HEIGHT < layout.centers[at][1]
        rows = {}
        for (x, y), width in zip(layout.centers, layout.widths, strict=True):
            rows.setdefault(y, []).append((x - width / 2, x + width / 2))
        for row in rows.values():
            row.sort()
            assert all(b[0] - a[1] >= GAP - 1e-6 for a, b in pairwise(row))
        assert all(0 <= x <= layout.width for x, _ in layout.centers)


def test_an_edge_goes_around_the_nodes_it_passes():
    outline = make_outline(ir_of(RESIDUAL))
    layout = place_nodes(outline)
    edges = [e for e in layout.edges if e.x1 == e.x2 and e.y2 - e.y1 == HEIGHT]
    assert len(edges) == 3  # of the ranks of b, c and d
    for edge in edges:
        for (x, y), width in zip(layout.centers, layout.widths, strict=True):
            if edge.y1 <= y <= edge.y2:
                assert abs(edge.x1 - x) > width / 2


def test_a_graph_of_one_edge_over_many_nodes_stays_linear():
    graph = layer_chain(3000)
    x = graph.inputs[0]
    ends = [Value(f"s{i}", DType.FLOAT32, (1,)) for i in range(3000)]
    more = [Node("Add", (n.outputs[0], x), (e,)) for n, e in zip(graph.nodes, ends, strict=True)]
    outline = make_outline(Graph("g", (x,), tuple(ends), (*graph.nodes, *more)))
    layout = place_nodes(outline)
    assert len(layout.edges) < 8 * len(outline.nodes)
