"""Written modules train as MXNet does: one step of SGD, in live MXNet and in live PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import serde
from testing import networks
from testing.mxnet_live import live_mxnet
from tests.torch.torch_live import VARIABLE, why_not

RATE = 0.01
# In float32, rounding moves the gradients of deep networks by a tenth. MXNet has no InstanceNorm in
# float64, and symbols that compare with numbers of float32 compute in nothing else.
CLOSE = {"float64": 1e-6, "float32": 1e-4}
NETWORKS = ["squeezenet1.1", "resnet18_v1", "resnet18_v2", "resnet50_v2", "densenet121",
            "mobilenetv2_0.25", "mobilenet0.25",
            "vgg11_bn", "lstm", "lstm_ntc_2", "lstm_bidirectional", "lstm_states", "lstm_tied",
            "gru", "gru_ntc_2", "gru_bidirectional", "gru_states", "rnn_relu", "rnn_tanh_2", "bert_batch_dot",
            "bert_batch_dot_where", "bert_interleaved", "bert_interleaved_where"]  # fmt: skip
# Their attention, or what masks it, has no float64 in MXNet.
SINGLE = {"bert_batch_dot_where", "bert_interleaved", "bert_interleaved_where"}

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


class Step(NamedTuple):
    """The loss of a step, and gradients and updated arrays by name."""

    loss: np.ndarray
    gradients: Mapping[str, np.ndarray]
    updated: Mapping[str, np.ndarray]


def leave_out_dropout(block: Any) -> None:
    """Make every rate of Dropout zero: random numbers of two frameworks differ."""
    gluon = live_mxnet().gluon

    def change(layer: Any) -> None:
        if isinstance(layer, gluon.nn.Dropout):
            layer._rate = 0
        if hasattr(layer, "_dropout"):
            layer._dropout = 0

    block.apply(change)


def step_mxnet(
    network: networks.Network, feeds: Mapping[str, np.ndarray], dtype: str = "float64"
) -> Step:
    """What MXNet's own step makes of the trainable arrays; the block keeps its own."""
    mx = live_mxnet()
    network.block.cast(dtype)
    arrays = network.block.collect_params()
    trained = {n: p for n, p in arrays.items() if p.grad_req != "null"}
    before = {n: p.data().asnumpy() for n, p in arrays.items()}
    with mx.autograd.record():
        operands = (x.astype(dtype) if x.dtype == np.float32 else x for x in feeds.values())
        outputs = network.block(*(mx.nd.array(x, dtype=x.dtype) for x in operands))
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        loss = sum((y * y).mean() for y in outputs)
    loss.backward()
    gradients = {n: p.grad().asnumpy() for n, p in trained.items()}
    for name, parameter in arrays.items():
        parameter.set_data(mx.nd.array(before[name], dtype=dtype))
    network.block.cast("float32")
    updated = {n: before[n] - RATE * g for n, g in gradients.items()}
    return Step(loss.asnumpy(), gradients, updated)


def step_torch(source: Path, feeds: Mapping[str, np.ndarray], dtype: str = "float64") -> Step:
    """What PyTorch's step makes of the written module."""
    inputs, results = source.with_name("in.npz"), source.with_name("out.npz")
    np.savez(inputs, **feeds)
    script = Path(__file__).with_name("sgd_step.py").absolute()
    command = [os.environ.get(VARIABLE) or sys.executable, script, source, inputs, results]
    done = subprocess.run(
        [*command, str(RATE), dtype], capture_output=True, text=True, cwd=source.parent
    )
    assert not done.returncode, done.stderr
    with np.load(results) as arrays:
        by_kind: dict[str, dict[str, np.ndarray]] = {"grad": {}, "new": {}, "loss": {}}
        for key in arrays.files:
            kind, _, name = key.partition(":")
            by_kind[kind][name] = arrays[key]
    return Step(by_kind["loss"][""], by_kind["grad"], by_kind["new"])


def write_arrays(
    paths: tuple[Path, Path], arrays: Mapping[str, np.ndarray], network: networks.Network
) -> dict[str, np.ndarray]:
    """The ``state_dict`` that a network is written with where its weights are ``arrays``."""
    mx = live_mxnet()
    params = mx.nd.load(str(paths[1]))
    params |= {f"arg:{name}": mx.nd.array(array) for name, array in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        changed, source = Path(folder, "changed.params"), Path(folder, "net.py")
        mx.nd.save(str(changed), params)
        serde.convert(paths[0], source, params=changed, inputs=networks.shapes(network))
        return read_floats(source.with_suffix(".safetensors"))


def read_floats(path: Path) -> dict[str, np.ndarray]:
    """The arrays of float32 in a file of safetensors, shared ones by each of their keys."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    shared = header.pop("__metadata__")
    arrays = {}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "F32":
            array = np.frombuffer(data[start + begin : start + end], np.float32)
            arrays[key] = array.reshape(entry["shape"])
    return arrays | {key: arrays[first] for key, first in shared.items() if first in arrays}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_mxnets(name: str, tmp_path: Path) -> None:
    size = networks.smallest(name) if name in networks.VISION else None
    network = networks.build(name, size)
    leave_out_dropout(network.block)
    assert_steps_agree(network, tmp_path, "float32" if name in SINGLE else "float64")


LAYERS: dict[str, Callable[[Any], list[Any]]] = {
    "statistics that stay": lambda nn: [
        nn.Conv2D(4, 3), nn.BatchNorm(use_global_stats=True), nn.BatchNorm(scale=False)],
    "scale that stays": lambda nn: [
        nn.Conv2D(4, 3), nn.BatchNorm(use_global_stats=True, scale=False)],
    "normalizations": lambda nn: [  # a scale right before LayerNorm has a gradient of rounding only
        nn.Conv2D(4, 3), nn.InstanceNorm(scale=True), nn.Activation("tanh"), nn.LayerNorm()],
    "transposed": lambda nn: [nn.Conv2DTranspose(4, 3, strides=2), nn.Conv2D(6, 3, groups=2)],
    "activations": lambda nn: [  # MXNet's own gradients of SELU and of PReLU's alpha are wrong
        nn.Dense(9), nn.ELU(), nn.Dense(7), nn.Swish(), nn.Dense(6), nn.GELU(), nn.Dense(5),
        nn.LeakyReLU(0.1)],
    "a decoder": lambda nn: [
        nn.Conv2D(6, 3, strides=2), nn.BatchNorm(), nn.Activation("relu"),
        nn.Conv2DTranspose(4, 3, strides=2, padding=1, output_padding=1), nn.BatchNorm(),
        nn.Activation("tanh"), nn.Conv2DTranspose(3, 2, groups=1, use_bias=False)],
    "pools": lambda nn: [
        nn.Conv2D(4, 3), nn.MaxPool2D(3, 2, 1), nn.Conv2D(4, 1), nn.AvgPool2D(2, ceil_mode=True),
        nn.Dense(5, flatten=False), nn.GlobalAvgPool2D()],
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_step_of_layers_is_mxnets(name: str, tmp_path: Path) -> None:
    nn = live_mxnet().gluon.nn
    block = nn.HybridSequential(prefix="net_")
    with block.name_scope():
        block.add(*LAYERS[name](nn))
    generator = np.random.default_rng(3)
    x = generator.standard_normal((networks.SAMPLES, 4, 12, 12), np.float32)
    network = networks.Network("layers", "layers", block, {"data": x}, {"data": 0})
    networks._draw_weights(network, generator)
    networks._calibrate(network, generator)
    assert_steps_agree(network, tmp_path, "float32" if name == "normalizations" else "float64")


@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_a_projected_lstm_is_trained(layers: int, both: bool, tmp_path: Path) -> None:
    """MXNet itself trains it on GPUs only."""
    gluon = live_mxnet().gluon
    block = gluon.nn.HybridSequential(prefix="net_")
    with block.name_scope():
        block.add(gluon.rnn.LSTM(5, layers, bidirectional=both, projection_size=3))
    generator = np.random.default_rng(3)
    x = generator.standard_normal((4, networks.SAMPLES, 6), np.float32)
    network = networks.Network("projected", "layers", block, {"data": x}, {"data": 1})
    networks._draw_weights(network, generator)
    symbol, _ = networks.export(network, tmp_path)
    options = {"inputs": networks.shapes(network), "verify": True}
    report = serde.convert(symbol, tmp_path / "net.py", **options)
    assert report.ok and report.verification.done
    assert "proj_size=3" in (tmp_path / "net.py").read_text()
    gradients = step_torch(tmp_path / "net.py", {"data": x}).gradients
    keys = json.loads((tmp_path / "net.names.json").read_text())
    assert {*keys} == {*block.collect_params()}
    for array, (key,) in keys.items():
        assert np.abs(gradients[key]).max() > 0, array


def test_a_scale_of_one_element_is_trained(tmp_path: Path) -> None:
    mx = live_mxnet()

    class Scaled(mx.gluon.nn.HybridSequential):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.scale = self.params.get("scale", shape=(1,))
                self.add(mx.gluon.nn.Dense(5))

        def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
            return F.broadcast_mul(
                F.exp(F.broadcast_mul(super().hybrid_forward(F, x), scale)), scale
            )

    assert_block_agrees(Scaled(prefix="net_"), tmp_path)


def test_an_array_that_is_read_in_two_orders_is_trained_once(tmp_path: Path) -> None:
    """A factorization machine, and an autoencoder that is its own inverse."""
    mx = live_mxnet()

    class Factors(mx.gluon.nn.HybridSequential):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.factors = self.params.get("factors", shape=(4, 3))
                self.code = self.params.get("code", shape=(5, 4))

        def hybrid_forward(self, F: Any, x: Any, factors: Any, code: Any) -> Any:
            pairs = F.square(F.dot(x, factors)) - F.dot(F.square(x), F.square(factors))
            inner = F.tanh(F.FullyConnected(x, code, no_bias=True, num_hidden=5))
            return pairs, F.dot(inner, code)

    assert_block_agrees(Factors(prefix="net_"), tmp_path)
    keys = json.loads((tmp_path / "net.names.json").read_text())
    assert all(len(of_array) == 1 for of_array in keys.values())


def test_weights_that_are_repeated_are_trained_once(tmp_path: Path) -> None:
    """GroupNorm of MXNet 1 has a scale for each group."""
    block = live_mxnet().gluon.nn.GroupNorm(2, prefix="norm_")
    x = np.random.default_rng(3).standard_normal((networks.SAMPLES, 4, 5, 5), np.float32)
    network = networks.Network("norm", "layers", block, {"data": x}, {"data": 0})
    networks._draw_weights(network, np.random.default_rng(3))
    assert_steps_agree(network, tmp_path, "float32")


def assert_steps_agree(
    network: networks.Network, tmp_path: Path, dtype: str = "float64", wrong: str = ""
) -> Step:
    """A step of the written module is MXNet's, but for an array that MXNet gets ``wrong``."""
    feeds = networks.feeds(network, 3)
    paths = networks.export(network, tmp_path)
    serde.convert(paths[0], tmp_path / "net.py", inputs=networks.shapes(network))
    expected = step_mxnet(network, feeds, dtype)
    got = step_torch(tmp_path / "net.py", feeds, dtype)
    keys = json.loads((tmp_path / "net.names.json").read_text())
    np.testing.assert_allclose(got.loss, expected.loss.item(), rtol=CLOSE[dtype])
    for array in expected.updated:
        assert keys.get(array), f"{array} is not told of"
        assert {*keys[array]} <= {*got.gradients}, f"{array} has no gradient as {keys[array]}"
    told = {key for array in expected.updated for key in keys[array] if array != wrong}
    right, gradients = (
        write_arrays(paths, arrays, network) for arrays in (expected.updated, expected.gradients)
    )
    most = max(np.abs(g).max() for g in expected.gradients.values())
    for key in sorted(told):  # the symbol does not tell that Gluon keeps a beta
        for actual, wanted in ((got.gradients, gradients), (got.updated, right)):
            bound = CLOSE[dtype] * max(np.abs(wanted[key]).max(), 1e-3 * most)
            np.testing.assert_allclose(actual[key], wanted[key], rtol=0, atol=bound, err_msg=key)
    return got


def assert_block_agrees(block: Any, folder: Path) -> None:
    """Compare a step of a block of four features, with weights that are drawn."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((networks.SAMPLES, 4), np.float32)
    network = networks.Network("block", "layers", block, {"data": x}, {"data": 0})
    networks._draw_weights(network, generator)
    assert_steps_agree(network, folder)


def test_a_tagger_whose_classes_are_its_words_is_trained(tmp_path: Path) -> None:
    """An embedding, an LSTM in both directions, and a layer that has the embedding's weight."""
    gluon = live_mxnet().gluon

    class Tagger(gluon.nn.HybridSequential):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            with self.name_scope():
                words = gluon.nn.Embedding(11, 6)
                lstm = gluon.rnn.LSTM(3, 2, layout="NTC", bidirectional=True)
                self.add(words, lstm, gluon.nn.LayerNorm(),
                         gluon.nn.Dense(11, flatten=False, params=words.params))  # fmt: skip

    generator = np.random.default_rng(3)
    x = generator.integers(0, 11, (networks.SAMPLES, 5)).astype(np.float32)
    network = networks.Network("tagger", "layers", Tagger(prefix="net_"), {"data": x}, {"data": 0})
    networks._draw_weights(network, generator)
    assert_steps_agree(network, tmp_path, "float32")
    keys = json.loads((tmp_path / "net.names.json").read_text())
    assert len(keys["net_embedding0_weight"]) == 2


def test_a_residual_network_with_slopes_is_trained(tmp_path: Path) -> None:
    """MXNet's own gradient of a slope of PReLU is wrong: it is that of small changes."""
    nn = live_mxnet().gluon.nn

    class Residual(nn.HybridSequential):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.add(nn.Conv2D(4, 3, padding=1), nn.GroupNorm(2), nn.PReLU(), nn.Conv2D(4, 1))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return x + super().hybrid_forward(F, x)

    generator = np.random.default_rng(3)
    x = generator.standard_normal((networks.SAMPLES, 4, 6, 6), np.float32)
    network = networks.Network("slopes", "layers", Residual(prefix="net_"), {"data": x},
                               {"data": 0})  # fmt: skip
    networks._draw_weights(network, generator)
    slope = next(n for n in network.block.collect_params() if n.endswith("alpha"))
    got = assert_steps_agree(network, tmp_path, "float32", wrong=slope)
    array, step = network.block.collect_params()[slope], 1e-2
    losses = []
    for sign in (1, -1):
        array.set_data(array.data() + sign * step)
        (y,) = networks.compute(network, networks.feeds(network, 3))
        losses.append(float((y.astype(np.float64) ** 2).mean()))
        array.set_data(array.data() - sign * step)
    (key,) = json.loads((tmp_path / "net.names.json").read_text())[slope]
    np.testing.assert_allclose(got.gradients[key].sum(), (losses[0] - losses[1]) / (2 * step),
                               rtol=1e-3)  # fmt: skip


def test_gradients_stop_where_the_source_stops_them(tmp_path: Path) -> None:
    """A quantizer whose gradient is that of its operand, and a branch that is not trained."""
    mx = live_mxnet()

    class Quantized(mx.gluon.nn.HybridSequential):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.add(mx.gluon.nn.Dense(5), mx.gluon.nn.Dense(3))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            x = self[0](x)
            x = x + F.BlockGrad(F.floor(x) - x)
            return self[1](x) + F.BlockGrad(F.slice_axis(F.square(x), axis=1, begin=0, end=3))

    assert_block_agrees(Quantized(prefix="net_"), tmp_path)
    assert (tmp_path / "net.py").read_text().count(".detach()") == 2
