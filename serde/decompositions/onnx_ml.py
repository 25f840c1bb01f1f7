"""Classical models (``ai.onnx.ml``) in the IR's operators, for targets that have no such domain.

What they compute is in the standard's own words (``onnx.defs`` of the domain); where those leave
something open, it is what ONNX Runtime does.
"""

from __future__ import annotations

import numpy as np

from serde.decompositions.svm import (
    couple_probabilities,
    evaluate_decisions,
    evaluate_kernels,
    pairs_of,
    select_winners,
    vectors_of,
)
from serde.decompositions.tree_ensemble import build_ensemble, build_forest, evaluate_forest
from serde.errors import require
from serde.ir.graph import DType, Tensor, Value
from serde.rewrite.rules import RuleTable

DOMAIN = "ai.onnx.ml"
ml_rules = RuleTable(f"{DOMAIN} → ir")
Floats = tuple[float, ...]
Ints = tuple[int, ...]
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")


def _row(g, numbers, dtype: DType = DType.FLOAT32):
    return g.const(np.asarray(numbers, dtype.numpy))


@ml_rules("Scaler")
def read_scaler(g, x, *, offset: Floats = (0.0,), scale: Floats = (1.0,)):
    """Both hold one number, or one for each feature."""
    return g.Mul(g.Sub(g.cast(x, DType.FLOAT32), _row(g, offset)), _row(g, scale))


@ml_rules("Binarizer")
def read_binarizer(g, x, *, threshold=0.0):
    """1 above the threshold, 0 elsewhere."""
    return g.cast(g.Greater(x, g.const(threshold, x.type)), x.type)


@ml_rules("Normalizer", only={"norm": ("MAX", "L1", "L2")})
def read_normalizer(g, x, *, norm="MAX"):
    """Each row less its norm; one of zeros stays so."""
    x = g.cast(x, DType.FLOAT32)
    name = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[norm]
    length = g[name](x, [x.rank - 1], keepdims=1)
    return g.Div(x, g.Add(length, g.cast(g.Equal(length, 0.0), DType.FLOAT32)))


@ml_rules("Imputer")
def read_imputer(
    g, x, *, imputed_value_floats: Floats = (), imputed_value_int64s=(), replaced_value_float=0.0,
    replaced_value_int64=0,
):  # fmt: skip
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


@ml_rules("ArrayFeatureExtractor")
def read_array_feature_extractor(g, x, index):
    """Some of the last axis; a vector is one row."""
    chosen = g.Gather(x, g.Reshape(index, [-1]), axis=x.rank - 1)
    return g.Unsqueeze(chosen, [0]) if x.rank == 1 else chosen


@ml_rules("FeatureVectorizer")
def read_feature_vectorizer(g, *xs, inputdimensions=()):
    """Rows side by side, each input cut off or filled with zeros to the width it is given."""
    widths = inputdimensions or (None,) * len(xs)
    require(len(widths) == len(xs), f"{len(widths)} inputdimensions for {len(xs)} inputs")
    parts = [
        _select_columns(g, g.cast(x, DType.FLOAT32), w) for x, w in zip(xs, widths, strict=True)
    ]
    return g.Concat(*(part for part in parts if part is not None), axis=1)


def _select_columns(g, x: Value, width: int | None):
    """The rows of ``x``, one where it has one axis, of ``width`` columns; None for no columns."""
    require(x.rank > 0, "an input without axes")
    rows = g.Unsqueeze(x, [0]) if x.rank == 1 else g.Flatten(x, axis=1)
    size = rows.ranked_shape[1]
    if width is None or size == width:
        return rows
    require(width >= 0, f"inputdimensions of {width}")
    if not isinstance(size, int) or size < width:
        rows = g.Pad(rows, [0, 0, 0, width - size if isinstance(size, int) else width])
    return g.Slice(rows, [0], [width], [1]) if width else None


def _scores(g, x: Value, coefficients: Floats, intercepts: Floats, count: int):
    weights = np.asarray(coefficients, np.float32).reshape(count, -1).T
    y = g.MatMul(g.cast(x, DType.FLOAT32), _row(g, weights))
    return g.Add(y, _row(g, intercepts)) if intercepts else y


def _apply_post_transform(g, scores: Value, post_transform: str):
    if post_transform == "SOFTMAX":
        return g.Softmax(scores, axis=1)
    return g.Sigmoid(scores) if post_transform == "LOGISTIC" else scores


@ml_rules("ZipMap")
def read_zip_map(g, x, **attrs):
    """Maps are of no target: what says how to leave them out is the refusal."""
    require(False, "maps of labels and scores: export with the option zipmap=False, or end the "
            f"model before them: --outputs {x.name}, and the other outputs")  # fmt: skip


@ml_rules("LinearRegressor", only={"post_transform": POST_TRANSFORMS})
def read_linear_regressor(
    g, x, *, coefficients: Floats, intercepts: Floats = (), targets=1, post_transform="NONE"
):
    """One linear function for each target."""
    return _apply_post_transform(
        g, _scores(g, x, coefficients, intercepts, targets), post_transform
    )


@ml_rules("LinearClassifier", ignore=("multi_class",), only={"post_transform": POST_TRANSFORMS})
def read_linear_classifier(
    g, x, *, coefficients: Floats, intercepts: Floats = (), classlabels_ints=(),
    classlabels_strings: tuple[str, ...] = (), post_transform="NONE",
):  # fmt: skip
    """The label of the largest score, and the scores of all classes."""
    require(not classlabels_strings, "labels that are strings: give the classes numbers")
    count = len(classlabels_ints)
    require(count > 1 and len(coefficients) % count == 0, "one score for two classes")
    require(not intercepts or len(intercepts) == count, "one score for two classes")
    scores = _scores(g, x, coefficients, intercepts, count)
    best = g.ArgMax(scores, axis=1, keepdims=0)
    labels = g.Gather(_row(g, classlabels_ints, DType.INT64), best)
    return labels, _apply_post_transform(g, scores, post_transform)


KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


@ml_rules("SVMRegressor", only={"post_transform": ("NONE",), "kernel_type": KERNELS})
def read_svm_regressor(
    g, x, *, coefficients: Floats, support_vectors: Floats = (), n_supports=0, rho: Floats = (0.0,),
    kernel_type="LINEAR", kernel_params: Floats = (), one_class=0, post_transform="NONE",
):  # fmt: skip
    """A sum over the support vectors; its sign where there is one class only."""
    vectors = vectors_of(support_vectors, n_supports)
    alike = evaluate_kernels(g, x, vectors, kernel_type, kernel_params)
    weights = np.asarray(coefficients, np.float32).reshape(-1, 1)
    y = g.Add(g.MatMul(alike, g.const(weights)), _row(g, rho[:1]))
    return g.Where(g.Greater(y, 0.0), 1.0, g.const(-1.0, DType.FLOAT32)) if one_class else y


@ml_rules("SVMClassifier", only={"post_transform": ("NONE",), "kernel_type": KERNELS})
def read_svm_classifier(
    g, x, *, coefficients: Floats, rho: Floats, support_vectors: Floats = (), vectors_per_class=(),
    kernel_type="LINEAR", kernel_params: Floats = (), prob_a: Floats = (), prob_b: Floats = (),
    classlabels_ints=(), classlabels_strings: tuple[str, ...] = (), post_transform="NONE",
):  # fmt: skip
    """The class that wins against most others; shares of all, or the scores of every two."""
    require(not classlabels_strings, "labels that are strings: give the classes numbers")
    count = len(classlabels_ints)
    vectors = vectors_of(support_vectors, sum(vectors_per_class))
    fits = count > 1 and len(vectors_per_class) == count and len(rho) == len(pairs_of(count))
    require(fits, "a machine with other numbers of classes, of their vectors and of scores")
    alike = evaluate_kernels(g, x, vectors, kernel_type, kernel_params)
    table = np.asarray(coefficients, np.float32).reshape(count - 1, len(vectors))
    scores = evaluate_decisions(g, alike, table, vectors_per_class, rho)
    labels = g.Gather(_row(g, classlabels_ints, DType.INT64), select_winners(g, scores, count))
    if prob_a:
        return labels, couple_probabilities(g, scores, count, prob_a, prob_b)
    return labels, g.Concat(g.Neg(scores), scores, axis=1) if count == 2 else scores


NODES = (
    "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true"
).split()
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # by the number of TreeEnsemble


def _add_base_values(g, scores: Value, base_values: Floats):
    return g.Add(scores, _row(g, base_values)) if base_values else scores


@ml_rules("TreeEnsemble", ignore=("nodes_hitrates",), only={"post_transform": (0,)})
def read_tree_ensemble(
    g, x, *, tree_roots: Ints, nodes_featureids: Ints, nodes_modes: Tensor, nodes_splits: Tensor,
    nodes_truenodeids: Ints, nodes_trueleafs: Ints, nodes_falsenodeids: Ints,
    nodes_falseleafs: Ints, leaf_targetids: Ints, leaf_weights: Tensor,
    nodes_missing_value_tracks_true=(), membership_values: Tensor | None = None, n_targets=1,
    aggregate_function=1, post_transform=0,
):  # fmt: skip
    """The same with leaves of their own; of what follows the sum runtimes disagree."""
    attrs = (nodes_featureids, nodes_modes.load(), nodes_splits.load(), nodes_truenodeids,
             nodes_trueleafs, nodes_falsenodeids, nodes_falseleafs,
             nodes_missing_value_tracks_true)  # fmt: skip
    names = "featureids modes splits truenodeids trueleafs falsenodeids falseleafs".split()
    nodes = dict(zip([*names, "missing_value_tracks_true"], attrs, strict=True))
    members = np.zeros(0) if membership_values is None else membership_values.load()
    leaves = leaf_weights.load(), leaf_targetids
    require(0 <= aggregate_function < len(AGGREGATES), f"{aggregate_function=}")
    forest = build_ensemble(nodes, tree_roots, leaves, members, n_targets)
    return evaluate_forest(g, x, forest, AGGREGATES[aggregate_function])


@ml_rules(
    "TreeEnsembleRegressor",
    ignore=("nodes_hitrates",),
    only={"post_transform": POST_TRANSFORMS, "aggregate_function": AGGREGATES},
)
def read_tree_regressor(
    g, x, *, nodes_treeids: Ints, nodes_nodeids: Ints, nodes_featureids: Ints,
    nodes_modes: tuple[str, ...], nodes_values: Floats, nodes_truenodeids: Ints,
    nodes_falsenodeids: Ints, target_treeids: Ints, target_nodeids: Ints, target_ids: Ints,
    target_weights: Floats, nodes_missing_value_tracks_true=(), n_targets=1,
    base_values: Floats = (), aggregate_function="SUM", post_transform="NONE",
):  # fmt: skip
    """What the trees say together, for each target."""
    attrs = (nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, nodes_values,
             nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true)  # fmt: skip
    weights = (target_treeids, target_nodeids, target_ids, target_weights)
    forest = build_forest(dict(zip(NODES, attrs, strict=True)), weights, n_targets)
    scores = evaluate_forest(g, x, forest, aggregate_function)
    return _apply_post_transform(g, _add_base_values(g, scores, base_values), post_transform)


@ml_rules(
    "TreeEnsembleClassifier", ignore=("nodes_hitrates",), only={"post_transform": POST_TRANSFORMS}
)
def read_tree_classifier(
    g, x, *, nodes_treeids: Ints, nodes_nodeids: Ints, nodes_featureids: Ints,
    nodes_modes: tuple[str, ...], nodes_values: Floats, nodes_truenodeids: Ints,
    nodes_falsenodeids: Ints, class_treeids: Ints, class_nodeids: Ints, class_ids: Ints,
    class_weights: Floats, nodes_missing_value_tracks_true=(), classlabels_int64s=(),
    classlabels_strings: tuple[str, ...] = (), base_values: Floats = (), post_transform="NONE",
):  # fmt: skip
    """The class the trees are for, and the scores of all; one score may stand for two classes."""
    require(not classlabels_strings, "labels that are strings: give the classes numbers")
    count = len(classlabels_int64s)
    attrs = (nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, nodes_values,
             nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true)  # fmt: skip
    single = count == 2 and len(set(class_ids)) == 1
    numbers = (0,) * len(class_ids) if single else class_ids
    weights = (class_treeids, class_nodeids, numbers, class_weights)
    forest = build_forest(dict(zip(NODES, attrs, strict=True)), weights, 1 if single else count)
    require(not single or len(base_values) < 2, "two base values for one score")
    scores = _add_base_values(g, evaluate_forest(g, x, forest), base_values)
    labels = _row(g, classlabels_int64s, DType.INT64)
    if not single:
        best = g.Gather(labels, g.ArgMax(scores, axis=1, keepdims=0))
        return best, _apply_post_transform(g, scores, post_transform)
    positive = min(class_weights) >= 0
    chosen = g.cast(g.Greater(g.Squeeze(scores, [1]), 0.5 if positive else 0.0), DType.INT64)
    other = g.Sub(1.0, scores) if positive else g.Neg(scores)
    both = g.Concat(other, scores, axis=1)
    return g.Gather(labels, chosen), both if positive else _apply_post_transform(
        g, both, post_transform
    )
