"""Attention of models that generate text: grouped queries, with a cache of keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value

from .attention import add_bias_and_mask, join_heads, length_of, scores, split_heads
from .embedding import places_from, rotate
from .normalization import rms_normalize
from .table import reads


@dataclass(frozen=True)
class Lengths:
    """How far each sequence of the batch is: the keys before (B) and behind (B) the new ones.

    ``room`` is how many keys the cache has room for, ``new`` how many are new.
    """

    past: Value
    total: Value
    room: Value
    new: Value

    @classmethod
    def of(cls, g: Any, query: Value, past_key: Value | None, last: Value, total: Value) -> Lengths:
        """From the index of each sequence's last key, and the largest number of keys."""
        new = length_of(g, query, 1)
        totals = g.Add(g.cast(last, DType.INT64), 1)
        largest = g.Reshape(g.cast(total, DType.INT64), [1])
        if past_key is None:
            return cls(g.Mul(totals, 0), totals, largest, new)
        is_prompt = g.Equal(largest, new)
        past = g.Where(is_prompt, 0, g.Sub(totals, new))
        return cls(past, totals, g.Max(largest, length_of(g, past_key, 2)), new)

    def append_to_cache(self, g: Any, past: Value | None, x: Value) -> Value:
        """The cache (B, N, P, H) with what is new (B, N, S, H) behind each sequence's past."""
        if past is None:
            return x
        spare = g.Expand(g.const(np.zeros(1, x.type.numpy)),
                         g.Concat(g.Shape(x, end=2), [1], g.Shape(x, start=3), axis=0))  # fmt: skip
        source = g.Concat(past, x, spare, axis=2)
        places = g.index_range(self.room)
        before = g.Reshape(self.past, [-1, 1])
        behind = g.Min(g.Sub(places, before), self.new)
        index = g.Where(g.Less(places, before), places, g.Add(behind, length_of(g, past, 2)))
        shape = g.Concat(g.Shape(x, end=2), self.room, g.Shape(x, start=3), axis=0)
        index = g.Expand(g.Unsqueeze(index, [1, 3]), shape)
        return g.GatherElements(source, index, axis=2)

    def mask_hidden(self, g: Any, keys: Value, is_causal: bool, window: int) -> Value:
        """Which keys each query does not see: (B, 1, S, T)."""
        places = g.index_range(length_of(g, keys, 2))
        if not is_causal:
            ends = g.Reshape(self.total, [-1, 1, 1, 1])
            return g.GreaterOrEqual(places, ends)
        query_places = g.Unsqueeze(places_from(g, self.past, self.new), [1, 3])
        is_later = g.Greater(places, query_places)
        if window < 0:
            return is_later
        return g.Or(is_later, g.LessOrEqual(places, g.Sub(query_places, window)))


@reads("GroupQueryAttention", ignore=("kv_cache_bit_width",), only={
    "k_quant_type": ("NONE",), "v_quant_type": ("NONE",), "sliding_window_cache": (0,),
    "qk_output": (0,),
})  # fmt: skip
def read_group_query_attention(
    g, query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache=None,
    sin_cache=None, position_ids=None, attention_bias=None, head_sink=None, k_scale=None,
    v_scale=None, q_norm_weight=None, k_norm_weight=None, query_seqlens=None, *, causal=1,
    do_rotary=0, k_norm_epsilon: float | None = None, kv_num_heads: int, local_window_size=-1,
    num_heads: int, q_norm_epsilon: float | None = None, qk_norm_epsilon=1e-6, rotary_interleaved=0,
    scale=0.0, smooth_softmax=-1, softcap=0.0,
):  # fmt: skip
    unread = {"k_scale": k_scale, "v_scale": v_scale, "query_seqlens": query_seqlens}
    for name, operand in unread.items():
        require(operand is None, f"no support for the input {name}")
    lengths = Lengths.of(g, query, past_key, seqlens_k, total_sequence_length)
    q, k, v = _by_head(g, query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None and k_norm_weight is not None:
        q = rms_normalize(g, q, q_norm_weight, q_norm_epsilon or qk_norm_epsilon)
        k = rms_normalize(g, k, k_norm_weight, k_norm_epsilon or qk_norm_epsilon)
    if do_rotary:
        assert cos_cache is not None and sin_cache is not None
        places = position_ids or places_from(g, lengths.past, lengths.new)
        q, k = (
            rotate(g, x, cos_cache, sin_cache, places, bool(rotary_interleaved)) for x in (q, k)
        )
    k, v = lengths.append_to_cache(g, past_key, k), lengths.append_to_cache(g, past_value, v)
    products = _ungroup_heads(
        g, scores(g, _group_heads(g, q, kv_num_heads), k, scale), num_heads, q
    )
    if softcap > 0:
        products = g.Mul(g.Tanh(g.Div(products, softcap)), softcap)
    products = add_bias_and_mask(g, products, attention_bias, None)
    hidden = lengths.mask_hidden(g, k, bool(causal), local_window_size)
    products = g.Where(hidden, g.const(np.array(lowest_value(q), q.type.numpy)), products)
    sink = head_sink if head_sink is not None else 0.0 if smooth_softmax == 1 else None
    shares = _softmax(g, products, sink)
    output = g.MatMul(_group_heads(g, shares, kv_num_heads), v)
    return join_heads(g, _ungroup_heads(g, output, num_heads, q)), k, v


def _by_head(g, query: Value, key: Value | None, value: Value | None, heads: int, kv_heads: int):
    """Query, key and value as (B, N, S, H), from three tensors or one."""
    if key is not None and value is not None:
        counts = (heads, kv_heads, kv_heads)
        return [split_heads(g, x, n) for x, n in zip((query, key, value), counts, strict=True)]
    joint = split_heads(g, query, heads + 2 * kv_heads)
    return list(g.Split(joint, [heads, kv_heads, kv_heads], axis=1, outputs=3))


def _group_heads(g, x: Value, kv_heads: int):
    """(B, N, S, H) as (B, K, N/K*S, H), of K heads of keys."""
    rest = g.Shape(x, start=3)
    return g.Reshape(x, g.Concat(g.Shape(x, end=1), [kv_heads, -1], rest, axis=0))


def _ungroup_heads(g, x: Value, heads: int, like: Value):
    """What ``_group_heads`` gave, by N heads again; ``like`` is (B, N, S, H)."""
    shape = g.Concat(g.Shape(x, end=1), [heads], g.Shape(like, start=2, end=3), [-1], axis=0)
    return g.Reshape(x, shape)


def _softmax(g, products: Value, sink):
    """Proportions of the scores (B, N, S, T), of which a sink takes its share."""
    if sink is None:
        return g.Softmax(products, axis=-1)
    column = g.const(np.zeros(1, products.type.numpy)) if sink == 0.0 else sink
    column = g.Reshape(column, [1, -1, 1, 1])
    column = g.Expand(column, g.Concat(g.Shape(products, end=3), [1], axis=0))
    shares = g.Softmax(g.Concat(products, column, axis=-1), axis=-1)
    return g.slice_axis(shares, -1, 0, length_of(g, products, 3))
