"""Models that scikit-learn's own exporter wrote, imported into Relay, with scikit-learn's answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.svm import LinearSVC

import serde
from serde.formats.relay import from_ir
from serde.formats.relay.json_writer import to_json
from serde.formats.relay.to_ast import to_module
from tests.learned_models import (
    CLASSIFIERS,
    FORESTS,
    LABELS,
    REGRESSORS,
    SAMPLES,
    X,
    exported,
    fitted,
)
from tests.relay.tvm_live import run


def in_relay(made):
    """What TVM computes for all samples, whose number is told."""
    graph = serde.load(made, inputs={"X": X})
    module, weights = to_module(from_ir(graph))
    return run("json", to_json(module), {"X": X, **{n: t.load() for n, t in weights.items()}})


@pytest.mark.parametrize("name", ["network", "components", "holes filled", "neighbours"])
def test_classes(name):
    model = fitted(CLASSIFIERS[name])
    labels, shares = in_relay(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=2e-5)


@pytest.mark.parametrize(("name", "classes"), [("random", 3), ("boosted", 2), ("in turns", 2)])
def test_forests(name, classes):
    model = fitted(FORESTS[name], np.minimum(LABELS, classes - 1))
    labels, shares = in_relay(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=2e-5)


@pytest.mark.parametrize("name", ["boosted trees", "lines of what is scaled"])
def test_numbers(name):
    model = fitted(REGRESSORS[name], SAMPLES[:, 1] * 2 - SAMPLES[:, 3])
    (got,) = in_relay(exported(model))
    np.testing.assert_allclose(got.ravel(), model.predict(X), atol=2e-5)


def test_scores_of_a_machine_without_probabilities():
    model = LinearSVC().fit(X, LABELS)
    labels, scores = in_relay(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(scores, model.decision_function(X), atol=2e-5)


def test_clusters():
    model = KMeans(3, random_state=0, n_init=1).fit(X)
    labels, distances = in_relay(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(distances, model.transform(X), atol=2e-3)  # a root of a difference
