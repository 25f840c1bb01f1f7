"""``serde repair``, ``serde join`` and ``serde wrap``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.context import DONE, USAGE
from testing.onnx_live import model_of
from tests.command import run_command

pytestmark = pytest.mark.usefixtures("digits_here")


def test_repair():
    model = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8)
    model.graph.node[0].op_type = "RELU"
    onnx.save(model, "a.onnx")
    code, out, _ = run_command("repair", "a.onnx", "-o", "b.onnx")
    assert code == DONE and "operator RELU is spelled Relu" in out
    assert out.endswith("a.onnx → b.onnx: 1 change(s)\n")
    onnx.checker.check_model("b.onnx")
    code, _, err = run_command("repair", "digits", "-o", "b.onnx")
    assert code == USAGE and "mxnet files cannot be repaired" in err


@pytest.fixture
def pair():
    """A model of an input and two outputs, and one of two inputs."""
    first = "a (float[N,3] x) => (float[N,3] y, float[N,3] z) { y = Relu(x) z = Neg(x) }"
    second = "b (float[N,3] y, float[N,3] k) => (float[N,3] out) { out = Sub(y, k) }"
    onnx.save(model_of(first, 17, 8), "a.onnx")
    onnx.save(model_of(second, 17, 8), "b.onnx")


X = np.float32([[1, -2, 3]])


@pytest.mark.parametrize(("options", "expected"), [
    ([], {"out": np.maximum(X, 0) - 5, "z": -X}),
    (["--connect", "y=y", "--connect", "z=k"], {"out": np.maximum(X, 0) + X}),
    (["--connect", "z=y", "--connect", "z=k", "--keep", "z"], {"out": X * 0, "z": -X, "y": None}),
])  # fmt: skip
def test_join_connects_outputs_with_inputs(pair, options, expected):
    code, out, _ = run_command("join", "a.onnx", "b.onnx", "-o", "j.onnx", *options)
    assert code == DONE and out.splitlines()[0].endswith(" → j.onnx")
    session = onnxruntime.InferenceSession("j.onnx")
    names = [o.name for o in session.get_outputs()]
    inputs = {"x": X, "k": np.full_like(X, 5)}
    results = session.run(None, {i.name: inputs[i.name] for i in session.get_inputs()})
    assert set(names) == set(expected)
    for name, result in zip(names, results, strict=True):
        if expected[name] is not None:
            np.testing.assert_array_equal(result, expected[name])


@pytest.mark.parametrize("link", ["y", "=y", "y=", ""])
def test_a_connection_is_a_pair_of_names(pair, link):
    code, _, err = run_command("join", "a.onnx", "b.onnx", "-o", "j.onnx", "--connect", link)
    assert code == USAGE and f"--connect {link!r} is not OUTPUT=INPUT, such as boxes=x" in err
    assert not Path("j.onnx").exists()


def test_wrap_reads_code_beside_the_user_and_writes_where_it_was_called(pair):
    Path("elsewhere").mkdir()
    Path("prepare.py").write_text(
        "import os\nimport numpy as np\nos.chdir('elsewhere')\n"
        "def scale(x):\n    return {'x': x.astype(np.float32) / 2}\n"
    )
    code, out, err = run_command("wrap", "a.onnx", "-o", "w.onnx", "--pre", "prepare:scale",
                                 "--pre-input", "x=N,3:uint8")  # fmt: skip
    assert code == DONE, err
    assert "input  x: uint8 (N, 3)" in out
    place = Path(sys.path[0]) / "w.onnx"  # which the command put there
    y, z = onnxruntime.InferenceSession(place).run(None, {"x": np.uint8([[2, 4, 6]])})
    assert y.tolist() == [[1, 2, 3]] and z.tolist() == [[-1, -2, -3]]


def test_what_code_prints_does_not_go_into_a_model_on_the_standard_output(pair):
    Path("loud.py").write_text("def same(x):\n    print('working')\n    return {'x': x}\n")
    result = CliRunner().invoke(
        main, ["wrap", "a.onnx", "-o", "-", "--to", "onnx", "--pre", "loud.py:same"]
    )
    assert result.exit_code == DONE and "working" in result.stderr
    assert onnx.load_from_string(result.stdout_bytes).graph.node
