"""Places behind one node."""

from __future__ import annotations

import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType, Node, Value
from serde.passes.batch.nodes import natural_place, place_outputs
from serde.passes.batch.places import Place, Size
from serde.passes.batch.state import State
from testing.onnx_live import ir_of


def value(name: str, *shape: int) -> Value:
    return Value(name, DType.FLOAT32, shape)


def place(node: Node, **places: Place) -> State:
    reads = dict.fromkeys(node.outputs, 1)
    state = State(1, reads, {v: places[v.name] for v in node.inputs if v and v.name in places})
    place_outputs(state, node)
    return state


def test_broadcast_operands_stay_and_others_are_expanded():
    x, w = value("x", 1, 3), value("w", 1, 3)
    y = value("y", 1, 3)
    assert place(Node("Add", (x, w), (y,)), x=Place(0)).expansions[y] == {}
    y = value("y", 1, 6)
    state = place(Node("Concat", (x, w), (y,), {"axis": 1}), x=Place(0))
    assert state.places[y] == Place(0) and state.expansions[y] == {1: Place(0)}


REFUSED = {
    "two places": (Node("Add", (value("x", 1, 1), value("w", 1, 1)), (value("y", 1, 1),)), {"x": Place(0), "w": Place(1)}),
    "other factors": (Node("Add", (value("x", 4), value("w", 4)), (value("y", 4),)), {"x": Place(0, Size(4)), "w": Place(0, Size(1), Size(4))}),
    "a stretched sample": (Node("Add", (value("x", 1, 3), value("w", 5, 3)), (value("y", 5, 3),)), {"x": Place(0)}),
    "of another domain": (Node("Foo", (value("x", 1, 3),), (value("y", 1, 3),), domain="com.acme"), {"x": Place(0)}),
    "random numbers": (Node("RandomNormal", (), (value("y", 1, 3),), {"shape": (1, 3)}), {}),
    "indices of all": (Node("MaxPool", (value("x", 1, 3, 4),), (value("y", 1, 3, 4), value("i", 1, 3, 4)), {"kernel_shape": (1,)}), {"x": Place(0)}),
    "a shape for each": (Node("Reshape", (value("w", 3, 1), value("x", 1)), (value("y", 3),)), {"x": Place(0)}),
}  # fmt: skip


@pytest.mark.parametrize(("node", "places"), REFUSED.values(), ids=REFUSED)
def test_refusals_tell_what_to_do(node, places):
    with pytest.raises(ConversionError, match="end the model before it"):
        place(node, **places)


def test_another_domain_without_the_batch_stays():
    y = value("y", 1, 3)
    assert not place(Node("Foo", (value("x", 1, 3),), (y,), domain="com.acme")).places


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("Unsqueeze", 0, 1),
        ("Unsqueeze", 2, 3),
        ("Squeeze", 1, 0),
        ("Squeeze", 0, None),
        ("Relu", 0, None),
    ],
)
def test_axes_that_operators_name(text, old, new):
    shape = {"Unsqueeze": "1,2,3,4", "Squeeze": "3,4", "Relu": "2,3,4"}[text]
    operands = "x" if text == "Relu" else "x, a"
    rows = "1,3,4" if text == "Squeeze" else "2,3,4"
    graph = ir_of(
        f"g (float[{rows}] x) => (float[{shape}] y) <int64[1] a = {{0}}> {{ y = {text}({operands}) }}"
    )
    found = natural_place(graph.nodes[-1], Place(old))
    assert (None if found is None else found.axis) == new
