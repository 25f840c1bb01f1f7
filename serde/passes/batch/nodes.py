"""The places of the batch in what a node makes of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.geometry import axes_of
from serde.ir.graph import Node, Value, show_shape
from serde.passes.batch.blocks import find_blocks
from serde.passes.batch.places import ONE, Place, find_moved_places, find_reshaped_places
from serde.passes.batch.state import ADVICE, State
from serde.passes.batch.uniform import find_uniform_axes
from serde.spec.sample_axes import ANY, SHARED, SampleAxis, find_sample_axes, has_sample_axes
from serde.spec.sample_axes.table import attribute_axis
from serde.spec.schema import find
from serde.spec.traits import RESHAPES

BY_PLACE = frozenset({"GatherND", "ScatterND"})


def place_outputs(state: State, node: Node) -> None:
    """Enter the places of the outputs of a node without bodies.

    Raises:
        ConversionError: where it does not work sample by sample.
    """
    placed = {i: state.places[v] for i, v in enumerate(node.inputs) if v in state.places}
    expansions: dict[int, Place] = {}
    if not placed:
        _check_random(node)
        if state.batch > 1 and node.outputs:
            state.uniform[node.outputs[0]] = find_uniform_axes(node, state.uniform)
        results: Sequence[Place | None] = (None,) * len(node.outputs)
        mask = 0
    elif node.domain == "" and node.op in RESHAPES:
        new, mask = _reshape(state, node, placed)
        results = (new,)
    elif node.op in BY_PLACE and (along := find_coordinate(state, node)) is not None:
        expansions, mask = _expand_by_place(state, node, along), state.mask_of(node.inputs)
        results = (find_data_place(state, node) if node.op == "ScatterND" else along,)
    elif (along := find_row(state, node)) is not None:
        mask = state.mask_of(node.inputs)
        results = (along.move(along.axis + attribute_axis(node, 0)),)
    elif (blocks := find_blocks(state, node)) is not None:
        results, mask = blocks, state.mask_of(node.inputs)
    else:
        axis = _find_axis(state, node, placed)
        expansions, mask = _expand_operands(state, node, placed, axis), state.mask_of(node.inputs)
        place = next((p for i, p in placed.items() if axis.inputs[i] != ANY), None)
        results = [_result(state, node, i, axis, place) for i in range(len(node.outputs))]
    for value, result in zip(node.outputs, results, strict=True):
        state.set_place(value, result, mask)
    if node.outputs:
        state.expansions[node.outputs[0]] = expansions


def _check_random(node: Node) -> None:
    """Refuse numbers that are drawn once and would be the same for all samples."""
    entry = None if node.domain else find(node.op)
    is_random = entry is not None and not entry.deterministic
    require(not is_random, f"draws the same numbers for all samples of a batch. {ADVICE}")


def _find_axis(state: State, node: Node, placed: Mapping[int, Place]) -> SampleAxis:
    """The sample axis along which the operands have the batch."""
    first = min(placed)
    where = f"along axis {placed[first].axis} of {_name(node.inputs[first])}"
    known = has_sample_axes(node.qualified_op)
    require(known, f"may mix the samples of a batch of {state.batch}, {where}. {ADVICE}")
    if node not in state.axes:
        state.axes[node] = find_sample_axes(node)
    for axis in state.axes[node]:
        placed_sizes = [(axis.inputs[i], p) for i, p in placed.items() if axis.inputs[i] != ANY]
        if all(p == (placed_sizes[0][1].move(p.axis)) and a == p.axis for a, p in placed_sizes):
            return axis
    if len({p.axis for p in placed.values()}) > 1 or len(set(placed.values())) > 1:
        others = (f"axis {p.axis} of {_name(node.inputs[i])}" for i, p in placed.items())
        where = f"along {' and '.join(others)}"
    raise ConversionError(f"mixes the samples of a batch of {state.batch}, {where}. {ADVICE}")


def _expand_operands(
    state: State, node: Node, placed: Mapping[int, Place], axis: SampleAxis
) -> dict[int, Place]:
    """The operands that are one for all samples and have to be as many."""
    expansions = {}
    place = next((p for i, p in placed.items() if axis.inputs[i] != ANY), None)
    for i, value in enumerate(node.inputs):
        at = axis.inputs[i]
        if place is None or value is None or i in placed or at is None or at == ANY:
            continue
        new = state.expand(value, place.move(at))
        if not (axis.broadcasts and value.ranked_shape[at] == 1):
            expansions[i] = new
    return expansions


def _result(
    state: State, node: Node, i: int, axis: SampleAxis, place: Place | None
) -> Place | None:
    """The place of output ``i``."""
    at = axis.outputs[i]
    if place is None or at == SHARED:
        return None
    is_unread = not node.outputs[i].name or not state.reads[node.outputs[i]]
    if at is None and is_unread:
        return None
    require(at is not None, f"output {i} counts the elements of all samples. {ADVICE}")
    return place.move(int(at or 0))


def _reshape(state: State, node: Node, placed: Mapping[int, Place]) -> tuple[Place, int]:
    """Where an operator that keeps the order of elements moves the batch."""
    x, out = node.inputs[0], node.outputs[0]
    require(x is not None and set(placed) == {0}, f"has a shape for each sample. {ADVICE}")
    assert x is not None
    place, before, after = placed[0], x.ranked_shape, out.ranked_shape
    require(0 not in (*before, *after), f"has no elements. {ADVICE}")
    places = find_reshaped_places(before, place, after, state.batch)
    moved = find_moved_places(after, places, state.is_thorough) if state.batch == 1 else []
    places += moved
    natural = natural_place(node, place)
    if natural is not None:
        places = [natural, *(p for p in places if p != natural)]
    require(
        places,
        f"mixes the batch of {state.batch}, along axis {place.axis} of {show_shape(before)}, "
        f"with other sizes in {show_shape(after)}. {ADVICE}",
    )
    chosen, mask = state.choose(out, places, state.mask_of(node.inputs))
    if chosen in moved:
        state.moved.add(out)
    else:
        state.moved.discard(out)
    return chosen, mask


def find_coordinate(state: State, node: Node) -> Place | None:
    """The axis of indices that is to have the batch, where a coordinate of theirs is a sample.

    At a batch of 1 that coordinate counts the rows of one sample; otherwise it is the number of a
    sample, and the other coordinates are the same for all.
    """
    _, indices, *updates = node.inputs
    place = find_data_place(state, node)
    if place is None or indices is None or place.outer != ONE:
        return None
    *grid, length = indices.ranked_shape
    if node.attrs.get("batch_dims", 0) or not isinstance(length, int) or place.axis >= length:
        return None
    places = [state.places.get(v) for v in (indices, *updates) if v is not None]
    known = {p for p in places if p is not None} or {
        Place(i) for i, d in enumerate(grid) if d == state.batch
    }
    if state.batch != 1 and not place.is_alone:
        return None
    if state.batch != 1:
        known = {p for p in known if _counts_samples(indices, place.axis, p, state.batch)}
    along = min(known, default=None)
    fits = along is not None and along.axis < len(grid)
    is_one = fits and len({p for p in places if p is not None}) < 2
    return along if is_one else None


def _counts_samples(indices: Value, coordinate: int, along: Place, batch: int) -> bool:
    """Whether constant indices have the number of a sample as a coordinate of each."""
    if indices.tensor is None or not along.is_alone or indices.ranked_shape[along.axis] != batch:
        return False
    array = np.moveaxis(indices.array(), along.axis, 0)
    others = np.delete(array, coordinate, -1)
    numbers = np.arange(batch).reshape(batch, *[1] * (array.ndim - 2))
    return bool((array[..., coordinate] == numbers).all() and (others == others[:1]).all())


def find_data_place(state: State, node: Node) -> Place | None:
    """The place of the batch in what indices are for.

    Where that is one for all samples, as zeros are that are written to, and its first axis is as
    large as the batch, that is it if something written has a batch.
    """
    data = node.inputs[0] if node.inputs else None
    if data is None or data in state.places:
        return None if data is None else state.places[data]
    is_written = node.op == "ScatterND" and node.inputs[2] in state.places
    has_batch = bool(data.shape) and data.ranked_shape[0] == state.batch
    return Place(0) if is_written and has_batch else None


def find_row(state: State, node: Node) -> Place | None:
    """The batch of the indices of a Gather along an axis that has the rows of all samples.

    At a batch of 1 they count the rows of one sample.
    """
    if node.op != "Gather" or node.domain or state.batch != 1:
        return None
    data, indices = (None if v is None else state.places.get(v) for v in node.inputs)
    is_along = data is not None and data.axis == attribute_axis(node, 0) and data.outer == ONE
    return indices if is_along else None


def _expand_by_place(state: State, node: Node, along: Place) -> dict[int, Place]:
    """The data, the indices, and what is written at their places, that are one for all samples."""
    # Constant indices that count samples are written anew.
    indices = along if state.batch == 1 else None
    places = [find_data_place(state, node), indices, along]
    return {
        i: state.expand(v, place)
        for i, (v, place) in enumerate(zip(node.inputs, places, strict=False))
        if v is not None and place is not None and v not in state.places
    }


def natural_place(node: Node, place: Place) -> Place | None:
    """Where the batch is after an operator that says what becomes of each axis."""
    x, out = node.inputs[0], node.outputs[0]
    assert x is not None
    if node.op not in ("Squeeze", "Unsqueeze"):
        return None
    shape = out.ranked_shape if node.op == "Unsqueeze" else x.ranked_shape
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        named = axes_of(node.inputs[1].ints(), len(shape))
    else:
        named = tuple(i for i, d in enumerate(shape) if d == 1)
    kept = [i for i in range(len(shape)) if i not in named]
    if node.op == "Unsqueeze":
        return place.move(kept[place.axis])
    return place.move(kept.index(place.axis)) if place.axis in kept else None


def _name(value: Value | None) -> str:
    return "" if value is None else f"{value.name!r} {show_shape(value.shape)}"
