"""Files of ``--training`` hold what MXNet's own training forward needs: run with batch statistics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import serde
from testing import networks
from testing.mxnet_live import live_mxnet

MODELS = ["layers", "resnet18_v2", "mobilenetv2_0.25"]
SIZE = 96  # of images: the variance of few pixels makes much of rounding


def make_layers() -> networks.Network:
    """Batch normalizations of each kind, between layers."""
    nn = live_mxnet().gluon.nn
    block = nn.HybridSequential(prefix="net_")
    with block.name_scope():
        block.add(
            nn.Conv2D(4, 3), nn.BatchNorm(momentum=0.7), nn.Dropout(0.5), nn.Conv2D(5, 1),
            nn.BatchNorm(use_global_stats=True), nn.Conv2D(3, 1), nn.BatchNorm(scale=False),
            nn.BatchNorm(center=False, epsilon=0.1),
        )  # fmt: skip
    generator = np.random.default_rng(3)
    x = generator.standard_normal((networks.SAMPLES, 4, 12, 12), np.float32)
    network = networks.Network("layers", "layers", block, {"data": x}, {"data": 0})
    networks._draw_weights(network, generator)
    networks._calibrate(network, generator)
    return network


def train_in_mxnet(
    network: networks.Network, feeds: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the block computes in training, and its statistics after that."""
    mx = live_mxnet()
    network.block.apply(lambda layer: setattr(layer, "_rate", 0))  # nothing is dropped
    network.block.hybridize(False)
    operands = [mx.nd.array(x) for x in feeds.values()]
    for x in operands:
        x.attach_grad()
    with mx.autograd.record():
        output = network.block(*operands)
        loss = output.sum()
    loss.backward()  # MXNet moves statistics here, of what a gradient is asked of
    arrays = network.block.collect_params()
    return output.asnumpy(), {n: p.data().asnumpy() for n, p in arrays.items() if "running" in n}


def turn_training_on(model: onnx.ModelProto) -> None:
    """Let each BatchNormalization take the statistics of the batch, and return the new ones.

    With a momentum of 1 they stay: then it computes with them.
    """
    for node in model.graph.node:
        momentum = {a.name: a.f for a in node.attribute}.get("momentum", 0.9)
        if node.op_type == "BatchNormalization" and momentum < 1:
            node.attribute.append(onnx.helper.make_attribute("training_mode", 1))
            results = [f"new:{name}" for name in node.input[3:]]
            node.output.extend(results)
            model.graph.output.extend(map(onnx.helper.make_empty_tensor_value_info, results))


@pytest.mark.parametrize("name", MODELS)
def test_its_statistics_move_as_mxnets_do(name: str, tmp_path: Path) -> None:
    network = make_layers() if name == "layers" else networks.build(name, SIZE)
    feeds: dict[str, Any] = networks.feeds(network, 3)
    symbol, _ = networks.export(network, tmp_path)
    path = tmp_path / "net.onnx"
    serde.convert(symbol, path, inputs=networks.shapes(network), training=True)
    model = onnx.load(path)
    assert (name != "layers") or any(n.op_type == "Dropout" for n in model.graph.node)
    turn_training_on(model)
    names = [o.name for o in model.graph.output]
    results = dict(zip(names, ReferenceEvaluator(model).run(None, feeds), strict=True))
    expected, moved = train_in_mxnet(network, feeds)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(results[names[0]], expected, rtol=0, atol=1e-4 * scale)
    assert len(names) > 3
    for result in names[1:]:
        wanted = moved.pop(result.removeprefix("new:"))
        np.testing.assert_allclose(results[result], wanted, rtol=1e-4, atol=1e-5, err_msg=result)
    assert len(moved) == (2 if name == "layers" else 0)  # those of use_global_stats
