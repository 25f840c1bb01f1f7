"""The profile tract: what it writes is right in live tract."""

from __future__ import annotations

import pytest

import serde
from conformance.onnx_nodes import ConstantNodeTests
from conformance.targets import Tract
from tests import networks
from tests.consumers.consumers_live import CONSUMERS
from tests.onnx_live import error

# One test for each thing that tract lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_attention_23_boolmask_fullymasked_row_nan_robustness
test_lstm_reverse test_matmul_1d_1d test_nllloss_NCd1_ii test_simple_rnn_reverse
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    sample, target = ConstantNodeTests().sample(name), Tract()
    for feeds, wanted in sample.data:
        assert sample.differs(wanted, target.run(sample.graph, feeds, "")) is None


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm", "bert_interleaved"])
def test_networks(name, tmp_path):
    network = networks.build(name, networks.smallest(name) if name in networks.VISION else None)
    feeds = networks.feeds(network, 2)
    wanted = networks.expected(network, feeds)
    symbol, _ = networks.export(network, tmp_path)
    shapes = {n: (s, feeds[n].dtype) for n, s in networks.shapes(network).items()}
    serde.convert(symbol, tmp_path / "m.onnx", inputs=shapes, profile="tract")
    got = CONSUMERS.run(str(tmp_path / "m.onnx"), feeds, command="tract")
    assert max(error(a, b) for a, b in zip(got, wanted, strict=True)) < 1e-4
