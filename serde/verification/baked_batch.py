"""Run a source batch by batch, where the result was made for another batch than it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import Graph
from serde.legalize.convert import without_functions
from serde.passes.batch.places import Place
from serde.passes.batch.request import find_batch_axes, read_request
from serde.passes.change_batch import find_places
from serde.passes.fixed_sizes import fix_batch

Array = np.ndarray[Any, Any]
Run = Callable[[Mapping[str, Array]], Sequence[Any]]


class NotComparable(SerdeError):
    """The source cannot be run on what the result takes."""


class TakesTooMuch(NotComparable):
    """A model takes more memory than the process that runs it may have."""


class BakedBatch(NamedTuple):
    """The batch a source was made for.

    Attributes:
        size: the number of its samples.
        inputs: the axes of the inputs that have it, by name.
        places: where values have it, by name.
        outputs: the names of the outputs.
    """

    size: int
    inputs: Mapping[str, int]
    places: Mapping[str, Place]
    outputs: Sequence[str]

    def run(self, run: Run, feeds: Mapping[str, Array], outputs: Sequence[str] | None) -> list[Any]:
        """What the source computes for all samples, of which the last batch may have too few.

        Raises:
            NotComparable: where the inputs differ in their number of samples.
        """
        counts = {a.shape[self.inputs[n]] for n, a in feeds.items() if n in self.inputs}
        if len(counts) != 1 or 0 in counts:
            raise NotComparable(f"not compared: the inputs have {sorted(counts)} samples")
        (total,) = counts
        parts = [run(self._take(feeds, start, total)) for start in range(0, total, self.size)]
        names = outputs or self.outputs
        pieces = zip(*parts, strict=True)
        return [self._join(n, p, total) for n, p in zip(names, pieces, strict=True)]

    def _take(self, feeds: Mapping[str, Array], start: int, total: int) -> dict[str, Array]:
        """The inputs of one run; the last sample again where there are too few."""
        at = np.minimum(np.arange(start, start + self.size), total - 1)
        return {
            n: np.take(a, at, self.inputs[n]) if n in self.inputs else a for n, a in feeds.items()
        }

    def _join(self, name: str, parts: Sequence[Any], total: int) -> Any:
        """An output for all samples of what it is for those of each run."""
        place = self.places.get(name)
        if isinstance(parts[0], list):
            if place is None:  # of maps, one for each sample
                return [element for part in parts for element in part][:total]
            elements = zip(*parts, strict=True)
            return [_concatenate(place, arrays, self.size, total) for arrays in elements]
        return parts[0] if place is None else _concatenate(place, parts, self.size, total)


def _concatenate(place: Place, parts: Sequence[Array], size: int, total: int) -> Array:
    """Arrays behind one another along the batch, up to so many samples."""
    if place.outer.names:
        raise NotComparable("not compared: the samples of an output are not one behind another")
    shape, axis = parts[0].shape, place.axis
    outer = place.outer.number
    split = (*shape[:axis], outer, size, shape[axis] // (outer * size), *shape[axis + 1 :])
    joined = np.concatenate([p.reshape(split) for p in parts], axis + 1)
    joined = np.take(joined, np.arange(total), axis + 1)
    return joined.reshape(*shape[:axis], -1, *shape[axis + 1 :])


def find_baked_batch(graph: Graph, batch: Any) -> BakedBatch | None:
    """The batch of a graph that was made another by ``rebatch``.

    None where it has a name, or is the one that was asked for: the result is the same model.
    """
    graph, request = without_functions(fix_batch(graph, batch)), read_request(batch)
    size = find_batch_axes(graph, request).size
    if not isinstance(size, int) or size == request.size:
        return None
    analysis = find_places(graph, batch)
    places = {v.name: place for v, place in analysis.state.places.items()}
    outputs = analysis.graph.outputs
    expanded = analysis.state.results[id(analysis.graph)]
    places.update((outputs[at].name, place) for at, place in expanded.items())
    inputs = {v.name: axis for v, axis in analysis.axes.items()}
    return BakedBatch(analysis.batch, inputs, places, [v.name for v in outputs])
