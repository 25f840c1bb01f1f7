"""Which values of subgraphs have the shapes of which values around them."""

from __future__ import annotations

from typing import Any

from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.infer_shapes.bodies import find_links, infer_bodies
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.ir.graph import Node
from testing.mxnet_live import live_mxnet


def loop() -> Node:
    s = live_mxnet().sym
    sym: Any = s.contrib.foreach(
        lambda row, state: (row * s.var("w"), state + row), s.var("rows"), s.var("state")
    )
    graph = decode_symbol(parse_symbol(s.Group([*sym]).tojson()), None, "m")
    (node,) = (n for n in graph.nodes if n.op == "_foreach")
    return node


def test_the_links_of_a_loop() -> None:
    links = [(o.name, i.name, stacked) for o, i, stacked in find_links(loop())]
    assert [(o, stacked) for o, _, stacked in links[:3]] == [
        ("rows", True), ("state", False), ("w", False)
    ]  # fmt: skip
    assert [stacked for *_, stacked in links[3:]] == [True, False, False]


def test_shapes_go_in_and_out() -> None:
    node = loop()
    rows = node.inputs[0]
    known = {rows: ("T", 3), node.outputs[1]: (3,)}
    told = {v.name: shape for v, shape in infer_bodies(node, known.get) if v not in known}  # type: ignore
    assert (3,) in told.values()
    (inside,) = (i for o, i, _ in find_links(node) if o is rows)
    assert told[inside.name] == (3,)


def test_attributes_that_do_not_fit_link_nothing() -> None:
    node = loop()
    assert not find_links(
        Node(node.op, node.inputs, node.outputs, {**node.attrs, "in_data_locs": "[9]"})
    )
    assert not find_links(Node("_foreach", node.inputs, node.outputs, {}))
