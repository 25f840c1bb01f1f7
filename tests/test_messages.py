"""What a refusal prints of an attribute: numbers and words, never the repr of a Python object."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Problem, show_attribute
from serde.formats.relay import ast
from serde.formats.relay.rules import parse
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Tensor, Value
from serde.rewrite.subgraphs import Body

NUMBER, GRAPH = Value("n", DType.INT64, ()), Graph("body", (), (), ())
CONSTANT = ast.Constant(Tensor.of(np.float32([1, 2])))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (True, "True"),
        (3, "3"),
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "True"),
        ("NCHW", "NCHW"),
        (b"a", "a"),
        ((1, 2), "(1, 2)"),
        ([np.int64(1)], "(1,)"),
        ((), "()"),
        (tuple(range(99)), f"({', '.join(map(str, range(16)))}, …)"),
        (DType.FLOAT16, "float16"),
        ({"a": (NUMBER,)}, "{a: (the int64[] tensor 'n',)}"),
        (np.zeros((2, 3), "float32"), "the float32[2,3] tensor"),
        (Tensor.of(np.zeros((2, 3), "int8")), "the int8[2,3] tensor"),
        (NUMBER, "the int64[] tensor 'n'"),
        (Value("x", None, None), "the untyped[] tensor 'x'"),
        (Value("x", DType.BOOL, ("N", None)), "the bool[N,?] tensor 'x'"),
        (GRAPH, "a subgraph"),
        (Body(GRAPH, lambda *_: ()), "a subgraph"),
        (ast.Imm(3, "int64"), "3"),
        (ast.Var("x"), "'x'"),
        (ast.DimVar("n"), "'n'"),
        (ast.Attrs("relay.attrs.PadAttrs"), "'relay.attrs.PadAttrs'"),
        (ast.VirtualDevice(), "a VirtualDevice"),
        (CONSTANT, "a Constant"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)  # fmt: skip
def test_attributes_are_shown_in_words(value, shown):
    assert show_attribute(value) == shown
    assert str(Problem("op", {"a": value}, "reason", ("n",))).endswith(f". Attributes: a={shown}")


@pytest.mark.parametrize("kind", [int, float, bool, str, Ints, DType])
@pytest.mark.parametrize("raw", [NUMBER, (NUMBER, 3), CONSTANT, GRAPH, ast.Var("x")])
def test_attributes_of_relay_that_are_computed(kind, raw):
    with pytest.raises(Exception) as caught:
        parse(kind, raw)
    assert "object at" not in str(caught.value)
    assert "<" not in str(caught.value)
