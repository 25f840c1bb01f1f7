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
    node = g.producer(indices)
    is_cast = node is not None and node.op == "Cast" and node.inputs[0].type is DType.FLOAT32
    require(is_cast, LACKING)
    rows = table.ranked_shape[0]
    require(rows <= MOST_ROWS, f"ncnn compares numbers with up to {MOST_ROWS} rows")
    return g.MatMul(count_distances(g, node.inputs[0], rows), table)


def count_distances(g, x: Value, rows: int):
    """1 in the column of each row, and 0 in others."""
    index = g.Mul(g.Sign(x), g.Floor(g.Abs(x)))
    front = g.Add(index, g.Mul(g.Relu(g.Neg(g.Sign(index))), float(rows)))
    node = g.producer(x)
    low = node.inputs[1] if node is not None and node.op == "Clip" else None
    is_front = low is not None and low.tensor is not None and float(low.array()) >= 0
    at = g.Unsqueeze(g.Floor(x) if is_front else front, [x.rank])
    away = g.Abs(g.Sub(at, np.arange(rows, dtype=np.float32)))
    return g.Relu(g.Sub(1.0, away))
