"""Products of integers by the fastest kernels that are exact on the processor that runs the model.

On x86 processors without VNNI instructions, ONNX Runtime's kernels for uint8 by int8 add up pairs
of products in 16 bits, which saturate (``vpmaddubsw``). Those for uint8 by uint8 are exact, and
take about twice the time where there is VNNI. The graph has both, and chooses by a product of the
largest numbers, which saturates too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from serde.ir.builder import Names
from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.passes.int8_weights import count_uint8_weights, use_int8_weights
from serde.rewrite.clone import clone_graph
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import CONVOLVES

LAYER = "integer_kernels"  # what the nodes that choose are called
BRANCHES = FAST, EXACT = "int8", "uint8"
DATA, WEIGHT = 255, 127  # the largest uint8 and int8
ROWS, DEPTH, COLUMNS = 4, 16, 16  # of matrices that take the kernels of convolutions
# Layers of floats that ONNX Runtime does not optimize in a subgraph if its weights are outside.
FUSED = frozenset({"Add", "Cast", "Mul"})  # which ONNX Runtime joins to a product before them
NOTE = (
    "{count} product(s) of integers are in the file twice, with weights of int8 and of uint8: "
    "ONNX Runtime takes int8 on processors that add up its products exactly"
)


def choose_integer_kernels(graph: Graph) -> Graph:
    """Return a legal graph whose products of integers are exact on every processor, and fast.

    Products and what is between them become an ``If``, one branch of which has the weights as int8,
    the other as uint8; the branches share the other constants. Convolutions of floats stay outside.
    A graph without such weights stays as it is.
    """
    spans = list(_find_spans(graph.nodes))
    fed = next((v for v in graph.inputs if _is_usable(v)), None)
    if not spans or fed is None:
        return graph
    names = Names()
    names.used.update(v.name for v in graph.all_values())
    nodes, is_exact = _multiply_largest(graph, fed, names)
    signed, uses, end = use_int8_weights(graph).nodes, graph.uses(), 0
    for start, stop in spans:
        exact = replace(graph, inputs=(), outputs=(), nodes=graph.nodes[start:stop])
        inside, values = exact.uses(), (v for node in exact.nodes for v in node.outputs)
        results = tuple(v for v in values if uses[v] > inside[v])
        exact = replace(exact, outputs=results)
        fast = replace(exact, nodes=signed[start:stop])
        branches = {
            "then_branch": _make_branch(fast, results, FAST, names),
            "else_branch": _suffix_nodes(
                _make_branch(exact, _computed_values(exact), EXACT, names)
            ),
        }
        nodes += graph.nodes[end:start]
        nodes.append(Node("If", (is_exact,), results, branches, "", LAYER))
        end = stop
    note = NOTE.format(count=count_uint8_weights(graph))
    return replace(graph, nodes=(*nodes, *graph.nodes[end:]), notes=(*graph.notes, note))


def _is_usable(value: Value) -> bool:
    """Whether an input is a tensor of numbers."""
    is_number = value.dtype is not None and value.dtype.kind in "biuf"
    return is_number and value.shape is not None and not value.container


def _find_spans(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """The nodes from the first to the last product between convolutions of floats."""
    start = stop = 0
    for at, node in enumerate(nodes):
        if node.op in CONVOLVES and start < stop:
            yield start, stop
            start = stop
        elif _has_product(node):
            start, stop = start if start < stop else at, at + 1
            while stop < len(nodes) and nodes[stop].op in FUSED:
                stop += 1
    if start < stop:
        yield start, stop


def _has_product(node: Node) -> bool:
    return count_uint8_weights(Graph("", (), (), (node,))) > 0


def _computed_values(body: Graph) -> list[Value]:
    """The values of nodes, and of the subgraphs among them."""
    return [v for v in body.all_values() if v.tensor is None]


def _make_branch(body: Graph, values: Iterable[Value], name: str, names: Names) -> Graph:
    """A copy of ``body`` with other names for ``values`` of it."""
    renamed = {v: replace(v, name=v.name and names.fresh(f"{v.name}/{name}")) for v in values}
    return replace(clone_graph(body, lambda v: renamed.get(v, v)), name=name)


def _suffix_nodes(body: Graph) -> Graph:
    """Name nodes after the branch as well: the layer's own name is that of the other branch."""
    nodes = (replace(n, name=f"{n.name}/{body.name}") if n.name else n for n in body.nodes)
    return replace(body, nodes=tuple(nodes))


def _multiply_largest(graph: Graph, x: Value, names: Names) -> tuple[list[Node], Value]:
    """Nodes that multiply the largest numbers, and whether the sums of products are exact.

    Tools that fold constants would write the answer of their own processor into the file, so one
    matrix is chosen by what is fed as ``x``, between itself and itself.
    """
    g = OnnxBuilder(LAYER, graph.opset)
    g.names = names
    with g.at(Source("onnx", "If", LAYER)):
        first = g.Slice(x, [0] * x.rank, [1] * x.rank, list(range(x.rank))) if x.rank else x
        first = g.cast(first, DType.FLOAT32)
        one = g.Reshape(first, []) if x.is_static else g.ReduceSum(first, keepdims=0)  # may be none
        largest = g.const(np.full((ROWS, DEPTH), DATA, np.uint8))
        weights = g.const(np.full((DEPTH, COLUMNS), WEIGHT, np.int8))
        sums = g.MatMulInteger(g.Where(g.IsNaN(one), largest, largest), weights)
        least = g.ReduceMin(sums, keepdims=0)
        is_exact = g.Equal(least, g.const(DATA * WEIGHT * DEPTH, DType.INT32))
    return g.nodes, is_exact


def take_exact_branches(graph: Graph) -> Graph:
    """Return a graph with the nodes of uint8 for each ``If`` of ``choose_integer_kernels``.

    A file that has them is read so: whatever it is converted to is exact on every processor.
    """
    if not any(map(_chooses_kernels, graph.nodes)):
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _take_exact_branch(node) if _chooses_kernels(node) else [node]
    return replace(graph, nodes=tuple(nodes))


def _chooses_kernels(node: Node) -> bool:
    """Whether a node is an ``If`` whose branches are the same but for the type of weights."""
    if node.op != "If" or not node.name.startswith(LAYER):
        return False
    bodies = {body.name: [n.op for n in body.nodes] for body in node.graphs()}
    return bodies.keys() == {*BRANCHES} and bodies[FAST] == bodies[EXACT]


def _take_exact_branch(node: Node) -> Sequence[Node]:
    """The nodes of the branch of uint8, which make the outputs of ``node``."""
    body = next(body for body in node.graphs() if body.name == EXACT)
    values = {v: replace(v, name=_without_suffix(v.name)) for v in _computed_values(body)}
    values |= dict(zip(body.outputs, node.outputs, strict=True))
    nodes = []
    for each in clone_graph(body, lambda v: values.get(v, v)).nodes:
        sources = tuple(replace(s, name=_without_suffix(s.name)) for s in each.sources)
        nodes.append(replace(each, name=_without_suffix(each.name), sources=sources))
    return nodes


def _without_suffix(name: str) -> str:
    return name.removesuffix(f"/{EXACT}")
