"""Linear layers as Gemm: of matrices, and of static shapes where that takes fewer nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from serde.ir.constants import make_integers
from serde.ir.graph import Attr, DType, Graph, Node, Value
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, calls_of, join_sources, merge, orders

FLOATS = (DType.FLOAT16, DType.FLOAT32, DType.FLOAT64)
FORM: Mapping[str, Attr] = MappingProxyType({"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0})
patterns = Patterns("MatMul")


class Layer(NamedTuple):
    """A product with a constant matrix, and the sum with a constant vector that reads it."""

    product: Node
    sum: Node
    bias: Value

    @property
    def x(self) -> Value:
        """What the layer reads."""
        x = self.product.inputs[0]
        assert x is not None
        return x


@optional("make_gemms")
def make_gemms(graph: Graph) -> Graph:
    """Return ``graph`` with ``MatMul`` and ``Add`` as ``Gemm``; subgraphs are left as they are.

    ``Gemm`` takes matrices. Of tensors of more axes, layers that read one tensor share the
    ``Reshape`` before them, and one behind a layer becomes part of a ``Reshape`` that reads it:
    where these save nodes.
    """
    graph = patterns.apply(graph)
    while (done := _make_each(graph)) is not graph:  # a Reshape may stand between two layers
        graph = done
    return graph


@patterns("Add")
def merge_matrix_layer(near: Neighbours, node: Node) -> Node | None:
    """A product of two matrices, and the sum with a row behind it.

    A transposed second operand is read as it was.
    """
    if node.outputs[0].dtype not in FLOATS:
        return None
    for y, b in orders(node):
        product = near.sole_maker(node, y, "MatMul")
        if product is None or b is None or not _is_matrix_layer(product, b):
            continue
        x, w = product.inputs
        turned = near.maker(w, "Transpose")
        is_turned = turned is not None and turned.attrs.get("perm", (1, 0)) == (1, 0)
        form = FORM
        if turned is not None and is_turned and calls_of(turned) == calls_of(product):
            w, form = turned.inputs[0], {**FORM, "transB": 1}
        return merge(product, node, op="Gemm", inputs=(x, w, b), attrs=form, name=node.name)
    return None


def _is_matrix_layer(product: Node, b: Value) -> bool:
    """Whether a product is of matrices, and ``b`` a row with one number for each of its columns."""
    shapes = [None if v is None else v.shape for v in product.inputs]
    if any(shape is None or len(shape) != 2 for shape in shapes) or not b.is_static:
        return False
    columns = shapes[1][1] if shapes[1] is not None else None
    return b.static_shape in ((columns,), (1, columns))


def _make_each(graph: Graph) -> Graph:
    if not any(node.op == "MatMul" for node in graph.nodes):
        return graph
    near = Neighbours(graph)
    groups: dict[Value, list[Layer]] = {}
    for node in graph.nodes:
        layer = _layer_of(node, near)
        if layer is not None:
            groups.setdefault(layer.x, []).append(layer)
    chosen: dict[Node, tuple[Node, ...]] = {}
    for layers in groups.values():
        done = _rewrite(layers, near)
        if chosen.keys().isdisjoint(done):
            chosen |= done
    if not chosen:
        return graph
    return replace(graph, nodes=tuple(n for node in graph.nodes for n in chosen.get(node, (node,))))


def _layer_of(node: Node, near: Neighbours) -> Layer | None:
    """The layer that a sum ends."""
    if node.op != "Add" or node.domain or node.outputs[0].dtype is not DType.FLOAT32:
        return None
    for y, b in orders(node):
        product = near.sole_maker(node, y, "MatMul")
        if product is None or b is None or b.tensor is None or b.rank != 1:
            continue
        x, w = product.inputs
        if x is None or w is None or w.tensor is None or w.rank != 2 or not x.is_static:
            continue
        if x.rank > 2 and 0 not in x.static_shape and b.static_shape == w.static_shape[1:]:
            return Layer(product, node, b)
    return None


def _rewrite(layers: list[Layer], near: Neighbours) -> dict[Node, tuple[Node, ...]]:
    """The nodes in place of layers that read one tensor; none where there are no fewer."""
    x, first = layers[0].x, layers[0]
    alike = all(calls_of(layer.sum) == calls_of(first.sum) for layer in layers)
    maker = near.maker(x, "Reshape")
    reads = sum(layer.product.inputs.count(x) for layer in layers)
    is_flat = maker is not None and near.uses[x] == reads
    behind = {layer: list(_reshapes_of(layer, near)) for layer in layers}
    added = (not is_flat) + sum(not behind[layer] for layer in layers)
    if not alike or added >= len(layers):
        return {}
    rows, columns = math.prod(x.static_shape[:-1]), x.static_shape[-1]
    flat = Value(f"{first.sum.name}/rows", x.dtype, (rows, columns))
    done: dict[Node, tuple[Node, ...]] = {}
    if is_flat and maker is not None:
        done[maker] = (_reshape(maker.inputs[0], flat, maker),)
    for layer in layers:
        before = () if done else (_reshape(x, flat, layer.product),)
        done[layer.product] = before
        gemm, *after = _gemm(layer, flat, bool(behind[layer]))
        (result,) = gemm.outputs
        for node in behind[layer]:
            if [node] == behind[layer] and node.outputs[0].shape == result.shape:
                gemm, done[node] = replace(gemm, outputs=node.outputs), ()
            else:
                done[node] = (_reshape(result, node.outputs[0], node),)
        done[layer.sum] = (gemm, *after)
    return done


def _reshapes_of(layer: Layer, near: Neighbours) -> Iterator[Node]:
    """The Reshapes that read a layer, if nothing else does; they are given all sizes."""
    y = layer.sum.outputs[0]
    readers = near.readers.get(y, ())
    nodes = [n for n in readers if n.op == "Reshape" and not n.domain and n.inputs[0] is y]
    if len(nodes) == near.uses[y] and all(n.outputs[0].is_static for n in nodes):
        yield from nodes


def _gemm(layer: Layer, rows: Value, is_flat: bool) -> Iterator[Node]:
    """The layer over the rows of a matrix, and the Reshape behind it unless that is not wanted."""
    (y,), sources = layer.sum.outputs, join_sources(layer.product, layer.sum)
    w = layer.product.inputs[1]
    assert w is not None
    shape = (rows.static_shape[0], w.static_shape[1])
    flat = Value(f"{y.name}/rows", y.dtype, shape)
    yield Node("Gemm", (rows, w, layer.bias), (flat,), FORM, "", layer.sum.name, sources)
    if not is_flat:
        yield _reshape(flat, y, layer.sum)


def _reshape(x: Value | None, y: Value, like: Node) -> Node:
    sizes = make_integers(f"{y.name}/shape", y.static_shape)
    return Node("Reshape", (x, sizes), (y,), {"allowzero": 0}, "", like.name, like.sources)
