"""What a picture of a graph shows: its nodes by what they are called, without weights."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

Kind = Literal["input", "node", "output"]


class OutlineNode(NamedTuple):
    """An input, a node or an output of a graph. ``reads`` are places in the outline.

    ``layers`` are the layers of the source it came from, by name; ``source`` is the first of them
    as people look for it.
    """

    kind: Kind
    op: str
    name: str
    type: str
    reads: tuple[int, ...]
    layers: tuple[str, ...] = ()
    source: str = ""
    attrs: Mapping[str, Any] | None = None


class Outline(NamedTuple):
    """The nodes of a graph in topological order, inputs first and outputs last."""

    name: str
    nodes: tuple[OutlineNode, ...]

    @property
    def node_count(self) -> int:
        """How many are nodes of the graph."""
        return sum(n.kind == "node" for n in self.nodes)


def make_outline(graph: Any) -> Outline:
    """The outline of a ``Graph``; nodes of subgraphs are part of the node that holds them."""
    place: dict[Any, int] = {}
    nodes: list[OutlineNode] = []
    for value in graph.inputs:
        place[value] = len(nodes)
        nodes.append(OutlineNode("input", "input", value.name, _show_type(value), ()))
    for node in graph.nodes:
        has_bodies = bool(node.graphs())
        read = _values_read(node) if has_bodies else node.inputs
        reads = tuple(dict.fromkeys([place[v] for v in read if v in place]))
        for value in node.outputs:
            place[value] = len(nodes)
        first = node.outputs[0] if node.outputs else None
        op = node.op if node.domain == graph.domain else node.qualified_op
        name = node.name or (first.name if first is not None else "")
        layers, attrs = tuple([s.name for s in node.sources]), None if has_bodies else node.attrs
        source = _show_source(node.sources)
        nodes.append(OutlineNode("node", op, name, _show_type(first), reads, layers, source, attrs))
    for value in graph.outputs:
        reads = (place[value],) if value in place else ()
        nodes.append(OutlineNode("output", "output", value.name, _show_type(value), reads))
    return Outline(graph.name, tuple(nodes))


def _values_read(node: Any) -> Iterator[Any]:
    """The operands of a node, and what its subgraphs read."""
    yield from (v for v in node.inputs if v is not None)
    bodies = [*node.graphs()]
    while bodies:
        body = bodies.pop()
        yield from body.outputs
        for inner in body.nodes:
            yield from (v for v in inner.inputs if v is not None)
            bodies += inner.graphs()


def _show_type(value: Any) -> str:
    return "" if value is None else _show_tensor(value.dtype, value.shape)


@lru_cache(4096)
def _show_tensor(dtype: Any, shape: Sequence[Any] | None) -> str:
    name = "?" if dtype is None else str(dtype.title)
    if shape is None:
        return name
    return f"{name}[{','.join('?' if d is None else str(d) for d in shape)}]"


def _show_source(sources: Sequence[Any]) -> str:
    if not sources:
        return ""
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"{sources[0].format} {sources[0].op} {sources[0].name}{more}"


def select_near(outline: Outline, chosen: Collection[int], most: int, steps: int = 2) -> Outline:
    """The part of an outline that is at most ``steps`` edges from the chosen nodes."""
    readers: dict[int, list[int]] = {}
    for at, node in enumerate(outline.nodes):
        for read in node.reads:
            readers.setdefault(read, []).append(at)
    seen = dict.fromkeys(sorted(chosen)[:most])
    ahead = [*seen]
    for _ in range(steps):
        indices = [n for at in ahead for n in (*outline.nodes[at].reads, *readers.get(at, ())[:8])]
        ahead = [n for n in dict.fromkeys(indices) if n not in seen][: most - len(seen)]
        seen |= dict.fromkeys(ahead)
    places = {old: new for new, old in enumerate(sorted(seen))}
    nodes = (outline.nodes[at] for at in places)
    return Outline(
        outline.name,
        tuple(n._replace(reads=tuple(places[r] for r in n.reads if r in places)) for n in nodes),
    )
