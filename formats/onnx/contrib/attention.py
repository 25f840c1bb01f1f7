"""Attention over several heads, in the forms that ONNX Runtime fuses it to.

B: batch, S: length of the query, L: of the key, P: of the past, T = P + L, N: heads, H: head size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value

from .table import reads

FILTER = -10000.0  # what a masked score is lowered by, unless a node says otherwise
MASK_AXES = {1: (), 2: (1, 2), 3: (1,)}  # that a mask of so many dimensions lacks of (B, N, S, T)
HEADS_FIRST = (0, 2, 1, 3)  # (B, S, N, H) to (B, N, S, H), and back


def split_heads(g, x: Value, heads: int):
    """(B, S, N*H) as (B, N, S, H)."""
    return g.Transpose(g.Reshape(x, [0, 0, heads, -1]), perm=HEADS_FIRST)


def join_heads(g, x: Value):
    """(B, N, S, H) as (B, S, N*H)."""
    return g.Reshape(g.Transpose(x, perm=HEADS_FIRST), [0, 0, -1])


def length_of(g, x: Value, axis: int):
    """The size of ``x`` along an axis, as a tensor of one int64."""
    return g.Shape(x, start=axis, end=axis + 1)


@dataclass(frozen=True)
class Masking:
    """What a mask is, and what a score is lowered by where it hides something."""

    mask: Value | None
    filter: float
    is_causal: bool

    def bias(self, g: Any, query: Value, total: Value, past: Value | int) -> Value | None:
        """What is added to the scores (B, N, S, T) of ``query`` (B, N, S, H)."""
        hidden = None if self.mask is None else self._mask_hidden(g, query, total)
        dtype = query.type
        low, zero = (g.const(np.array(v, dtype.numpy)) for v in (self.filter, 0))
        bias = None if hidden is None else g.Where(hidden, low, zero)
        if not self.is_causal:
            return bias
        rows = g.Unsqueeze(g.index_range(length_of(g, query, 2)), [1])
        is_later = g.Greater(g.index_range(total), g.Add(rows, past))
        return g.Where(
            is_later,
            g.const(np.array(lowest_value(query), dtype.numpy)),
            zero if bias is None else bias,
        )

    def _mask_hidden(self, g: Any, query: Value, total: Value) -> Value:
        """Whether a key is hidden from a query, of a shape that broadcasts to (B, N, S, T)."""
        assert self.mask is not None
        mask, rank = self.mask, self.mask.rank
        require(rank in MASK_AXES, f"a mask of {rank} dimensions")
        if rank == 1:
            return self._mask_beyond_ends(g, length_of(g, query, 0), total)
        return g.Unsqueeze(g.LessOrEqual(mask, 0), MASK_AXES[rank])

    def _mask_beyond_ends(self, g: Any, batch: Value, total: Value) -> Value:
        """Of a mask that has the ends of the sequences (B), and maybe their starts (2*B)."""
        assert self.mask is not None
        mask = g.cast(self.mask, DType.INT64)
        padded = g.Concat(mask, g.Expand(0, batch), axis=0)
        ends, starts = (
            g.Reshape(g.slice_axis(padded, 0, first, last), [-1, 1, 1, 1])
            for first, last in ((0, batch), (batch, g.Mul(batch, 2)))
        )
        places = g.index_range(total)
        return g.Or(g.GreaterOrEqual(places, ends), g.Less(places, starts))


def scores(g, q: Value, k: Value, scale: float | None):
    """The scaled products of queries and keys (B, N, S, T)."""
    products = g.MatMul(q, g.Transpose(k, perm=(0, 1, 3, 2)))
    size = q.ranked_shape[-1]
    if not scale and not isinstance(size, int):
        return g.Div(products, g.Sqrt(g.cast(length_of(g, q, 3), q.type)))
    return g.Mul(products, scale or 1 / math.sqrt(size))


def add_bias_and_mask(g, products: Value, bias: Value | None, hidden: Value | None):
    """Scores with what is added to them: a bias, and what lowers those of hidden keys."""
    for term in (bias, hidden):
        products = products if term is None else g.Add(products, term)
    return products


def weight_values(g, products: Value, v: Value):
    """Values (B, N, T, H) in the proportions that the scores give, as (B, S, N*H)."""
    return join_heads(g, g.MatMul(g.Softmax(products, axis=-1), v))


def append_past(g, past: Value | None, x: Value):
    """(B, N, L, H) behind the past (B, N, P, H)."""
    return x if past is None else g.Concat(past, x, axis=2)


def _attend(
    g, q: Value, k: Value, v: Value, past: Value | None, masking: Masking, bias: Value | None,
    scale: float,
):  # fmt: skip
    """Attention of one projection, with the past of keys and values in one tensor."""
    before: Value | int = 0
    if past is not None:
        old_k, old_v = (g.Squeeze(g.slice_axis(past, 0, i, i + 1), [0]) for i in (0, 1))
        before = length_of(g, past, 3)
        k, v = append_past(g, old_k, k), append_past(g, old_v, v)
    mask = masking.bias(g, q, length_of(g, k, 2), before)
    output = weight_values(g, add_bias_and_mask(g, scores(g, q, k, scale), bias, mask), v)
    same = k.ranked_shape[-1] == v.ranked_shape[-1]
    present = g.Concat(g.Unsqueeze(k, [0]), g.Unsqueeze(v, [0]), axis=0) if same else None
    return output, present


def _split_projection(g, x: Value, heads: int, sizes: Ints):
    """The three parts of a joint projection, by heads."""
    if sizes:
        require(len(sizes) == 3, f"qkv_hidden_sizes={sizes}")
        parts = g.Split(x, list(sizes), axis=-1, outputs=3)
    else:
        parts = g.Split(x, axis=-1, num_outputs=3, outputs=3)
    return [split_heads(g, part, heads) for part in parts]


@reads("Attention")
def read_attention(
    g, x, weights, bias=None, mask_index=None, past=None, attention_bias=None,
    past_sequence_length=None, *, do_rotary=0, mask_filter_value: float = FILTER, num_heads: int,
    past_present_share_buffer=0, qkv_hidden_sizes=(), rotary_embedding_dim=0, scale=0.0,
    unidirectional=0,
):  # fmt: skip
    require(not do_rotary, "no support for do_rotary=1")
    shared = past_present_share_buffer or past_sequence_length is not None
    require(not shared, "no support for past_present_share_buffer=1")
    joint = g.MatMul(x, weights)
    joint = joint if bias is None else g.Add(joint, bias)
    q, k, v = _split_projection(g, joint, num_heads, qkv_hidden_sizes)
    masking = Masking(mask_index, mask_filter_value, bool(unidirectional))
    return _attend(g, q, k, v, past, masking, attention_bias, scale)


@reads("QAttention")
def read_qattention(
    g, x, weight, bias, input_scale, weight_scale, mask_index=None, input_zero=None,
    weight_zero=None, past=None, *, do_rotary=0, mask_filter_value: float = FILTER, num_heads: int,
    past_present_share_buffer=0, scale=0.0, unidirectional=0,
):  # fmt: skip
    from .integer_matmul import read_matmul_integer_to_float

    require(not do_rotary, "no support for do_rotary=1")
    require(not past_present_share_buffer, "no support for past_present_share_buffer=1")
    joint = read_matmul_integer_to_float(
        g, x, weight, input_scale, weight_scale, input_zero, weight_zero, bias
    )
    q, k, v = _split_projection(g, joint, num_heads, ())
    masking = Masking(mask_index, mask_filter_value, bool(unidirectional))
    return _attend(g, q, k, v, past, masking, None, scale)


@reads("MultiHeadAttention")
def read_multi_head_attention(
    g, query, key=None, value=None, bias=None, key_padding_mask=None, attention_bias=None,
    past_key=None, past_value=None, past_sequence_length=None, cache_indirection=None, *,
    mask_filter_value: float = FILTER, num_heads: int, scale=0.0, unidirectional=0,
):  # fmt: skip
    shared = past_sequence_length is not None or cache_indirection is not None
    require(not shared, "no support for a past in a shared buffer (past_sequence_length)")
    q, k, v = _heads(g, query, key, value, bias, num_heads)
    before: Value | int = 0 if past_key is None else length_of(g, past_key, 2)
    k, v = append_past(g, past_key, k), append_past(g, past_value, v)
    masking = Masking(key_padding_mask, mask_filter_value, bool(unidirectional))
    mask = masking.bias(g, q, length_of(g, k, 2), before)
    products = add_bias_and_mask(g, scores(g, q, k, scale), attention_bias, mask)
    return weight_values(g, products, v), k, v, products


def _heads(g, query: Value, key: Value | None, value: Value | None, bias: Value | None, heads: int):
    """Query, key and value by heads (B, N, S, H), in every form that MultiHeadAttention takes."""
    if key is None:
        require(query.rank == 5 and value is None, "a query alone that is not packed")
        return _unpack_heads(g, query, 3, bias)
    if value is None:
        require(key.rank == 5, "a key without value that is not packed")
        require(bias is None, "a bias with a packed key and value")
        return [split_heads(g, query, heads), *_unpack_heads(g, key, 2, None)]
    biases: tuple[Value | None, ...] = (None, None, None)
    if bias is not None:
        hidden = length_of(g, query, 2)
        bounds = [0, hidden, g.Mul(hidden, 2), length_of(g, bias, 0)]
        biases = tuple(g.slice_axis(bias, 0, *bounds[i : i + 2]) for i in range(3))
    return [
        _project_heads(g, v, b, heads) for v, b in zip((query, key, value), biases, strict=True)
    ]


def _project_heads(g, x: Value, bias: Value | None, heads: int):
    if x.rank == 4:
        require(bias is None, "a bias with a key of four dimensions")
        return x
    return split_heads(g, x if bias is None else g.Add(x, bias), heads)


def _unpack_heads(g, packed: Value, count: int, bias: Value | None):
    """The parts of (B, S, N, count, H), each (B, N, S, H)."""
    if bias is not None:
        heads, size = packed.ranked_shape[2], packed.ranked_shape[4]
        require(isinstance(heads, int) and isinstance(size, int), "heads of a dynamic size")
        by_part = g.Reshape(bias, [count, heads, size])
        packed = g.Add(packed, g.Transpose(by_part, perm=(1, 0, 2)))
    parts = (g.Squeeze(g.slice_axis(packed, 3, i, i + 1), [3]) for i in range(count))
    return [g.Transpose(part, perm=HEADS_FIRST) for part in parts]
