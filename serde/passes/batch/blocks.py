"""Batches one behind another along an axis: joined, and taken apart again.

Two views of a sample go through one encoder, or a model runs with and without a condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from serde.ir.geometry import axes_of
from serde.ir.graph import Node, Value
from serde.passes.batch.places import ONE, Place, Size
from serde.passes.batch.state import State
from serde.spec.sample_axes.table import attribute_axis


def find_blocks(state: State, node: Node) -> Sequence[Place] | None:
    """The places of the batch in whole batches that a node joins or takes; None for others."""
    if node.domain or node.op not in ("Concat", "Slice", "Split"):
        return None
    places = [state.places.get(v) for v in node.inputs if v is not None]
    if node.op == "Concat":
        return _join(node, places)
    place = places[0]
    if place is None or place.inner != ONE or place.outer.names:
        return None
    if node.op == "Slice":
        bounds = find_bounds(node, place, state.batch)
        return bounds and [Place(place.axis, Size(bounds[1] - bounds[0]))]
    sizes = [v.ranked_shape[place.axis] for v in node.outputs]
    is_along = attribute_axis(node, 0) == place.axis
    if not is_along or any(not isinstance(d, int) or d % state.batch for d in sizes):
        return None
    return [Place(place.axis, Size(int(d or 0) // state.batch)) for d in sizes]


def _join(node: Node, places: Sequence[Place | None]) -> Sequence[Place] | None:
    axis, count = attribute_axis(node, 0), 0
    for place in places:
        if place is None or place.axis != axis or place.inner != ONE or place.outer.names:
            return None
        count += place.outer.number
    return [Place(axis, Size(count))]


def find_bounds(node: Node, place: Place, batch: int) -> tuple[int, int] | None:
    """The first of the batches that a Slice takes, and the one behind the last."""
    x, *operands = node.inputs
    assert x is not None
    constants = [_read_integers(v) for v in operands]
    if any(numbers is None for numbers in constants) or place.outer == ONE:
        return None
    starts, ends, axes, steps = [*constants, None, None][:4]
    assert starts is not None and ends is not None
    named = range(len(starts)) if axes is None else axes_of(axes, x.rank)
    at = list(named).index(place.axis) if place.axis in named else None
    if at is None or (steps is not None and steps[at] != 1):
        return None
    size = place.outer.number * batch
    start, end, _ = slice(starts[at], ends[at]).indices(size)
    is_whole = start < end and not start % batch and not end % batch
    return (start // batch, end // batch) if is_whole else None


def _read_integers(value: Value | None) -> Sequence[int] | None:
    return None if value is None or value.tensor is None else list(value.ints())
