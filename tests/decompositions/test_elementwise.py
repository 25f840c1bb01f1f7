"""Arithmetic that readers share, compared with NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from serde.decompositions.elementwise import arctan2
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import LEVELS, run_at

NUMBERS = (0.0, -0.0, 1.0, -1.0, 3e-39, -2.5, 1e30, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("level", LEVELS)
def test_arctan2_is_that_of_numpy(level: str) -> None:
    points = np.asarray([*itertools.product(NUMBERS, NUMBERS)], np.float32)
    y, x = points.T.copy()
    g = OnnxBuilder("g")
    inputs = [g.input(name, DType.FLOAT32, y.shape) for name in "yx"]
    angle = arctan2(g, *inputs)
    graph = Graph("g", tuple(inputs), (angle,), tuple(g.nodes))
    (got,) = run_at(level, to_proto(from_ir(graph, 17)), {"y": y, "x": x})
    expected = np.arctan2(y, x)
    np.testing.assert_allclose(got, expected, 1e-6, 1e-30)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])
