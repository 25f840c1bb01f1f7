"""``serde bench``: figures as text and as JSON."""

from __future__ import annotations

import json
import re

import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from testing.onnx_live import model_of


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 13), "a.onnx")
    onnx.save(
        model_of("g (float[N,3] x) => (float[N,3] y) { t = Neg(x)\n y = Exp(t) }", 13), "b.onnx"
    )


def bench(*arguments):
    return CliRunner().invoke(main, ["bench", *arguments, "--seconds", "0"])


def test_text():
    result = bench("a.onnx", "b.onnx", "--input", "x=4,3")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "7 rounds, one thread, random inputs, seed 0:"
    assert lines[1] == "a.onnx (onnx)" and lines[5] == "b.onnx (onnx)"
    assert " × " not in lines[2] and re.search(r"× [\d.]+ \([\d.]+ to [\d.]+\)$", lines[6])
    assert re.match(r"  memory  [\d.]+ MB of the process at most, × [\d.]+$", lines[7])


def test_json():
    read = json.loads(bench("a.onnx", "b.onnx", "--json", "--threads", "2").output)
    assert read["threads"] == 2 and read["rounds"] == 7
    assert [m["model"] for m in read["models"]] == ["a.onnx", "b.onnx"]
    assert read["models"][0]["ratio"] == 1 and read["models"][1]["milliseconds"] > 0


@pytest.mark.parametrize("order", [("a.onnx", "fixed.onnx"), ("fixed.onnx", "a.onnx")])
def test_a_size_that_one_model_fixes_is_used_for_all(order):
    onnx.save(model_of("g (float[5,3] x) => (float[5,3] y) { y = Neg(x) }", 13), "fixed.onnx")
    result = bench(*order, "--json")
    assert result.exit_code == 0, result.output
    assert [m["model"] for m in json.loads(result.output)["models"]] == [*order]


def test_refusals():
    assert bench("none.onnx").exit_code == 3
    assert bench("a.onnx", "--seed", "-1").exit_code == 2
    assert bench().exit_code == 2
