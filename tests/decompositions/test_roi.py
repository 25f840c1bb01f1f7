"""MaxRoiPool without the operator, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np

from serde.decompositions.roi import pool_regions
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import PLAIN, run_at


def test_pools_of_regions_are_those_of_onnxruntime() -> None:
    draws = np.random.default_rng(0)
    x = draws.standard_normal((2, 3, 13, 11), np.float32) - 9
    starts = draws.uniform(0, 9, (6, 2))
    regions = np.hstack(
        [draws.integers(0, 2, (6, 1)), starts, starts + draws.uniform(-1, 8, (6, 2))]
    )
    regions = np.vstack([regions, [[1, -4.5, 2.5, 60, 70], [0, 30, 30, 40, 40]]])
    feeds = {"x": x, "rois": regions.astype(np.float32)}
    form = {"pooled_shape": (2, 3), "spatial_scale": 0.73}

    def run(pool):
        g = OnnxBuilder("g")
        inputs = [g.input(name, DType.FLOAT32, a.shape) for name, a in feeds.items()]
        graph = Graph("g", tuple(inputs), (pool(g, *inputs),), tuple(g.nodes))
        return run_at(PLAIN, to_proto(from_ir(graph, 17)), feeds)[0]

    expected = run(lambda g, x, rois: g.MaxRoiPool(x, rois, **form))
    assert (expected == 0).any() and (expected < 0).any()
    np.testing.assert_array_equal(
        run(lambda g, x, rois: pool_regions(g, x, rois, **form)), expected
    )
