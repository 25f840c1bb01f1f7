"""Normalizations are the modules that they were, and only arrays that are trained are their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import serde
from serde.bridges.torch import TorchWorker
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_onnx
from tests.torch.test_nesting import keys_of, needs_torch

SAMPLE = Path(__file__).resolve().parents[1] / "data/pt2/norms"
MODULES = """
nn.LayerNorm(6, elementwise_affine=False)
nn.GroupNorm(2, 8, affine=False)
nn.GroupNorm(4, 8)
nn.BatchNorm2d(8, affine=False)
nn.InstanceNorm2d(8)
nn.InstanceNorm2d(8, affine=True)
nn.RMSNorm(6, eps=1.1920929e-07)
nn.RMSNorm(6, eps=1.1920929e-07, elementwise_affine=False)
"""


def test_normalizations_are_the_modules_of_the_program(tmp_path: Path) -> None:
    serde.convert(f"{SAMPLE}.pt2", tmp_path / "n.py")
    source = (tmp_path / "n.py").read_text()
    assert [m for m in MODULES.split("\n") if m not in source] == []
    statistics = {f"a.3.{n}" for n in ("running_mean", "running_var", "num_batches_tracked")}
    trained = {f"a.{at}.{n}" for at in (2, 5) for n in ("weight", "bias")} | {"a.6.weight"}
    assert keys_of(tmp_path) == statistics | trained


@needs_torch
def test_normalizations_compute_what_the_program_does(tmp_path: Path) -> None:
    serde.convert(f"{SAMPLE}.pt2", tmp_path / "n.py")
    numbers = np.load(f"{SAMPLE}.npz")
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), [numbers["in0"]])
    np.testing.assert_allclose(got, numbers["out0"], rtol=0, atol=1e-5)


@needs_torch
def test_sums_with_numbers_beside_normalizations(tmp_path: Path) -> None:
    """A sum of one operand and a number is no scale of groups."""
    graph = ir_of("""g (float[2,4,6] x) => (float[2,4,6] y) <float[4] s = {1, 2, 3, 4}, float t = {2}>
        { n = InstanceNormalization(x, s, s) y = Add(n, t) }""")
    serde.save(graph, tmp_path / "n.py")
    x = np.random.default_rng(0).standard_normal((2, 4, 6), np.float32)
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), [x])
    np.testing.assert_allclose(got, run_onnx(graph, {"x": x}, 21)[0], rtol=1e-5, atol=1e-5)
