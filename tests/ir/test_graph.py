"""The data classes and their printed form."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType, FileSlice, Graph, Node, Source, Tensor, Value, show_shape
from testing.onnx_live import decode_text, ir_of

BITS = {
    "INT2": 2,
    "UINT2": 2,
    "INT4": 4,
    "UINT4": 4,
    "FLOAT4E2M1": 4,
    "STRING": 0,
    "COMPLEX128": 128,
}


@pytest.mark.parametrize("dtype", DType)
def test_every_element_type_has_a_numpy_type_bits_and_a_kind(dtype):
    assert DType.of(dtype.numpy) is dtype
    assert dtype.bits == BITS.get(dtype.name, dtype.bits) and dtype.kind in "fiubcS"
    if dtype.bits >= 8:
        assert dtype.numpy.itemsize * 8 == dtype.bits


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", DType.FLOAT32),
        (np.float16, DType.FLOAT16),
        (np.dtype(">i4"), DType.INT32),
        ("<U5", DType.STRING),
        ("S3", DType.STRING),
        (bool, DType.BOOL),
        ("bfloat16", DType.BFLOAT16),
        (ml_dtypes.float8_e4m3fn, DType.FLOAT8E4M3FN),
        (DType.INT4, DType.INT4),
    ],
)
def test_element_types_are_found_by_any_name(name, expected):
    assert DType.of(name) is expected


@pytest.mark.parametrize("name", ["float31", "datetime64[s]", object(), "V7"])
def test_unknown_element_types_are_refused(name):
    with pytest.raises(ConversionError, match="no element type is called"):
        DType.of(name)


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [
        (DType.FLOAT32, (2, 3), 24),
        (DType.INT4, (3,), 2),
        (DType.UINT2, (5,), 2),
        (DType.BOOL, (), 1),
        (DType.STRING, (7,), 0),
        (DType.FLOAT64, (0, 4), 0),
        (DType.FLOAT32, (2**40, 2**40), 2**82),
    ],
)
def test_bytes_of_a_tensor_are_counted_without_loading_it(dtype, shape, nbytes):
    assert Tensor(dtype, shape, load=lambda: 1 / 0).nbytes == nbytes


def test_values_answer_or_refuse():
    known = Value("x", DType.INT64, (2, "N"), Tensor.of(np.array([[3], [4]])))
    assert (known.rank, known.type, known.ints(), known.is_static) == (
        2,
        DType.INT64,
        (3, 4),
        False,
    )
    assert Value("s", shape=()).static_shape == () and Value("s", shape=()).is_static
    bare = Value("y")
    for ask, why in [
        (lambda: bare.rank, "the rank of 'y'"),
        (lambda: bare.static_shape, "static shape of 'y', which is unknown"),
        (lambda: known.static_shape, "static shape of 'x', which is \\(2, N\\)"),
        (lambda: bare.type, "element type of 'y'"),
        (bare.array, "'y' to be a constant"),
    ]:
        with pytest.raises(ConversionError, match=why):
            ask()


@pytest.mark.parametrize(
    ("shape", "text"),
    [(None, "(unknown rank)"), ((), "()"), ((1, "N", None), "(1, N, ?)"), ((0,), "(0)")],
)
def test_shapes_print_as_users_write_them(shape, text):
    assert show_shape(shape) == text


def test_values_are_told_apart_by_identity():
    assert Value("x") != Value("x")
    assert len({Value("x"), Value("x")}) == 2


def test_small_data_compare_by_contents():
    assert Source("mxnet", "Flatten", "f0") == Source("mxnet", "Flatten", "f0")
    assert str(Source("mxnet", "Flatten", "f0")) == "mxnet node 'f0' (Flatten)"
    assert FileSlice("a", 0, 4) == FileSlice("a", 0, 4)


NESTED = """
g (float[N,2] x, bool c) => (float[N,2] y)
<float[2] w = {1, 2}, float[2] unread = {3, 4}>
{
    a = Add(x, w)
    y = If (c) <
        then_branch = t () => (float[N,2] u) { u = Mul(a, w) },
        else_branch = e () => (float[N,2] v) { v = Identity(a) }
    >
}
"""


def test_constants_and_uses_look_into_subgraphs():
    graph = decode_text(NESTED)
    assert [v.name for v in graph.constants()] == ["w"]
    by_name = {v.name: n for v, n in graph.uses().items()}
    assert by_name == {"x": 1, "w": 2, "a": 2, "c": 1, "u": 1, "v": 1, "y": 1}


def test_the_printed_form_shows_types_operands_attributes_and_subgraphs():
    assert str(ir_of(NESTED)) == (
        "graph g(%x: float32[N,2], %c: bool[]):\n"
        "  %a: float32[N,2] = Add(%x, [1.0, 2.0])\n"
        "  %y: float32[N,2] = If(%c, else_branch=<e>, then_branch=<t>)\n"
        "    graph e():\n"
        "      %v: float32[N,2] = Identity(%a)\n"
        "      return %v\n"
        "    graph t():\n"
        "      %u: float32[N,2] = Mul(%a, [1.0, 2.0])\n"
        "      return %u\n"
        "  return %y"
    )


def test_the_printed_form_of_every_kind_of_attribute_and_wrap():
    big = Value("big", DType.FLOAT32, (9,), Tensor.of(np.zeros(9, np.float32)))
    out = Value("y", DType.FLOAT32, (None, 3), container=("optional", "sequence"))
    attrs = {"f": 0.5, "s": "text", "t": big.tensor, "i": (1, 2)}
    graph = Graph("g", (Value("x"),), (out,), (Node("Foo", (big, None), (out,), attrs, "dom"),))
    assert str(graph).splitlines() == [
        "graph g(%x: ?[?]):",
        "  %y: optional(sequence(float32[?,3])) = "
        "dom.Foo(%big, _, f=0.5, i=[1, 2], s='text', t=<float32[9]>)",
        "  return %y",
    ]
