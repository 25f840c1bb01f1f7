"""Whether two graphs are the same but for the names of inner values."""

from __future__ import annotations

import re

import pytest

from serde.ir.same_graph import is_same_graph
from testing.onnx_live import ir_of

TEXT = """g (float[N,3] x, bool c) => (float[N,3] y) <float[3] w = {1, 2, 3}> {
    a = Mul(x, w)
    y = If (c) <then_branch = then () => (float[N,3] p) {p = Add(a, x)},
        else_branch = other () => (float[N,3] q) {q = Neg(a)}>
}"""
CHANGES = {  # what replaces what, and whether the graph is the same
    "nothing": ("y", "y", True),
    "an inner name": ("a", "a1", True),
    "a size of an input": ("N", "M", False),
    "an input's name": ("x", "x1", False),
    "an output": ("=> (float[N,3] y)", "=> (float[N,3] y, bool c)", False),
    "an operator in a body": ("Neg", "Abs", False),
    "an operand": ("Add(a, x)", "Add(a, a)", False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_graphs(name):
    old, new, is_same = CHANGES[name]
    text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, TEXT)
    assert text != TEXT or name == "nothing"
    assert is_same_graph(ir_of(TEXT), ir_of(text)) is is_same
