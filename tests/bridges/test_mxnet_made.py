"""Models of other formats as MXNet's live objects: run, and trained further."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.bridges import mxnet as bridge
from testing import networks
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of, run_model

BODY = """
g (float[N,3] x, float[N,3] y) => (float[N,3] total, int64[N] best)
{
  total = Add (x, y)
  best = ArgMax <axis = 1, keepdims = 0> (total)
}"""
X, Y = np.random.default_rng(0).standard_normal((2, 2, 3), np.float32)


@pytest.fixture(scope="module")
def mx():
    return live_mxnet()


@pytest.fixture(scope="module")
def converted(mx, tmp_path_factory):
    """A network of convolutions, exported by MXNet and converted to ONNX."""
    folder = tmp_path_factory.mktemp("made")
    network = networks.build("mobilenetv2_0.25", 32)
    symbol, _ = networks.export(network, folder)
    path = folder / "m.onnx"
    serde.convert(symbol, path, inputs={"data": ("N", 3, 32, 32)})
    return path


def test_a_file_becomes_a_symbol_and_its_parameters(mx, converted):
    symbol, params = serde.import_(converted, other_format="onnx")
    assert isinstance(symbol, mx.sym.Symbol) and symbol.list_arguments()[0] == "data"
    kinds = {n.partition(":")[0] for n in params}
    assert kinds == {"arg", "aux"} and all(isinstance(a, mx.nd.NDArray) for a in params.values())
    data = np.random.default_rng(1).standard_normal((2, 3, 32, 32), np.float32)
    held = {n.partition(":")[2]: a for n, a in params.items()}
    arguments = {n: held.get(n, mx.nd.array(data)) for n in symbol.list_arguments()}
    states = {n: held[n] for n in symbol.list_auxiliary_states()}
    bound = symbol.bind(mx.cpu(), arguments, aux_states=states, grad_req="null")
    (expected,) = run_model(onnx.load(converted), {"data": data})
    got = bound.forward()[0].asnumpy()
    np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())


def test_a_block_takes_the_inputs_in_order(mx):
    block = bridge.to_block(model_of(BODY))
    total, best = block(mx.nd.array(X), mx.nd.array(Y))
    np.testing.assert_array_equal(total.asnumpy(), X + Y)
    np.testing.assert_array_equal(best.asnumpy(), (X + Y).argmax(1))


def test_an_imported_network_is_trained_further(mx, converted):
    """Gradients flow to every weight, and a few steps lower the loss."""
    gluon, autograd = mx.gluon, mx.autograd
    block = bridge.to_block(converted)
    block.hybridize()
    generator = np.random.default_rng(2)
    data = mx.nd.array(generator.standard_normal((8, 3, 32, 32), np.float32))
    labels = mx.nd.array(generator.integers(10, size=8))
    trainer = gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.005})
    measure = gluon.loss.SoftmaxCrossEntropyLoss()
    losses: list[float] = []
    flowing: list[int] = []
    for _ in range(8):
        with autograd.record():
            loss = measure(block(data), labels)
        loss.backward()
        slopes = [p.grad() for p in block.collect_params().values() if p.grad_req != "null"]
        flowing.append(sum(bool(g.abs().max().asscalar() > 0) for g in slopes))
        trainer.step(8)
        losses.append(float(loss.mean().asscalar()))
    assert flowing[0] == len(slopes) > 50
    assert losses[-1] < 0.9 * losses[0]


def test_what_cannot_be_said_is_listed_first(mx):
    with pytest.raises(serde.Unconvertible, match="StringNormalizer"):
        serde.import_(model_of("g (string[2] x) => (string[2] y) { y = StringNormalizer (x) }"))
