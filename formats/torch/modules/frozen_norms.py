"""Normalizations of fixed statistics that an exporter has made a product and a sum.

Modules such as ``FrozenBatchNorm2d`` compute a factor and a summand of four buffers; a file that
has those two has the buffers that give them again, and a checkpoint fills in its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from serde.ir.graph import Node, Tensor, Value

from ..target import Slot
from .folded import make_array
from .scopes import Path, Scope

EPSILON = 1e-5  # PyTorch's default, and that of all such modules
EPSILON_IS = (
    "Normalizations whose epsilon is taken to be 1e-05; export with optimize=False where it is not"
)
ARRAYS = ("running_mean", "running_var", "weight", "bias")


def restore_frozen_norms(
    nodes: Sequence[Node], scopes: dict[Node, Scope], lacks: Callable[[Path], bool],
    assume: Callable[[str, str], None],
) -> Iterator[Node]:  # fmt: skip
    """The nodes, with a normalization for each product and sum that one was computed as."""
    products: dict[Value, Node] = {}
    readers: dict[Value, int] = {}
    for node in nodes:
        for value in node.inputs:
            if value is not None:
                readers[value] = readers.get(value, 0) + 1
        path = scopes[node].path if node in scopes else ()
        is_frozen = node.op == "*" and path and "FrozenBatchNorm" in scopes[node].class_name
        is_norm = is_frozen and all(lacks((*path, name)) for name in ARRAYS)
        if is_norm and is_by_channel(node):
            products[node.outputs[0]] = node
    sums = {n.inputs[0]: n for n in nodes if n.op == "+" and n.inputs[0] in products
            and is_by_channel(n) and n in scopes and readers[n.inputs[0]] == 1
            and scopes[n].path == scopes[products[n.inputs[0]]].path}  # fmt: skip
    for node in nodes:
        if node.outputs and sums.get(node.outputs[0]):
            continue
        product = products.get(node.inputs[0]) if node.inputs and node.inputs[0] else None
        if product is None or sums.get(product.outputs[0]) is not node:
            yield node
            continue
        assume(EPSILON_IS, ".".join(scopes[node].path))
        yield (norm := make_norm(product, node, scopes[node].path))
        scopes[norm] = scopes[node]


def is_by_channel(node: Node) -> bool:
    """Whether a node computes with a constant that has a number for each channel."""
    x, *others = node.inputs
    if x is None or x.shape is None or len(others) != 1 or x.tensor is not None:
        return False
    (value,) = others
    if value is None or value.tensor is None or node.attrs["args"] != (Slot(0), Slot(1)):
        return False
    ones = value.static_shape[-(len(x.shape) - 2) :]
    return len(x.shape) > 2 and set(ones) == {1} and x.shape[1] == value.tensor.size


def make_norm(product: Node, added: Node, path: Path) -> Node:
    """The normalization whose factor and summand two nodes compute with."""
    weight, bias = (n.inputs[1].array().reshape(-1) for n in (product, added))  # type: ignore
    filled = np.zeros_like(weight), np.full_like(weight, 1 - EPSILON), weight, bias
    arrays = [make_array(".".join((*path, name)), Tensor.of(array))
              for name, array in zip(ARRAYS, filled, strict=True)]  # fmt: skip
    slots = tuple([Slot(at) for at in range(1 + len(arrays))])
    return Node("F.batch_norm", (product.inputs[0], *arrays), added.outputs, {"args": slots},
                "torch", sources=added.sources)  # fmt: skip
