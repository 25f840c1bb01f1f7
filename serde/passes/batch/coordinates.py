"""Look-ups by the number of a sample and a place in it, as look-ups in each sample.

PyTorch writes ``x[arange(x.size(0)), place]`` with a constant ``[0, 1, …]`` as the first
coordinate, or with the place of the sample in a flattened ``x`` added to the index.
"""

from __future__ import annotations

import numpy as np

from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable, keep

rules = RuleTable("coordinates of samples", fallback=keep)


@rules("GatherND")
def gather_coordinates(g, x, index, *, batch_dims=0):  # type: ignore
    """Without the first coordinate, where it is the number of the sample."""
    joined = g.producer(index)
    if batch_dims or joined is None or joined.op != "Concat" or not index.shape:
        return g.GatherND(x, index, batch_dims=batch_dims)
    first, *rest = joined.inputs
    is_last = joined.attrs["axis"] in (-1, index.rank - 1)
    if not is_last or not rest or not counts_samples(first, x, 1) or first.shape[-1] != 1:
        return g.GatherND(x, index, batch_dims=batch_dims)
    return g.GatherND(x, rest[0] if len(rest) == 1 else g.Concat(*rest, axis=-1), batch_dims=1)


@rules("Gather")
def gather_places(g, x, index, *, axis=0):  # type: ignore
    """Of samples one behind another, the places in each, where the sample's own is added."""
    flat, added = g.producer(x), g.producer(index)
    is_flat = flat is not None and flat.op in ("Flatten", "Reshape")
    if (
        axis
        or not is_flat
        or added is None
        or added.op != "Add"
        or not is_merged(flat.inputs[0], x)
    ):
        return g.Gather(x, index, axis=axis)
    samples = flat.inputs[0]
    for start, place in (added.inputs, added.inputs[::-1]):
        if counts_samples(start, samples, samples.shape[1]) and place.shape == index.shape:
            return g.GatherND(samples, g.Unsqueeze(place, [-1]), batch_dims=1)
    return g.Gather(x, index, axis=axis)


def counts_samples(value: Value, x: Value, step: int) -> bool:
    """Whether a constant is the number of each sample of ``x``, times ``step``, along axis 0."""
    if value.tensor is None or not value.tensor.shape or not x.shape:
        return False
    array = value.array()
    if len(array) != x.shape[0]:
        return False
    numbers = np.arange(len(array)).reshape(len(array), *[1] * (array.ndim - 1)) * step
    return bool((array == numbers).all())


def is_merged(x: Value | None, y: Value) -> bool:
    """Whether ``y`` has the first two axes of ``x`` as one."""
    if x is None or x.shape is None or y.shape is None or len(x.shape) < 2:
        return False
    first, second, *rest = x.shape
    return (
        isinstance(first, int)
        and isinstance(second, int)
        and y.shape == (first * second, *rest)
    )  # fmt: skip
