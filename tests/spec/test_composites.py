"""Composite operators: the shapes of their results."""

from __future__ import annotations

import pytest

from serde.decompositions import composites as decompositions
from serde.errors import ConversionError
from serde.ir.graph import DType, Node, Value
from serde.spec.composites import DOMAIN, SHAPES, infer_types

F16 = DType.FLOAT16
CASES = [  # operator, operands, attributes, shapes of the results
    ("AdaptivePool", [("N", 3, 9, "W")], {"output_size": (4, 3)}, [("N", 3, 4, 3)]),
    ("AlphaDropout", [("N", 3)], {"rate": 0.5}, [("N", 3)]),
    ("FeatureDropout", [(2, 3, 4)], {"rate": 0.5}, [(2, 3, 4)]),
    ("StopGradient", [()], {}, [()]),
    ("ProjectedLSTM", [("T", "N", 3), (2, 16, 3), (2, 16, 2), (2, 2, 4)], {},
     [("T", "N", 4), (2, "N", 2), (2, "N", 4)]),
]  # fmt: skip


def make_node(op, shapes, attrs, count, domain=DOMAIN):
    values = tuple(Value(f"x{i}", F16, s) for i, s in enumerate(shapes))
    return Node(op, values, tuple(Value(f"y{i}") for i in range(count)), attrs, domain)


@pytest.mark.parametrize(("op", "shapes", "attrs", "expected"), CASES)
def test_results_have_the_types_that_follow(op, shapes, attrs, expected):
    """Also where fewer of them are asked for."""
    for count in range(1, len(expected) + 1):
        node = make_node(op, shapes, attrs, count)
        infer_types(node)
        assert [(v.dtype, v.shape) for v in node.outputs] == [(F16, s) for s in expected[:count]]


def test_every_composite_has_a_shape_and_a_decomposition():
    assert {op for op, *_ in CASES} == SHAPES.keys() == decompositions.composites.rules.keys()


def test_nothing_is_inferred_of_other_operators():
    node = make_node("Foo", [(2,)], {}, 1)
    infer_types(node)
    assert node.outputs[0].dtype is None


@pytest.mark.parametrize(("op", "shapes", "reason"), [
    ("AlphaDropout", [], "a layer of one operand without it"),
    ("StopGradient", [(2,), (3,)], "a layer of one operand without it"),
    ("ProjectedLSTM", [(5, 2, 3), (1, 16, 3), (1, 16, 2)], "without its projection"),
])  # fmt: skip
def test_operands_that_are_lacking_are_refused(op, shapes, reason):
    with pytest.raises(ConversionError, match=reason):
        SHAPES[op]([Value(f"x{i}", F16, s) for i, s in enumerate(shapes)], {})
