"""Models that scikit-learn's own exporter wrote, imported into MXNet, with scikit-learn's answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

import serde.bridges.mxnet
from testing.mxnet_live import live_mxnet
from tests.learned_models import (
    CLASSIFIERS,
    CURVES,
    FORESTS,
    LABELS,
    MACHINES,
    REGRESSORS,
    X,
    assert_classes,
    assert_clusters,
    assert_curve,
    assert_machine,
    assert_numbers,
    assert_scores,
    assert_strangers,
    export,
    fit,
)
from tests.tree_ensembles import CASES, assert_ensemble


def in_mxnet(model, x=X):
    """What a block made of a model computes."""
    nd = live_mxnet().nd
    outputs = serde.bridges.mxnet.to_block(model)(nd.array(x))
    return [y.asnumpy() for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes(name):
    assert_classes(in_mxnet, fit(CLASSIFIERS[name]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", FORESTS)
def test_forests(name, classes):
    """Two classes have one score or two, which become shares in several ways."""
    assert_classes(in_mxnet, fit(FORESTS[name], np.minimum(LABELS, classes - 1)))


@pytest.mark.parametrize("name", CASES)
def test_ensembles(name):
    assert_ensemble(in_mxnet, name)


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers(name):
    assert_numbers(in_mxnet, name)


def test_scores_of_a_machine_without_probabilities():
    assert_scores(in_mxnet)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, classes):
    assert_machine(in_mxnet, name, classes)


@pytest.mark.parametrize("name", CURVES)
def test_curves(name):
    assert_curve(in_mxnet, name)


def test_strangers():
    assert_strangers(in_mxnet)


def test_clusters():
    assert_clusters(in_mxnet)


def test_what_has_no_rule_is_told():
    with pytest.raises(serde.Unconvertible, match="OneHotEncoder"):
        in_mxnet(export(OneHotEncoder().fit(np.round(X))))


def test_maps_of_scores_are_left_out_on_request():
    """The exporter ends a classifier with maps unless it is told not to."""
    skl2onnx = pytest.importorskip("skl2onnx")
    model = LogisticRegression().fit(X, LABELS)
    onnx_model = skl2onnx.to_onnx(model, X[:1])
    with pytest.raises(serde.Unconvertible, match=r"zipmap=False.*--outputs probabilities"):
        in_mxnet(onnx_model)
    nd = live_mxnet().nd
    block = serde.bridges.mxnet.to_block(onnx_model, outputs=["label", "probabilities"])
    labels, shares = block(nd.array(X))
    np.testing.assert_array_equal(labels.asnumpy(), model.predict(X))
    np.testing.assert_allclose(shares.asnumpy(), model.predict_proba(X), atol=2e-5)


def test_maps_as_columns():
    skl2onnx = pytest.importorskip("skl2onnx")
    model = LogisticRegression().fit(X, LABELS)
    onnx_model = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": "columns"}})
    labels, *shares = in_mxnet(onnx_model)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(np.stack(shares, 1).squeeze(), model.predict_proba(X), atol=2e-5)


def test_labels_that_are_words_are_refused():
    names = np.array(["setosa", "versicolor", "virginica"])[LABELS]
    with pytest.raises(serde.Unconvertible, match="object elements"):
        in_mxnet(export(LogisticRegression().fit(X, names)))
