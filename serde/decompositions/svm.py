"""Support vector machines of ``ai.onnx.ml`` in the IR's operators."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Value

Array = np.ndarray[Any, Any]
MOST_TURNS = 100  # of the search for shares, as libsvm has it
SURE = 1e-7  # no nearer to a share of 0 or 1 comes that of a pair
WHOLE = 8  # the largest degree that is multiplied out


def evaluate_kernels(g, x: Value, vectors: Array, kind: str, params: tuple[float, ...]):
    """How alike each sample and each vector are: a table of rows and vectors."""
    x = g.cast(x, DType.FLOAT32)
    gamma, offset, degree = params or (0.0, 0.0, 0.0)
    if kind == "RBF":
        apart = g.Sub(g.Unsqueeze(x, [1]), g.const(vectors[None]))
        return g.Exp(g.Mul(g.ReduceSum(g.Mul(apart, apart), [2], keepdims=0), -gamma))
    dots = g.MatMul(x, g.const(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dots
    scaled = g.Add(g.Mul(dots, gamma), offset)
    return g.Tanh(scaled) if kind == "SIGMOID" else _power(g, scaled, degree)


def _power(g, x: Value, degree: float):
    if not degree.is_integer() or not 1 <= degree <= WHOLE:
        return g.Pow(x, g.const(degree, DType.FLOAT32))
    power: Any = x
    for _ in range(int(degree) - 1):
        power = g.Mul(power, x)
    return power


def pairs_of(count: int):
    """Every two classes, in the order their scores have."""
    return list(combinations(range(count), 2))


def evaluate_decisions(g, alike: Value, coefficients: Array, sizes: tuple[int, ...], rho):
    """A score for every two classes, above zero for the first; each uses the vectors of both."""
    ends = np.cumsum([0, *sizes])
    table = arrays.zeros((ends[-1], len(rho)), np.float32)
    for at, (i, j) in enumerate(pairs_of(len(sizes))):
        for class_index, row in ((i, j - 1), (j, i)):
            part = slice(ends[class_index], ends[class_index + 1])
            table[part, at] = coefficients[row, part]
    return g.Add(g.MatMul(alike, g.const(table)), g.const(np.asarray(rho, np.float32)))


def _scatter_pairs(g, first: Value, count: int, places: list[tuple[int, int]], width: int):
    """A number for each pair to the first of two places, what it lacks of 1 to the second."""
    ends = arrays.zeros((2, count, width), np.float32)
    for at, both in enumerate(places):
        ends[(0, 1), at, both] = 1
    second = g.Sub(1.0, first)
    return g.Add(g.MatMul(first, g.const(ends[0])), g.MatMul(second, g.const(ends[1])))


def select_winners(g, scores: Value, count: int):
    """The class that most of the others lose to, the first of several."""
    pairs = pairs_of(count)
    won = g.cast(g.Greater(scores, 0.0), DType.FLOAT32)
    return g.ArgMax(_scatter_pairs(g, won, len(pairs), pairs, count), axis=1, keepdims=0)


def couple_probabilities(g, scores: Value, count: int, slopes, offsets):
    """Shares of all classes, coupled from those of every two (Wu, Lin and Weng, 2004)."""
    pairs = pairs_of(count)
    rising = g.Add(g.Mul(scores, g.const(np.float32(slopes))), g.const(np.float32(offsets)))
    pair_odds = g.Clip(
        g.Sigmoid(g.Neg(rising)), g.const(np.float32(SURE)), g.const(np.float32(1 - SURE))
    )
    places = [(i * count + j, j * count + i) for i, j in pairs]
    flat = _scatter_pairs(g, pair_odds, len(pairs), places, count * count)
    table = g.Reshape(flat, [-1, count, count])
    turned = g.Transpose(table, perm=(0, 2, 1))
    diagonal = g.ReduceSum(g.Mul(table, table), [1], keepdims=0)
    identity = g.const(arrays.eye(count, dtype=np.float32)[None])
    matrix = g.Sub(g.Mul(g.Unsqueeze(diagonal, [2]), identity), g.Mul(table, turned))
    start = g.Add(g.Mul(diagonal, 0.0), 1 / count)
    turns = g.const(max(MOST_TURNS, count), DType.INT64)
    return g.loop(
        lambda g, _, __, shares: _update_probabilities(g, shares, matrix, count), turns, True, start
    )[0]


def _update_probabilities(g, p: Value, matrix: Value, count: int):
    """Whether there are samples whose shares do not fit as yet, and a turn for those."""
    step = g.Squeeze(g.MatMul(matrix, g.Unsqueeze(p, [2])), [2])
    total = g.ReduceSum(g.Mul(p, step), [1], keepdims=1)
    error = g.ReduceMax(g.Abs(g.Sub(step, total)), [1], keepdims=1)
    far = g.GreaterOrEqual(error, 0.005 / count)
    new = p
    for at in range(count):
        row = g.Squeeze(g.Slice(matrix, [at], [at + 1], [1], [1]), [1])
        gradient, diagonal = (g.Slice(v, [at], [at + 1], [1], [1]) for v in (step, row))
        move = g.Div(g.Sub(total, gradient), diagonal)
        grown = g.Add(move, 1.0)
        gain = g.Mul(move, g.Add(g.Mul(move, diagonal), g.Mul(gradient, 2.0)))
        total = g.Div(g.Div(g.Add(total, gain), grown), grown)
        step = g.Div(g.Add(step, g.Mul(move, row)), grown)
        unit = g.const(arrays.eye(count, dtype=np.float32)[at][None])
        new = g.Div(g.Add(new, g.Mul(move, unit)), grown)
    any_ = g.Greater(g.ReduceMax(g.cast(far, DType.FLOAT32), keepdims=0), 0.5)
    return any_, g.Where(far, new, p)


def vectors_of(flat: tuple[float, ...], count: int):
    """Support vectors, one a row."""
    require(count > 0, "a machine without support vectors")
    require(len(flat) % count == 0, f"{len(flat)} numbers of {count} support vectors")
    return np.asarray(flat, np.float32).reshape(count, -1)
