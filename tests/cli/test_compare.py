"""``serde compare``: its options and exit codes."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.compare import OTHER, compare
from serde.cli.context import DONE, FAILED, NOT_COMPARED, USAGE
from testing.onnx_live import model_of
from tests.command import run_command


def test_the_command_names_formats_and_tolerances(tmp_path):
    for name, factor in (("a-symbol.json", 1), ("b-symbol.json", 1.01)):
        text = f"g (float[3] x) => (float[3] y) <float k = {{{factor}}}> {{ y = Mul(x, k) }}"
        (tmp_path / name).write_bytes(model_of(text, 18, 8).SerializeToString())
    paths = [str(tmp_path / n) for n in ("a-symbol.json", "b-symbol.json")]
    formats = ["--from", "onnx", "--other-from", "onnx"]
    for more, code in (
        (["--from", "onnx"], 3), (formats, 1), ([*formats, "--rtol", "0.02"], 0),
        ([*formats, "--rtol", "0.001"], 1), ([*formats, "--atol", "10"], 0),
    ):  # fmt: skip
        result = CliRunner().invoke(main, ["compare", *paths, *more])
        assert result.exit_code == code, (more, result.output)


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """Two models that differ from their second layer on, and one of another input."""
    monkeypatch.chdir(tmp_path)
    for name, op in (("a", "Exp"), ("b", "Neg"), ("c", "Exp")):
        text = f"g (float[N,3] x) => (float[N,3] y) {{ t = Relu(x) u = {op}(t) y = Abs(u) }}"
        model = model_of(text.replace("x)", "z)") if name == "c" else text, 17, 8)
        onnx.save(model, f"{name}.onnx")


def test_layers_are_compared_unless_the_user_says_not(networks):
    code, out, _ = run_command("compare", "a.onnx", "b.onnx")
    assert code == FAILED and "the first layer that differs is 'u'" in out
    code, out, _ = run_command("compare", "a.onnx", "b.onnx", "--no-layers")
    assert code == FAILED and "layer" not in out and "FAIL (off by" in out


def test_json_is_all_that_is_printed(networks):
    code, out, err = run_command("compare", "a.onnx", "a.onnx", "--json")
    report = json.loads(out)
    assert (code, err) == (DONE, "") and report["ok"] and report["first"] == "a.onnx"


def test_data_are_named_as_in_the_second_model(networks):
    np.savez("in.npz", z=np.ones((2, 3), np.float32), other=np.ones(1, np.float32))
    assert run_command("compare", "a.onnx", "c.onnx", "--data", "in.npz")[0] == DONE
    code, _, err = run_command("compare", "c.onnx", "a.onnx", "--data", "in.npz")
    assert code == USAGE and "the data have no input 'x'; they have 'z', 'other'" in err


def test_a_model_that_cannot_be_run_is_not_compared(networks):
    text = "g (float[N,L] x) => (float[a,b] y) <int64[2] s = {3, 5}> { z = Reshape(x, s)\n y = MatMul(z, x) }"
    onnx.save(model_of(text, 17, 8), "odd.onnx")
    code, _, err = run_command("compare", "odd.onnx", "odd.onnx")
    assert code == NOT_COMPARED and "not compared: the source failed to run on the inputs " in err


def test_options_of_files_exist_for_the_second_model_too():
    names = {option.name for option in compare.params}
    own = {n for n in names if f"{OTHER}{n}" in names}
    others = {n.removeprefix(OTHER) for n in names if n.startswith(OTHER)}
    assert own | {"format"} == others and {"epoch", "match_params", "inputs"} <= own
