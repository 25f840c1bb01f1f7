"""Ensembles of decision trees in the IR's operators: every sample walks down all trees at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Value

DEEPEST = 512  # steps from a root to a leaf
MEMBER = "BRANCH_MEMBER"
KINDS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", MEMBER)
COMPARISONS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater", "BRANCH_EQ": "Equal", "BRANCH_NEQ": "Equal",
}  # fmt: skip
Array = np.ndarray[Any, Any]


class Forest(NamedTuple):
    """The nodes of all trees as arrays; a leaf is its own child on both sides.

    ``leaves`` has the weights of each node for each target, ``has_weight`` whether it has one.
    ``members`` are the sets that nodes compare with, NaN where there is none.
    """

    roots: Array
    features: Array
    thresholds: Array
    modes: Sequence[str]
    yes: Array
    no: Array
    missing: Array
    leaves: Array
    has_weight: Array
    depth: int
    members: Array | None = None


def build_forest(nodes: Mapping[str, Any], weights: Sequence[Any], targets: int):
    """The forest that a node's attributes spell; ``weights`` are trees, nodes, targets, weights."""
    keys = list(zip(nodes["treeids"], nodes["nodeids"], strict=True))
    rows = {key: i for i, key in enumerate(keys)}
    require(len(rows) == len(keys), "two nodes of one number in a tree")
    inner = [m != "LEAF" for m in nodes["modes"]]
    yes, no = arrays.arange(len(keys)), arrays.arange(len(keys))
    for i, (tree, _) in enumerate(keys):
        ends = [(tree, nodes[k][i]) for k in ("truenodeids", "falsenodeids")]
        if inner[i]:
            require(all(e in rows for e in ends), "a branch to a node that is not there")
            yes[i], no[i] = (rows[e] for e in ends)
    leaves = arrays.zeros((len(keys), targets), np.float32)
    has_weight = arrays.zeros((len(keys), targets), bool)
    for tree, node, target, weight in zip(*weights, strict=True):
        require((tree, node) in rows and 0 <= target < targets, "a weight of no leaf or target")
        leaves[rows[tree, node], target] += weight
        has_weight[rows[tree, node], target] = True
    first = {tree: i for i, (tree, _) in reversed(list(enumerate(keys)))}
    roots = np.array(sorted(first.values()))
    tracks = nodes.get("missing_value_tracks_true") or [0] * len(keys)
    return Forest(
        roots, np.array(nodes["featureids"]), np.array(nodes["values"], np.float32),
        nodes["modes"], yes, no, np.array(tracks, bool), leaves, has_weight, _depth(roots, yes, no),
    )  # fmt: skip


def build_ensemble(
    nodes: Mapping[str, Any], roots: Sequence[int], leaves: tuple[Array, Sequence[int]],
    members: Array, targets: int,
):  # fmt: skip
    """The forest of the attributes of a ``TreeEnsemble``: inner nodes, and behind them leaves.

    ``leaves`` are weights and targets, ``members`` sets one after the other with NaN behind each.
    """
    weights, ids = leaves
    inner, count = len(nodes["modes"]), len(weights)
    require(len(ids) == count and all(0 <= i < targets for i in ids), "a weight of no target")
    require(all(0 <= r < inner for r in roots), "a root that is not there")
    ends = []
    for side in ("true", "false"):
        at, leaf = (np.array(nodes[f"{side}{n}"], np.int64) for n in ("nodeids", "leafs"))
        most = np.where(leaf, count, inner)
        require(((at >= 0) & (at < most)).all(), "a branch to a node that is not there")
        ends.append(np.concatenate([at + inner * (leaf != 0), arrays.arange(count) + inner]))
    of_leaf = arrays.arange(count) + inner, np.array(ids, np.int64)
    table = arrays.zeros((inner + count, targets), weights.dtype)
    has_weight = arrays.zeros((inner + count, targets), bool)
    table[of_leaf], has_weight[of_leaf] = weights, True
    require(all(m < len(KINDS) for m in nodes["modes"]), "a comparison of no known kind")
    modes = [*(KINDS[m] for m in nodes["modes"]), *["LEAF"] * count]
    rows = np.array(roots, np.int64)

    def pad(values, dtype):
        return np.concatenate([np.array(values, dtype), arrays.zeros(count, dtype)])

    tracks = nodes["missing_value_tracks_true"] or [0] * inner
    return Forest(
        rows, pad(nodes["featureids"], np.int64), pad(nodes["splits"], weights.dtype), modes,
        ends[0], ends[1], pad(tracks, bool), table, has_weight, _depth(rows, *ends),
        _sets(modes, members),
    )  # fmt: skip


def _sets(modes: Sequence[str], members: Array):
    """A row for each node, of the length of the largest set."""
    if MEMBER not in modes:
        return None
    ends = np.flatnonzero(np.isnan(members))
    sets = [part[~np.isnan(part)] for part in np.split(members, ends)]
    sets = sets[:-1] if ends.size and ends[-1] == len(members) - 1 else sets
    at_members = [i for i, mode in enumerate(modes) if mode == MEMBER]
    require(
        len(at_members) == len(sets),
        f"{len(sets)} sets for {len(at_members)} nodes that ask for one",
    )
    table = arrays.full((len(modes), max(map(len, sets), default=0) or 1), np.nan, members.dtype)
    for row, values in zip(at_members, sets, strict=True):
        table[row, : len(values)] = values
    return table


def _depth(roots: Array, yes: Array, no: Array):
    """The most steps from a root to a leaf."""
    at = roots
    for step in range(DEEPEST + 1):
        at = np.unique(np.concatenate([yes[at], no[at]]))
        if (yes[at] == at).all() and (no[at] == at).all():
            return step + 1
    require(False, f"trees deeper than {DEEPEST} steps, or that run in a circle")
    raise AssertionError


def evaluate_forest(g, x: Value, forest: Forest, aggregate: str = "SUM"):
    """What the leaves that each sample comes to weigh for each target; 0 where none does."""
    floats = x.type.kind == "f"
    x = g.cast(x, DType(str(forest.leaves.dtype)))
    x, holes = _replace_nan(g, x, forest) if floats else (x, None)
    at: Any = None
    for _ in range(forest.depth):
        at = _step(g, x, holes, forest, at)
    if aggregate in ("MIN", "MAX"):
        return _extreme(g, at, forest, aggregate)
    total = g.ReduceSum(g.Gather(g.const(forest.leaves), at, axis=0), [1], keepdims=0)
    return g.Div(total, float(len(forest.roots))) if aggregate == "AVERAGE" else total


def _replace_nan(g, x: Value, forest: Forest):
    """``x`` without NaN, with which TVM does not always compare alike, and 1 where there was one.

    Where all nodes send what is missing the same way, a number beyond any does so.
    """
    inner = [i for i, mode in enumerate(forest.modes) if mode != "LEAF"]
    holes, sides = g.IsNaN(x), set(_sends_nan_to_first(forest)[inner].tolist())
    if len(sides) == 1 and all(forest.modes[i] in ("BRANCH_LEQ", "BRANCH_LT") for i in inner):
        far = np.finfo(forest.leaves.dtype).max * (-1 if sides.pop() else 1)
        return g.Where(holes, g.const(far, x.type), x), None
    return g.Where(holes, g.const(0.0, x.type), x), g.cast(holes, DType.FLOAT32)


def _sends_nan_to_first(forest: Forest):
    """Which nodes send NaN to their first child; it is unlike any number."""
    unlike: Array = forest.missing | np.array([m == "BRANCH_NEQ" for m in forest.modes])
    return unlike


def _extreme(g, at: Value, forest: Forest, aggregate: str):
    """The least or largest weight; a leaf that says nothing of a target has no part in it."""
    far = np.finfo(forest.leaves.dtype).max * (1 if aggregate == "MIN" else -1)
    leaves = np.where(forest.has_weight, forest.leaves, far)
    operator = "ReduceMin" if aggregate == "MIN" else "ReduceMax"
    extreme = g[operator](g.Gather(g.const(leaves), at, axis=0), [1], keepdims=0)
    ends = forest.yes == arrays.arange(len(forest.yes))
    if forest.has_weight[ends].all():
        return extreme
    has_weight = g.Gather(g.const(forest.has_weight.astype(np.float32)), at, axis=0)
    any_ = g.Greater(g.ReduceMax(has_weight, [1], keepdims=0), 0.5)
    return g.Where(any_, extreme, g.const(np.zeros((), leaves.dtype)))


def _step(g, x: Value, holes: Value | None, forest: Forest, at):
    """The children the samples come to from nodes ``at``, or from the roots."""

    def of(table: Array):
        if at is None:
            return g.const(table[forest.roots])
        return g.Gather(g.const(table), at, axis=0)

    def feature(table: Value):
        if at is None:
            return g.Gather(table, features, axis=1)
        values: Value = g.GatherElements(table, features, axis=1)
        values.shape = at.shape  # which is lost where a target has to spell this out
        return values

    features = of(forest.features.astype(np.int64))
    value = feature(x)
    branches = sorted({m for m in forest.modes if m != "LEAF"}) or ["BRANCH_LEQ"]
    masks = [
        _is_member(g, value, of(forest.members))
        if mode == MEMBER and forest.members is not None
        else _compare(g, mode, value, of(forest.thresholds))
        for mode in branches
    ]
    goes = masks[0]
    for mode, other in zip(branches[1:], masks[1:], strict=True):
        kinds = np.array([m == mode for m in forest.modes])
        goes = g.Or(g.And(of(kinds), other), g.And(of(~kinds), goes))  # few have a Where of bools
    if holes is not None:
        hole = g.Greater(feature(holes), 0.5)
        sent = g.And(hole, of(_sends_nan_to_first(forest)))
        goes = g.Or(sent, g.And(g.Not(hole), goes))
    return g.Where(goes, of(forest.yes.astype(np.int64)), of(forest.no.astype(np.int64)))


def _compare(g, mode: str, value: Value, threshold):
    mask = g[COMPARISONS[mode]](value, threshold)
    return g.Not(mask) if mode == "BRANCH_NEQ" else mask


def _is_member(g, value: Value, sets):
    """Whether each value is in its set, along the last axis."""
    same = g.cast(g.Equal(g.Unsqueeze(value, [2]), sets), DType.FLOAT32)
    return g.Greater(g.ReduceMax(same, [2], keepdims=0), 0.5)
