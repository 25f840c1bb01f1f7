"""Products of one tensor with several matrices, as one product that is split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from serde.ir.constants import make_constant, make_integers
from serde.ir.graph import Graph, Node, Tensor, Value
from serde.passes.optional import optional
from serde.rewrite.patterns import calls_of, join_sources

LEAST = 3  # products; two are no more nodes than a product and a Split


@optional("join_parallel_products")
def join_parallel_products(graph: Graph) -> Graph:
    """Return ``graph`` with a ``MatMul`` and a ``Split`` for those that read one tensor.

    Their matrices are constants with the same number of columns, as of queries, keys and values.
    They are put side by side when they are written. Subgraphs are left as they are.
    """
    groups: dict[tuple[Value, tuple[int, ...]], list[Node]] = {}
    for node in graph.nodes:
        if node.op == "MatMul" and not node.domain:
            x, w = node.inputs
            if x is not None and x.tensor is None and w is not None and w.tensor is not None:
                groups.setdefault((x, w.static_shape), []).append(node)
    joined: dict[Node, tuple[Node, ...]] = {}
    for (_, shape), products in groups.items():
        alike = all(calls_of(p) == calls_of(products[0]) for p in products)
        if len(products) >= LEAST and len(shape) == 2 and alike:
            joined |= dict.fromkeys(products, ()) | {products[0]: tuple(_join(products))}
    if not joined:
        return graph
    nodes = tuple(n for node in graph.nodes for n in joined.get(node, (node,)))
    return replace(graph, nodes=nodes)


def _join(products: list[Node]) -> Iterator[Node]:
    """The product with all columns, and what splits it."""
    first = products[0]
    matrices = [w for p in products if (w := p.inputs[1]) is not None]
    rows, columns = matrices[0].static_shape
    tensors = [w.tensor for w in matrices if w.tensor is not None]
    shape, name = (rows, columns * len(products)), first.outputs[0].name

    def load() -> np.ndarray:
        return np.concatenate([t.load() for t in tensors], axis=1)

    weight = make_constant(f"{name}/joined", Tensor(tensors[0].dtype, shape, load))
    y = first.outputs[0]
    whole = None if y.shape is None else (*y.shape[:-1], shape[1])
    result = Value(f"{name}/all", y.dtype, whole)
    sources = join_sources(*products)
    yield Node("MatMul", (first.inputs[0], weight), (result,), {}, "", first.name, sources)
    sizes = make_integers(f"{name}/sizes", [columns] * len(products))
    attrs = {"axis": -1 if y.shape is None else len(y.shape) - 1}
    outputs = tuple(p.outputs[0] for p in products)
    yield Node("Split", (result, sizes), outputs, attrs, "", f"{first.name}/split", sources)
