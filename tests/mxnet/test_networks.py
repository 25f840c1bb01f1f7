"""Whole networks against live MXNet: the small ones that together hold every operator.

``python -m conformance networks/onnx`` does the same for all of them at their real size.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.mxnet.network_runs import TOLERANCE, load_ir, outcome, references
from testing.networks import ENCODERS, LANGUAGE, VISION, build, export, smallest

OPSETS = (11, 13, 17, 21)
SMALL = ("alexnet", "densenet121", "inceptionv3", "mobilenet0.25", "mobilenetv2_0.25",
         "resnet18_v1", "resnet18_v2", "squeezenet1.0")  # fmt: skip


@pytest.mark.parametrize("name", (*SMALL, *LANGUAGE, *ENCODERS))
def test_network(name: str, tmp_path: Path) -> None:
    network = build(name, smallest(name)) if name in VISION else build(name)
    symbol, _ = export(network, tmp_path)
    for mode in ("static", "named"):
        ir = load_ir(network, symbol, mode)
        runs = references(network, mode)
        for opset in OPSETS:
            result = outcome(ir, opset, mode, runs, tmp_path)
            assert result.error < TOLERANCE, f"{mode}, opset {opset}"
            assert not result.needless, f"{mode}, opset {opset}"
