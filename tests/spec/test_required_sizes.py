"""Sizes by name that other operands say a number of."""

from __future__ import annotations

import pytest

from serde.ir.graph import DType, Value
from serde.spec import schema
from serde.spec.required_sizes import SHARED, find_required_sizes

REQUIRED = [  # operator, shapes of operands, attributes, and the names with their numbers
    ("Conv", [("N", "C", 5), (4, 3, 2)], {"group": 2}, {"C": 6}),
    ("Conv", [("N", "C", "W"), ("K", 3, 2), (8,)], {"group": 1}, {"C": 3, "K": 8}),
    ("ConvTranspose", [("N", "C", 5), (4, 3, 2)], {"group": 1}, {"C": 4}),
    ("InstanceNormalization", [("N", "C", 5), (3,), (3,)], {}, {"C": 3}),
    ("MatMul", [("N", "K"), (4, 3)], {}, {"K": 4}),
    ("MatMul", [("N", 7, 4), ("K", 3)], {}, {"K": 4}),
    ("MatMulInteger", [("K",), ("B", 5, 3)], {}, {"K": 5}),
    ("Gemm", [("N", "K"), (4, 3)], {"transB": 1}, {"K": 3}),
    ("Gemm", [("N", 3), (3, "M"), (2, 5)], {}, {"N": 2, "M": 5}),
    ("Gemm", [("N", 3), (3, "M"), (1, 5)], {}, {"M": 5}),
    ("Concat", [(4, 3), ("N", "L")], {"axis": 0}, {"L": 3}),
    ("Concat", [("N", "L"), (2, 3), (2, 4)], {"axis": -1}, {"N": 2}),
    ("LayerNormalization", [("N", "L", "C"), (4,), (3, 1)], {}, {"C": 4, "L": 3}),
    ("RMSNormalization", [("N", "C"), (4,)], {}, {"C": 4}),
    ("PRelu", [("N", "C", "W"), (3, 1)], {}, {"C": 3}),
]
FREE = [  # nothing is required
    ("Conv", [("N", 3, 5), (4, 3, 2)], {"group": 1}),
    ("MatMul", [("N", "K"), ("K", "M")], {}),
    ("Gemm", [("N", 3), (3, 4), (1, 4)], {}),
    ("PRelu", [("N", "C", 5), (1,)], {}),
    ("LayerNormalization", [("N", "C"), (1,)], {}),
    ("Concat", [(4, 3), ("N", "L", 1)], {"axis": 0}),
    ("Concat", [None, ("N", "L")], {"axis": 0}),
    ("Add", [("N", "C"), (3, 4)], {}),
]


def find(op, shapes, attrs):
    operands = [Value(f"x{i}", DType.FLOAT32, s) for i, s in enumerate(shapes)]
    return dict(find_required_sizes(schema.operator(op), operands, attrs))


@pytest.mark.parametrize(("op", "shapes", "attrs", "names"), REQUIRED)
def test_names_that_are_numbers(op, shapes, attrs, names):
    assert find(op, shapes, attrs) == names


@pytest.mark.parametrize(("op", "shapes", "attrs"), FREE)
def test_names_that_may_be_any_number(op, shapes, attrs):
    """As 1 is repeated, or nothing is known."""
    assert find(op, shapes, attrs) == {}


def test_every_operator_of_the_table_is_tried():
    assert SHARED.keys() <= {op for op, *_ in REQUIRED}
