"""The models in the onnx wheel, read, raised, written at every opset, and run.

``python -m conformance onnx-models/onnx`` does this for the large networks as well.
"""

from __future__ import annotations

import pytest

from conformance.matrix import cell_of
from conformance.record import REFUSED, RIGHT

CELL = cell_of("onnx-models/onnx")
CELL.target.variants = ("7", "13", "21")
NO_RUNTIME = ("simple/test_gradient_of_add", "simple/test_gradient_of_add_and_mul")
NEEDS_NEWER = ("simple/test_sequence_model8", "simple/test_strnorm_")  # than opset 7
QUICK = ("light/light_squeezenet", "light/light_shufflenet")
SMALL = [c for c in CELL.cases() if not c.startswith("light/") and c not in NO_RUNTIME]


@pytest.mark.parametrize("case", [*SMALL, *QUICK])
def test_model(case) -> None:
    table = CELL.outcomes(case, CELL.run(case))
    lowest = REFUSED if case.startswith(NEEDS_NEWER) else RIGHT
    assert {v: o.kind for v, o in table.items()} == {"7": lowest, "13": RIGHT, "21": RIGHT}, table
