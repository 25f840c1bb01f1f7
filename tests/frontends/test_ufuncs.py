"""NumPy's ufuncs, traced and run in ONNX Runtime, against NumPy: element types, edges, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import serde
from tests.frontends.tracing import compare, evaluate

UNARY = (
    "negative positive absolute fabs sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 "
    "log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg "
    "floor ceil trunc rint isnan isinf isfinite signbit logical_not invert modf conjugate"
).split()
BINARY = (
    "add subtract multiply divide floor_divide remainder fmod heaviside logaddexp logaddexp2 arctan2 "
    "hypot less less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor maximum minimum fmax fmin copysign divmod float_power "
    "nextafter"
).split()
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 1e-8, -1e-8, 30, -30, np.inf, -np.inf,
                  np.nan, 1e-30, 700, -700, 3e5])  # fmt: skip
PLAIN = np.random.default_rng(0).normal(size=(3, 4))
WHOLE = np.array([[0, 1, -5, -1], [3, 2, 4, -2], [5, -3, -4, 1]])
OPERANDS = {
    "float64": PLAIN, "edges64": EDGES, "edges32": EDGES.astype("f4"), "float16": PLAIN.astype("f2"),
    "int64": WHOLE, "int32": WHOLE.astype("i4"), "int8": WHOLE.astype("i1"),
    "uint8": np.abs(WHOLE).astype("u1"), "bool": WHOLE > 0,
}  # fmt: skip


def runnable(names, *operands):
    """The ufuncs that NumPy has for the types."""
    ufuncs = []
    for name in names:
        try:
            with np.errstate(all="ignore"):
                getattr(np, name)(*operands)
            ufuncs.append(getattr(np, name))
        except (TypeError, ValueError):
            pass
    return ufuncs


def apply_all(functions):
    """A function that returns what each of several gives."""

    def run(*xs):
        results = []
        for function in functions:
            value = function(*xs)
            results += value if isinstance(value, tuple) else [value]
        return tuple(results)

    return run


@pytest.mark.parametrize("kind", OPERANDS)
def test_unary(kind, tmp_path):
    functions = runnable(UNARY, OPERANDS[kind])
    assert len(functions) > 15
    compare(apply_all(functions), OPERANDS[kind], path=tmp_path / "m.onnx")


PAIRS = {k: (x, x[::-1]) for k, x in OPERANDS.items() if not k.startswith("edges")}
PAIRS |= {
    "edges64": tuple(np.meshgrid(EDGES[:15], EDGES[:15])),
    "edges32": tuple(np.meshgrid(EDGES[:15].astype("f4"), EDGES[:15].astype("f4"))),
    "int8, uint8": (WHOLE.astype("i1"), np.abs(WHOLE).astype("u1")),
    "uint64, int64": (WHOLE.astype("u8"), WHOLE),
    "float32, int64": (PLAIN.astype("f4"), WHOLE),
    "uint16, int32": (np.abs(WHOLE).astype("u2"), WHOLE.astype("i4")),
    "rows, columns": (PLAIN[:, :1], PLAIN[:1]),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_binary(kind, tmp_path):
    functions = runnable(BINARY, *PAIRS[kind])
    assert len(functions) > 10
    compare(apply_all(functions), *PAIRS[kind], path=tmp_path / "m.onnx")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_of_integers(dtype, tmp_path):
    x = WHOLE.astype(dtype)
    small = (np.abs(WHOLE) % 9).astype(dtype)
    functions = [np.left_shift, np.right_shift, np.power, np.bitwise_xor]
    compare(apply_all(functions), x, small, path=tmp_path / "m.onnx")
    compare(lambda a: (a**3, a // 3, a % -3 if a.dtype.kind == "i" else a % 3), x,
            path=tmp_path / "m.onnx")  # fmt: skip


def test_gcd_and_lcm(tmp_path):
    pair = WHOLE.astype("i1"), WHOLE[::-1].astype("i1")
    compare(apply_all([np.gcd, np.lcm]), *pair, path=tmp_path / "m.onnx")


OF_SIGN = (
    "trunc rint modf arcsin arcsinh arctan arctanh sinh tanh cbrt expm1 log1p sqrt negative arctan2 "
    "copysign nextafter floor_divide remainder"
).split()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_zeros_have_their_signs(dtype, optimize, tmp_path):
    limits = np.finfo(dtype)
    least = [limits.tiny, limits.smallest_subnormal, limits.tiny * 1.5, limits.max]
    x = np.array([*EDGES, *least, *np.negative(least)]).astype(dtype)
    pair = tuple(a.reshape(-1) for a in np.meshgrid(x, x))
    for name in OF_SIGN:
        function = getattr(np, name)
        operands = pair[: function.nin]
        with np.errstate(all="ignore"):
            value = function(*operands)
        expected = value if isinstance(value, tuple) else (value,)
        graph = serde.trace(function, *operands)
        feeds = {v.name: a for v, a in zip(graph.inputs, operands, strict=True)}
        (actual,) = evaluate(graph, feeds, tmp_path / "m.onnx", (optimize,))
        for a, b in zip(actual, expected, strict=True):
            zero = (a == 0) & (b == 0)
            assert zero.any() and (np.signbit(a) == np.signbit(b))[zero].all(), name
            if name == "nextafter":
                np.testing.assert_array_equal(a, b)


DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_types_and_broadcasting(data, tmp_path_factory):
    """Any two element types and shapes, sizes by name among them, and Python numbers."""
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    operands = []
    for shape in shapes.input_shapes:
        dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
        operands.append(rng.integers(0, 2 if dtype.kind == "b" else 50, shape).astype(dtype))
    number = data.draw(st.sampled_from([True, 3, 2.5]))
    names = data.draw(st.sampled_from([None, {3: "N"}, {2: "A", 4: "B"}]))

    def run(a, b):
        return (a + b if a.dtype != bool else a | (b > 1), a * number, np.maximum(a, b), a < b,
                np.true_divide(a, b + 1 if b.dtype != bool else 1), number + b)  # fmt: skip

    compare(run, *operands, path=tmp_path_factory.mktemp("m") / "m.onnx", names=names)


def test_python_numbers_are_weak():
    graph = serde.trace(
        lambda x, n: (x + 1, x * 0.5, n + 1, n / 2), ((3,), "float16"), ((3,), "u1")
    )
    assert [v.dtype.value for v in graph.outputs] == ["float16", "float16", "uint8", "float64"]
    with pytest.raises(OverflowError):
        serde.trace(lambda n: n + 300, ((3,), "uint8"))
    comparison = serde.trace(lambda n: n < 300, ((3,), "uint8"))
    assert comparison.outputs[0].dtype.value == "bool"


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x + np.zeros(4), "operands could not be broadcast together"),
        (lambda x: x << 1, "ufunc 'left_shift' not supported"),
        (lambda x: np.sum(x, 3), "axis 3 is out of bounds"),
        (lambda x: x.astype(np.int32).__iadd__(x), "Cannot cast ufunc 'add' output"),
        (lambda x: x @ np.zeros((2, 2), np.float32), "mismatch in its core dimension"),
    ],
)
def test_errors_are_those_of_numpy(function, error):
    with pytest.raises((ValueError, TypeError), match=error):
        function(np.zeros(3, np.float32))
    with pytest.raises((ValueError, TypeError), match=error):
        serde.trace(function, (3,))


def test_in_place_and_masked(tmp_path):
    def run(x):
        y = x.copy()
        y += 1
        y[1:] *= 2
        np.multiply(y, 3, out=y, where=x > 0)
        return y

    compare(run, PLAIN, path=tmp_path / "m.onnx")


def test_constants_are_computed_at_once():
    table = np.arange(2000.0)
    graph = serde.trace(lambda x: x + np.sqrt(np.cumsum(table))[:3], ((3,), "float64"))
    assert [n.op for n in graph.nodes] == ["Add"]
