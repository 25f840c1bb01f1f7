"""Which graph of a model file holds each constant."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.graph import Graph, Value

INNER_MOST = 4096  # bytes; larger constants of a subgraph go with the main graph's
REPEATING, REPEATED_MOST = frozenset({"Loop", "Scan"}), 1 << 24  # bytes in bodies of loops
INNER_TOTAL = 1 << 28  # bytes of all subgraphs' own constants, which are in memory at once


def find_homes(graph: Graph, *, may_be_inner: bool) -> dict[Graph, list[Value]]:
    """The constants of a graph and its subgraphs, by the graph that holds them.

    A small constant that one subgraph alone reads is that subgraph's; all others are the main
    graph's, wherever they are read. Bodies of loops have larger ones too: ONNX Runtime prepares
    weights for its kernels once if they are inside. Unless they ``may_be_inner``, all are the main
    graph's.
    """
    homes: dict[Graph, list[Value]] = {graph: []}
    if not any(node.graphs() for node in graph.nodes) or not may_be_inner:
        homes[graph] += graph.constants()
        return homes
    home: dict[Value, Graph] = {}
    most: dict[Graph, int] = {}
    stack = [graph]
    while stack:
        around = stack.pop()
        for value in _constants_read(around):
            if home.setdefault(value, around) is not around:
                home[value] = graph
        for node in around.nodes:
            limit = REPEATED_MOST if node.op in REPEATING else INNER_MOST
            most |= dict.fromkeys(node.graphs(), limit)
            stack += node.graphs()
    room = INNER_TOTAL
    for value in graph.constants():
        size = value.tensor.nbytes if value.tensor is not None else INNER_TOTAL
        is_inner = home[value] is not graph and size <= min(room, most[home[value]])
        room -= size if is_inner else 0
        homes.setdefault(home[value] if is_inner else graph, []).append(value)
    return homes


def _constants_read(graph: Graph) -> Iterator[Value]:
    for node in graph.nodes:
        yield from (v for v in node.inputs if v is not None and v.tensor is not None)
    yield from (v for v in graph.outputs if v.tensor is not None)
