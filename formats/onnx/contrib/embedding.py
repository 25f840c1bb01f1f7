"""Embeddings: of words, and of places by rotation."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from .attention import join_heads, length_of, split_heads
from .quantized import dequantize
from .table import reads

IMAGE = 4  # dimensions of data that is split into heads already


@reads("EmbedLayerNormalization")
def read_embed_layer_normalization(
    g, input_ids, segment_ids, word_embedding, position_embedding, segment_embedding, gamma, beta,
    mask=None, position_ids=None, *, epsilon=1e-12, mask_index_type=0,
):  # fmt: skip
    if position_ids is None:
        position_ids = g.index_range(length_of(g, input_ids, 1))
    total = g.Add(g.Gather(word_embedding, input_ids), g.Gather(position_embedding, position_ids))
    if segment_embedding is not None:
        total = g.Add(total, g.Gather(segment_embedding, segment_ids))
    normal = g.LayerNormalization(total, gamma, beta, axis=-1, epsilon=epsilon)
    return normal, _mask_index(g, input_ids, mask), total


def _mask_index(g, input_ids: Value, mask: Value | None):
    """How many words of each sequence are none of padding; 0 without a mask."""
    if mask is None:
        return g.Expand(g.const(np.int32(0)), length_of(g, input_ids, 0))
    return g.ReduceSum(g.cast(g.Equal(mask, 1), DType.INT32), [1], keepdims=0)


@reads("QEmbedLayerNormalization")
def read_qembed_layer_normalization(
    g, input_ids, segment_ids, words, places, segments, gamma, beta, mask, words_scale,
    places_scale, segments_scale, gamma_scale, beta_scale, words_zero, places_zero, segments_zero,
    gamma_zero, beta_zero, *, epsilon=1e-12,
):  # fmt: skip
    def gather_dequantized(table: Value, ids: Value, scale: Value, zero: Value | None):
        return dequantize(g, g.Gather(table, ids), scale, zero)

    where = g.index_range(length_of(g, input_ids, 1))
    total = g.Add(gather_dequantized(words, input_ids, words_scale, words_zero),
                  gather_dequantized(places, where, places_scale, places_zero))  # fmt: skip
    if segments is not None:
        assert segment_ids is not None and segments_scale is not None
        total = g.Add(
            total, gather_dequantized(segments, segment_ids, segments_scale, segments_zero)
        )
    real = (dequantize(g, gamma, gamma_scale, gamma_zero),
            dequantize(g, beta, beta_scale, beta_zero))  # fmt: skip
    normal = g.LayerNormalization(total, *real, axis=-1, epsilon=epsilon)
    return normal, _mask_index(g, input_ids, mask)


def rotate(g, x: Value, cos: Value, sin: Value, places: Value, interleaved: bool):
    """Rotate pairs of the elements of each head of ``x`` (B, N, S, H), by the angle of its place.

    ``places`` is (B, S) or (1, S). Elements that the caches (M, R/2) have no angle for stay.
    """
    half = cos.ranked_shape[-1]
    require(isinstance(half, int), "a cache of a dynamic width")
    assert isinstance(half, int)
    rotated = g.slice_axis(x, -1, 0, 2 * half)
    cos, sin = (g.Unsqueeze(g.Gather(v, places), [1]) for v in (cos, sin))
    if interleaved:
        pairs = g.Reshape(rotated, [0, 0, 0, half, 2])
        first, second = (g.Squeeze(g.slice_axis(pairs, -1, i, i + 1), [-1]) for i in (0, 1))
    else:
        first, second = (g.slice_axis(rotated, -1, i * half, (i + 1) * half) for i in (0, 1))
    real = g.Sub(g.Mul(first, cos), g.Mul(second, sin))
    imaginary = g.Add(g.Mul(first, sin), g.Mul(second, cos))
    if interleaved:
        both = g.Concat(g.Unsqueeze(real, [-1]), g.Unsqueeze(imaginary, [-1]), axis=-1)
        done = g.Reshape(both, [0, 0, 0, 2 * half])
    else:
        done = g.Concat(real, imaginary, axis=-1)
    if x.ranked_shape[-1] == 2 * half:
        return done
    return g.Concat(done, g.slice_axis(x, -1, 2 * half, np.iinfo(np.int64).max), axis=-1)


def places_from(g, first: Value, length: Value):
    """``first``, one for each sequence (B), and the places behind it: (B, S)."""
    return g.Add(g.Reshape(first, [-1, 1]), g.index_range(length))


@reads("RotaryEmbedding")
def read_rotary_embedding(
    g, x, position_ids, cos_cache, sin_cache, *, interleaved=0, is_packed_batching=0, num_heads=0,
    rotary_embedding_dim=0, scale=1.0,
):  # fmt: skip
    require(not is_packed_batching, "no support for is_packed_batching=1")
    require(scale in (0.0, 1.0), f"no support for scale={scale}")
    length = length_of(g, x, -2 if x.rank == IMAGE else 1)
    places = position_ids
    if position_ids.rank == 1:
        places = places_from(g, position_ids, length)
    if x.rank == IMAGE:
        return rotate(g, x, cos_cache, sin_cache, places, bool(interleaved))
    heads = num_heads or _head_count(x, cos_cache)
    by_head = split_heads(g, x, heads)
    return join_heads(g, rotate(g, by_head, cos_cache, sin_cache, places, bool(interleaved)))


def _head_count(x: Value, cos_cache: Value):
    """Heads of data (B, S, N*H), where the caches have angles for all of a head."""
    hidden, half = x.ranked_shape[-1], cos_cache.ranked_shape[-1]
    known = isinstance(hidden, int) and isinstance(half, int)
    require(known, "num_heads=0 and a dynamic number of hidden elements")
    return hidden // (2 * half)
