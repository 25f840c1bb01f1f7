"""Normalizations are the modules that they were, and only arrays that are trained are their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

import serde
from serde.bridges.torch import TorchWorker, find_python
from tests.torch.test_nesting import compare, draw, keys_of, make_model, needs_torch

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


@pytest.mark.parametrize(
    ("scale", "bias", "module"),
    [(draw(8, 1, 1), draw(8, 1, 1), "nn.GroupNorm(4, 8)"),
     (np.ones((8, 1, 1), np.float32), np.zeros((8, 1, 1), np.float32),
      "nn.GroupNorm(4, 8, affine=False)")],
)  # fmt: skip
def test_a_group_norm_is_one_where_an_exporter_has_made_up_arrays(
    scale: np.ndarray, bias: np.ndarray, module: str, tmp_path: Path
) -> None:
    """PyTorch's writes it as a normalization of one sample, with ones and zeros of its own."""
    arrays = {
        "rows": np.array([2, 4, -1]), "whole": np.array([2, 8, 3, 3]),
        "val_1": np.ones(4, np.float32), "val_2": np.zeros(4, np.float32),
        "val_3": scale, "val_4": bias,
    }  # fmt: skip
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["a"]),
        helper.make_node("InstanceNormalization", ["a", "val_1", "val_2"], ["b"]),
        helper.make_node("Reshape", ["b", "whole"], ["c"]),
        helper.make_node("Mul", ["c", "val_3"], ["d"]),
        helper.make_node("Add", ["d", "val_4"], ["y"]),
    ]
    source = compare(make_model(nodes, arrays, (2, 8, 3, 3)), tmp_path, draw(2, 8, 3, 3))
    assert module in source and "InstanceNorm" not in source


def test_a_group_norm_flattens_images(tmp_path: Path) -> None:
    """As attention blocks do, whose exported reshapes of the input are one."""
    arrays = {
        "rows": np.array([2, 4, -1]), "line": np.array([2, 8, 9]),
        "val_1": np.ones(4, np.float32), "val_2": np.zeros(4, np.float32),
        "val_3": draw(8, 1), "val_4": draw(8, 1),
    }  # fmt: skip
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["a"]),
        helper.make_node("InstanceNormalization", ["a", "val_1", "val_2"], ["b"]),
        helper.make_node("Reshape", ["b", "line"], ["c"]),
        helper.make_node("Mul", ["c", "val_3"], ["d"]),
        helper.make_node("Add", ["d", "val_4"], ["y"]),
    ]
    source = compare(make_model(nodes, arrays, (2, 8, 3, 3)), tmp_path, draw(2, 8, 3, 3))
    assert "nn.GroupNorm(4, 8)" in source and "InstanceNorm" not in source
    assert {key.rpartition(".")[2] for key in keys_of(tmp_path)} == {"weight", "bias"}


def test_numbers_are_added_behind_normalizations(tmp_path: Path) -> None:
    arrays = {"val_1": np.ones(4, np.float32), "val_2": np.zeros(4, np.float32),
              "one": np.array(1, np.float32)}  # fmt: skip
    nodes = [helper.make_node("InstanceNormalization", ["x", "val_1", "val_2"], ["a"]),
             helper.make_node("Add", ["a", "one"], ["y"])]  # fmt: skip
    assert "+ 1.0" in compare(make_model(nodes, arrays, (2, 4, 5)), tmp_path, draw(2, 4, 5))


def test_a_folded_normalization_stands_beside_an_array_of_the_model(tmp_path: Path) -> None:
    arrays = {"onnx::Conv_1": draw(8, 4, 1, 1), "onnx::Conv_2": draw(8), "w": draw(8, 1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "onnx::Conv_1", "onnx::Conv_2"], ["a"], "/conv/Conv"),
        helper.make_node("Mul", ["a", "w"], ["y"], "/Mul"),
    ]
    source = compare(make_model(nodes, arrays, (1, 4, 3, 3)), tmp_path, draw(1, 4, 3, 3))
    assert "self.bn = nn.BatchNorm2d(8)" in source and "w" in keys_of(tmp_path)


def test_buffers_stay_also_where_they_are_integers_or_one_number(tmp_path: Path) -> None:
    serde.convert(SAMPLE.with_name("buffers.pt2"), tmp_path / "n.py")
    assert keys_of(tmp_path) == {"a.weight", "pairs", "scale", "table"}
    source = (tmp_path / "n.py").read_text()
    assert source.count("register_buffer") == 3 and "persistent=False" not in source


@needs_torch
def test_buffers_are_read(tmp_path: Path) -> None:
    serde.convert(SAMPLE.with_name("buffers.pt2"), tmp_path / "n.py")
    numbers = np.load(SAMPLE.with_name("buffers.npz"))
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), [numbers["in0"]])
    np.testing.assert_allclose(got, numbers["out0"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "sizes", "module"),
    [("InstanceNormalization", (2, 8, 3, 3), "nn.InstanceNorm2d(8"),
     ("LayerNormalization", (2, 3, 8), "nn.LayerNorm(8")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["val_7", "norm.weight", "norm0_gamma"])
def test_ones_that_an_exporter_has_made_up_are_no_weights(
    name: str, op: str, sizes: tuple[int, ...], module: str, tmp_path: Path
) -> None:
    arrays = {name: np.ones(8, np.float32), "val_8": np.zeros(8, np.float32)}
    node = helper.make_node(op, ["x", *arrays], ["y"], epsilon=1e-5)
    serde.convert(make_model([node], arrays, sizes), tmp_path / "n.py")
    source = (tmp_path / "n.py").read_text()
    assert module in source
    assert (keys_of(tmp_path) == set()) == (name == "val_7")


def test_a_bias_of_zeros_that_an_exporter_has_made_up_is_none(tmp_path: Path) -> None:
    zeros = numpy_helper.from_array(np.zeros(4, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["/n/Constant_output_0"], "/n/Constant", value=zeros),
        helper.make_node("LayerNormalization", ["x", "n.weight", "/n/Constant_output_0"], ["y"],
                         "/n/LayerNormalization"),
    ]  # fmt: skip
    source = compare(make_model(nodes, {"n.weight": draw(4)}, (2, 4)), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"n.weight"} and "bias=False" in source


@pytest.mark.parametrize("name", ["val_3", "n.bias"])
@pytest.mark.parametrize(
    ("op", "weight", "sizes"),
    [("Conv", (5, 4, 3), (2, 4, 6)), ("ConvTranspose", (4, 5, 3), (2, 4, 6)),
     ("Gemm", (4, 5), (2, 4))],
)  # fmt: skip
def test_a_bias_of_zeros_is_one_only_where_the_module_has_it(
    op: str, weight: tuple[int, ...], sizes: tuple[int, ...], name: str, tmp_path: Path
) -> None:
    """PyTorch's exporter writes zeros for a layer without bias where it optimizes nothing."""
    arrays = {"n.weight": draw(*weight), name: np.zeros(5, np.float32)}
    node = helper.make_node(op, ["x", *arrays], ["y"], f"/n/{op}")
    compare(make_model([node], arrays, sizes), tmp_path, draw(*sizes))
    assert keys_of(tmp_path) == {"n.weight"} | ({name} - {"val_3"})


@needs_torch
@pytest.mark.parametrize("outputs", [1, 3])
def test_statistics_of_the_batch_are_trained_through(outputs: int, tmp_path: Path) -> None:
    """``F.batch_norm`` refuses statistics that gradients go through: it takes them itself."""
    arrays = {"bn.weight": draw(4), "bn.bias": draw(4), "m": draw(4), "v": np.abs(draw(4)) + 1}
    results = ["y", "m1", "v1"]
    node = helper.make_node("BatchNormalization", ["x", *arrays], results, training_mode=1,
                            momentum=0.75, epsilon=1e-3)  # fmt: skip
    model = make_model([node], arrays, (2, 4, 3, 3))
    model.graph.output.extend(helper.make_tensor_value_info(n, 1, (4,)) for n in results[1:outputs])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    assert "F.batch_norm(" in (tmp_path / "n.py").read_text()
    x = draw(2, 4, 3, 3)
    batch = x - x.mean((0, 2, 3), keepdims=True)
    spread = (batch * batch).mean((0, 2, 3))
    y = batch / np.sqrt(spread + 1e-3)[:, None, None] * arrays["bn.weight"][:, None, None]
    expected = [y + arrays["bn.bias"][:, None, None], arrays["m"] * 0.75 + x.mean((0, 2, 3)) / 4,
                arrays["v"] * 0.75 + spread / 4]  # fmt: skip
    got = TorchWorker().run(str(tmp_path / "n.py"), [x])
    for actual, wanted in zip(got, expected[:outputs], strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5)
    script = (
        "import torch, n; m = n.load(); y = m(torch.ones(2, 4, 3, 3).normal_());"
        "(y if torch.is_tensor(y) else y[0]).square().sum().backward();"
        "assert sum(p.grad is not None for p in m.parameters()) == 2"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([find_python(), "-c", script], cwd=tmp_path, check=True, env=environment)
