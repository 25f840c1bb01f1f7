"""The bias of a product of integers as further rows of its matrix, so that its scale can follow.

``(product + bias) * scale`` is not ``product * scale + bias * scale`` to the last bit, and only the
latter is what ``MatMulIntegerToFloat`` computes. A bias that further columns of constants and rows
of weights make part of the integers leaves the scale alone behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from serde.ir import arrays
from serde.ir.graph import DType, Node, Tensor, Value

ALIGNMENT = 4  # numbers that the instructions multiply at a time
MOST = 8  # rows of a bias
WEIGHT = 127  # the largest weight
EXACT = 1 << 24  # float32 has all integers up to this
LARGEST = 255  # of uint8
MIDDLES = {DType.INT8: 0, DType.UINT8: 128}  # zero points of signed weights


class BiasRows(NamedTuple):
    """The columns behind the data, and the matrix with the rows for them."""

    columns: Tensor
    weights: Tensor


def make_bias_rows(product: Node, bias: Value) -> BiasRows | None:
    """The form of a product with constant weights that has ``bias`` (float32) in its sums.

    None where the sums may be no exact float32, where rows are wide, or where copying the data is
    not worth it: where it has more columns than the result.
    """
    x, w, *zeros = product.inputs
    if x is None or w is None or w.tensor is None or not x.is_static or x.dtype is not DType.UINT8:
        return None
    depth, width = w.static_shape
    zero, middle = (_single(zeros, at) for at in range(2))
    if not 0 < depth <= width or zero is None or middle != MIDDLES.get(w.type):
        return None
    step, numbers = LARGEST - zero, bias.array().ravel()
    largest = np.abs(w.array().astype(np.int32) - middle).sum(axis=0) * max(zero, step)
    is_whole = bool((np.rint(numbers) == numbers).all())
    if step < 1 or not is_whole or (largest + np.abs(numbers)).max() >= EXACT:
        return None
    rows = split_bias(numbers.astype(np.int64), step)
    if rows is None:
        return None
    data = np.full(len(rows), LARGEST, np.uint8)
    data[-1] = zero + 1
    columns = np.broadcast_to(data, (*x.static_shape[:-1], len(rows)))
    matrix = w.tensor

    def load() -> arrays.Array:
        below = (rows + middle).astype(w.type.numpy)
        return np.concatenate([matrix.load(), below])

    return BiasRows(Tensor.of(columns), Tensor(w.type, (depth + len(rows), width), load))


def _single(zeros: Sequence[Value | None], at: int) -> int | None:
    """The one number that a zero point holds, 0 where it is left out; None for several."""
    value = zeros[at] if at < len(zeros) else None
    numbers = {0} if value is None else {*value.array().ravel().tolist()}
    return numbers.pop() if len(numbers) == 1 else None


def split_bias(bias: np.ndarray[Any, Any], step: int) -> np.ndarray[Any, Any] | None:
    """Rows of weights that add up to ``bias``: the last in units of 1, the others of ``step``.

    ``bias``: shape (columns,); the result: shape (4 or 8, columns), each number within ±127. None
    where the bias is larger than rows can express.
    """
    steps = np.rint(bias / step).astype(np.int64)
    rest = bias - steps * step
    for count in range(ALIGNMENT, MOST + 1, ALIGNMENT):
        rows = np.zeros((count, len(bias)), np.int64)
        left = steps.copy()
        for row in rows[:-1]:
            row[:] = np.clip(left, -WEIGHT, WEIGHT)
            left -= row
        rows[-1] = rest
        if not left.any() and np.abs(rest).max(initial=0) <= WEIGHT:
            return rows
    return None
