"""Sizes followed by name through shape arithmetic, and that no wrong conclusion is drawn."""

from __future__ import annotations

import ast
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serde.ir.dim_expr import (
    LIMIT,
    combine,
    evaluate,
    infer_shape_data,
    product,
    shape_data_of,
    split_operands,
)
from serde.ir.graph import DType, Value
from serde.passes import tidy
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of, run

F32, I64, I32 = DType.FLOAT32, DType.INT64, DType.INT32
SIZES = ({"N": 1, "T": 5, "M": 2}, {"N": 3, "T": 1, "M": 7}, {"N": 4, "T": 6, "M": 1})


@pytest.mark.parametrize(
    ("sign", "a", "b", "result"),
    [
        ("+", 2, 3, 5), ("-", 2, 3, -1), ("*", 2, 3, 6), ("/", 7, 2, 3),
        ("/", -7, 2, None), ("/", 7, 0, None), ("/", 7, -2, None),
        ("+", "N", 0, "N"), ("+", 0, "N", "N"), ("-", "N", 0, "N"), ("-", 0, "N", "0-N"),
        ("*", "N", 1, "N"), ("*", 1, "N", "N"), ("/", "N", 1, "N"), ("/", 1, "N", "1/N"),
        ("-", "N", "N", 0), ("/", "N", "N", 1), ("*", "N", 0, 0), ("/", 0, "N", "0/N"),
        ("+", 2, "N", "N+2"), ("+", "N", 2, "N+2"), ("*", "b", "a", "a*b"), ("*", "a", "b", "a*b"),
        ("*", "N+2", 3, "(N+2)*3"), ("*", 3, "N+2", "(N+2)*3"), ("-", "N*2", "M", "(N*2)-M"),
        ("*", "N*2", 3, "N*6"), ("*", "N*2", "M*3", "(M*N)*6"), ("/", "N*6", 2, "N*3"),
        ("/", "N*6", 4, "(N*6)/4"), ("/", "(M*N)*6", "N", "((M*N)*6)/N"), ("/", "N*6", "N*2", 3),
        ("*", "(N+2)*3", 2, "(N+2)*6"), ("/", "(N+2)*3", 3, "N+2"), ("/", "(M*N)*6", 6, "M*N"),
        ("*", "(a)+(b)", 2, "((a)+(b))*2"), ("/", "a+b*2", "a+b", "(a+b*2)/(a+b)"),
        ("/", "N**2", 2, "(N**2)/2"),
        ("+", None, 1, None), ("*", 0, None, None), ("+", "N" * 60, "M" * 60, None),
    ],
)  # fmt: skip
def test_sizes_combine_in_one_spelling(sign, a, b, result):
    assert combine(sign, a, b) == result


def test_the_product_of_a_shape():
    assert product(()) == 1 and product((2, 3)) == 6
    assert product((2, "N", 3)) == "N*6" and product((2, None)) is None


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (None, None),
        (Value("x", I64, (2,)), None),
        (Value("x", I64, (2,), shape_data=("N", 2)), ("N", 2)),
        (Value("x", I64, (2,), shape_data=("N", 2), container=("sequence",)), None),
    ],
)
def test_elements_of_a_value(value, known):
    assert shape_data_of(value) == known


@pytest.mark.parametrize(
    ("array", "known"),
    [
        (np.array([3, 4]), (3, 4)),
        (np.array(3, np.int32), (3,)),
        (np.array([1.0]), None),
        (np.arange(LIMIT + 1), None),
        (np.zeros(0, np.int64), ()),
    ],
)
def test_elements_of_a_constant(array, known):
    assert shape_data_of(OnnxBuilder("g").const(array)) == known


def test_what_is_not_followed_is_not_known():
    g = OnnxBuilder("g")
    s = g.Shape(g.input("x", F32, ("N", 3)))
    column, row = g.Unsqueeze(s, [1]), g.Unsqueeze(s, [0])
    for value in [
        g.Concat(column, [[7], [8]], axis=1),  # two axes: the order is another
        g.Add(column, row),  # broadcast in two axes
        g.Cast(s, to=1),
        g.ReduceProd(s, noop_with_empty_axes=1),
        g.Gather(column, [0]),
        g.Concat(s, g.Shape(g.input("u", F32, None)), axis=0),
    ]:
        assert value.shape_data is None
    assert infer_shape_data("Shape", (Value("u"),), {}) is None


@pytest.mark.parametrize(
    ("make", "shape", "array"),
    [
        (lambda g, s: g.Gather(s, [[1]]), (1, 1), [[3]]),
        (lambda g, s: g.Gather(s, 1), (), 3),
        (lambda g, s: g.Mul(g.Unsqueeze(s, [1]), 0), (2, 1), [[0], [0]]),
        (lambda g, s: g.Sub(s, s), (2,), [0, 0]),
        (lambda g, s: g.Slice(s, [1], [2], [0], [1]), (1,), [3]),
        (lambda g, s: g.Slice(g.Gather(s, [1]), [-2], [-9], [0], [-1]), (1,), [3]),
        (lambda g, s: g.Cast(g.Gather(s, [1]), to=6), (1,), [3]),
    ],
)
def test_what_comes_to_numbers_is_a_constant_of_its_shape(make, shape, array):
    g = OnnxBuilder("g")
    value = make(g, g.Shape(g.input("x", F32, ("N", 3))))
    assert value.tensor is not None and value.shape == value.array().shape == shape
    assert value.array().tolist() == array


def test_a_size_is_no_number_below_0():
    g = OnnxBuilder("g")
    sizes = g.Concat(g.Shape(g.input("x", F32, ("N", 3))), [-1], axis=0)
    chosen = g.Where(g.Equal(sizes, -1), 7, sizes)
    assert chosen.shape_data == ("N", 3, 7)
    assert g.Where(g.Equal(sizes, 1), 7, sizes).shape_data == (None, 3, -1)


def test_a_flattened_batch_keeps_its_name_and_needs_no_shape_nodes():
    """What exporters write for ``x.reshape(x.shape[0], -1)``."""
    graph = ir_of(
        "g (float[N,3,8] x) => (float[] y) <int64 zero = {0}, int64[1] at = {0}, int64[1] m = {-1}>"
        "{ s = Shape(x)\n n = Gather(s, zero)\n u = Unsqueeze(n, at)\n"
        "  t = Concat<axis=0>(u, m)\n y = Reshape(x, t) }"
    )
    assert str(tidy(graph)).splitlines()[1:] == [
        "  %y: float32[N,24] = Reshape(%x, [0, -1], allowzero=0)",
        "  return %y",
    ]


@pytest.mark.parametrize(
    ("op", "make", "shape"),
    [
        ("Reshape", lambda g, x, n: g.Reshape(x, g.Concat([-1], n, axis=0)), (6, "N")),
        ("Expand", lambda g, x, n: g.Expand(x, g.Concat([4], n, [1, 1], axis=0)), (4, "N", 2, 3)),
        ("ConstantOfShape", lambda g, x, n: g.ConstantOfShape(g.Concat(n, [2], axis=0)), ("N", 2)),
        ("Tile", lambda g, x, n: g.Tile(x, g.Concat([2, 1], n, axis=0)), ("N*2", 2, "N*3")),
    ],
)
def test_operators_that_spell_a_shape_keep_its_names(op, make, shape):
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 2, 3))
    value = make(g, x, g.Shape(x, start=0, end=1))
    assert g.nodes[-1].op == op and value.shape == shape


# Programs of shape arithmetic, computed once by NumPy at given sizes and once by what the builder
# makes of them in ONNX Runtime.
X, Y = ("N", 2, "T"), ("T", "M")


class Computed:
    """Operators as NumPy has them; ``of`` is the size of each name."""

    def __init__(self, of):
        self.x, self.y = (np.zeros([of.get(d, d) for d in s], np.float32) for s in (X, Y))

    def shape(self, which):
        return np.array(getattr(self, which).shape)

    def gather(self, s, at):
        return np.take(s, at)

    def slice(self, s, start, end, step):
        return s[start:end:step]

    def concat(self, a, b):
        return np.concatenate([a, b])

    def constant(self, numbers):
        return np.array(numbers)

    def arithmetic(self, sign, a, b):
        return {"+": np.add, "-": np.subtract, "*": np.multiply}[sign](a, b)

    def divide(self, a, by):
        return (np.sign(a) * (np.abs(a) // by)).astype(np.int64)

    def column(self, s):
        return s[:, None]

    def outer(self, sign, a, b):
        return self.arithmetic(sign, a[:, None], b[None, :]).reshape(-1)

    def stack(self, a, b):
        return np.stack([a, b], axis=1).reshape(-1)

    def flat(self, s):
        return s.reshape(-1)

    def total(self, s):
        return np.prod(s, keepdims=True)

    def narrow(self, s):
        return s.astype(np.int32).astype(np.int64)

    def replace(self, s, number, other):
        return np.where(s == number, other, s)


class Emitted:
    """The same operators, emitted."""

    def __init__(self):
        self.g = OnnxBuilder("g")
        self.x, self.y = self.g.input("x", F32, X), self.g.input("y", F32, Y)

    def shape(self, which):
        return self.g.Shape(getattr(self, which))

    def gather(self, s, at):
        return self.g.Gather(s, at)

    def slice(self, s, start, end, step):
        return self.g.Slice(s, [start], [end], [0], [step])

    def concat(self, a, b):
        return self.g.Concat(a, b, axis=0)

    def constant(self, numbers):
        return self.g.const(numbers, I64)

    def arithmetic(self, sign, a, b):
        return self.g[{"+": "Add", "-": "Sub", "*": "Mul"}[sign]](a, b)

    def divide(self, a, by):
        return self.g.Div(a, [by])

    def column(self, s):
        return self.g.Unsqueeze(s, [1])

    def outer(self, sign, a, b):
        return self.flat(self.arithmetic(sign, self.column(a), self.g.Unsqueeze(b, [0])))

    def stack(self, a, b):
        return self.flat(self.g.Concat(self.column(a), self.column(b), axis=1))

    def flat(self, s):
        return self.g.Reshape(s, [-1])

    def total(self, s):
        return self.g.ReduceProd(s)

    def narrow(self, s):
        return self.g.Cast(self.g.Cast(s, to=6), to=7)

    def replace(self, s, number, other):
        return self.g.Where(self.g.Equal(s, [number]), [other], s)


PAIRED = {  # operators of two vectors: which lengths go together, and the length they make
    "concat": (lambda n, m: n + m < 20, lambda n, m: n + m),
    "arithmetic": (lambda n, m: m in (n, 1), lambda n, m: n),
    "outer": (lambda n, m: n * m < 20, lambda n, m: n * m),
    "stack": (lambda n, m: n == m, lambda n, m: n + m),
}


def program(draw):
    """Steps as (method, operands that number earlier results, further arguments)."""
    steps, lengths = [("shape", (), ("x",)), ("shape", (), ("y",))], [3, 2]
    for _ in range(draw(st.integers(1, 8))):
        vectors = [i for i, n in enumerate(lengths) if isinstance(n, int) and n]
        a = draw(st.sampled_from(vectors))
        n = lengths[a]
        if n > 9:
            continue
        kind = draw(st.sampled_from(
            "gather slice concat constant arithmetic outer stack divide column flat total "
            "narrow replace".split()
        ))  # fmt: skip
        small = st.integers(0, 4)
        if kind == "gather":
            at = draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=3))
            steps.append((kind, (a,), (at,)))
            lengths.append(len(at))
        elif kind == "slice":
            bounds = [draw(st.integers(-3, 4)) for _ in range(2)]
            step = draw(st.sampled_from([1, 2, -1]))
            bounds[0] = max(bounds[0], -n)
            steps.append((kind, (a,), (*bounds, step)))
            lengths.append(len(range(n)[bounds[0] : bounds[1] : step]))
        elif kind in PAIRED:
            fits, result = PAIRED[kind]
            b = draw(st.sampled_from([i for i in vectors if fits(n, lengths[i])]))
            extra = (draw(st.sampled_from("+-*")),) if kind in ("arithmetic", "outer") else ()
            steps.append((kind, (a, b), extra))
            lengths.append(result(n, lengths[b]))
        elif kind == "constant":
            numbers = draw(st.lists(small, min_size=1, max_size=3))
            steps.append((kind, (), (numbers,)))
            lengths.append(len(numbers))
        elif kind == "divide":
            steps.append((kind, (a,), (draw(st.integers(1, 3)),)))
            lengths.append(n)
        elif kind == "replace":
            steps.append((kind, (a,), (draw(st.integers(-2, 3)), draw(small))))
            lengths.append(n)
        elif kind == "column":
            steps.append((kind, (a,), ()))
            lengths.append((n, 1))
        elif kind == "flat":
            b = draw(st.sampled_from(range(len(lengths))))
            m = lengths[b]
            steps.append((kind, (b,), ()))
            lengths.append(m if isinstance(m, int) else m[0])
        else:
            steps.append((kind, (a,), ()))
            lengths.append(1 if kind == "total" else n)
    return steps


def follow(steps, on):
    results = []
    for kind, operands, arguments in steps:
        values = [results[i] for i in operands]
        if kind in ("arithmetic", "outer"):
            results.append(getattr(on, kind)(*arguments, *values))
        else:
            results.append(getattr(on, kind)(*values, *arguments))
    return results


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def size_of(dim, of):
    """The number an expression of sizes comes to."""
    if dim is None or isinstance(dim, int):
        return dim
    return _evaluate(ast.parse(dim, mode="eval").body, of)


def _evaluate(tree, of):
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        return of[tree.id]
    if isinstance(tree, ast.UnaryOp):
        return -_evaluate(tree.operand, of)
    a, b = _evaluate(tree.left, of), _evaluate(tree.right, of)
    return int(a / b) if isinstance(tree.op, ast.Div) else OPERATORS[type(tree.op)](a, b)


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(st.data())
def test_no_wrong_conclusion_is_drawn_of_a_computed_shape(data):
    steps = program(data.draw)
    emitted = Emitted()
    values = follow(steps, emitted)
    g = emitted.g
    graph = tidy(g.build([g.emit_identity(v) for v in values]))
    for of in SIZES:
        expected = follow(steps, Computed(of))
        on = Computed(of)
        got = run(graph, {"x": on.x, "y": on.y})
        for value, reference, actual in zip(values, expected, got, strict=True):
            np.testing.assert_array_equal(actual, reference)
            for element, number in zip(shape_data_of(value) or (), reference.ravel(), strict=False):
                assert size_of(element, of) in (None, number)
            for dim, size in zip(value.shape or (), reference.shape, strict=False):
                assert size_of(dim, of) in (None, size)


TARGETS = {  # ways to arrange x of (N, 2, T), as sizes or names; by numbers of elements
    "flat": ["N", -1],
    "merged": ["N*2", "T"],
    "back": [-1, 2, "T"],
    "swapped": ["T", "N", 2],
    "copied": [0, 0, -1],
    "ones": [1, "N", 1, 2, "T"],
}


@pytest.mark.parametrize("first", TARGETS)
@pytest.mark.parametrize("second", TARGETS)
def test_computed_reshapes_in_a_row_keep_the_elements_in_place(first, second):
    """``x`` is reshaped twice by shapes computed from its own; the order of elements must stay."""
    g = OnnxBuilder("g")
    x = g.input("x", F32, X)
    n, t = (g.Shape(x, start=a, end=a + 1) for a in (0, 2))
    spelled = {"N": n, "T": t, "N*2": g.Mul(n, [2])}
    y = x
    for target in (first, second):
        parts = [spelled[d] if isinstance(d, str) else [d] for d in TARGETS[target]]
        y = g.Reshape(y, g.Concat(*parts, axis=0))
    graph = tidy(g.build([g.emit_identity(y)]))
    for of in SIZES:
        array = np.random.default_rng(0).standard_normal([of.get(d, d) for d in X], np.float32)
        expected = array
        for target in (first, second):
            dims = [size_of(d, of) if isinstance(d, str) else d for d in TARGETS[target]]
            dims = [expected.shape[i] if d == 0 else d for i, d in enumerate(dims)]
            try:
                expected = expected.reshape(dims)
            except ValueError:
                return  # copied sizes that do not fit: no model
        (got,) = run(graph, {"x": array})
        np.testing.assert_array_equal(got, expected)
        assert all(
            size_of(d, of) in (None, s) for d, s in zip(y.shape, expected.shape, strict=True)
        )


@pytest.mark.parametrize("a", ["N", 12, "N*2", "N+T", "p2o.N.0", "N/2"])
@pytest.mark.parametrize("b", ["T", 3, "M-1"])
@pytest.mark.parametrize("sign", "+-*/")
def test_an_expression_comes_apart_into_one_of_equal_value(a, b, sign):
    if isinstance(a, int) and isinstance(b, int):
        return
    expr = combine(sign, a, b)
    again, left, right = split_operands(expr)
    assert combine(again, left, right) == expr


@pytest.mark.parametrize("name", ["N", "batch-size", "p2o.N.0", "-1", "a+", "()", "(N", "a b*c"])
def test_a_name_does_not_come_apart(name):
    parts = split_operands(name)
    assert parts is None or combine(*parts) == name


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        ("past", 4),
        ("past + 1", 5),
        ("past+seq", 7),
        ("past_length + seq", "past_length+3"),
        ("2*past + seq - 1", 10),
        ("2*(past + seq)", 14),
        ("past//3", 1),
        ("batch + 1", "batch + 1"),
        ("past!", "past!"),
        ("max(past, 2)", "max(past, 2)"),
        ("(past", "(past"),
    ],
)
def test_a_size_in_numbers(dim, expected):
    assert evaluate(dim, {"past": 4, "seq": 3}) == expected
