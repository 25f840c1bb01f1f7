"""Rows of a table, by numbers in float32: ncnn has no other indices that are computed."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

MOST_ROWS = 1 << 16  # of a table whose rows are compared with
LACKING = "ncnn looks up rows by numbers in float32 only: give the indices as float32"


def look_up(g, table: Value, indices: Value):
    """Rows of a constant, by a product with 1 in the column of each.

    pnnx runs a model with what happens to be in memory: it fails where integers look up rows.
    """
    made = g.producer(indices)
    is_cast = made is not None and made.op == "Cast" and made.inputs[0].type is DType.FLOAT32
    require(is_cast, LACKING)
    rows = table.ranked_shape[0]
    require(rows <= MOST_ROWS, f"ncnn compares numbers with up to {MOST_ROWS} rows")
    return g.MatMul(count_distances(g, made.inputs[0], rows), table)


def count_distances(g, x: Value, rows: int):
    """1 in the column of each row, and 0 in others."""
    whole = g.Mul(g.Sign(x), g.Floor(g.Abs(x)))
    front = g.Add(whole, g.Mul(g.Relu(g.Neg(g.Sign(whole))), float(rows)))
    made = g.producer(x)
    low = made.inputs[1] if made is not None and made.op == "Clip" else None
    is_front = low is not None and low.tensor is not None and float(low.array()) >= 0
    at = g.Unsqueeze(g.Floor(x) if is_front else front, [x.rank])
    away = g.Abs(g.Sub(at, np.arange(rows, dtype=np.float32)))
    return g.Relu(g.Sub(1.0, away))
