"""What a node comes to when it does nothing: each rule where it applies, and where it must not."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType, Value
from serde.spec import simplify
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of

F32, F64, I64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.INT64, DType.BOOL
BIG = 2**63 - 1


def nodes_of(make, shape=("N", 3, 8)):
    """The operators emitted by ``make(g, x)``; 'x' alone when it gave ``x`` back."""
    g = OnnxBuilder("g")
    g.for_training = False
    x = g.input("x", F32, shape)
    value = make(g, x)
    return "x" if value is x and not g.nodes else " ".join(n.op for n in g.nodes)


def size(g, x, axis):
    return g.Shape(x, start=axis, end=axis + 1)


def batch(g, x):
    return size(g, x, 0)


NOTHING = {  # what gives the operand back
    "Cast": lambda g, x: g.Cast(x, to=1),
    "CastLike": lambda g, x: g.CastLike(x, g.const(1.0, F32)),
    "Concat": lambda g, x: g.Concat(x, axis=1),
    "Dropout": lambda g, x: g.Dropout(x),
    "Dropout at a ratio": lambda g, x: g.Dropout(x, 0.5),
    "Dropout, training off": lambda g, x: g.Dropout(x, 0.5, g.const(False, BOOL)),
    "Einsum of the same labels": lambda g, x: g.Einsum(x, equation="b...->b..."),
    "Expand to ones": lambda g, x: g.Expand(x, [1, 1]),
    "Expand to its own sizes": lambda g, x: g.Expand(x, [3, 8]),
    "Expand to its own shape": lambda g, x: g.Expand(x, g.Shape(x)),
    "Identity": lambda g, x: g.Identity(x),
    "Pad by nothing": lambda g, x: g.Pad(x, [0] * 6),
    "Pad by nothing along some": lambda g, x: g.Pad(x, [0, 0], 1.0, [1]),
    "Reshape to itself": lambda g, x: g.Reshape(x, [0, 3, 8]),
    "Reshape with one left over": lambda g, x: g.Reshape(x, [-1, 3, 8]),
    "Reshape with copies": lambda g, x: g.Reshape(x, [0, 0, -1]),
    "Slice of all": lambda g, x: g.Slice(x, [0, 0], [BIG, 3], [0, 1]),
    "Slice to a far end": lambda g, x: g.Slice(x, [0], [2**31 - 1], [0]),
    "Slice to nothing given": lambda g, x: g.Slice(x, [], [], [], []),
    "Squeeze of no axes": lambda g, x: g.Squeeze(x, []),
    "Tile once": lambda g, x: g.Tile(x, [1, 1, 1]),
    "Transpose of nothing": lambda g, x: g.Transpose(x, perm=(0, 1, 2)),
    "Transpose and back": lambda g, x: g.Transpose(g.Transpose(x, perm=(1, 2, 0)), perm=(2, 0, 1)),
    "Unsqueeze of no axes": lambda g, x: g.Unsqueeze(x, []),
}
SOMETHING = {  # what must stay, or become something else: the operators emitted
    "Cast": (lambda g, x: g.Cast(x, to=11), "Cast"),
    "CastLike": (lambda g, x: g.CastLike(x, g.const(1.0, F64)), "Cast"),
    "Concat of two": (lambda g, x: g.Concat(x, x, axis=1), "Concat"),
    "Dropout in training": (
        lambda g, x: g.Dropout(x, 0.5, g.const(True, BOOL)), "Dropout"),
    "Dropout, maybe training": (
        lambda g, x: g.Dropout(x, 0.5, g.input("t", BOOL, ())), "Dropout"),
    "Einsum": (lambda g, x: g.Einsum(x, equation="abc->cb"), "Einsum"),
    "Einsum of a size by name and 1": (
        lambda g, x: g.Einsum(x, g.const(np.ones((1, 3), np.float32)), equation="ab...,ab->a..."),
        "Einsum"),
    "Expand by an axis": (lambda g, x: g.Expand(x, [1, 1, 1, 1]), "Expand"),
    "Expand to more": (lambda g, x: g.Expand(x, [2, 1, 1]), "Expand"),
    "Expand to another named size": (
        lambda g, x: g.Expand(x, g.Concat(batch(g, g.input("y", F32, ("M",))), [1, 1], axis=0)),
        "Shape Concat Expand"),
    "Pad": (lambda g, x: g.Pad(x, [0, 0, 0, 0, 0, 1]), "Pad"),
    "Pad by what is computed": (lambda g, x: g.Pad(x, g.input("p", I64, (6,))), "Pad"),
    "Reshape": (lambda g, x: g.Reshape(x, [0, -1]), "Reshape"),
    "Reshape of swapped sizes": (lambda g, x: g.Reshape(x, [0, 8, 3]), "Reshape"),
    "Reshape where 0 is a size": (
        lambda g, x: g.Reshape(x, [0, 3, 8], allowzero=1), "Reshape"),
    "Slice from one": (lambda g, x: g.Slice(x, [1], [BIG], [1]), "Slice"),
    "Slice by steps": (lambda g, x: g.Slice(x, [0], [BIG], [1], [2]), "Slice"),
    "Slice backwards": (lambda g, x: g.Slice(x, [0], [BIG], [1], [-1]), "Slice"),
    "Slice short of the end": (lambda g, x: g.Slice(x, [0], [2], [1]), "Slice"),
    "Slice of a named size": (lambda g, x: g.Slice(x, [0], [1000], [0]), "Slice"),
    "Slice to another size": (
        lambda g, x: g.Slice(x, [0], batch(g, g.input("y", F32, ("M",))), [0]), "Shape Slice"),
    "Squeeze of what is one": (
        lambda g, x: g.Squeeze(g.input("y", F32, (1, 2)), [0]), "Squeeze"),
    "Squeeze of all ones": (lambda g, x: g.Squeeze(g.input("y", F32, (1, 2))), "Squeeze"),
    "Tile": (lambda g, x: g.Tile(x, [1, 2, 1]), "Tile"),
    "Transpose": (lambda g, x: g.Transpose(x, perm=(0, 2, 1)), "Transpose"),
    "Transpose reversed": (lambda g, x: g.Transpose(x), "Transpose"),
    "Unsqueeze": (lambda g, x: g.Unsqueeze(x, [0]), "Unsqueeze"),
    "Flatten of three axes": (lambda g, x: g.Flatten(x), "Flatten"),
}  # fmt: skip


@pytest.mark.parametrize("make", NOTHING.values(), ids=NOTHING)
def test_what_does_nothing_leaves_its_operand(make):
    emitted = nodes_of(make)
    assert emitted == "x" or emitted in ("Shape", "Transpose")  # the first of a pair, now dead


@pytest.mark.parametrize(("make", "ops"), SOMETHING.values(), ids=SOMETHING)
def test_what_does_something_stays(make, ops):
    assert nodes_of(make) == ops


@pytest.mark.parametrize(
    ("shape", "axis", "ops"),
    [(("N", 3), 1, "x"), (("N", 3), 0, "Flatten"), (("N", 3), 2, "Flatten"), (("N",), 1, "Flatten"),
     ((), 0, "Flatten"), (None, 1, "Flatten")],
)  # fmt: skip
def test_flatten_of_a_matrix_at_axis_one_does_nothing(shape, axis, ops):
    assert nodes_of(lambda g, x: g.Flatten(x, axis=axis), shape) == ops


@pytest.mark.parametrize("op", simplify.RULES)
def test_every_rule_is_tried_both_ways(op):
    assert op == "Flatten" or any(n.split()[0] == op for n in NOTHING)
    assert op == "Identity" or any(n.split()[0] == op for n in SOMETHING)


@pytest.mark.parametrize("op", sorted(set(simplify.RULES) - {"CastLike", "Squeeze", "Unsqueeze"}))
def test_nothing_is_concluded_of_a_value_of_unknown_rank(op):
    operands = {
        "Reshape": ([0, 3],), "Expand": ([3],), "Tile": ([2],), "Slice": ([0], [1], [0], [1]),
        "Pad": ([1, 1],), "Dropout": (0.5, np.array(True)),
    }.get(op, ())  # fmt: skip
    attrs = {
        "Cast": {"to": 11}, "Concat": {"axis": 0}, "Einsum": {"equation": "ab->ab"},
    }.get(op, {})  # fmt: skip
    g = OnnxBuilder("g")
    x = g.input("x", F32, None)
    value = g[op](x, *operands, **attrs)
    assert (value is x) == (op in ("Identity", "Concat"))


def test_transposes_in_a_row_become_one():
    assert str(ir_of(
        "g (float[1,2,3,4] x) => (float[] y)"
        "{ a = Transpose<perm=[0,2,3,1]>(x)\n y = Transpose<perm=[3,0,1,2]>(a) }"
    )).splitlines()[2:] == [
        "  %y: float32[2,1,3,4] = Transpose(%x, perm=[1, 0, 2, 3])",
        "  return %y",
    ]  # fmt: skip


def test_reshapes_in_a_row_become_one_where_the_second_says_all():
    body = "g (float[{0}] x) => (float[] y) <int64[2] s = {{{1}}}, int64[3] t = {{{2}}}>"
    body += "{{ a = Reshape(x, s)\n y = Reshape(a, t) }}"
    for shape, first, second, ops in [
        ("2,6", "3,4", "4,3,1", ["Reshape"]),
        ("N,6", "3,-1", "4,3,1", ["Reshape"]),
        ("N,6", "3,-1", "4,-1,2", ["Reshape"]),
        ("N,6", "3,-1", "0,-1,2", ["Reshape", "Reshape"]),
        ("N,6", "0,-1", "0,-1,3", ["Reshape"]),  # the first does nothing
    ]:
        graph = ir_of(body.format(shape, first, second))
        live = [n.op for n in graph.nodes if n.outputs[0] in {*graph.uses()}]
        assert live == ops, (shape, first, second)


@pytest.mark.parametrize(
    ("shape", "ops"),
    [("3,2,4", ["Reshape"]), ("-1,8", ["Reshape"]), ("0,-1", ["Unsqueeze", "Reshape"])],
)
def test_a_reshape_takes_an_unsqueeze_in_where_it_says_all(shape, ops):
    count = len(shape.split(","))
    body = f"<int64[1] a = {{1}}, int64[{count}] s = {{{shape}}}>"
    body += "{ u = Unsqueeze(x, a)\n y = Reshape(u, s) }"
    graph = ir_of(f"g (float[2,3,4] x) => (float[] y) {body}")
    assert [n.op for n in graph.nodes if n.outputs[0] in {*graph.uses()}] == ops


@pytest.mark.parametrize(
    ("shape", "parts", "spelled"),
    [  # a shape made of sizes of x, and the constant that says the same
        (("N", 3, 8), lambda g, x: (batch(g, x), [-1]), (0, -1)),
        (("N", 3, 8), lambda g, x: (batch(g, x), [24]), (0, 24)),
        (("N", 3, 8), lambda g, x: ([3], batch(g, x), [8]), (3, -1, 8)),
        (("N", 3, "W"), lambda g, x: (batch(g, x), size(g, x, 2), [3]), (0, -1, 3)),
        (("N", 3, "W"), lambda g, x: (batch(g, x), [3, 1], size(g, x, 2)), (0, 3, 1, -1)),
        (("N", 0, 8), lambda g, x: (batch(g, x), [0, 2, 4]), None),
        (("N", 3, 8), lambda g, x: ([-1], g.Mul(batch(g, x), [2]), [12]), None),
    ],
)
def test_a_shape_known_in_part_is_spelled_as_a_constant(shape, parts, spelled):
    g = OnnxBuilder("g")
    x = g.input("x", F32, shape)
    g.Reshape(x, g.Concat(*parts(g, x), axis=0))
    constant = g.nodes[-1].inputs[1]
    assert (constant.ints() if constant.tensor is not None else None) == spelled


def test_a_reshape_that_copies_sizes_by_zero_is_constant():
    g = OnnxBuilder("g")
    x = Value("x", DType.FLOAT32, ("N", "L", 12))
    length = g.Slice(g.Shape(x), [1], [2], [0])
    y = g.Reshape(x, g.Concat([0], length, [3, 4], axis=0))
    (node,) = (n for n in g.nodes if n.op == "Reshape")
    assert (node.inputs[1].array().tolist(), y.shape) == ([0, 0, 3, 4], ("N", "L", 3, 4))
