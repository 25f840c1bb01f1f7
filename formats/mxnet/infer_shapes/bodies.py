"""Which values inside the subgraphs of control flow have the shapes of values around these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.ir.graph import Graph, Node, Value

from ..rules import parse
from .merge_shapes import Ask, Inferred, infer_alike, merge_shapes


class Link(NamedTuple):
    """A value of a node and one of its subgraphs.

    With ``is_stacked`` the former has an axis of turns in front of the shape of the latter.
    """

    outside: Value
    inside: Value
    is_stacked: bool = False


def find_links(node: Node) -> list[Link]:
    """The links of a node that has subgraphs; none where its attributes do not fit them."""
    try:
        return list(LINKS[node.op](node, *node.graphs())) if node.op in LINKS else []
    except (ConversionError, IndexError, KeyError, TypeError, ValueError):
        return []  # its rule will say what is wrong


def infer_bodies(node: Node, ask: Ask) -> Inferred:
    """What is known of values around the subgraphs of a node, and of those inside them."""
    links = find_links(node)
    turns = [s[:1] for link in links if link.is_stacked and (s := ask(link.outside))]
    if node.op == "_while_loop":  # results are filled up to all the turns there may be
        turns.append((parse(int, node.attrs["max_iterations"]),))
    (count,) = merge_shapes(*turns) or (None,)
    for outside, inside, is_stacked in links:
        if not is_stacked:
            yield from infer_alike((outside, inside), ask)
            continue
        if (shape := ask(inside)) is not None:
            yield outside, (count, *shape)
        if shape := ask(outside):
            yield inside, shape[1:]


def _places(node: Node, name: str) -> Ints:
    return parse(Ints, node.attrs[name])  # type: ignore[no-any-return]


def _operand(node: Node, at: int) -> Value:
    value = node.inputs[at]
    if value is None:
        raise IndexError(at)
    return value


def _link_results(node: Node, body: Graph) -> Iterator[Link]:
    """Results of turns, which are stacked, before states."""
    count = parse(int, node.attrs["num_out_data"])
    for at, (outside, inside) in enumerate(zip(node.outputs, body.outputs, strict=False)):
        yield Link(outside, inside, at < count)


def _link_foreach(node: Node, body: Graph) -> Iterator[Link]:
    data, states = _places(node, "in_data_locs"), _places(node, "in_state_locs")
    places = [*data, *states, *_places(node, "remain_locs")]
    for at, place in enumerate(places):
        yield Link(_operand(node, at), body.inputs[place], at < len(data))
    yield from _link_results(node, body)
    for at, result in enumerate(body.outputs[len(body.outputs) - len(states) :], len(data)):
        yield Link(_operand(node, at), result)


def _link_while(node: Node, condition: Graph, body: Graph) -> Iterator[Link]:
    func = _places(node, "func_input_locs")
    for graph, places in ((condition, _places(node, "cond_input_locs")), (body, func)):
        for place, inside in zip(places, graph.inputs, strict=True):
            yield Link(_operand(node, place), inside)
    yield from _link_results(node, body)
    variables = _places(node, "func_var_locs")
    results = body.outputs[len(body.outputs) - len(variables) :]
    for place, result in zip(variables, results, strict=True):
        yield Link(_operand(node, func[place]), result)


def _link_cond(node: Node, *graphs: Graph) -> Iterator[Link]:
    for graph, kind in zip(graphs, ("cond", "then", "else"), strict=True):
        for place, inside in zip(_places(node, f"{kind}_input_locs"), graph.inputs, strict=True):
            yield Link(_operand(node, place), inside)
    for branch in graphs[1:]:
        yield from map(Link, node.outputs, branch.outputs)


def _link_call(node: Node, body: Graph) -> Iterator[Link]:
    for at, inside in enumerate(body.inputs):
        yield Link(_operand(node, at), inside)
    yield from map(Link, node.outputs, body.outputs)


LINKS: dict[str, Callable[..., Iterator[Link]]] = {
    "_foreach": _link_foreach,
    "_while_loop": _link_while,
    "_cond": _link_cond,
    "_CachedOp": _link_call,
}
