"""The recorded table of opsets holds: a few of its rows, and those of our own cases."""

from __future__ import annotations

import numpy as np

from conformance import record
from conformance.opsets import Opsets
from serde.spec import schema
from testing.legalize.sequence_cases import CROSSING

FEW = 8


def test_rows() -> None:
    rows = record.rows("operators/opsets")
    assert rows.keys() == set(schema.names())
    tested = sorted(op for op, row in rows.items() if row["tested"])
    chosen = {str(op) for op in np.random.default_rng(3).choice(tested, FEW, replace=False)}
    cell = Opsets("operators/opsets")
    for op in chosen | CROSSING.keys():
        row = cell.run(op)
        assert (row["tested"], row["signs"]) == (rows[op]["tested"], rows[op]["signs"]), op
        assert "wrong" not in row
