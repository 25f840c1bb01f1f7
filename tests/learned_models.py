"""Models that scikit-learn trains and its own exporter writes, for tests to import and compare."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

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
FORESTS = {
    "tree": (DecisionTreeClassifier(random_state=0),),
    "random": (RandomForestClassifier(12, random_state=0),),
    "extremely random": (ExtraTreesClassifier(7, random_state=0),),
    "boosted": (GradientBoostingClassifier(n_estimators=8, random_state=0),),
    "in turns": (AdaBoostClassifier(n_estimators=3, random_state=0),),
}
REGRESSORS = {
    "random forest": (RandomForestRegressor(8, random_state=0),),
    "boosted trees": (GradientBoostingRegressor(n_estimators=8, random_state=0),),
    "lines": (LinearRegression(),),
    "lines of what is scaled": (MinMaxScaler(), Ridge()),
    "network": (StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), max_iter=60)),
}
MACHINES = {
    "lines": SVC(kernel="linear", C=0.1),
    "powers": SVC(kernel="poly", degree=2, coef0=0.3),
    "bells": SVC(),
    "steps": SVC(kernel="sigmoid", coef0=0.3, C=0.1),
    "shares": SVC(probability=True, random_state=0),
    "shares of lines": SVC(kernel="linear", C=0.1, probability=True, random_state=0),
}
CURVES = {
    "lines": SVR(kernel="linear"),
    "powers": SVR(kernel="poly", coef0=0.2, C=0.01),
    "high powers": SVR(kernel="poly", degree=9, gamma=0.01, coef0=0.8),
    "bells": SVR(),
    "steps": SVR(kernel="sigmoid", gamma=0.01, C=0.1),
}


def fit(steps, labels=LABELS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few steps
        return make_pipeline(*steps).fit(X, labels)


def export(model, samples=None):
    skl2onnx = pytest.importorskip("skl2onnx")
    mapped = hasattr(model, "predict_proba") or isinstance(model, SVC)
    options = {id(model): {"zipmap": False}} if mapped else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return skl2onnx.to_onnx(model, X[:1] if samples is None else samples, options=options)


def assert_classes(compute, model):
    """``compute`` gives the labels and the shares that scikit-learn does."""
    labels, shares = compute(export(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=2e-5)


def assert_numbers(compute, name):
    """``compute`` gives the numbers of a regressor."""
    model = fit(REGRESSORS[name], SAMPLES[:, 1] * 2 - SAMPLES[:, 3])
    (got,) = compute(export(model))
    np.testing.assert_allclose(got.ravel(), model.predict(X), atol=2e-5)


def assert_machine(compute, name, classes):
    """``compute`` gives the labels of a support vector machine, and scores or shares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shares
        model = MACHINES[name].fit(X, np.minimum(LABELS, classes - 1))
    labels, scores = compute(export(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    if name.startswith("shares"):
        np.testing.assert_allclose(scores, model.predict_proba(X), atol=5e-5)
        return
    expected = model.decision_function(X)
    expected = np.stack([expected, -expected], 1) if classes == 2 else expected
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def assert_curve(compute, name):
    """``compute`` gives the numbers of a support vector regression."""
    model = CURVES[name].fit(X, SAMPLES[:, 1])
    (got,) = compute(export(model))
    np.testing.assert_allclose(got.ravel(), model.predict(X), atol=1e-4)


def assert_strangers(compute):
    """``compute`` tells what is unlike the others."""
    model = OneClassSVM(nu=0.2).fit(X)
    labels, scores = compute(export(model))
    np.testing.assert_array_equal(labels.ravel(), model.predict(X))
    np.testing.assert_allclose(scores.ravel(), model.decision_function(X), atol=1e-4)


def assert_scores(compute):
    """``compute`` gives the labels and scores of a machine without probabilities."""
    model = LinearSVC().fit(X, LABELS)
    labels, scores = compute(export(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(scores, model.decision_function(X), atol=2e-5)


def assert_clusters(compute):
    """``compute`` gives the nearest of some centres, and how far all of them are."""
    model = KMeans(3, random_state=0, n_init=1).fit(X)
    labels, distances = compute(export(model))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(distances, model.transform(X), atol=2e-3)  # a root of a difference
