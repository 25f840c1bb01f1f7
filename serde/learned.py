"""Classical models (``ai.onnx.ml``) in the IR's operators, for targets that have no such domain.

What they compute is in the standard's own words (``onnx.defs`` of the domain); where those leave
something open, it is what ONNX Runtime does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.graph import DType, Value
from serde.idioms import cast
from serde.rules import RuleTable

DOMAIN = "ai.onnx.ml"
learned = RuleTable(f"{DOMAIN} → ir")
Floats = tuple[float, ...]
Ints = tuple[int, ...]
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")


def _row(g: Any, numbers: Any, dtype: DType = DType.FLOAT32) -> Value:
    return g.const(np.asarray(numbers, dtype.numpy))  # type: ignore[no-any-return]


@learned("Scaler")
def read_scaler(g: Any, x: Value, *, offset: Floats = (0.0,), scale: Floats = (1.0,)) -> Any:
    """Both hold one number, or one for each feature."""
    return g.Mul(g.Sub(cast(g, x, DType.FLOAT32), _row(g, offset)), _row(g, scale))


@learned("Binarizer")
def read_binarizer(g: Any, x: Value, *, threshold: float = 0.0) -> Any:
    """1 above the threshold, 0 elsewhere."""
    return cast(g, g.Greater(x, g.const(threshold, x.type)), x.type)


@learned("Normalizer", only={"norm": ("MAX", "L1", "L2")})
def read_normalizer(g: Any, x: Value, *, norm: str = "MAX") -> Any:
    """Each row less its norm; one of zeros stays so."""
    x = cast(g, x, DType.FLOAT32)
    name = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[norm]
    length = g[name](x, [x.rank - 1], keepdims=1)
    return g.Div(x, g.Add(length, cast(g, g.Equal(length, 0.0), DType.FLOAT32)))


@learned("Imputer")
def read_imputer(
    g: Any, x: Value, *, imputed_value_floats: Floats = (), imputed_value_int64s: Ints = (),
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Any:  # fmt: skip
    """A number, or NaN, is replaced by another; one, or one for each feature."""
    floating = x.type.kind == "f"
    instead = imputed_value_floats if floating else imputed_value_int64s
    require(len(instead) > 0, f"nothing to replace missing {x.type.value} elements by")
    if floating and np.isnan(replaced_value_float):
        missing = g.IsNaN(x)
    else:
        missing = g.Equal(x, g.const(replaced_value_float if floating else replaced_value_int64,
                                     x.type))  # fmt: skip
    return g.Where(missing, _row(g, instead, x.type), x)


@learned("ArrayFeatureExtractor")
def read_array_feature_extractor(g: Any, x: Value, index: Value) -> Any:
    """Some of the last axis; a vector is one row."""
    chosen = g.Gather(x, g.Reshape(index, [-1]), axis=x.rank - 1)
    return g.Unsqueeze(chosen, [0]) if x.rank == 1 else chosen


@learned("FeatureVectorizer", ignore=("inputdimensions",))
def read_feature_vectorizer(g: Any, *xs: Value) -> Any:
    """Columns side by side."""
    return g.Concat(*(cast(g, x, DType.FLOAT32) for x in xs), axis=1)


def _scores(g: Any, x: Value, coefficients: Floats, intercepts: Floats, count: int) -> Any:
    weights = np.asarray(coefficients, np.float32).reshape(count, -1).T
    y = g.MatMul(cast(g, x, DType.FLOAT32), _row(g, weights))
    return g.Add(y, _row(g, intercepts)) if intercepts else y


def _transformed(g: Any, scores: Value, post_transform: str) -> Any:
    if post_transform == "SOFTMAX":
        return g.Softmax(scores, axis=1)
    return g.Sigmoid(scores) if post_transform == "LOGISTIC" else scores


@learned("LinearRegressor", only={"post_transform": POST_TRANSFORMS})
def read_linear_regressor(
    g: Any, x: Value, *, coefficients: Floats, intercepts: Floats = (), targets: int = 1,
    post_transform: str = "NONE",
) -> Any:  # fmt: skip
    """One linear function for each target."""
    return _transformed(g, _scores(g, x, coefficients, intercepts, targets), post_transform)


@learned("LinearClassifier", ignore=("multi_class",), only={"post_transform": POST_TRANSFORMS})
def read_linear_classifier(
    g: Any, x: Value, *, coefficients: Floats, intercepts: Floats = (),
    classlabels_ints: Ints = (), classlabels_strings: tuple[str, ...] = (),
    post_transform: str = "NONE",
) -> Any:  # fmt: skip
    """The label of the largest score, and the scores of all classes."""
    require(not classlabels_strings, "labels that are strings: give the classes numbers")
    count = len(classlabels_ints)
    require(count > 1 and len(coefficients) % count == 0, "one score for two classes")
    require(not intercepts or len(intercepts) == count, "one score for two classes")
    scores = _scores(g, x, coefficients, intercepts, count)
    best = g.ArgMax(scores, axis=1, keepdims=0)
    labels = g.Gather(_row(g, classlabels_ints, DType.INT64), best)
    return labels, _transformed(g, scores, post_transform)
