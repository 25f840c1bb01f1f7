"""Names in a symbol need not be unique: a block called four times gives four layers of one name."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import serde
from serde.errors import UsageError
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import error

CALLS = 4
X = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The prefix of a network that calls a block of two layers four times, between other layers."""
    mx = live_mxnet()
    inner = mx.gluon.nn.HybridSequential(prefix="inner_")
    inner.add(mx.gluon.nn.Dense(5, in_units=5, activation="tanh", prefix="dense_"))
    inner.add(mx.gluon.nn.LayerNorm(in_channels=5, prefix="norm_"))
    mx.random.seed(0)  # whatever ran before
    inner.initialize(mx.init.Normal(0.7))
    y = mx.sym.var("data")
    for turn in range(CALLS):
        y = inner(y) * (turn + 1.5)
    prefix = tmp_path_factory.mktemp("called") / "called"
    y.save(f"{prefix}-symbol.json")
    arrays = {f"arg:{n}": p.data() for n, p in inner.collect_params().items()}
    mx.nd.save(f"{prefix}-0000.params", arrays)
    return prefix


@pytest.fixture(scope="module")
def layer(called):
    """The name that the four dense layers have."""
    text = called.with_name("called-symbol.json").read_text()
    nodes = decode_symbol(parse_symbol(text), None, "called").nodes
    names = [n.name for n in nodes if n.op == "FullyConnected"]
    assert len(names) == CALLS and len(set(names)) == 1
    return names[0]


@pytest.mark.parametrize("shape", [(3, 5), ("N", 5)], ids=str)
def test_each_is_a_layer_of_its_own(called, layer, shape, tmp_path):
    text = called.with_name("called-symbol.json").read_text()
    params = {n[4:]: x.asnumpy() for n, x in live_mxnet().nd.load(f"{called}-0000.params").items()}
    (expected,) = run_symbol(text, params, {"data": X})
    target = tmp_path / "called.onnx"
    serde.convert(called, target, inputs={"data": shape})
    (y,) = onnxruntime.InferenceSession(str(target)).run(None, {"data": X})
    assert error(y, expected) < 1e-5
    sources = [s.name for n in serde.load(target).nodes for s in n.sources]
    assert sources.count(layer) == CALLS


@pytest.mark.parametrize("end", ["", "_output"])
def test_a_name_does_not_tell_which_is_meant(called, layer, end):
    with pytest.raises(UsageError, match=f"computes 4 values called '{layer}{end}'"):
        serde.load(called, inputs={"data": (3, 5)}, outputs=[layer + end])
