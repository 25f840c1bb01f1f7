"""Sequences and optionals in small models, each with what a runtime makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from serde.legalize import scalarize_sequences
from testing.node_cases import Case, results
from testing.onnx_live import model_of

RNG = np.random.default_rng(9)
X = RNG.standard_normal((6, 4)).astype(np.float32)
Y = RNG.standard_normal((6, 4)).astype(np.float32)
AT = "one = Constant<value_int = 1>() last = Constant<value_int = -1>()"
BODIES = {
    "built and read": "s = SequenceConstruct(x, y) z = SequenceAt(s, last)",
    "changed": "s = SequenceConstruct(x, y) t = SequenceInsert(s, y, one) u = SequenceErase(t, last)"
               " v = SequenceAt(u, one) z = Add(v, x)",
    "grown from nothing": "s = SequenceEmpty<dtype = 1>() t = SequenceInsert(s, x)"
                          " u = SequenceInsert(t, y) z = ConcatFromSequence<axis = 1>(u)",
    "stacked": "s = SequenceConstruct(x, y) z = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
    "counted": "s = SequenceConstruct(x, y, x) n = SequenceLength(s) m = Cast<to = 1>(n)"
               " z = Mul(x, m)",
    "split one by one": "s = SplitToSequence<axis = 1, keepdims = 0>(x) z = SequenceAt(s, one)",
    "split in pieces": "k = Constant<value_int = 4>() s = SplitToSequence<axis = 0>(x, k)"
                       " z = SequenceAt(s, last)",
    "split by sizes": "k = Constant<value_ints = [1, 3, 2]>() s = SplitToSequence(x, k)"
                      " z = SequenceAt(s, one)",
    "named again": "s = SequenceConstruct(x, y) t = Identity(s) z = SequenceAt(t, one)",
    "by a computed place": "s = SequenceConstruct(x, y) n = Shape<start = 1>(x)"
                           " two = Constant<value_ints = [3]>() i = Sub(n, two) o = Squeeze(i)"
                           " z = SequenceAt(s, o)",
    "mapped": "s = SequenceConstruct(x, y) t = SequenceMap<body = b (float[6, 4] v)"
              " => (float[6, 4] w) { u = Add(v, x) w = Relu(u) }>(s) z = ConcatFromSequence<axis = 0>(t)",
    "chosen": "c = ReduceMax<keepdims = 0>(x) zero = Constant<value_float = 0.5>()"
              " f = Greater(c, zero) s = If<then_branch = a () => (seq(float[6, 4]) p)"
              " { p = SequenceConstruct(x, y) }, else_branch = b () => (seq(float[6, 4]) q)"
              " { q = SequenceConstruct(y, x) }>(f) z = SequenceAt(s, one)",
    "grown in a loop": "n = Constant<value_int = 3>() s = SequenceEmpty<dtype = 1>()"
                       " t, k = Loop<body = b (int64 i, bool c, seq(float[6, 4]) p) =>"
                       " (bool d, seq(float[6, 4]) q, float[6, 4] r) { d = Identity(c)"
                       " f = Cast<to = 1>(i) v = Mul(x, f) q = SequenceInsert(p, v) r = Add(v, y)"
                       " }>(n, , s) a = ConcatFromSequence<axis = 0>(t)"
                       " e = ConcatFromSequence<axis = 0, new_axis = 0>(t)"
                       " two = Constant<value_ints = [-1, 4]>() m = Reshape(k, two) z = Add(a, m)",
    "read in a loop": "s = SequenceConstruct(x, y, x) n = SequenceLength(s)"
                      " true = Constant<value_int = 1>() g = Cast<to = 9>(true)"
                      " t, z = Loop<body = b (int64 i, bool c, seq(float[6, 4]) p, float[6, 4] h) =>"
                      " (bool d, seq(float[6, 4]) q, float[6, 4] r) { d = Identity(c) minus ="
                      " Constant<value_int = -1>() v = SequenceAt(p, minus) q = SequenceErase(p)"
                      " f = Mul(h, v) r = Tanh(f) }>(n, g, s, y)",
    "ended by its condition": "s = SequenceConstruct(x, y) n = Constant<value_int = 9>()"
                      " t = Loop<body = b (int64 i, bool c, seq(float[6, 4]) p) =>"
                      " (bool d, seq(float[6, 4]) q) { cap = Constant<value_int = 1>()"
                      " d = Less(i, cap) q = SequenceInsert(p, y) }>(n, , s)"
                      " z = ConcatFromSequence<axis = 0>(t)",
    "optional": "o = Optional(x) h = OptionalHasElement(o) e = OptionalGetElement(o)"
                " c = Cast<to = 1>(h) z = Mul(e, c)",
}  # fmt: skip


def body(name: str, result: str = "float[A, B] z") -> str:
    shape = "float[6, 4, 2] z" if name == "stacked" else result
    if name == "split one by one":
        shape = "float[6] z"
    nodes = f"{AT} {BODIES[name]}"
    return f"g (float[6, 4] x, float[6, 4] y) => ({shape}) {{ {nodes} }}"


OPS = {*scalarize_sequences.CONSTRUCTORS, *scalarize_sequences.READ, "SequenceMap", "If", "Loop"}
SEQUENCE = "seq(float[6, 4])"
CROSSING = {  # the graph's inputs and outputs with its nodes: what enters and leaves is a sequence
    "Optional": ("float[6, 4] x", "optional(float[6, 4]) z", "z = Optional(x)"),
    "SequenceConstruct": ("float[6, 4] x", f"{SEQUENCE} z", "z = SequenceConstruct(x, x)"),
    "SequenceEmpty": ("float[6, 4] x", f"{SEQUENCE} z", "z = SequenceEmpty<dtype = 1>()"),
    "SplitToSequence": ("float[6, 4] x", "seq(float[2, 4]) z",
                        "k = Constant<value_int = 2>() z = SplitToSequence(x, k)"),
    "ConcatFromSequence": (f"{SEQUENCE} s", "float[A, B] z", "z = ConcatFromSequence<axis = 0>(s)"),
    "SequenceAt": (f"{SEQUENCE} s", "float[A, B] z", f"{AT} z = SequenceAt(s, last)"),
    "SequenceErase": (f"{SEQUENCE} s", f"{SEQUENCE} z", f"{AT} z = SequenceErase(s, one)"),
    "SequenceInsert": (f"{SEQUENCE} s, float[6, 4] x", f"{SEQUENCE} z", "z = SequenceInsert(s, x)"),
    "SequenceLength": (f"{SEQUENCE} s", "int64 z", "z = SequenceLength(s)"),
}  # fmt: skip


@cache
def list_cases() -> tuple[Case, ...]:
    """Sequences built and read within a graph, and such as enter or leave it."""
    within = [_case(name, body(name), [X, Y]) for name in BODIES]
    across = [
        _case(f"{op} across", f"g ({taken}) => ({outputs}) {{ {nodes} }}",
              [[X, Y, X] if "seq" in part else Y for part in taken.split(", float")])
        for op, (taken, outputs, nodes) in CROSSING.items()
    ]  # fmt: skip
    return (*within, *across)


def cases_of() -> Iterator[tuple[str, Case]]:
    """Each of the operators of ``OPS`` with each case it is part of."""
    for case in list_cases():
        for op in sorted(case.ops & OPS):
            yield op, case


def _case(name: str, text: str, feeds: list[Any]) -> Case:
    model = model_of(text)
    outcomes = [r for _, r in results(model, feeds)]
    expected = next((r for r in outcomes if not isinstance(r, Exception)), None)
    assert expected is not None, f"nothing runs {name}: {outcomes}"
    return Case(name, model, [(feeds, expected)], 1e-6, 1e-6)
