"""What a node of a file must be before any rule sees it."""

from __future__ import annotations

import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType, Node, Value
from serde.spec import schema
from serde.spec.source_checks import CHOICES, LEAST, RANKS, SINGLE, refuse_illegal_node

IMAGE, LIST = (1, 2, 5, 5), (3,)
BOTH = {"kernel_shape": (2, 2)}
LEGAL = [  # operator, opset, shapes of operands, attributes
    ("Relu", 28, [IMAGE], {}), ("Relu", 28, [None], {}), ("Concat", 28, [LIST] * 9, {"axis": 0}),
    ("MaxPool", 28, [IMAGE], {**BOTH, "pads": (0, 0, 1, 1), "auto_pad": "NOTSET"}),
    ("Clip", 11, [LIST, "", ()], {}), ("Split", 28, [LIST], {"num_outputs": 2}),
    ("Cast", 1, [LIST], {"to": "FLOAT"}), ("GRU", 1, [LIST * 3] * 3, {"direction": "foward"}),
    ("Softmax", 28, [LIST], {"axis": -1}), ("QuantizeLinear", 28, [(), ()], {"axis": 1}),
    ("TopK", 28, [LIST, (1,)], {}),
]  # fmt: skip
ILLEGAL = [  # the same, and what the message says
    ("Relu", 28, [], {}, "Relu with 0 inputs"),
    ("Relu", 28, [LIST, LIST], {}, "Relu with 2 inputs"),
    ("Add", 28, [LIST, ""], {}, "Add without its input 'B'"),
    ("Concat", 28, [LIST] * (1 << 16 | 1), {"axis": 0}, "Concat with 65537 inputs"),
    ("BitShift", 28, [LIST, LIST], {"direction": "UP"}, "BitShift with direction=UP"),
    ("DepthToSpace", 28, [IMAGE], {"blocksize": 2, "mode": "X"}, "DepthToSpace with mode=X"),
    ("DepthToSpace", 28, [IMAGE], {"blocksize": 0}, "DepthToSpace with blocksize=0"),
    ("MaxPool", 28, [IMAGE], {**BOTH, "auto_pad": "SAME"}, "MaxPool with auto_pad=SAME"),
    ("MaxPool", 28, [IMAGE], {**BOTH, "strides": (1, -1)}, r"MaxPool with strides=\(1, -1\)"),
    ("MaxPool", 28, [IMAGE], {**BOTH, "pads": (1, 1)}, r"pads=\(1, 1\) and kernel_shape=\(2, 2\)"),
    ("EyeLike", 28, [LIST], {}, r"input 0 of EyeLike is \(3\): it has 2 axes"),
    ("Slice", 28, [IMAGE, LIST, (1, 3)], {}, r"input 2 of Slice is \(1, 3\): it has 1 axes"),
    ("CumSum", 28, [IMAGE, LIST], {}, r"input 1 of CumSum is \(3\): it has one element"),
    ("Det", 28, [LIST], {}, r"Det of \(3\): it takes 2 axes"),
    ("Softmax", 28, [LIST], {"axis": 2}, r"axis 2 of \(3\)"),
    ("Softmax", 28, [LIST], {"axis": -2}, r"axis -2 of \(3\)"),
]  # fmt: skip


def make_node(op, shapes, attrs, outputs=1):
    values = tuple(
        None if s == "" else Value(f"x{i}", DType.FLOAT32, s) for i, s in enumerate(shapes)
    )
    return Node(op, values, tuple(Value(f"y{i}") for i in range(outputs)), attrs)


@pytest.mark.parametrize(("op", "opset", "shapes", "attrs"), LEGAL)
def test_what_is_legal_is_taken(op, opset, shapes, attrs):
    for _ in range(2):  # it is remembered
        refuse_illegal_node(opset, make_node(op, shapes, attrs))


@pytest.mark.parametrize(("op", "opset", "shapes", "attrs", "reason"), ILLEGAL,
                         ids=[f"{op}-{reason}" for op, *_, reason in ILLEGAL])  # fmt: skip
def test_what_is_not_is_refused(op, opset, shapes, attrs, reason):
    for _ in range(2):
        with pytest.raises(ConversionError, match=reason):
            refuse_illegal_node(opset, make_node(op, shapes, attrs))


@pytest.mark.parametrize(("op", "count", "reason"), [
    ("Relu", 0, "Relu without outputs"), ("Relu", 2, "Relu has at most 1 outputs, not 2"),
    ("Split", 9, None),
])  # fmt: skip
def test_outputs_are_counted(op, count, reason):
    node = make_node(op, [LIST], {}, count)
    if reason is None:
        refuse_illegal_node(13, node)
        return
    with pytest.raises(ConversionError, match=reason):
        refuse_illegal_node(13, node)


def test_ranks_are_looked_at_where_the_form_is_remembered():
    """A form that was right does not excuse the shapes of another node."""
    refuse_illegal_node(28, make_node("Det", [(3, 3)], {}))
    with pytest.raises(ConversionError, match="Det"):
        refuse_illegal_node(28, make_node("Det", [(3,)], {}))


@pytest.mark.parametrize("op", sorted({*CHOICES, *RANKS, *SINGLE, *LEAST}))
def test_tables_are_of_operators_of_the_standard(op):
    """And of their attributes, whose default comes first and is legal."""
    operator = schema.operator(op, 9 if op == "Upsample" else 28)
    for name, values in CHOICES.get(op, {}).items():
        default = operator.raw.attributes[name].default_value
        assert name in operator.attributes
        if default.type:
            assert (default.s.decode() if isinstance(values[0], str) else default.i) in values
    count = max(len(RANKS.get(op, ())), max(SINGLE.get(op, (0,))) + 1)
    assert count <= operator.raw.max_input
