"""``serde run``: a model on the arrays of a file."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from testing.onnx_live import model_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = "g (float[2,3] x) => (float[2,3] file) { t = Relu(x)\n file = Neg(t) }"
    onnx.save(model_of(body, 13), "m.onnx")
    np.savez("in.npz", x=X)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["run", *arguments])


def test_outputs_are_described_and_written(workplace):
    result = run("m.onnx", "--data", "in.npz", "-o", "out.npz")
    assert (result.exit_code, result.output) == (0, "  file: float32 [2, 3]\n")
    with np.load("out.npz") as arrays:
        np.testing.assert_array_equal(arrays["file"], -X)
    assert run("m.onnx", "--data", "in.npz").output == result.output


def test_values_inside(workplace):
    result = run("m.onnx", "--data", "in.npz", "--outputs", "t", "-o", "out.npz")
    assert result.output == "  t: float32 [2, 3]\n"
    with np.load("out.npz") as arrays:
        np.testing.assert_array_equal(arrays["t"], X)


def test_times_and_infinities_of_a_model_and_of_its_parts(workplace):
    done = CliRunner().invoke(
        main, ["partition", "m.onnx", "-o", "parts", "--backend", "onnxruntime"]
    )
    assert done.exit_code == 0, done.output
    for model, what in (("m.onnx", "m.onnx"), ("parts", "accelerator_0")):
        lines = run(model, "--data", "in.npz", "--finite", "--times").output.splitlines()
        assert lines[0] == "  file: float32 [2, 3]"
        assert re.fullmatch(rf"  {what}: \d+\.\d ms", lines[1])
    np.savez("in.npz", x=np.full_like(X, np.inf))
    for model, what in (("m.onnx", "the model"), ("parts", "part 'accelerator_0'")):
        assert run(model, "--data", "in.npz").exit_code == 0
        result = run(model, "--data", "in.npz", "--finite", "-o", "out.npz")
        assert result.exit_code == 1 and f"{what}: 6 of the 6 elements" in result.output
    assert not (workplace / "out.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["m.onnx", "--data", "in.npz", "-o", "out.txt"], 2, "are an .npz file"),
        (["none.onnx", "--data", "in.npz"], 3, "none.onnx"),
        (["m.onnx", "--data", "absent.npz"], 3, "absent.npz: there is no such file"),
        (["m.onnx", "--data", "in.npz", "--runtime", "remainder=onnxruntime"], 2, "not in parts"),
        (["m.onnx", "--data", "in.npz", "-o", "in.npz"], 2, "in.npz"),
    ],
)  # fmt: skip
def test_refusals(workplace, arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code and message in result.output


def test_without_data_it_runs_on_random_inputs_and_says_so(workplace):
    first, second = run("m.onnx", "-o", "a.npz"), run("m.onnx", "-o", "b.npz")
    assert first.exit_code == second.exit_code == 0, first.output
    assert "on random inputs, seed 0: --data in.npz gives others" in first.stderr
    with np.load("a.npz") as a, np.load("b.npz") as b:
        assert [*a] and all((a[n] == b[n]).all() for n in a)
