"""Adaptive pools: each output is the mean, or the greatest element, of the part that lies under."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.torch import TorchWorker
from serde.decompositions.adaptive_pools import GREATEST, MEAN, adaptive_pool
from serde.ir.graph import DType, Graph
from serde.passes.change_batch import rebatch
from serde.spec.composites import DOMAIN
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run
from tests.torch.torch_live import why_not

CASES = [
    ((2, 3, 7), (4,)), ((2, 3, 8), (4,)), ((1, 2, 9, 8), (3, 5)), ((1, 2, 5, 8), (5, 3)),
    ((1, 2, 9, 8), (3, 4)), ((1, 2, 3, 4), (7, 6)), ((1, 2, 5, 6, 7), (2, 3, 4)),
]  # fmt: skip


def pool(x: np.ndarray, sizes: tuple[int, ...], kind: str) -> np.ndarray:
    """The pool by its definition."""
    y = np.empty((*x.shape[:2], *sizes), x.dtype)
    take = np.mean if kind == MEAN else np.max
    axes = tuple(range(2, x.ndim))
    for place in product(*map(range, sizes)):
        ends = zip(place, sizes, x.shape[2:], strict=True)
        window = tuple(slice(i * d // n, -(-(i + 1) * d // n)) for i, n, d in ends)
        y[(..., *place)] = take(x[(..., *window)], axis=axes)
    return y


@pytest.mark.parametrize("kind", [MEAN, GREATEST])
@pytest.mark.parametrize(("shape", "sizes"), CASES)
@pytest.mark.parametrize("is_static", [True, False])
def test_decomposed(
    shape: tuple[int, ...], sizes: tuple[int, ...], is_static: bool, kind: str
) -> None:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    named = (*shape[:2], *(f"d{axis}" for axis in range(2, x.ndim)))
    g = OnnxBuilder("g")
    y = adaptive_pool(g, g.input("x", DType.FLOAT32, shape if is_static else named), sizes, kind)
    (got,) = run(Graph("g", tuple(g.inputs), (y,), tuple(g.nodes)), {"x": x})
    np.testing.assert_allclose(got, pool(x, sizes, kind), rtol=0, atol=1e-6)


def make_composite(shape: tuple[int, ...], sizes: tuple[int, ...], kind: str) -> Graph:
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, shape)
    (y,) = g.composite("AdaptivePool", (x,), {"output_size": sizes, "kind": kind})
    assert y.shape == (*shape[:2], *sizes)
    return Graph("g", tuple(g.inputs), (y,), tuple(g.nodes))


def test_a_composite_is_decomposed_for_onnx() -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 8), np.float32)
    (got,) = run(make_composite(x.shape, (4, 3), MEAN), {"x": x})
    np.testing.assert_allclose(got, pool(x, (4, 3), MEAN), rtol=0, atol=1e-6)


def test_a_composite_takes_another_batch() -> None:
    graph = rebatch(make_composite((1, 2, 9, 8), (4, 3), MEAN), "N")
    assert graph.outputs[0].shape == ("N", 2, 4, 3)
    assert [n.domain for n in graph.nodes] == [DOMAIN]


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    if reason := why_not():
        pytest.skip(reason)
    return TorchWorker()


@pytest.mark.parametrize("kind", [MEAN, GREATEST])
@pytest.mark.parametrize(("shape", "sizes"), CASES)
def test_pytorch_has_the_operator(
    shape: tuple[int, ...], sizes: tuple[int, ...], kind: str, worker: TorchWorker, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    serde.save(make_composite(shape, sizes, kind), path)
    word = "avg" if kind == MEAN else "max"
    assert f"F.adaptive_{word}_pool{len(sizes)}d(x, " in path.read_text()
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    (got,) = worker.run(str(path), [x])
    np.testing.assert_allclose(got, pool(x, sizes, kind), rtol=0, atol=1e-6)
