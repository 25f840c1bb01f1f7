"""Axes of operators on elements, and of those along some axes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import Node, Value
from serde.spec.sample_axes import ANY, SHARED, elementwise, find_sample_axes
from tests.spec.sample_axes.cases import check_operator, constant, operators_of


@pytest.mark.parametrize("op", operators_of(elementwise))
def test_results_are_permuted_as_operands_are(op):
    check_operator(op)


def test_an_operand_of_another_type_is_shared():
    x, k = constant("x", np.ones((2, 3))), constant("k", np.ones(5, np.int32))
    node = Node("CastLike", (x, k), (Value("y"),))
    first, second, of_type = find_sample_axes(node)
    assert first.inputs == (0, ANY) and second.outputs == (1,) and of_type.outputs == (SHARED,)
