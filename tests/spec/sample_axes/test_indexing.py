"""Axes of operators that move elements, or pick them by place."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import Node, Value
from serde.spec.sample_axes import find_sample_axes, indexing
from tests.spec.sample_axes.cases import check_operator, constant, operators_of


@pytest.mark.parametrize("op", operators_of(indexing))
def test_results_are_permuted_as_operands_are(op):
    check_operator(op)


def axes_of(op, *operands, **attrs):
    inputs = tuple(constant(f"x{i}", np.asarray(a)) for i, a in enumerate(operands))
    return [
        (a.inputs[0], a.outputs[0])
        for a in find_sample_axes(Node(op, inputs, (Value("y"),), attrs))
    ]


@pytest.mark.parametrize(("op", "operands", "attrs", "expected"), [
    ("Transpose", [], {"perm": (2, 0, 1)}, [(2, 0), (0, 1), (1, 2)]),
    ("Concat", [], {"axis": -1}, [(0, 0), (1, 1)]),
    ("Split", [], {"axis": -2}, [(0, 0), (2, 2)]),
    ("Compress", [[True]], {}, []),
    ("Slice", [[1, 0], [2, 3], [0, 1]], {}, [(1, 1), (2, 2)]),
    ("Pad", [[0, 0, 1, 0, 0, 0]], {}, [(0, 0), (1, 1)]),
    ("Tile", [[1, 2, 1]], {}, [(0, 0), (2, 2)]),
    ("Gather", [[0]], {"axis": 1}, [(0, 0), (2, 2), (None, 1)]),
])  # fmt: skip
def test_axes_of_a_tensor_of_three(op, operands, attrs, expected):
    """Those that are moved, or that nothing is picked along."""
    assert axes_of(op, np.ones((2, 3, 4), np.float32), *operands, **attrs) == expected
