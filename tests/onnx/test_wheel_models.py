"""The models in the onnx wheel, read, raised, written at their own opset and at others, and run.

``python -m conformance.node_roundtrip`` does this for the large networks as well.
"""

from __future__ import annotations

import pytest

from conformance.node_roundtrip import at, excuse, outcome
from tests.model_cases import light_model, small_models

SMALL = [c for c in small_models() if not excuse(c.name.rpartition("/")[2])]
QUICK = ("light_squeezenet", "light_shufflenet")


@pytest.mark.parametrize("case", SMALL, ids=lambda c: c.name)
def test_at_its_own_opset(case) -> None:
    assert outcome(case) == "right"


@pytest.mark.parametrize("opset", [7, 13, 21])
def test_at_others(opset: int) -> None:
    """Those with sequences or strings, which only newer opsets have, are of the kind ``simple``."""
    found = {c.name: at(c, opset) for c in SMALL if not c.name.startswith("simple/")}
    assert {n: said for n, said in found.items() if said != "right"} == {}


@pytest.mark.parametrize("name", QUICK)
def test_network(name: str) -> None:
    case = light_model(name)
    assert outcome(case) == "right"
    assert {opset: at(case, opset) for opset in (7, 11, 21)} == dict.fromkeys((7, 11, 21), "right")
