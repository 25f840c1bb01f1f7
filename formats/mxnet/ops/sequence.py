"""Operators on sequences of different lengths: ``(length, batch, …)``, or batch first."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads


def normalize_lengths(g, lengths: Value | None, used):
    """The lengths as int64, None where every sequence is whole."""
    require(not used or lengths is not None, "use_sequence_length without sequence_length")
    return g.cast(lengths, DType.INT64) if used else None


@reads("SequenceMask")
def read_sequence_mask(g, x, sequence_length=None, *, use_sequence_length=False, value=0.0, axis=0):
    """``value`` in place of what lies behind a sequence's end."""
    lengths = normalize_lengths(g, sequence_length, use_sequence_length)
    if lengths is None:
        return x
    place = g.Unsqueeze(g.index_range(g.size_of(x, axis)), [1 - axis])
    inside = g.Less(place, g.Unsqueeze(lengths, [axis]))
    return g.Where(g.Unsqueeze(inside, list(range(2, x.rank))), x, g.scalar(value, x))


@reads("SequenceLast")
def read_sequence_last(g, x, sequence_length=None, *, use_sequence_length=False, axis=0):
    lengths = normalize_lengths(g, sequence_length, use_sequence_length)
    if lengths is None:
        return g.Gather(x, -1, axis=axis)
    first = x if axis == 1 else g.Transpose(x, perm=(1, 0, *range(2, x.rank)))
    return g.GatherND(first, g.Unsqueeze(g.Sub(lengths, 1), [1]), batch_dims=1)


@reads("SequenceReverse", only={"axis": (0,)})
def read_sequence_reverse(g, x, sequence_length=None, *, use_sequence_length=False):
    """Behind a sequence's end the elements stay where they are."""
    lengths = normalize_lengths(g, sequence_length, use_sequence_length)
    if lengths is None:
        return g.Slice(x, [-1], [-(2**31)], [0], [-1])
    return g.ReverseSequence(x, lengths, time_axis=0, batch_axis=1)
