"""Networks that MXNet itself quantises, with and without calibration."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from serde.bridges.mxnet import run
from testing.mxnet.int8 import needs_exact_int8
from testing.mxnet.quantised_networks import CASES, quantise_network
from testing.onnx_live import LEVELS, run_at


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
