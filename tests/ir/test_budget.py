"""What one conversion may make of what it reads: in proportion, and once for each file."""

from __future__ import annotations

import threading

import pytest

from serde.errors import ConversionError, MalformedFile
from serde.ir.budget import BYTES, VALUE, VALUES, Budget, active_budget, within_budget

FILE = (1, 2)  # device and inode


def left(budget):
    return budget.most_bytes - budget.bytes


def test_what_is_made_grows_with_what_is_read():
    budget = Budget()
    assert left(budget) == BYTES.least
    budget.add_file(FILE, 1000)
    budget.add_file(FILE, 1000)  # the same one
    assert left(budget) == BYTES.least + BYTES.growth * 1000
    budget.charge(left(budget), "an array")
    assert left(budget) == 0 and budget.affords(0) and not budget.affords(1)
    with pytest.raises(ConversionError, match=r"a table would take 2 MiB, .*--max-growth allows"):
        budget.charge(2 << 20, "a table")


def test_arrays_that_lie_in_a_file_cost_nothing_once():
    budget = Budget()
    budget.add_file(FILE, 1000)
    before = left(budget)
    budget.charge_part(FILE, 600, "w.bin", "weights")
    budget.charge_part(FILE, 400, "w.bin", "weights")
    assert left(budget) == before
    budget.charge_part(FILE, 300, "w.bin", "weights")
    assert left(budget) == before - 300
    with pytest.raises(MalformedFile, match=r"w\.bin: weights would take"):
        budget.charge_part(FILE, 1 << 40, "w.bin", "weights")


def test_the_holes_of_a_sparse_file_are_charged():
    budget = Budget()
    budget.add_file(FILE, 5000, "w.bin", stored=1000)
    assert left(budget) == BYTES.least + BYTES.growth * 1000 - 4000
    with pytest.raises(MalformedFile, match="the holes of a sparse file would take"):
        Budget().add_file(FILE, 1 << 40, "w.bin", stored=0)


def test_a_user_may_allow_more_but_not_less():
    budget = Budget()
    budget.allow_mebibytes(1)
    assert left(budget) == BYTES.least
    budget.allow_mebibytes(1024)
    assert left(budget) == 1 << 30
    assert budget.limit_values(10) == VALUES.of(10) + (1 << 30) // VALUE


def test_graphs_after_the_first_may_grow_a_little():
    budget = Budget()
    first = budget.limit_values(100)
    assert first == VALUES.of(100)
    assert budget.limit_values(first) == first + VALUES.least
    assert budget.limit_values(1) == first + VALUES.least  # no graph takes away from it


def test_one_budget_is_shared_within_a_conversion_and_with_no_other():
    assert active_budget() is not active_budget()
    with within_budget() as outer, within_budget() as inner:
        assert outer is inner is active_budget()
        others = []
        thread = threading.Thread(target=lambda: others.append(active_budget()))
        thread.start()
        thread.join()
        assert others[0] is not outer
    assert active_budget() is not outer
