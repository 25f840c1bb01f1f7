"""Axes of layers: of samples, and of what they treat alike."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import Node, Value
from serde.spec.sample_axes import find_sample_axes, layers
from tests.spec.sample_axes.cases import check_operator, constant, operators_of


@pytest.mark.parametrize("op", operators_of(layers))
def test_results_are_permuted_as_operands_are(op):
    check_operator(op)


def test_a_matrix_product_has_those_of_rows_and_columns():
    """And those of stacked matrices, which broadcast; not the one that is summed over."""
    node = Node("MatMul", (constant("a", np.ones((5, 2, 3))), constant("b", np.ones((3, 4)))),
                (Value("y"),))  # fmt: skip
    axes = {(a.inputs, a.outputs) for a in find_sample_axes(node)}
    assert axes == {((0, None), (0,)), ((1, None), (1,)), ((None, 1), (2,))}
