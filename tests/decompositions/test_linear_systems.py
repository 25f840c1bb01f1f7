"""Linear systems and factors, compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions import linear_systems
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import LEVELS, run_at

random = np.random.default_rng(7)
SQUARE = random.standard_normal((3, 5, 5)) + 3 * np.eye(5)
SYMMETRIC = SQUARE @ SQUARE.swapaxes(1, 2)
RIGHT = random.standard_normal((3, 5, 2))
CASES = {
    "solve": ((SQUARE, RIGHT), np.linalg.solve(SQUARE, RIGHT)),
    "inverse": ((SQUARE,), np.linalg.inv(SQUARE)),
    "cholesky": ((SYMMETRIC,), np.linalg.cholesky(SYMMETRIC)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_function_is_that_of_numpy(name: str, level: str) -> None:
    arrays, expected = CASES[name]
    g = OnnxBuilder("g")
    inputs = [g.input(f"x{i}", DType.FLOAT64, a.shape) for i, a in enumerate(arrays)]
    y = getattr(linear_systems, name)(g, *inputs)
    model = to_proto(from_ir(Graph("g", tuple(inputs), (y,), tuple(g.nodes)), 17))
    (got,) = run_at(level, model, {f"x{i}": a for i, a in enumerate(arrays)})
    np.testing.assert_allclose(got, expected, 1e-9, 1e-9)
