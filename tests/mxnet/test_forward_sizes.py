"""Sizes of values by the rules and the relations of nodes, forth and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.infer_shapes.forward_sizes import ForwardSizes
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.rules import reads
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.replace_uses import replace_values
from testing.mxnet_live import live_mxnet


def graph_of(sym: Any, *shape: int | str) -> Graph:
    """The graph of a symbol of ``data``."""
    graph = decode_symbol(parse_symbol(sym.tojson()), None, "m")
    (data,) = graph.inputs
    typed = Value("data", DType.FLOAT32, shape)
    return replace(replace_values(graph, {data: typed}), inputs=(typed,))


def sizes_of(sym: Any, *shape: int | str) -> list[Any]:
    """What is known of the outputs."""
    graph = graph_of(sym, *shape)
    never = Node("", (), (Value("never"),))
    sizes = ForwardSizes(graph, reads, {never: (DType.FLOAT32, None)})
    sizes.infer()
    return [sizes.shape_of(v) for v in graph.outputs]


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda s, x: s.tile(x, reps=(2, 3)), ("N*2", 15)),
        (lambda s, x: s.reshape(x, shape=(-3,)), ("N*5",)),
        (lambda s, x: s.slice_axis(x, axis=1, begin=1, end=4), ("N", 3)),
        (lambda s, x: s.contrib.boolean_mask(x, s.sum(x, axis=1)), ("_size1", 5)),
        (lambda s, x: s.tanh(s.contrib.boolean_mask(x, s.sum(x, axis=1))), ("_size1", 5)),
    ],
)
def test_rules_tell_results(make, shape) -> None:
    s = live_mxnet().sym
    assert sizes_of(make(s, s.var("data")), "N", 5) == [shape]


def test_bodies_are_gone_through() -> None:
    s = live_mxnet().sym
    outputs, states = s.contrib.foreach(
        lambda row, state: (s.tile(row, reps=(1, 2)) + state, state), s.var("data"), s.ones((7, 6))
    )
    assert sizes_of(s.Group([outputs, states]), "T", "N", 3) == [("T", 7, 6), (7, 6)]
