"""Small graphs in LiteRT, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import serde
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.litert_live import run_both


def draw_feed(value, rng: np.random.Generator) -> np.ndarray:
    """Numbers for an input: ``i`` are places, ``y`` no zeros."""
    dtype = value.type.numpy
    if value.name == "i":
        return np.asarray([[-1], [2]], dtype)
    if dtype.kind == "f":
        return (3 * rng.standard_normal(value.static_shape)).astype(dtype)
    if dtype.kind == "b":
        mask = rng.random(value.static_shape) < 0.5
        mask[0] = False
        return mask
    low = 1 if value.name == "y" or dtype.kind == "u" else -(1 << 20)
    return rng.integers(low, 1 << 15, value.static_shape).astype(dtype)


def compare(worker, body: str, folder: Path) -> None:
    """Compare a graph of the IR with ONNX Runtime, with both sets of kernels."""
    graph = ir_of(body)
    rng = np.random.default_rng(1)
    feeds = {v.name: draw_feed(v, rng) for v in graph.inputs}
    serde.save(graph, folder / "m.tflite")
    for got in run_both(worker, folder / "m.tflite", [*feeds.values()]):
        for actual, expected in zip(got, run_graph(graph, feeds, 22), strict=True):
            assert actual.dtype == expected.dtype
            half = actual.dtype == np.float16
            np.testing.assert_allclose(actual, expected, *((2e-3, 1e-3) if half else (1e-5, 1e-5)))
