"""Models that scikit-learn's own exporter wrote, imported into Relay, with scikit-learn's answers."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from testing.relay.tvm_live import run
from tests.learned_models import (
    CLASSIFIERS,
    CURVES,
    FORESTS,
    LABELS,
    X,
    assert_classes,
    assert_clusters,
    assert_curve,
    assert_machine,
    assert_numbers,
    assert_scores,
    assert_strangers,
    fit,
)
from tests.tree_ensembles import CASES, assert_ensemble


def in_relay(model, x=X):
    """What TVM computes for all samples, whose number is told."""
    graph = serde.load(model, inputs={"X": x})
    module, weights = to_module(from_ir(graph))
    return run("json", to_json(module), {"X": x, **{n: t.load() for n, t in weights.items()}})


@pytest.mark.parametrize("name", ["network", "components", "holes filled", "neighbours"])
def test_classes(name):
    assert_classes(in_relay, fit(CLASSIFIERS[name]))


@pytest.mark.parametrize(("name", "classes"), [("random", 3), ("boosted", 2), ("in turns", 2)])
def test_forests(name, classes):
    assert_classes(in_relay, fit(FORESTS[name], np.minimum(LABELS, classes - 1)))


@pytest.mark.parametrize("name", CASES)
def test_ensembles(name):
    assert_ensemble(in_relay, name)


@pytest.mark.parametrize("name", ["boosted trees", "lines of what is scaled"])
def test_numbers(name):
    assert_numbers(in_relay, name)


def test_scores_of_a_machine_without_probabilities():
    assert_scores(in_relay)


@pytest.mark.parametrize(
    ("name", "classes"),
    [("lines", 2), ("powers", 3), ("bells", 3), ("steps", 3), ("shares", 2), ("shares", 3)],
)
def test_machines(name, classes):
    assert_machine(in_relay, name, classes)


@pytest.mark.parametrize("name", CURVES)
def test_curves(name):
    assert_curve(in_relay, name)


def test_strangers():
    assert_strangers(in_relay)


def test_clusters():
    assert_clusters(in_relay)
