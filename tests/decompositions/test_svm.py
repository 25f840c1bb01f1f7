"""Support vector machines in the standard's operators, with scikit-learn's answers."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions.svm import pairs_of, vectors_of
from serde.errors import ConversionError
from testing.decomposed import run_without_domains
from tests.learned_models import CURVES, MACHINES, X, assert_curve, assert_machine, assert_strangers


def compute(model):
    return run_without_domains(model, X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, classes):
    assert_machine(compute, name, classes)


@pytest.mark.parametrize("name", CURVES)
def test_curves(name):
    assert_curve(compute, name)


def test_strangers():
    assert_strangers(compute)


def test_pairs_have_the_order_of_their_scores():
    """That of libsvm: the first class against all after it, then the second."""
    assert pairs_of(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_vectors_are_rows():
    np.testing.assert_array_equal(vectors_of((1.0, 2.0, 3.0, 4.0), 2), [[1, 2], [3, 4]])
    with pytest.raises(ConversionError, match="a machine without support vectors"):
        vectors_of((), 0)
    with pytest.raises(ConversionError, match="3 numbers of 2 support vectors"):
        vectors_of((1.0, 2.0, 3.0), 2)
