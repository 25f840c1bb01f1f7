"""The batch through the bodies of ``If``, ``Loop`` and ``Scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import Graph, Node, Value
from serde.passes.batch.places import Place
from serde.passes.batch.state import ADVICE, State
from serde.passes.batch.uniform import find_uniform_axes_of
from serde.spec.sample_axes import integer

Places = list[Place | None]
MIXED = "has the batch in other places in one turn than in another, or in one branch"
Visit = Callable[[Node], None]


def place_outputs(state: State, node: Node, visit: Visit) -> None:
    """Enter the places of the outputs of a node with bodies, and those inside the bodies."""
    follow = {"If": _follow_branches, "Loop": _follow_loop, "Scan": _follow_scan}.get(node.op)
    if follow is None or node.domain:
        reads = {v for body in node.graphs() for v in body.uses()}
        apart = state.places.keys().isdisjoint({*node.inputs, *reads})
        require(apart, f"its body is not followed, and may mix the samples of a batch of "
                       f"{state.batch}. {ADVICE}")  # fmt: skip
        follow = _leave
    expansions, results = follow(state, visit, node)
    bodies = [v for body in node.graphs() for v in (*body.inputs, *body.outputs)]
    mask = state.mask_of([*node.inputs, *bodies])
    for value, place in zip(node.outputs, results, strict=True):
        state.set_place(value, place, mask)
    if node.outputs:
        state.expansions[node.outputs[0]] = expansions


def _leave(state: State, visit: Visit, node: Node) -> tuple[dict[int, Place], Places]:
    return {}, [None] * len(node.outputs)


def _follow_body(state: State, visit: Visit, body: Graph, inputs: Places, mask: int) -> Places:
    """The places of the outputs of a body."""
    for value, place in zip(body.inputs, inputs, strict=True):
        state.set_place(value, place, mask)
    for node in body.nodes:
        visit(node)
    return [state.places.get(v) for v in body.outputs]


def _expand_outputs(state: State, body: Graph, wanted: Sequence[Place | None]) -> None:
    """Have a body give outputs that are one for all samples as many as its others are."""
    expansions = {}
    for at, (value, place) in enumerate(zip(body.outputs, wanted, strict=True)):
        place_in_body = state.places.get(value)
        if place_in_body is None and place is not None:
            expansions[at] = state.expand(value, place)
        else:
            require(place_in_body == place, f"{MIXED}. {ADVICE}")
    state.results[id(body)] = expansions


def _follow_branches(state: State, visit: Visit, node: Node) -> tuple[dict[int, Place], Places]:
    require(node.inputs[0] not in state.places, f"decides for each sample. {ADVICE}")
    branches = [_follow_body(state, visit, body, [], 0) for body in node.graphs()]
    results = [
        next((p for p in places if p is not None), None) for places in zip(*branches, strict=True)
    ]
    for body in node.graphs():
        _expand_outputs(state, body, results)
    return {}, results


def _follow_turns(
    state: State, visit: Visit, node: Node, body: Graph, states: slice, others: Places, first: int
) -> tuple[dict[int, Place], Places]:
    """The places of states, the same in all turns, and what they make of the operands.

    ``others`` are the places of the body's inputs, without those of its states; ``first`` is the
    first of its outputs that is a state.
    """
    operands: Sequence[Value | None] = node.inputs[states]
    begin = states.start or 0
    entering: Places = [state.places.get(v) if v is not None else None for v in operands]
    mask = state.mask_of(node.inputs)
    outputs: Places = []
    uniform = [find_uniform_axes_of(v, state.uniform) for v in operands]
    for _ in range(2 * len(entering) + 1):
        inputs = [*others[:begin], *entering, *others[begin:]]
        state.uniform.update(zip(body.inputs[begin:], uniform, strict=False))
        outputs = _follow_body(state, visit, body, inputs, mask)
        leaving = outputs[first : first + len(entering)]
        later = [a or b for a, b in zip(entering, leaving, strict=True)]
        mask |= state.mask_of(body.outputs)
        still = [
            axes & (axes if place else find_uniform_axes_of(value, state.uniform))
            for axes, place, value in zip(uniform, later, body.outputs[first:], strict=False)
        ]
        if later == entering and still == uniform:
            break
        entering, uniform = later, still
    state.uniform.update(zip(node.outputs, uniform, strict=False))  # of states without a batch
    wanted = [*outputs[:first], *entering, *outputs[first + len(entering) :]]
    _expand_outputs(state, body, wanted)
    expansions = {
        begin + i: state.expand(v, p)
        for i, (v, p) in enumerate(zip(operands, entering, strict=True))
        if p is not None and v is not None and v not in state.places
    }
    return expansions, wanted


def _follow_loop(state: State, visit: Visit, node: Node) -> tuple[dict[int, Place], Places]:
    (body,) = node.graphs()
    apart = state.places.keys().isdisjoint(v for v in node.inputs[:2] if v is not None)
    require(apart, f"goes on as long as each sample says. {ADVICE}")
    expansions, places = _follow_turns(
        state, visit, node, body, slice(2, len(node.inputs)), [None, None], 1
    )
    require(places[0] is None, f"goes on as long as each sample says. {ADVICE}")
    count = len(node.inputs) - 2
    scanned = [None if p is None else p.move(p.axis + 1) for p in places[1 + count :]]
    return expansions, [*places[1 : 1 + count], *scanned]


def _follow_scan(state: State, visit: Visit, node: Node) -> tuple[dict[int, Place], Places]:
    (body,) = node.graphs()
    scans = integer(node, "num_scan_inputs", 0)
    states = len(node.inputs) - scans
    axes = node.attrs.get("scan_input_axes") or (0,) * scans
    others: Places = []
    for value, axis in zip(node.inputs[states:], axes, strict=True):  # type: ignore[arg-type]
        place = None if value is None else state.places.get(value)
        if value is not None and place is not None:
            at = axis_of(axis, value.rank)
            require(at != place.axis, f"goes over the samples of a batch. {ADVICE}")
            place = place.move(place.axis - (place.axis > at))
        others.append(place)
    expansions, places = _follow_turns(state, visit, node, body, slice(0, states), others, 0)
    targets = node.attrs.get("scan_output_axes") or (0,) * (len(places) - states)
    results = places[:states]
    for value, place, axis in zip(body.outputs[states:], places[states:], targets, strict=True):  # type: ignore[arg-type]
        if place is not None:
            at = axis_of(axis, value.rank + 1)
            place = place.move(place.axis + (place.axis >= at))
        results.append(place)
    return expansions, results
