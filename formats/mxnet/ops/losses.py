"""Likelihoods of sequences: what CTC says of labels, and a Hawkes process of events.

Both go along the time step by step, in a Scan.
"""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads

NEVER = -1e30  # the logarithm of a chance of 0, with which one can still calculate


def log_add_exp(g, *logs: Value):
    """The logarithm of the sum of what the operands are logarithms of."""
    most = g.Max(*logs)
    return g.Add(most, g.Log(g.Sum(*(g.Exp(g.Sub(x, most)) for x in logs))))


def count_labels(g, label: Value, padding: int):
    """Up to the first padding of each row."""
    pads = g.CumSum(g.cast(g.Equal(label, padding), DType.INT64), 1)
    return g.ReduceSum(g.cast(g.Equal(pads, 0), DType.INT64), [1], keepdims=0)


def insert_blanks(g, label: Value, blank: Value):
    """``(N, 2L + 1)``: the labels, blanks between and around them."""
    rows = g.shape_from([g.size_of(label, 0)])
    blanks = g.Expand(blank, g.Concat(g.Shape(label), [1], axis=0))
    pairs = g.Reshape(
        g.Concat(blanks, g.Unsqueeze(label, [2]), axis=2), g.Concat(rows, [-1], axis=0)
    )
    return g.Concat(pairs, g.Expand(blank, g.Concat(rows, [1], axis=0)), axis=1)


def shift_right(g, x: Value, by: int):
    """``x`` moved along its last axis, what has no chance coming in."""
    padded = g.Pad(x, [0, by, 0, 0], g.scalar(NEVER, x))
    return g.Slice(padded, [0], [-by], [1], [1])


def forward_log_probs(g, emitted: Value, skips: Value, lengths: Value):
    """The logarithms of the chance to be at each place of the labels in the end."""
    time = g.index_range(g.size_of(emitted, 0))
    start = g.Mul(g.Gather(g.Slice(emitted, [0], [1], [2], [1]), 0, axis=0), 0.0)
    width = g.Sub(g.shape_from([g.size_of(emitted, 2)]), [1])
    start = g.Pad(start, g.Concat([0, 0, 0], width, axis=0), g.scalar(NEVER, emitted))

    def step(g, before, now, turn):
        skip = g.Where(skips, shift_right(g, before, 2), g.scalar(NEVER, before))
        after = g.Add(log_add_exp(g, before, shift_right(g, before, 1), skip), now)
        return [g.Where(g.Unsqueeze(g.Less(turn, lengths), [1]), after, before)]

    return g.scan(step, [start], [emitted, time])[0]


@reads("CTCLoss")
def read_ctc_loss(
    g, x, label, first=None, second=None, *, use_data_lengths=False, use_label_lengths=False,
    blank_label="first",
):  # fmt: skip
    """Of ``(T, N, C)`` numbers and ``(N, L)`` labels; 0 for labels there is no time for."""
    require(blank_label in ("first", "last"), f"blank_label={blank_label!r} is unknown")
    lengths = [v for v in (first, second) if v is not None]
    require(len(lengths) == use_data_lengths + use_label_lengths, "lengths that no option asks for")
    count = g.shape_from([g.size_of(x, 2)])
    label = g.cast(label, DType.INT64)
    is_first = blank_label == "first"
    blank = g.const([0]) if is_first else g.Sub(count, [1])
    full_times = g.Expand(g.shape_from([g.size_of(x, 0)]), g.shape_from([g.size_of(x, 1)]))
    times = g.cast(lengths.pop(0), DType.INT64) if use_data_lengths else full_times
    padding = 0 if is_first else -1
    ends = g.cast(lengths[0], DType.INT64) if lengths else count_labels(g, label, padding)
    places = insert_blanks(g, g.Max(label, 0), blank)
    skips = g.And(g.Not(g.Equal(places, blank)), g.Not(g.Equal(places, shift_labels(g, places))))
    logs = g.LogSoftmax(x, axis=2)
    index = g.Expand(g.Unsqueeze(places, [0]), g.Concat(g.Shape(x, start=0, end=1), g.Shape(places),
                                                        axis=0))  # fmt: skip
    final = forward_log_probs(g, g.GatherElements(logs, index, axis=2), skips, times)
    last = g.Unsqueeze(g.Mul(ends, 2), [1])
    at_end = g.GatherElements(final, last, axis=1)
    at_label = g.GatherElements(final, g.Max(g.Sub(last, 1), 0), axis=1)
    at_label = g.Where(g.Equal(last, 0), g.scalar(NEVER, final), at_label)
    total = g.Squeeze(log_add_exp(g, at_end, at_label), [1])
    return g.Where(g.Less(total, NEVER / 2), g.scalar(0, total), g.Neg(total))


def shift_labels(g, places: Value):
    """The labels two places before, -1 where there are none."""
    padded = g.Pad(places, [0, 2, 0, 0], g.const(-1))
    return g.Slice(padded, [0], [-2], [1], [1])


@reads("_contrib_hawkesll")
def read_hawkes(g, lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """The likelihood of marked events, and the memory the process has of them in the end."""
    zeros, none = g.full_like(state, 0), g.full_like(max_time, 0)
    time_first = [g.Transpose(v, perm=(1, 0)) for v in (lags, g.cast(marks, DType.INT64))]
    places = g.index_range(g.size_of(lags, 1))

    def step(g, mark_state, last, now, total, lag, mark, turn):
        at = g.Unsqueeze(mark, [1])
        then = g.Add(now, lag)
        mu, memory, before = (
            g.Squeeze(g.GatherElements(v, at, axis=1), [1]) for v in (lda, mark_state, last)
        )
        a, b = (g.Gather(v, mark, axis=0) for v in (alpha, beta))
        distance = g.Sub(then, before)
        fading = g.Exp(g.Neg(g.Mul(b, distance)))
        rate = g.Add(mu, g.Mul(g.Mul(g.Mul(a, b), memory), fading))
        gain = g.Sub(g.Log(rate), expected_events(g, mu, a, memory, distance, fading))
        kept = g.Unsqueeze(g.Add(1.0, g.Mul(memory, fading)), [1])
        held_then = g.ScatterElements(mark_state, at, kept, axis=1)
        last_then = g.ScatterElements(last, at, g.Unsqueeze(then, [1]), axis=1)
        real = g.Less(g.cast_like(turn, valid_length), valid_length)
        rows = g.Unsqueeze(real, [1])
        return (
            g.Where(rows, held_then, mark_state), g.Where(rows, last_then, last),
            g.Where(real, then, now), g.Where(real, g.Add(total, gain), total),
        )  # fmt: skip

    memory, before, _, total = g.scan(step, (state, zeros, none, none), (*time_first, places))
    distance = g.Sub(g.Unsqueeze(max_time, [1]), before)
    fading = g.Exp(g.Neg(g.Mul(beta, distance)))
    rest = g.ReduceSum(expected_events(g, lda, alpha, memory, distance, fading), [1], keepdims=0)
    return g.Sub(total, rest), g.Mul(memory, fading)


def expected_events(g, mu: Value, alpha: Value, memory: Value, distance: Value, fading: Value):
    """How many events were to be expected."""
    excited = g.Mul(g.Mul(alpha, memory), g.Sub(1.0, fading))
    return g.Add(g.Mul(mu, distance), excited)


@reads("softmax_cross_entropy")
def read_softmax_cross_entropy(g, x, label):
    """The sum over the samples; a probability below 1e-8 counts as 1e-8."""
    place = g.Unsqueeze(g.cast(label, DType.INT64), [1])
    chosen = g.Max(g.GatherElements(g.Softmax(x, axis=1), place, axis=1), 1e-8)
    total = g.ReduceSum(g.Log(chosen), [0, 1], keepdims=0)
    return g.Reshape(g.Neg(total), [1])
