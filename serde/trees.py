"""Ensembles of decision trees in the IR's operators: every sample walks down all trees at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import require
from serde.graph import DType, Value
from serde.idioms import cast

DEEPEST = 512  # steps from a root to a leaf
COMPARISONS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater", "BRANCH_EQ": "Equal", "BRANCH_NEQ": "Equal",
}  # fmt: skip
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees as arrays; a leaf is its own child on both sides.

    ``leaves`` has the weights of each node for each target.
    """

    roots: Array
    features: Array
    thresholds: Array
    modes: Sequence[str]
    yes: Array
    no: Array
    missing: Array
    leaves: Array
    depth: int


def forest_of(nodes: Mapping[str, Any], weights: Sequence[Any], targets: int) -> Forest:
    """The forest that a node's attributes spell; ``weights`` are trees, nodes, targets, weights."""
    keys = list(zip(nodes["treeids"], nodes["nodeids"], strict=True))
    rows = {key: i for i, key in enumerate(keys)}
    require(len(rows) == len(keys), "two nodes of one number in a tree")
    inner = [m != "LEAF" for m in nodes["modes"]]
    yes, no = np.arange(len(keys)), np.arange(len(keys))
    for i, (tree, _) in enumerate(keys):
        ends = [(tree, nodes[k][i]) for k in ("truenodeids", "falsenodeids")]
        if inner[i]:
            require(all(e in rows for e in ends), "a branch to a node that is not there")
            yes[i], no[i] = (rows[e] for e in ends)
    leaves = np.zeros((len(keys), targets), np.float32)
    for tree, node, target, weight in zip(*weights, strict=True):
        require((tree, node) in rows and 0 <= target < targets, "a weight of no leaf or target")
        leaves[rows[tree, node], target] += weight
    first = {tree: i for i, (tree, _) in reversed(list(enumerate(keys)))}
    roots = np.array(sorted(first.values()))
    tracks = nodes.get("missing_value_tracks_true") or [0] * len(keys)
    return Forest(
        roots, np.array(nodes["featureids"]), np.array(nodes["values"], np.float32),
        nodes["modes"], yes, no, np.array(tracks, bool), leaves, _depth(roots, yes, no),
    )  # fmt: skip


def _depth(roots: Array, yes: Array, no: Array) -> int:
    """The most steps from a root to a leaf."""
    at = roots
    for step in range(DEEPEST + 1):
        at = np.unique(np.concatenate([yes[at], no[at]]))
        if (yes[at] == at).all() and (no[at] == at).all():
            return step + 1
    require(False, f"trees deeper than {DEEPEST} steps, or that run in a circle")
    raise AssertionError


def weighed(g: Any, x: Value, forest: Forest, aggregate: str = "SUM") -> Any:
    """What the leaves that each sample comes to weigh for each target."""
    x = cast(g, x, DType.FLOAT32)
    at: Any = None
    for _ in range(forest.depth):
        at = _step(g, x, forest, at)
    found = g.Gather(g.const(forest.leaves), at, axis=0)
    operator = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
    total = g[operator[aggregate]](found, [1], keepdims=0)
    return g.Div(total, float(len(forest.roots))) if aggregate == "AVERAGE" else total


def _step(g: Any, x: Value, forest: Forest, at: Any) -> Any:
    """The children the samples come to from nodes ``at``, or from the roots."""

    def of(table: Array) -> Any:
        if at is None:
            return g.const(table[forest.roots])
        return g.Gather(g.const(table), at, axis=0)

    features = of(forest.features.astype(np.int64))
    if at is None:
        value = g.Gather(x, features, axis=1)
    else:
        value = g.GatherElements(x, features, axis=1)
        value.shape = at.shape  # which is lost where a target has to spell this out
    branches = sorted({m for m in forest.modes if m != "LEAF"}) or ["BRANCH_LEQ"]
    made = [_compared(g, mode, value, of(forest.thresholds)) for mode in branches]
    goes = made[0]
    for mode, other in zip(branches[1:], made[1:], strict=True):
        kinds = np.array([m == mode for m in forest.modes])
        goes = g.Where(of(kinds), other, goes)
    if forest.missing.any():
        goes = g.Or(goes, g.And(g.IsNaN(value), of(forest.missing)))
    return g.Where(goes, of(forest.yes.astype(np.int64)), of(forest.no.astype(np.int64)))


def _compared(g: Any, mode: str, value: Value, threshold: Any) -> Any:
    found = g[COMPARISONS[mode]](value, threshold)
    return g.Not(found) if mode == "BRANCH_NEQ" else found
