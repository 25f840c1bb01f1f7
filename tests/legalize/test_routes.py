"""The steps of an operator on its way to a target."""

from __future__ import annotations

import pytest

from serde.errors import UnsupportedAttribute
from serde.ir.graph import IR_OPSET
from serde.legalize.routes import Way, drop_neutral, next_change, next_step
from serde.legalize.target import IR, opset_target
from serde.spec import schema


def list_ways(target, op, opset):
    """The steps of an operator as it is emitted, and the opsets that their rules speak."""
    steps, is_lowering = [], False
    while True:
        step = next_step(target, op, opset, is_lowering)
        steps.append((step.way, step.speaks))
        if step.way is Way.TARGET or (step.way is Way.IR and target is IR):
            return steps
        is_lowering = step.way is not Way.UP
        opset = step.speaks


@pytest.mark.parametrize(
    "target, op, opset, ways",
    [
        (IR, "Softmax", 11, [Way.UP, Way.IR]),
        (IR, "Relu", 7, [Way.IR]),
        (opset_target(11), "Softmax", IR_OPSET, [Way.DOWN, Way.TARGET]),
        (opset_target(17), "Relu", IR_OPSET, [Way.TARGET]),
        (opset_target(7), "MaxPool", IR_OPSET, [Way.DOWN, Way.DOWN, Way.TARGET]),
    ],
)
def test_ways(target, op, opset, ways):
    assert [way for way, _ in list_ways(target, op, opset)] == ways


def test_rules_speak_the_opset_behind_the_change():
    assert list_ways(opset_target(7), "Softmax", IR_OPSET)[0] == (Way.DOWN, 12)
    assert list_ways(IR, "Softmax", 7)[0] == (Way.UP, 13)


def test_every_way_ends():
    for op in schema.names() if hasattr(schema, "names") else ("Conv", "Resize", "Upsample", "Pad"):
        for opset in (7, 11, 17, 21, IR_OPSET):
            assert list_ways(opset_target(opset), op, IR_OPSET)[-1][0] is Way.TARGET


def test_changes_between_opsets():
    assert next_change("Softmax", 21, 7) == 13
    assert next_change("Softmax", 7, 21) == 13
    assert next_change("Softmax", 21, 13) is None


def test_attributes_of_no_effect_are_dropped_and_others_refused():
    operator = schema.operator("MaxPool", 9)
    attrs = {"kernel_shape": (2,), "ceil_mode": 0, "dilations": None}
    assert drop_neutral(operator, attrs, IR_OPSET, 9) == {"kernel_shape": (2,)}
    with pytest.raises(
        UnsupportedAttribute, match="MaxPool has no ceil_mode=1 at opset 9; opset 10 is"
    ):
        drop_neutral(operator, {"ceil_mode": 1}, IR_OPSET, 9)
