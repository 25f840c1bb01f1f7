"""Models that scikit-learn's own exporter wrote, imported into MXNet, with scikit-learn's answers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

import serde.bridges.mxnet
from tests.mxnet_live import live_mxnet

SAMPLES, LABELS = load_iris(return_X_y=True)
X = SAMPLES.astype(np.float32)
CLASSIFIERS = {
    "network": (StandardScaler(), MLPClassifier((8,), max_iter=60, random_state=0)),
    "components": (StandardScaler(), PCA(2), LogisticRegression()),
    "rows of one length": (Normalizer("l2"), LogisticRegression()),
    "rows of one sum": (Normalizer("l1"), LogisticRegression()),
    "two values": (Binarizer(threshold=2), LogisticRegression()),
    "holes filled": (SimpleImputer(missing_values=1.5), LogisticRegression()),
    "normal distributions": (GaussianNB(),),
    "neighbours": (KNeighborsClassifier(3),),
}
REGRESSORS = {
    "lines": (LinearRegression(),),
    "lines of what is scaled": (MinMaxScaler(), Ridge()),
    "network": (StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), max_iter=60)),
}


def fitted(steps, labels=LABELS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few steps
        return make_pipeline(*steps).fit(X, labels)


def exported(model, samples=None):
    skl2onnx = pytest.importorskip("skl2onnx")
    options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return skl2onnx.to_onnx(model, X[:1] if samples is None else samples, options=options)


def in_mxnet(made, x=X):
    """What a block made of a model computes."""
    nd = live_mxnet().nd
    found = serde.bridges.mxnet.to_block(made)(nd.array(x))
    return [y.asnumpy() for y in (found if isinstance(found, (list, tuple)) else [found])]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes(name):
    model = fitted(CLASSIFIERS[name])
    labels, shares = in_mxnet(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=2e-5)


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers(name):
    model = fitted(REGRESSORS[name], SAMPLES[:, 1] * 2 - SAMPLES[:, 3])
    (got,) = in_mxnet(exported(model))
    np.testing.assert_allclose(got.ravel(), model.predict(X), atol=2e-5)


def test_scores_of_a_machine_without_probabilities():
    model = LinearSVC().fit(X, LABELS)
    labels, scores = in_mxnet(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(scores, model.decision_function(X), atol=2e-5)


def test_clusters():
    model = KMeans(3, random_state=0, n_init=1).fit(X)
    labels, distances = in_mxnet(exported(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(distances, model.transform(X), atol=2e-3)  # a root of a difference


def test_what_has_no_rule_is_told():
    with pytest.raises(serde.Unconvertible, match="SVMClassifier"):
        in_mxnet(exported(SVC().fit(X, LABELS)))


def test_labels_that_are_words_are_refused():
    names = np.array(["setosa", "versicolor", "virginica"])[LABELS]
    with pytest.raises(serde.Unconvertible, match="object elements"):
        in_mxnet(exported(LogisticRegression().fit(X, names)))
