"""What the tests of each consumer check of it."""

from __future__ import annotations

from pathlib import Path

import serde
from conformance.matrix import target_of
from conformance.onnx_nodes import ConstantNodeTests
from tests import networks
from tests.consumers.consumers_live import CONSUMERS
from tests.onnx_live import error


def check_node_test(name: str, consumer: str) -> None:
    """The consumer computes what ONNX's node test expects."""
    sample, target = ConstantNodeTests().sample(name), target_of(consumer)
    for feeds, wanted in sample.data:
        assert sample.differs(wanted, target.run(sample.graph, feeds, "")) is None


def check_network(name: str, consumer: str, folder: Path) -> None:
    """The consumer computes what MXNet does for one of its networks, with a named batch."""
    network = networks.build(name, networks.smallest(name) if name in networks.VISION else None)
    feeds = networks.feeds(network, 2)
    wanted = networks.expected(network, feeds)
    symbol, _ = networks.export(network, folder)
    shapes = {n: (s, feeds[n].dtype) for n, s in networks.shapes(network).items()}
    serde.convert(symbol, folder / "m.onnx", inputs=shapes, profile=consumer)
    got = CONSUMERS.run(str(folder / "m.onnx"), feeds, command=consumer)
    assert max(error(a, b) for a, b in zip(got, wanted, strict=True)) < 1e-4
