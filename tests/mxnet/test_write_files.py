"""Models converted to MXNet's files: by command, without MXNet, and as MXNet loads them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import numpy_helper

import serde
from serde.cli.commands import main
from serde.errors import Unconvertible
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of, run_model

WEIGHTS = {
    "weight": (4, 3, 3, 3),
    **dict.fromkeys(("gamma", "beta", "mean", "var", "bias"), (4,)),
    "dense": (4, 144),
}
CONVOLUTION = """
g (float[N,3,8,8] data) => (float[N,4] probabilities)
{
  a = Conv <kernel_shape = [3,3]> (data, weight)
  b = BatchNormalization (a, gamma, beta, mean, var)
  c = Relu (b)
  d = Flatten (c)
  e = Gemm <transB = 1> (d, dense, bias)
  probabilities = Softmax (e)
}"""
UNSAYABLE = """
g (string[2] words, float[2,3] x) => (string[2] a, string[2] b, float[2,3] y)
{
  a = StringConcat (words, words)
  b = StringConcat (words, a)
  y = Relu (x)
}"""


@pytest.fixture
def model(tmp_path):
    """A small network as a file, with its weights."""
    proto = model_of(CONVOLUTION)
    generator = np.random.default_rng(0)
    for name, shape in WEIGHTS.items():
        array = generator.uniform(0.5, 1, shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    return path


def test_the_command_writes_what_mxnet_loads(model, tmp_path):
    """Names are kept, moving statistics are auxiliary states, and the numbers are the model's."""
    mx = live_mxnet()
    target = tmp_path / "out-symbol.json"
    done = CliRunner().invoke(main, ["convert", str(model), "-o", str(target)])
    assert done.exit_code == 0, done.output
    symbol, arguments, states = mx.model.load_checkpoint(str(tmp_path / "out"), 0)
    assert symbol.list_arguments()[0] == "data"
    assert symbol.list_outputs() == ["probabilities_output"]
    assert set(arguments) == WEIGHTS.keys() - {"mean", "var"}
    assert set(states) == {"mean", "var"}
    data = np.random.default_rng(1).standard_normal((2, 3, 8, 8), np.float32)
    executor = symbol.bind(
        mx.cpu(), {"data": mx.nd.array(data), **arguments}, aux_states=states, grad_req="null"
    )
    (expected,) = run_model(onnx.load(model), {"data": data})
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), expected, atol=1e-5)


def test_mxnet_is_not_needed(model, tmp_path):
    code = (
        "import sys\n"
        "sys.modules['mxnet'] = None\n"
        "import serde\n"
        f"serde.convert({str(model)!r}, {str(tmp_path / 'm-symbol.json')!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "m-0000.params").stat().st_size > 4 * 576


def test_all_that_cannot_be_said_is_listed(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model_of(UNSAYABLE), path)
    report = serde.check(path, to="mxnet")
    assert {p.op: p.count for p in report.problems} == {
        "input": 1, "output": 2, "StringConcat": 2
    }  # fmt: skip
    with pytest.raises(Unconvertible):
        serde.convert(path, tmp_path / "m-symbol.json")
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_large_weights_are_not_taken_in(tmp_path):
    """A weight of 256 MiB goes from file to file."""
    proto = model_of("g (float[N,8192] x) => (float[N,8192] y) { y = MatMul (x, w) }")
    weight = numpy_helper.from_array(np.zeros((8192, 8192), np.float32), "w")
    proto.graph.initializer.append(weight)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    code = (
        "import serde\n"
        f"serde.convert({str(path)!r}, {str(tmp_path / 'm-symbol.json')!r})\n"
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )  # fmt: skip
    assert int(done.stdout) < 200 << 10  # KiB
    assert (tmp_path / "m-0000.params").stat().st_size > 256 << 20
