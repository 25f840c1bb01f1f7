"""Special functions, compared with those of Python's library."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from serde.decompositions import special
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import LEVELS, run_at

POSITIVE = np.linspace(0.05, 30, 200)
NORMAL = statistics.NormalDist()
CASES = {  # numbers, and what the function is there
    "gammaln": (POSITIVE, math.lgamma),
    "gamma": (POSITIVE, math.gamma),
    "erfinv": (np.linspace(-0.999, 0.999, 200),
               lambda x: NORMAL.inv_cdf((x + 1) / 2) / math.sqrt(2)),
    "digamma": (POSITIVE, lambda x: (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_function_is_that_of_the_library(name: str, level: str) -> None:
    numbers, expected = CASES[name]
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, numbers.shape)
    y = getattr(special, name)(g, x)
    model = to_proto(from_ir(Graph("g", (x,), (y,), tuple(g.nodes)), 17))
    x32 = numbers.astype(np.float32)
    (got,) = run_at(level, model, {"x": x32})
    np.testing.assert_allclose(got, [expected(float(v)) for v in x32], 1e-4, 1e-5)
