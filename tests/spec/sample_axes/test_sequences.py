"""Axes of sequences: those of the tensors in them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import Node, Value
from serde.spec.sample_axes import SHARED, find_sample_axes
from tests.spec.sample_axes.cases import constant

SEQUENCES = {
    "SequenceConstruct": [((0, 0), (0,)), ((1, 1), (1,))],
    "ConcatFromSequence": [((0, None), (0,))],
    "SplitToSequence": [((0, None), (0,))],
    "SequenceInsert": [((0, 0), (0,)), ((1, 1), (1,))],
    "SequenceAt": [((0, None), (0,)), ((1, None), (1,))],
    "SequenceLength": [((0,), (SHARED,)), ((1,), (SHARED,))],
}


@pytest.mark.parametrize("op", SEQUENCES)
def test_sequences_have_the_axes_of_their_tensors(op):
    count = len(SEQUENCES[op][0][0])
    operands = tuple(constant(n, np.ones((2, 3), np.float32)) for n in "xy"[:count])
    node = Node(op, operands, (Value("z"),), {"axis": 1})
    assert [(a.inputs, a.outputs) for a in find_sample_axes(node)] == SEQUENCES[op]
