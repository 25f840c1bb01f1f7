"""Classical models in the standard's operators, with scikit-learn's and ONNX Runtime's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from serde.decompositions.onnx_ml import DOMAIN, ml_rules
from serde.errors import Unconvertible
from testing.decomposed import run_without_domains
from testing.onnx_live import run_model
from tests.learned_models import (
    CLASSIFIERS,
    X,
    assert_classes,
    assert_clusters,
    assert_numbers,
    assert_scores,
    fit,
)

ROWS = np.float32([[1, -2, 0], [0, 0, 0], [np.nan, 5, 3]])
INTS = np.int64([[1, -2, 0], [7, 0, 3]])
LINES = {"coefficients": [0.5, 2.0, -1.0, 1.0, 0.0, 3.0, -0.5, 0.2, 1.5]}


def compute(model):
    return run_without_domains(model, X)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes(name):
    assert_classes(compute, fit(CLASSIFIERS[name]))


@pytest.mark.parametrize("name", ["lines", "lines of what is scaled", "network"])
def test_numbers(name):
    assert_numbers(compute, name)


def test_scores_of_a_machine_without_probabilities():
    assert_scores(compute)


def test_clusters():
    assert_clusters(compute)


def make_model(op: str, x: np.ndarray, attrs: dict[str, Any], outputs: int = 1) -> onnx.ModelProto:
    """A model of one node, its input of a number of rows that has a name."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    info = helper.make_tensor_value_info("x", kind, ["N", *x.shape[1:]])
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, ["x"], names, domain=DOMAIN, **attrs)
    results = [helper.make_empty_tensor_value_info(n) for n in names]
    graph = helper.make_graph([node], "g", [info], results)
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 17), (DOMAIN, 3))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(("op", "x", "attrs"), [
    ("Scaler", ROWS, {"offset": [1.0, 0, 2], "scale": [2.0, 1, 0.5]}),
    ("Scaler", INTS, {"offset": [1.0], "scale": [0.5]}),
    ("Binarizer", ROWS[:2], {"threshold": 0.5}),
    ("Normalizer", ROWS[:1], {"norm": "L1"}), ("Normalizer", ROWS[:2], {"norm": "L2"}),
    ("Imputer", ROWS, {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")}),
    ("Imputer", ROWS[:2], {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": 0.0}),
    ("Imputer", INTS, {"imputed_value_int64s": [4], "replaced_value_int64": 0}),
    ("FeatureVectorizer", ROWS, {"inputdimensions": [3]}),
    ("LinearRegressor", ROWS[:2], {**LINES, "targets": 3, "intercepts": [1.0, 2, 3]}),
    ("LinearRegressor", ROWS[:2], {"coefficients": [1.0, 2, 3]}),
    ("LinearRegressor", ROWS[:2], {**LINES, "targets": 3, "post_transform": "SOFTMAX"}),
])  # fmt: skip
def test_operators_are_those_of_onnxruntime(op, x, attrs):
    model = make_model(op, x, attrs)
    ((got,), (expected,)) = run_without_domains(model, x), run_model(model, {"x": x})
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_labels_and_scores_of_lines():
    attrs = {**LINES, "intercepts": [0.1, 0, 0], "classlabels_ints": [4, 2, 7]}
    for how in ("NONE", "SOFTMAX", "LOGISTIC"):
        model = make_model("LinearClassifier", ROWS[:2], {**attrs, "post_transform": how}, 2)
        pairs = run_without_domains(model, ROWS[:2]), run_model(model, {"x": ROWS[:2]})
        for a, b in zip(*pairs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("op", "attrs", "outputs", "reason"), [
    ("Imputer", {"imputed_value_int64s": [1]}, 1, "nothing to replace missing float32 elements"),
    ("LinearClassifier", {**LINES, "classlabels_strings": ["a", "b", "c"]}, 2,
     "labels that are strings: give the classes numbers"),
    ("LinearClassifier", {"coefficients": [1.0, 2, 3], "classlabels_ints": [0, 1]}, 2,
     "one score for two classes"),
    ("LinearRegressor", {**LINES, "targets": 3, "post_transform": "PROBIT"}, 1,
     "post_transform=PROBIT; supported: NONE, SOFTMAX, LOGISTIC"),
    ("FeatureVectorizer", {"inputdimensions": [3, 2]}, 1, "2 inputdimensions for 1 inputs"),
    ("ZipMap", {"classlabels_int64s": [0, 1, 2]}, 1, "export with the option zipmap=False"),
])  # fmt: skip
def test_what_has_no_equivalent_is_refused(op, attrs, outputs, reason):
    with pytest.raises(Unconvertible, match=reason):
        run_without_domains(make_model(op, ROWS, attrs, outputs), ROWS)


def test_rules_are_of_operators_of_the_domain():
    """Those that have none read, or look up, what no target holds: strings and maps."""
    known = {s.name for s in onnx.defs.get_all_schemas() if s.domain == DOMAIN}
    assert known - ml_rules.rules.keys() == {
        "CastMap", "CategoryMapper", "DictVectorizer", "LabelEncoder", "OneHotEncoder",
    }  # fmt: skip
    assert ml_rules.rules.keys() <= known
