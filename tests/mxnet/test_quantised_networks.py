"""Networks that MXNet itself quantises, with and without calibration."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from serde.bridges.mxnet import run
from tests import networks
from tests.mxnet.int8 import needs_exact_int8
from tests.mxnet_live import live_mxnet
from tests.onnx_live import LEVELS, run_at

HOW = {
    "calibrated": {"calib_mode": "naive"},
    "by channel": {
        "calib_mode": "naive", "quantize_mode": "full", "quantize_granularity": "channel-wise",
    },
    "as it runs": {"calib_mode": "none"},
}  # fmt: skip
CASES = (  # MXNet cannot run BatchNorm of integers without calibration
    ("resnet18_v1", "calibrated"), ("resnet18_v1", "as it runs"), ("resnet18_v2", "by channel"),
    ("mobilenetv2_0.25", "calibrated"), ("mobilenetv2_0.25", "as it runs"),
    ("squeezenet1.0", "as it runs"),
)  # fmt: skip


def quantise_network(name, how, folder):
    """The prefix of a network's files, and inputs."""
    mx = live_mxnet()
    from mxnet.contrib.quantization import quantize_model

    network = networks.build(name, networks.smallest(name))
    symbol_file, _ = networks.export(network, folder)
    feeds = networks.feeds(network, 2)
    prefix = str(symbol_file).removesuffix("-symbol.json")
    symbol, arguments, states = mx.model.load_checkpoint(prefix, 0)
    sample = {}
    if how != "as it runs":
        sample = {
            "calib_data": mx.io.NDArrayIter(dict(feeds), batch_size=2),
            "num_calib_examples": 2,
        }
    symbol, arguments, states = quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"), arguments, states, data_names=list(feeds),
        label_names=None, ctx=mx.cpu(), quantized_dtype="auto", logger=None, **HOW[how], **sample,
    )  # fmt: skip
    symbol = symbol.get_backend_symbol("MKLDNN_QUANTIZE")
    symbol.save(str(folder / "q-symbol.json"))
    arrays = {f"arg:{n}": v for n, v in arguments.items()}
    mx.nd.save(str(folder / "q-0000.params"), arrays | {f"aux:{n}": v for n, v in states.items()})
    return folder / "q", feeds


@needs_exact_int8
@pytest.mark.parametrize("name, how", CASES, ids=[" ".join(case) for case in CASES])
def test_a_network_that_mxnet_quantised(name, how, tmp_path) -> None:
    """All its integers are MXNet's, so that nothing is left but what the last sums round."""
    prefix, feeds = quantise_network(name, how, tmp_path)
    ops = {node["op"] for node in json.loads((tmp_path / "q-symbol.json").read_text())["nodes"]}
    assert "_sg_mkldnn_conv" in ops
    (expected,) = run(str(prefix), feeds)
    for opset in (11, 17):
        target = tmp_path / "net.onnx"
        serde.convert(prefix, target, inputs=feeds, opset=opset)
        for level in LEVELS:
            (got,) = run_at(level, target, feeds)
            assert np.abs(got - expected).max() < 1e-6 * np.abs(expected).max(), (opset, level)
