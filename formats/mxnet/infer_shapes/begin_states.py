"""Sizes of created tensors that only their use tells, as those of begin states of RNN cells.

MXNet infers them from what the tensors are added to, joined with or carried through. A number is
written into the shape. A size with a name is taken from a tensor that has it: the node becomes
``broadcast_like`` of a tensor with a size of 1 there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.ir.graph import Dim, DType, Graph, Node, Shape, Value
from serde.ir.map_nodes import map_bodies
from serde.rewrite.rules import RuleTable

from ..io.params import TYPES
from ..rules import dtype_of, parse

if TYPE_CHECKING:
    from .forward_sizes import ForwardSizes

FILLED = frozenset("_zeros _ones _full _zeros_without_dtype _npi_zeros _npi_ones _npi_full".split())
DRAWN = "_random_"
RANGE = "_arange"
NO_TYPE = ("None", "-1")
NUMBERED = {str(number): dtype for number, dtype in enumerate(TYPES)}

Open = tuple[DType, Shape | None]  # None where not even the rank is known


def infer_open_sizes(graph: Graph, table: RuleTable, unknown: int) -> Graph:
    """``graph`` with the sizes that are ``unknown`` in the shapes of created tensors.

    That is 0, or -1 where shapes are NumPy's. A size that nothing tells stays unknown, and is
    refused by ``check_shapes``.
    """
    pairs = ((node, _find_open(node, unknown)) for node in graph.ordered_nodes())
    open_ = {node: shape for node, shape in pairs if shape is not None}
    if not open_:
        return graph
    from .forward_sizes import ForwardSizes

    sizes = ForwardSizes(graph, table, open_)
    sizes.infer()
    _assume_batches(graph, sizes, open_)
    return _Completion(open_, sizes).complete(graph)


def _find_open(node: Node, unknown: int) -> Open | None:
    """The type and the shape of a created tensor, None where all sizes are known."""
    if node.inputs or not (node.op in FILLED or node.op.startswith(DRAWN) or node.op == RANGE):
        return None
    try:
        shape = parse(Ints, str(node.attrs.get("shape", "()")))
        dtype = _type_of(node)
        if node.op == RANGE:
            is_open = parse(bool, node.attrs.get("infer_range", "False"))
            return (dtype, (None,)) if is_open else None
    except (ConversionError, KeyError):
        return None  # the operator's rule will say what is wrong
    if not shape and unknown == 0:
        return dtype, None
    return (dtype, tuple(None if d == unknown else d for d in shape)) if unknown in shape else None


def _type_of(node: Node) -> DType:
    name = str(node.attrs.get("dtype", "None"))
    if name in NO_TYPE:
        return DType.INT32 if node.op == "_random_randint" else DType.FLOAT32
    return NUMBERED.get(name) or dtype_of(name)


def _assume_batches(graph: Graph, sizes: ForwardSizes, open_: Mapping[Node, Open]) -> None:
    """The one size that nothing tells of a tensor is that of the others, or of all inputs."""
    for node in open_:
        known = sizes.shape_of(node.outputs[0])
        if known is None or known.count(None) != 1 or node.op == RANGE:
            continue
        inferred = {
            size
            for other, (_, shape) in open_.items()
            for old, size in zip(shape or (), sizes.shape_of(other.outputs[0]) or (), strict=False)
            if old is None and size is not None
        }
        first = {shape[0] for v in graph.inputs if (shape := sizes.shape_of(v))}
        batches = inferred or first
        if len(batches) == 1:
            (batch,) = batches
            sizes.learn(node.outputs[0], tuple(batch if d is None else d for d in known))
            sizes.infer()


class Place(NamedTuple):
    """A tensor that has a size, and the axis."""

    value: Value
    axis: int


class _Completion:
    """Put sizes into the nodes that lack them."""

    def __init__(self, open_: Mapping[Node, Open], sizes: ForwardSizes) -> None:
        self.open, self.sizes = open_, sizes

    def complete(self, graph: Graph, around: tuple[Value, ...] = ()) -> Graph:
        """``around`` are inputs of the graphs around this one, which it may read."""
        inputs = (*graph.inputs, *around)
        places = self._find_places(graph, inputs)
        nodes: list[Node] = []
        for node in graph.nodes:
            if node in self.open:
                nodes += self._complete_node(node, places)
            else:
                nodes.append(map_bodies(node, lambda body: self.complete(body, inputs)))
        return replace(graph, nodes=sort_nodes(nodes))

    def _find_places(self, graph: Graph, inputs: Iterable[Value]) -> dict[Dim, Place]:
        """Where sizes are, of tensors that are not computed of those without sizes."""
        values, waiting = list(inputs), set[Value]()
        for node in graph.nodes:
            if node in self.open or not waiting.isdisjoint(node.inputs):
                waiting.update(node.outputs)
            else:
                values += node.outputs
        places: dict[Dim, Place] = {}
        for value in values:
            for axis, size in enumerate(self.sizes.shape_of(value) or ()):
                places.setdefault(size, Place(value, axis))
        return places

    def _complete_node(self, node: Node, places: Mapping[Dim, Place]) -> list[Node]:
        """The nodes that a node with open sizes becomes: itself where those are not known."""
        shape = self.sizes.shape_of(node.outputs[0])
        if shape is None or any(d not in places for d in shape if not isinstance(d, int)):
            return [node]
        likes = {axis: places[d] for axis, d in enumerate(shape) if not isinstance(d, int)}
        if node.op == RANGE:
            return complete_range(node, shape[0], likes)
        static = str(tuple(d if isinstance(d, int) else 1 for d in shape))
        if not likes:
            return [_with_attrs(node, shape=static)]
        if not node.op.startswith(DRAWN):
            return broadcast_result(_with_attrs(node, shape=static), likes, node.outputs[0])
        if node.op == "_random_randint":
            return [node]  # MXNet draws none like a tensor
        dtype, _ = self.open[node]
        like = Value(f"{node.name}_like")
        zeros = Node("_zeros", (), (), {"shape": static, "dtype": dtype.value}, name=node.name)
        attrs = {k: v for k, v in node.attrs.items() if k not in ("shape", "ctx", "dtype")}
        drawing = Node(f"{node.op}_like", (like,), node.outputs, attrs, name=node.name)
        return [*broadcast_result(zeros, likes, like), drawing]


def _with_attrs(node: Node, **attrs: Any) -> Node:
    return replace(node, attrs=MappingProxyType({**node.attrs, **attrs}))


def broadcast_result(node: Node, likes: Mapping[int, Place], result: Value) -> list[Node]:
    """A node whose result has sizes of 1, and those that give these the sizes of other tensors."""
    steps = [Value(f"{node.name}_{axis}") for axis in likes]
    nodes = [replace(node, outputs=(steps[0],))]
    for (axis, place), x, y in zip(likes.items(), steps, (*steps[1:], result), strict=True):
        attrs = {"lhs_axes": f"({axis},)", "rhs_axes": f"({place.axis},)"}
        nodes.append(Node("broadcast_like", (x, place.value), (y,), attrs, name=node.name))
    return nodes


def complete_range(node: Node, size: Dim, likes: Mapping[int, Place]) -> list[Node]:
    """Equal steps, as many as ``size``: by a number, or as a tensor has elements along an axis."""
    attrs = node.attrs
    if parse(int, attrs.get("repeat", "1")) != 1:
        return [node]
    start, step = (parse(float, attrs.get(k, d)) for k, d in (("start", "0"), ("step", "1")))
    if isinstance(size, int):
        return [_with_attrs(node, stop=str(start + step * size), infer_range="False")]
    steps = Value(f"{node.name}_steps")
    of_axis = {"start": str(start), "step": str(step), "axis": str(likes[0].axis)}
    return [
        Node("_contrib_arange_like", (likes[0].value,), (steps,), of_axis, name=node.name),
        Node("Cast", (steps,), node.outputs, {"dtype": _type_of(node).value}, name=node.name),
    ]


def sort_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, each behind those that compute what it reads."""
    makers = {v: node for node in nodes for v in node.outputs}
    order: dict[Node, None] = {}
    stack = list(reversed(list(nodes)))
    while stack:
        node = stack[-1]
        missing = [m for v in node.inputs if v and (m := makers.get(v)) and m not in order]
        if node in order or not missing:
            order.setdefault(stack.pop())
        else:
            stack += missing
    return tuple(order)
