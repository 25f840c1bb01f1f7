"""docs/results/opsets.md is what ``python -m conformance.opsets --write`` writes; here, for a few rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conformance.opsets import headed, marks, sweep
from serde.spec import schema
from tests.legalize.sequence_cases import CROSSING

PAGE = Path(__file__).parents[2] / "docs" / "results" / "opsets.md"
FEW = 8


def test_rows() -> None:
    rows = {line.split("|")[1].strip(): line for line in PAGE.read_text("utf-8").splitlines()
            if line.startswith("| ")}  # fmt: skip
    assert {name.removesuffix(" *") for name in rows} - {"operator"} == set(schema.names())
    tested = sorted(name for name in rows if not name.endswith("*") and name != "operator")
    chosen = {str(op) for op in np.random.default_rng(3).choice(tested, FEW, replace=False)}
    rows |= {name.removesuffix(" *"): rows[name] for name in rows}
    chosen |= CROSSING.keys()
    table = sweep(chosen)
    for op in chosen:
        assert rows[op] == f"| {headed(op, table)} | {' | '.join(marks(op, table))} |"
        assert not [line for row in table[op].values() for line in row.wrong]
