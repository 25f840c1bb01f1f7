"""TfIdfVectorizer, at opsets without it."""

from __future__ import annotations

from functools import reduce

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from . import decomposition
from .common import END, cast, require_expandable


@decomposition(9, "TfIdfVectorizer")
def count_ngrams(
    g, x: Value, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
    ngram_counts: Ints, ngram_indexes: Ints, pool_int64s: Ints = (), pool_strings=(),
    weights: tuple[float, ...] = (),
):  # fmt: skip
    """Compare every stretch of ``x`` with every n-gram of the pool, and add up what is the same.

    ``weights`` go by place in the result, as in ONNX Runtime and onnx.reference.
    """
    strings = x.dtype is DType.STRING or bool(pool_strings)
    require(not strings, "no operator compares strings; opset 9 is the lowest with TfIdfVectorizer")
    count = require_expandable(max(ngram_indexes) + 1, "a vector", 1 << 16)
    require(not weights or len(weights) == count, f"{len(weights)} weights for {count} places")
    x = g.Reshape(x, [-1]) if x.rank == 0 else x
    counts: list[Value] = []
    at: list[int] = []
    for n, first, pool in split_pool(pool_int64s, ngram_counts):
        if not min_gram_length <= n <= max_gram_length:
            continue
        apart = range(1, require_expandable(max_skip_count, "skips", 256) + 2) if n > 1 else [1]
        counts.append(reduce(g.Add, [count_occurrences(g, x, pool, d) for d in apart]))
        at += ngram_indexes[first : first + len(pool)]
    require(bool(counts), "a pool without n-grams of the lengths asked for")
    require_expandable(len(at) * count, "a table of n-grams and places")
    all_counts = g.Concat(*counts, axis=x.rank - 1) if len(counts) > 1 else counts[0]
    total = g.MatMul(all_counts, g.const(arrays.eye(count, dtype=np.float32)[list(at)]))
    if mode == "IDF":
        total = cast(g, g.Greater(total, 0.0), DType.FLOAT32)
    return total if mode == "TF" or not weights else g.Mul(total, g.const(weights, DType.FLOAT32))


def split_pool(items: Ints, starts: Ints):
    """For each length of n-grams: it, how many n-grams came before, and the n-grams as rows."""
    first = 0
    for n, (start, end) in enumerate(zip(starts, (*starts[1:], len(items)), strict=True), 1):
        require(0 <= start <= end <= len(items) and (end - start) % n == 0, "ngram_counts")
        pool = np.array(items[start:end], np.int64).reshape(-1, n)
        require(len({tuple(row) for row in pool.tolist()}) == len(pool), "an n-gram given twice")
        if len(pool):
            yield n, first, pool
        first += len(pool)


def count_occurrences(g, x: Value, pool, apart: int):
    """How often each row of ``pool`` is in the last axis of ``x``, its items ``apart`` from others

    No matter how short that axis is: the stretches are empty then, and so are their sums.
    """
    n, last = pool.shape[1], x.rank - 1
    kind = np.iinfo(x.type.numpy)
    hits = []
    for i in range(n):
        end = (i + 1 - n) * apart or END
        part = g.Unsqueeze(g.Slice(x, [i * apart], [end], [last], [1]), [x.rank])
        hit = g.Equal(part, g.const(pool[:, i].clip(kind.min, kind.max), x.type))
        hits.append(hit)
    fits = g.const((pool >= kind.min).all(1) & (pool <= kind.max).all(1))
    same = cast(g, g.And(reduce(g.And, hits), fits), DType.FLOAT32)
    return g.ReduceSum(same, [last], keepdims=0)
