"""Ensembles of trees in the standard's operators, with the answers of those who have them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions.tree_ensemble import DEEPEST, build_ensemble, build_forest
from serde.errors import ConversionError
from testing.decomposed import run_without_domains
from tests.learned_models import FORESTS, LABELS, X, assert_classes, assert_numbers, fit
from tests.tree_ensembles import CASES, assert_ensemble


def compute(model, x=X):
    return run_without_domains(model, x)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", FORESTS)
def test_forests(name, classes):
    assert_classes(compute, fit(FORESTS[name], np.minimum(LABELS, classes - 1)))


@pytest.mark.parametrize("name", ["random forest", "boosted trees"])
def test_numbers(name):
    assert_numbers(compute, name)


@pytest.mark.parametrize("name", CASES)
def test_ensembles(name):
    """Of all comparisons and sums, with numbers on the splits and holes."""
    assert_ensemble(compute, name)


# A tree of one split: node 0, and the leaves 1 and 2.
STUMP = {
    "treeids": [0, 0, 0], "nodeids": [0, 1, 2], "featureids": [1, 0, 0], "values": [0.5, 0, 0],
    "modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "truenodeids": [1, 0, 0], "falsenodeids": [2, 0, 0],
}  # fmt: skip
WEIGHTS = [(0, 0), (1, 2), (0, 0), (3.0, 4.0)]


def test_a_leaf_is_its_own_child():
    forest = build_forest(STUMP, WEIGHTS, 1)
    assert (forest.yes.tolist(), forest.no.tolist()) == ([1, 1, 2], [2, 1, 2])
    assert (forest.roots.tolist(), forest.depth) == ([0], 1)
    assert forest.leaves[:, 0].tolist() == [0, 3, 4]
    assert forest.has_weight[:, 0].tolist() == [False, True, True]


@pytest.mark.parametrize(("nodes", "weights", "reason"), [
    ({"nodeids": [0, 1, 1]}, WEIGHTS, "two nodes of one number in a tree"),
    ({"truenodeids": [7, 0, 0]}, WEIGHTS, "a branch to a node that is not there"),
    ({}, [(0,), (7,), (0,), (1.0,)], "a weight of no leaf or target"),
    ({}, [(0,), (1,), (1,), (1.0,)], "a weight of no leaf or target"),
    ({"truenodeids": [0, 0, 0]}, WEIGHTS, f"trees deeper than {DEEPEST} steps, or that run in a"),
])  # fmt: skip
def test_trees_that_are_none_are_refused(nodes, weights, reason):
    with pytest.raises(ConversionError, match=reason):
        build_forest({**STUMP, **nodes}, weights, 1)


SPLIT = {
    "featureids": [0], "modes": [0], "splits": [0.5], "truenodeids": [0], "trueleafs": [1],
    "falsenodeids": [1], "falseleafs": [1], "missing_value_tracks_true": [],
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "roots", "targets", "members", "reason"), [
    ({}, [1], [0, 0], [], "a root that is not there"),
    ({}, [0], [0, 1], [], "a weight of no target"),
    ({}, [0], [0], [], "a weight of no target"),
    ({"falsenodeids": [2]}, [0], [0, 0], [], "a branch to a node that is not there"),
    ({"falseleafs": [0]}, [0], [0, 0], [], "a branch to a node that is not there"),
    ({"modes": [7]}, [0], [0, 0], [], "a comparison of no known kind"),
    ({"modes": [6]}, [0], [0, 0], [1, np.nan, 2], "2 sets for 1 nodes that ask for one"),
])  # fmt: skip
def test_ensembles_that_are_none_are_refused(nodes, roots, targets, members, reason):
    leaves, sets = (np.float32([1, 2]), targets), np.array(members, np.float32)
    with pytest.raises(ConversionError, match=reason):
        build_ensemble({**SPLIT, **nodes}, roots, leaves, sets, 1)
    assert build_ensemble(SPLIT, [0], (leaves[0], [0, 0]), sets, 1).depth == 1
