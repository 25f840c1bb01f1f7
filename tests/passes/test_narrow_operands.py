"""Operands that were expanded although what reads them broadcasts."""

from __future__ import annotations

import pytest

from serde.passes.narrow_operands import group_axes
from tests.passes.merged_nodes import check_branches, check_nodes, list_for_branches

CASES = {
    "a mask that is expanded, reshaped and cast": (
        "(float[6,4,5] x) => (float[6,4,5] y)",
        "m = Expand(mask, heads) r = Reshape(m, flat) c = Cast<to = 9>(r) y = Where(c, x, one)",
        "Where",
    ),
    "a mask of which a part is expanded": (
        "(float[6,40,30] x) => (float[6,40,30] y)",
        "m = Expand(mask2, heads2) r = Reshape(m, flat2) c = Cast<to = 9>(r) y = Where(c, x, one)",
        "Where",
    ),
    "an expanded operand of any operator that broadcasts": (
        "(float[6,4,5] x, float[1,1,4,5] z) => (float[1,6,4,5] y)",
        "m = Expand(z, heads) y = Mean(x, m)",
        "Mean",
    ),
    "ones of the other operand's size": (
        "(float[40,50] x) => (float[40,50] y)",
        "s = Constant<value_ints = [40, 50]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "y = Add(a, x)",
        "Add",
    ),
    "ones that make the result larger": (
        "(float[50] x) => (float[400,50] y)",
        "s = Constant<value_ints = [400, 50]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "y = Add(a, x)",
        "ConstantOfShape Add",
    ),
    "constants that were expanded": (
        "(bool[40,50] x, float[40,50] z) => (float[40,50] y)",
        "s = Constant<value_ints = [40, 1]>() a = ConstantOfShape<value = float[1] {2}>(s) "
        "c = Constant<value_float = 3.0>() d = Mul(a, c) y = Where(x, d, z)",
        "Where",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fewer_nodes(name, tmp_path):
    check_nodes(*CASES[name], tmp_path)


@pytest.mark.parametrize("name", list_for_branches(CASES))
def test_fewer_nodes_in_branches(name, tmp_path):
    check_branches(*CASES[name], tmp_path)


@pytest.mark.parametrize(("before", "after", "groups"), [
    ((2, 3, 4), (6, 4), [([0, 1], [6]), ([2], [4])]), ((6, 4), (2, 3, 4), [([0], [2, 3]), ([1], [4])]),
    ((2, 6), (4, 3), [([0, 1], [4, 3])]), ((1, 5), (5,), [([0], []), ([1], [5])]), ((), (1, 1), [([], [1, 1])]),
    ((0, 3), (3, 0), [([0, 1], [3, 0])]), ((4,), (4, 1), [([0], [4]), ([], [1])]),
])  # fmt: skip
def test_the_axes_that_a_reshape_keeps_apart(before, after, groups):
    found = [*group_axes(before, after)]
    assert found == groups
    assert [axis for axes, _ in found for axis in axes] == [*range(len(before))]
    assert [size for _, sizes in found for size in sizes] == [*after]
