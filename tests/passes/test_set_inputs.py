"""Inputs that become constants: their types and shapes."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.ir.graph import DType
from serde.passes.set_inputs import constant_inputs, parse_setting, set_inputs
from testing.onnx_live import ir_of


@pytest.mark.parametrize(
    ("dtype", "value", "why"),
    [
        (DType.INT64, 1.5, "which cannot hold 1.5"),
        (DType.UINT8, 300, "which cannot hold 300"),
        (DType.UINT8, -1, "which cannot hold -1"),
        (DType.BOOL, 2, "which cannot hold 2"),
        (DType.FLOAT32, 1e300, "which cannot hold 1e\\+300"),
        (DType.FLOAT16, [70000, -1], "which cannot hold"),
        (DType.FLOAT8E4M3FN, 1e6, "which cannot hold"),
        (DType.FLOAT32, np.array([1j, 0]), "float32, and the value of complex128"),
        (DType.INT64, np.array([1j, 0], np.complex64), "int64, and the value of complex64"),
        (DType.FLOAT32, "much", "is of type float32; 'much' is not"),
        (DType.FLOAT32, [[1], [2, 3]], "is no array"),
        (DType.FLOAT32, {"a": 1}, "is no array"),
        (DType.FLOAT32, None, "is no array"),
        (DType.STRING, 3, "is of type string; 3 is not"),
        (DType.INT64, [1, 2, 3], "is \\(2\\), and the value \\(3\\)"),
    ],
)
def test_values_of_another_type_are_refused(dtype, value, why):
    from serde.ir.graph import Graph, Node, Value
    from serde.passes.set_inputs import set_inputs

    x = Value("x", dtype, (2,))
    y = Value("y", dtype, (2,))
    graph = Graph("g", (x,), (y,), (Node("Identity", (x,), (y,)),))
    with pytest.raises(serde.UsageError, match=why):
        set_inputs(graph, {"x": value})


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(DType.INT64, 3), (DType.BOOL, True), (DType.BOOL, 1), (DType.FLOAT16, 0.5),
     (DType.STRING, "a"), (DType.UINT8, [1, 255]), (DType.INT32, np.int64(7)),
     (DType.FLOAT16, [-np.inf, 65504]), (DType.COMPLEX64, np.array([1j, 2]))],
)  # fmt: skip
def test_values_take_the_type_of_the_input(dtype, value):
    from serde.ir.graph import Graph, Node, Value
    from serde.passes.set_inputs import set_inputs

    x, y = (Value(n, dtype, (2,)) for n in "xy")
    graph = Graph("g", (x,), (y,), (Node("Identity", (x,), (y,)),))
    done = set_inputs(graph, {"x": value})
    (constant,) = done.constants()
    assert done.inputs == () and constant.dtype is dtype and constant.shape == (2,)
    assert list(constant.array()) == list(np.broadcast_to(value, 2))


@pytest.mark.parametrize(("text", "value"), [
    ("k=2.5", 2.5), ("k=[1, 2]", [1, 2]), ("k=true", True), ('k="a=b"', "a=b"), ("k=-1e3", -1000.0),
])  # fmt: skip
def test_a_setting_is_a_name_and_json(text, value):
    assert parse_setting(text) == ("k", value)


def test_a_setting_may_be_a_file(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    name, array = parse_setting(f"k={tmp_path}/x.npy")
    assert name == "k" and array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("text", ["k", "k=", "=1", "k=much", "k=[1,", "k=" + "[" * 100_000])
def test_any_other_setting_is_refused(text):
    with pytest.raises(serde.UsageError, match="NAME=VALUE|the value is a number, true, false"):
        parse_setting(text)


def test_sizes_of_an_array_hold_for_the_other_inputs():
    graph = ir_of("g (float[N,3] x, float[N,3] z) => (float[N,3] y) { y = Add(x, z) }")
    done = set_inputs(graph, {"x": np.ones((4, 3), np.float32)})
    assert [v.shape for v in done.inputs] == [(4, 3)]
    assert constant_inputs(graph, {"x": np.ones((4, 3))})["x"].dtype == np.float32
    with pytest.raises(serde.UsageError, match=r"'z' is \(N, 3\), and the value \(5, 3\)"):
        set_inputs(graph, {"x": np.ones((4, 3)), "z": np.ones((5, 3))})
    with pytest.raises(serde.UsageError, match="set its sizes by --input, then a number fills it"):
        set_inputs(graph, {"x": 1})


@pytest.mark.parametrize("array", [np.zeros((2, 3, 8, 8), "V4"), np.full((2, 3, 8, 8), "a")])
def test_an_array_that_cannot_be_meant_is_named_by_its_type_and_shape(array):
    with pytest.raises(serde.UsageError, match=r"2,3,8,8") as error:
        set_inputs(ir_of("g (float[2,3,8,8] x) => (float[] y) { y = Neg(x) }"), {"x": array})
    assert len(str(error.value)) < 100
