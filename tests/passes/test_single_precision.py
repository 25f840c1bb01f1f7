"""Models of float16 and bfloat16 as models of float32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

import serde
from serde.errors import Unconvertible, UsageError
from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.single_precision import to_float32
from testing.onnx_live import ir_of, model_of, run, run_model
from tests.passes.precisions import convert
from tests.passes.precisions import network as network

F = np.float32


SINGLE = """g (float16[2,3] x, bool c) => (float16[2,3] y, float16[2,4] z, float[2,3] w) {
    w = Cast<to = 1>(x)
    a = MatMul(x, k)
    b = Cast<to = 1>(x)
    d = Softmax(b)
    e = Cast<to = 10>(d)
    y = If(c) <then_branch = t () => (float16[2,3] p) { p = Add(e, x) },
               else_branch = f () => (float16[2,3] q) { q = Sub(e, h) }>
    s = Shape(a)
    o = ConstantOfShape<value = float16[1] {15360}>(s)
    z = Mul(a, o)
}"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_single_precision(dtype, tmp_path):
    text, code = SINGLE, onnx.TensorProto.FLOAT16
    if dtype == "bfloat16":
        code = onnx.TensorProto.BFLOAT16
        text = (
            text.replace("float16", dtype).replace("to = 10", "to = 16").replace("15360", "16256")
        )
    kind = onnx.helper.tensor_dtype_to_np_dtype(code)
    model = model_of(text, opset=17, ir_version=8)
    draws = np.random.default_rng(0)
    for name, shape in {"k": (3, 4), "h": ()}.items():
        model.graph.initializer.append(
            from_array(np.asarray(draws.standard_normal(shape), kind), name)
        )
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp32=True, opset=17)
    made = onnx.load(tmp_path / "b.onnx")
    assert {v.type.tensor_type.elem_type for v in (*made.graph.output, made.graph.input[0])} == {1}
    assert "Cast" not in {n.op_type for n in made.graph.node}
    single = to_single(model)
    feeds = {"x": draws.standard_normal((2, 3)).astype(kind).astype(F)}
    for chosen in (True, False):
        feeds["c"] = np.array(chosen)
        for got, expected in zip(run_model(made, feeds), run_model(single, feeds), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def to_single(model):
    """The model that is written with float32 in each place."""
    held = {t.name: to_array(t).astype(F) for t in model.graph.initializer}
    text = SINGLE.replace("float16[1] {15360}", "float[1] {1.0}").replace("float16", "float")
    single = model_of(text.replace("to = 10", "to = 1"), opset=17, ir_version=8)
    single.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    return single


def test_single_precision_is_verified(network, tmp_path):
    convert(network, fp16=True, fp16_io=True)
    half = network[0].with_name("b.onnx")
    report = serde.convert(half, tmp_path / "c.onnx", fp32=True, verify=True)
    assert report.ok and report.verification.outputs
    types = {v.type.tensor_type.elem_type for v in onnx.load(tmp_path / "c.onnx").graph.output}
    assert types == {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}


def test_a_model_without_such_numbers_stays_and_a_note_says_so():
    graph = ir_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    done = to_float32(graph)
    assert done.nodes is graph.nodes and "nothing became float32" in done.notes[-1]


def test_ends_may_stay_and_large_constants_too():
    graph = ir_of(
        "g (float16[4] x) => (float16[4] y, float16[4] x) "
        "<float16[4] w = {15360, 0, 0, 0}, float16[1] k = {15360}> { a = Add(x, w) y = Mul(a, k) }"
    )
    done = to_float32(graph, keeps_ends=True, most=3)
    assert done.inputs == graph.inputs and done.outputs == graph.outputs
    casts = [n.inputs[0].name for n in done.nodes if n.op == "Cast"]
    assert casts[:2] == ["w", "x"] or casts[:2] == ["x", "w"]
    assert {v.name: v.dtype for v in done.constants()}["k"] is DType.FLOAT32
    x = np.float16([1, -2, 0.5, 3])
    for got, expected in zip(run(done, {"x": x}), run(graph, {"x": x}), strict=True):
        assert got.dtype == np.float16
        np.testing.assert_array_equal(got, expected)


def test_a_reader_of_the_bits_is_refused():
    x, y = Value("x", DType.FLOAT16, (2,)), Value("y", DType.INT16, (2,))
    graph = Graph("g", (x,), (y,), (Node("BitCast", (x,), (y,), {"to": 5}, name="bits"),))
    with pytest.raises(UsageError, match=r"bits \(BitCast\): reads the bits of a float"):
        to_float32(graph)


def test_float64_is_rounded_and_stays_finite(tmp_path):
    model = model_of(
        """g (double[2,3] x, bool[2,3] m) => (double[2,3] y, int64[2] k) <double least = {-1e300},
            double tiny = {1e-60}, double far = {inf}, double third = {0.3333333333333333}> {
            a = Mul(x, third)
            b = Where(m, a, least)
            c = Softmax(b)
            d = Min(c, far)
            e = Cast<to = 1>(d)
            f = Cast<to = 11>(e)
            s = Sub(d, d)
            n = Max(s, tiny)
            o = Div(n, tiny)
            y = Add(f, o)
            k = ArgMax<axis = 1, keepdims = 0>(x)
        }""", opset=17, ir_version=8,
    )  # fmt: skip
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp32=True, verify=True)
    single = onnx.load(tmp_path / "b.onnx")
    types = [v.type.tensor_type.elem_type for v in (*single.graph.input, *single.graph.output)]
    assert report.ok and report.verification.outputs and types == [1, 9, 1, 7]
    assert "Cast" not in {n.op_type for n in single.graph.node}
    draws = np.random.default_rng(0)
    x, mask = draws.standard_normal((2, 3)), np.array([[True, False, True], [False] * 3])
    expected = run_model(model, {"x": x, "m": mask})
    got = run_model(single, {"x": x.astype(F), "m": mask})
    assert got[0].dtype == F
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_float64_inside_of_a_model_for_tflite(tmp_path):
    model = model_of(
        "g (float[2,3] x) => (float[2,3] y) { a = Cast<to = 11>(x) b = Sigmoid(a) y = Cast<to = 1>(b) }",
        opset=17, ir_version=8,
    )  # fmt: skip
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(Unconvertible, match="no Sigmoid of float64 elements. Give fp32="):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.tflite")
    assert serde.convert(tmp_path / "a.onnx", tmp_path / "b.tflite", fp32=True).ok
