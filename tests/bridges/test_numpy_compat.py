"""Names that MXNet looks for in NumPy and that NumPy no longer has."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from serde.bridges import numpy_compat


@pytest.fixture
def restored(monkeypatch):
    """NumPy with the names, for one test."""
    before = dict(vars(np))
    numpy_compat.restore()
    yield np
    for name in set(vars(np)) - set(before):
        delattr(np, name)


def test_every_name_mxnet_looks_for_is_there(restored):
    listed = (
        "PZERO NZERO PINF NINF NAN NaN Inf infty Infinity bool float int object alltrue sometrue "
        "product cumproduct round_ row_stack in1d trapz msort mirr npv pmt ppmt pv rate fv ipmt "
        "irr nper"
    )
    for name in listed.split():
        assert name in vars(restored), name


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # some NumPy still has, and warns of
def test_they_mean_what_they_did(restored):
    present = vars(restored)
    assert (present["PINF"], present["NINF"]) == (np.inf, -np.inf) and np.isnan(present["NaN"])
    assert np.signbit(present["NZERO"]) and not np.signbit(present["PZERO"])
    assert np.zeros(1, present["float"]).dtype == np.float64
    assert not present["alltrue"]([1, 0]) and present["sometrue"]([1, 0])
    assert present["product"]([2, 3]) == 6 and present["cumproduct"]([2, 3]).tolist() == [2, 6]
    assert present["row_stack"]([[1], [2]]).shape == (2, 1)
    assert present["in1d"]([[1, 2]], [2]).tolist() == [False, True]
    assert present["msort"]([[3, 1], [2, 4]]).tolist() == [[2, 1], [3, 4]]
    assert present["trapz"]([1, 2]) == 1.5 and present["round_"](1.2) == 1


@pytest.mark.parametrize("name", numpy_compat.FINANCIAL)
def test_the_financial_ones_are_names_alone(restored, name):
    with pytest.raises(NotImplementedError, match=f"use numpy_financial.{name}"):
        vars(restored)[name](1, 2)


def test_what_numpy_has_is_left_alone(restored):
    assert np.prod is vars(np)["prod"] and vars(np)["sort"] is np.sort


def test_numbers_are_told_to_mxnet_without_their_type():
    for value, text in [(np.int64(4), "4"), (np.float32(0.5), "0.5"), ((np.int64(1), 2), "(1, 2)"),
                        ("np.int64(4) in a text", "np.int64(4) in a text"), (3, "3")]:  # fmt: skip
        assert numpy_compat._attribute_text(value) == text


def test_importing_the_module_changes_nothing():
    code = (
        "import numpy, sys; before = set(vars(numpy)); import serde.bridges.numpy_compat;"
        "assert set(vars(numpy)) == before; assert 'mxnet' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
