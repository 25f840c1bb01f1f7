"""What cannot be said at an opset is refused, naming the lowest that can say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from serde.errors import Unconvertible
from serde.ir.graph import DType, Graph
from serde.legalize.convert import lower_to
from serde.spec.onnx_builder import OnnxBuilder

FLOAT, INT, TEXT = DType.FLOAT32, DType.INT64, DType.STRING
Operand = tuple[DType, tuple[Any, ...]]


def graph_of(op: str, operands: Sequence[Any], attrs: Mapping[str, Any], outputs: int) -> Graph:
    """A graph of one operator, its operands inputs of these types."""
    g = OnnxBuilder("one")
    inputs = [None if o is None else g.input(f"x{i}", *o) for i, o in enumerate(operands)]
    values = g[op](*inputs, outputs=outputs, **attrs)
    return g.build(values if isinstance(values, tuple) else [values])


CASES: list[tuple[str, int, Sequence[Operand | None], Mapping[str, Any], int]] = [
    # operator, target, operands, attributes, the lowest opset that can
    ("Equal", 10, [(TEXT, (2,)), (TEXT, (2,))], {}, 11),
    ("Cast", 18, [(FLOAT, (2,))], {"to": 17}, 19),
    ("Cast", 12, [(FLOAT, (2,))], {"to": 16}, 13),
    ("QuantizeLinear", 20, [(FLOAT, (2,)), (FLOAT, ())], {"output_dtype": 22}, 21),
    ("BitCast", 25, [(FLOAT, (2,))], {"to": 6}, 26),
    ("StringConcat", 19, [(TEXT, (2,)), (TEXT, (2,))], {}, 20),
    ("SequenceConstruct", 10, [(FLOAT, (2,))], {}, 11),
    ("ImageDecoder", 19, [(DType.UINT8, (9,))], {}, 20),
    ("TfIdfVectorizer", 8, [(TEXT, (4,))], {
        "max_gram_length": 1, "max_skip_count": 0, "min_gram_length": 1, "mode": "TF",
        "ngram_counts": (0,), "ngram_indexes": (0,), "pool_strings": ("a",)}, 9),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "target", "operands", "attrs", "lowest"), CASES, ids=lambda v: str(v)[:40]
)
def test_refused(op: str, target: int, operands: Any, attrs: Any, lowest: int) -> None:
    graph = graph_of(op, operands, attrs, 1)
    with pytest.raises(Unconvertible, match=f"opset {lowest} is the lowest"):
        lower_to(graph, target)
    assert lower_to(graph, lowest).nodes


def test_attribute_without_equivalent() -> None:
    """An attribute of a later opset is dropped at its default only."""
    operands = [(FLOAT, (1, 2, 3, 4))] * 3
    plain = graph_of("Attention", operands, {"softcap": 0.0}, 1)
    assert all(n.op != "Attention" for n in lower_to(plain, 22).nodes)
    assert lower_to(plain, 24).nodes[-1].op == "Attention"
    windowed = graph_of("Attention", operands, {"left_window_size": 1}, 1)
    assert all(n.op != "Attention" for n in lower_to(windowed, 24).nodes)


@pytest.mark.parametrize(
    ("shape", "other", "refused"),
    [
        ((2, 3), (2, 3), False),
        (("N", 3), ("M", 3), False),
        (("N", 3), (4, 3), False),
        ((2, 3), (2, 4), True),
        ((2, 3), (6,), True),
    ],
)
def test_branches_of_different_shapes(shape: Any, other: Any, refused: bool) -> None:
    """Older opsets ask both branches of an If for one shape."""
    g = OnnxBuilder("one")
    condition, a, b = g.input("c", DType.BOOL, ()), g.input("a", FLOAT, shape), g.input("b", FLOAT, other)  # fmt: skip
    then, other_branch = g.child("then"), g.child("else")
    graph = g.build([
        g.If(condition, then_branch=then.build([then.Neg(a)]),
             else_branch=other_branch.build([other_branch.Abs(b)]))
    ])  # fmt: skip
    assert lower_to(graph, 11).nodes
    if not refused:
        assert lower_to(graph, 10).nodes
        return
    with pytest.raises(Unconvertible, match="branches that give .*; opset 11 is the lowest"):
        lower_to(graph, 10)
