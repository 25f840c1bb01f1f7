"""What rules of sample axes share."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType, Node, Value
from serde.spec.sample_axes import table
from tests.spec.sample_axes.cases import check_operator, constant, operators_of

F32 = DType.FLOAT32


@pytest.mark.parametrize("op", operators_of(table))
def test_results_are_permuted_as_operands_are(op):
    check_operator(op)


def make_node(*shapes, attrs=None, outputs=1):
    values = tuple(None if s is None else Value(f"x{i}", F32, s) for i, s in enumerate(shapes))
    return Node("Foo", values, tuple(Value(f"y{i}") for i in range(outputs)), attrs or {})


def test_operands_are_aligned_at_the_end():
    """An operand of fewer axes, or none that is given, has none of the first."""
    axes = table.align_operands(make_node((2, 3), ("N",), None, outputs=2))
    assert [(a.inputs, a.outputs, a.broadcasts) for a in axes] == [
        ((0, None, None), (0, 0), True), ((1, 0, None), (1, 1), True),
    ]  # fmt: skip


def test_axes_of_the_first_operand():
    node = make_node((2, 3), (3,), outputs=2)
    (axis,) = table.first_operand(node, [(1, 0)])
    assert (axis.inputs, axis.outputs) == ((1, None), (0, 0))
    (axis,) = table.first_output(node, [1])
    assert (axis.inputs, axis.outputs) == ((1, None), (1, None))
    axis = table.one_axis(node, (1, 0, 5), 0)
    assert (axis.inputs, axis.outputs) == ((1, 0), (0, 0))


@pytest.mark.parametrize(("axes", "others"), [([0], (1, 2)), ([-1, 1], (0,)), ([], (0, 1, 2))])
def test_the_axes_that_are_not_named(axes, others):
    assert table.other_axes(make_node((2, 3, 4)), axes) == others


def test_an_operand_that_is_lacking_is_named():
    node = make_node((2,), None)
    assert [table.has_operand(node, i) for i in range(3)] == [True, False, False]
    for index in (1, 2):
        with pytest.raises(ConversionError, match=f"Foo lacks operand {index}"):
            table.operand(node, index)


def test_what_is_known_of_integers():
    known = Node("Foo", (constant("x", np.int64([4, -1])), None), (Value("y"),), {"axis": -1})
    assert table.known_integers(known, 0) == (4, -1)
    assert table.known_integers(known, 1) is None
    named = Value("x", DType.INT64, (2,))
    named.shape_data = ("N", 3)
    assert table.known_integers(Node("Foo", (named,), (Value("y"),)), 0) == (None, 3)
    assert table.integer(known, "axis", 0) == -1 and table.integer(known, "other", 7) == 7
    assert table.attribute_axis(known, 0) == 0
