"""The places of the batch that are known so far, and the choices they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.graph import Node, Value, show_shape
from serde.passes.batch.places import ONE, Place, has_size
from serde.spec.sample_axes import SampleAxis

Array = np.ndarray[Any, Any]
ADVICE = "Convert it at the batch it was made for, or end the model before it (--outputs)"


@dataclass
class Choice:
    """Places that a Reshape may move the batch to; ``mask`` has the choices it depends on."""

    places: Sequence[Place]
    start: int  # the node of the whole graph to begin again at
    key: object
    mask: int
    index: int = 0
    conflicts: int = 0


class Conflict(Exception):
    """A node that does not take its operands' places, and the choices these depend on."""

    def __init__(self, node: Node, error: ConversionError, mask: int) -> None:
        super().__init__(str(error))
        self.node, self.error, self.mask = node, error, mask


@dataclass
class State:
    """Where the batch lies in values.

    Attributes:
        batch: the batch the graph was made for.
        reads: how often each value is read.
        places: those of all values that have the batch.
        expansions: operands that are one for all samples and have to be as many, by the node's
            first output.
        results: such outputs of graphs and subgraphs, by the graph's ``id``.
        uniform: axes along which values that do not depend on the batch have equal numbers.
        moved: results of a Reshape before which a Transpose has to move the batch.
        is_thorough: whether a batch of 1 may be moved in front of other sizes.
        axes: the sample axes of nodes that were asked for.
        choices: those that were made, in their order.
        chosen: where the choices about a value are among them, or were.
        start: the node of the whole graph that is looked at.
    """

    batch: int
    reads: Mapping[Value, int]
    places: dict[Value, Place] = field(default_factory=dict)
    expansions: dict[Value, dict[int, Place]] = field(default_factory=dict)
    results: dict[int, dict[int, Place]] = field(default_factory=dict)
    uniform: dict[Value, frozenset[int]] = field(default_factory=dict)
    moved: set[Value] = field(default_factory=set)
    is_thorough: bool = False
    axes: dict[Node, tuple[SampleAxis, ...]] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    chosen: dict[Value, list[int]] = field(default_factory=dict)
    start: int = 0
    masks: dict[Value, int] = field(default_factory=dict)

    def set_place(self, value: Value, place: Place | None, mask: int) -> None:
        """Enter the place of a value; None where it is one for all samples."""
        if place is None:
            self.places.pop(value, None)
            self.masks.pop(value, None)
            return
        shape = value.shape
        if shape is not None and not value.container:
            known = shape[place.axis] if place.axis < len(shape) else 0
            fits = not isinstance(known, int) or has_size(known, place.size(self.batch))
            require(fits, f"{value.name!r} of shape {show_shape(shape)} has the batch of "
                          f"{self.batch} as part of a size. {ADVICE}")  # fmt: skip
        self.places[value] = place
        self.masks[value] = mask

    def mask_of(self, values: Iterable[Value | None]) -> int:
        """The choices that the places of values depend on."""
        mask = 0
        for value in values:
            if value is not None:
                mask |= self.masks.get(value, 0)
        return mask

    def expand(self, value: Value, place: Place) -> Place:
        """``place``, where a value that is one for all samples can be given it.

        Raises:
            ConversionError: where it has a size for each sample of the old batch.
        """
        shape, full = value.ranked_shape, place.size(self.batch)
        dim = shape[place.axis]
        fits = dim == 1 or has_size(dim, full)
        same = dim == 1 or self.has_equal_samples(value, place)
        is_simple = dim == 1 or place.outer == ONE or not place.inner.names
        require(fits and same and is_simple and not value.container,
                f"{value.name!r} of shape {show_shape(shape)} is for a batch of {self.batch}, "
                f"along axis {place.axis}. {ADVICE}")  # fmt: skip
        return place

    def has_equal_samples(self, value: Value, place: Place) -> bool:
        """Whether a value that does not depend on the batch is the same for each of its samples."""
        if self.batch == 1 or place.axis in self.uniform.get(value, ()):
            return True
        return has_equal_samples(value, place, self.batch)

    def choose(self, key: Value, places: Sequence[Place], mask: int) -> tuple[Place, int]:
        """One of some places, and the choices it depends on."""
        if len(places) == 1:
            return places[0], mask
        count = len(self.choices)
        known = [i for i in self.chosen.get(key, ()) if i < count and self.choices[i].key is key]
        at = next((i for i in known if self.choices[i].places == places), count)
        if at == count:
            self.choices.append(Choice(places, self.start, key, mask))
            self.chosen[key] = [*known, at]
        choice = self.choices[at]
        return choice.places[choice.index], mask | 1 << at

    def is_natural(self, mask: int) -> bool:
        """Whether each choice of a mask is the most natural."""
        return all(c.index == 0 for at, c in enumerate(self.choices) if mask >> at & 1)

    def choose_again(self, mask: int) -> int | None:
        """Take the next place of the last choice among those of a mask; return where to go on."""
        while mask:
            at = mask.bit_length() - 1
            choice = self.choices[at]
            choice.conflicts |= (mask ^ (1 << at)) | choice.mask
            if choice.index + 1 < len(choice.places):
                choice.index += 1
                del self.choices[at + 1 :]
                return choice.start
            mask = choice.conflicts
        return None


def has_equal_samples(value: Value, place: Place, batch: int) -> bool:
    """Whether a constant has the same numbers for all samples of a batch."""
    if value.tensor is None or place.outer.names or place.inner.names:
        return False
    samples = split_samples(value.array(), place, batch)
    return bool(np.array_equal(samples, np.broadcast_to(samples[:, :1], samples.shape)))


def split_samples(array: Array, place: Place, batch: int) -> Array:
    """An array of axes ``before × outer``, batch, and ``inner × behind``."""
    outside = int(np.prod(array.shape[: place.axis])) * place.outer.number
    return array.reshape(outside, batch, -1)
