"""Frames of MXNet's networks: some of the cases, and that a wrong model is found."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.frames import cells
from conformance.frames.networks import NETWORKS
from conformance.frames.random_networks import draft_network
from conformance.record import REFUSED, RIGHT, WRONG

CASES = {
    "mask of one column: whole": {"bare": REFUSED, "sizes": RIGHT, "names": RIGHT},
    "MakeLoss of more: checkpoint": {"sizes": RIGHT, "names": RIGHT},
    "group twice: no names": {"bare": RIGHT, "sizes": RIGHT, "names": RIGHT},
    "random 19: whole, no names": {"bare": REFUSED, "sizes": RIGHT, "names": RIGHT},
    "lstm with states: mixed names": {"sizes": RIGHT, "names": RIGHT},
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    cell = cells.Frames("mxnet-frames/onnx")
    assert case in cell.cases()
    outcomes = cell.outcomes(case, cell.run(case))
    assert {v: outcomes[v].kind for v in CASES[case]} == CASES[case], outcomes


def test_other_numbers_are_wrong(tmp_path) -> None:
    model = cells.build("mlp")
    cells.WAYS["checkpoint"](model.saved, tmp_path)
    feeds, expected = model.batches[cells.SAMPLES]
    changed = model._replace(batches={cells.SAMPLES: (feeds, [y + 1 for y in expected])})
    assert cells.examine(model, tmp_path, dict(model.net.data)).kind == RIGHT
    outcome = cells.examine(changed, tmp_path, {"data": ("N", 6)})
    assert outcome.kind == WRONG and "off by" in outcome.reason


def test_a_lost_output_is_wrong(tmp_path) -> None:
    model = cells.build("MakeLoss with a label")
    cells.WAYS["checkpoint"](model.saved, tmp_path)
    kept = model._replace(net=model.net._replace(lost=()))
    assert cells.examine(model, tmp_path, {"data": ("N", 6)}).kind == RIGHT
    assert cells.examine(kept, tmp_path, {"data": ("N", 6)}).kind == WRONG


def test_a_network_of_a_seed_is_always_the_same() -> None:
    first, second = draft_network(7), draft_network(7)
    assert (first.data, first.plain, first.labels) == (second.data, second.plain, second.labels)
    assert "mlp" in NETWORKS
    a, b = (cells.build("random 7").saved.parameters for _ in range(2))
    assert all(np.array_equal(a[n], b[n]) for n in a)
