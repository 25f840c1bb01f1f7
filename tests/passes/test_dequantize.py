"""A model of quantised numbers as one of floats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import serde
from serde.ir.graph import DType
from serde.passes import tidy
from serde.passes.dequantize import dequantize
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import PLAIN, run_at, run_model

F32 = DType.FLOAT32


def pair(g, x, scale=0.1):
    zero = g.const(np.int8(0))
    step = g.const(np.float32(scale))
    return g.DequantizeLinear(g.QuantizeLinear(x, step, zero), step, zero)


def test_pairs_go_and_weights_become_floats():
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 2))
    steps = np.array([0.5, 0.25], "float32")
    zeros = np.array([1, 0], "int8")
    w = g.DequantizeLinear(np.array([[3, -4], [5, 6]], "int8"), steps, zeros, axis=0)
    graph = tidy(dequantize(g.build([g.Relu(pair(g, g.MatMul(pair(g, x), w)))])))
    assert [n.op for n in graph.nodes] == ["Clip", "MatMul", "Clip", "Relu"]
    weight = graph.nodes[1].inputs[1]
    np.testing.assert_array_equal(weight.array(), [[1, -2.5], [1.25, 1.5]])


def test_an_output_keeps_its_name():
    g = OnnxBuilder("g")
    y = pair(g, g.input("x", F32, (3,)))
    y.name = "y"
    graph = tidy(dequantize(g.build([y])))
    assert [(n.op, n.inputs[0].name) for n in graph.nodes] == [("Clip", "x")]
    assert [v.name for v in graph.outputs] == ["y"]


@pytest.mark.parametrize("known", [True, False])
def test_integers_that_are_computed_with_stay(known):
    g = OnnxBuilder("g")
    x = g.input("x", DType.INT8, (3,))
    scale = g.const(np.float32(0.1)) if known else g.input("scale", F32, ())
    graph = dequantize(g.build([g.DequantizeLinear(g.Max(x, np.int8(0)), scale, np.int8(0))]))
    assert [n.op for n in graph.nodes] == ["Max", "DequantizeLinear"]


RANGES = {  # integers, zero point, what is before the pair, and what stays of it
    "uint8 from 0": (np.uint8(0), "Neg", "Clip 0 25.5"),
    "int8 from its least": (np.int8(-128), "Neg", "Clip 0 25.5"),
    "int8 to its largest": (np.int8(127), "Neg", "Clip -25.5 0"),
    "uint8 behind a Relu": (np.uint8(0), "Relu", "Clip 0 25.5"),
    "int8 behind a Relu": (np.int8(-64), "Relu", "Clip 0 19.1"),
    "uint8 behind a Sigmoid": (np.uint8(0), "Sigmoid", ""),
    "uint8 behind a Tanh": (np.uint8(0), "Tanh", "Relu"),
    "uint8 around 0, behind a Tanh": (np.uint8(128), "Tanh", ""),
    "int8 behind a Tanh": (np.int8(125), "Tanh", "Clip None 0.2"),
    "uint8 with a middle": (np.uint8(128), "Neg", "Clip -12.8 12.7"),
    "int8 around 0": (np.int8(0), "Neg", "Clip -12.8 12.7"),
    "int16": (np.int16(0), "Neg", "Clip -3276.8 3276.7"),
}


@pytest.mark.parametrize("name", RANGES)
def test_what_a_range_cuts_off_is_cut_off(name):
    zero, before, expected = RANGES[name]
    g = OnnxBuilder("g")
    step = g.const(np.float32(0.1))
    q = g.QuantizeLinear(g[before](g.input("x", F32, (4,))), step, g.const(zero))
    graph = g.build([g.Exp(g.DequantizeLinear(q, step, g.const(zero)))])
    cuts = [n for n in tidy(dequantize(graph)).nodes if n.op in ("Clip", "Relu")]
    shown = [f"{n.op} {' '.join(map(show, n.inputs[1:]))}".rstrip() for n in cuts]
    assert shown == [expected] * bool(expected)


def show(bound):
    return "None" if bound is None else f"{bound.array().item():.5g}"


PAIRS = {  # the scale, the zero point, and their axis
    "of one scale": (np.float32(0.1), np.uint8(7), 1),
    "of float16": (np.float16(0.1), np.uint8(7), 1),
    "by channel": (np.float32([0.1, 0.2, 0.3]), np.uint8([0, 100, 255]), 1),
    "by channel, of one zero point": (np.float32([0.1, 0.2]), np.int8([-128, -128]), 0),
    "by the last axis": (np.float32([0.1, 0.2, 0.3, 0.4]), None, -1),
    "by block": (np.float32([[0.1, 0.2, 0.3, 0.4]]), np.int8([[0, 1, -128, 127]]), 0),
}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_cut_numbers_are_those_of_the_pair(name, is_known):
    """Also where scales and zero points are computed: of blocks the pair stays then."""
    scale, zero, axis = PAIRS[name]
    dtype = DType.of(scale.dtype)
    g = OnnxBuilder("g")
    x = g.input("x", dtype, (2, 3, 4) if "block" not in name else (5, 4))
    operands = [None if v is None else (g.const(v) if is_known else
                g.input(n, DType.of(v.dtype), v.shape))
                for n, v in (("s", scale), ("z", zero))]  # fmt: skip
    attrs = {"axis": axis, "block_size": 5 if "block" in name else 0}
    q = g.QuantizeLinear(g.Neg(x), *operands, **attrs, output_dtype=0 if zero is not None else 2)
    source = g.build([g.DequantizeLinear(q, *operands, **attrs)])
    result = tidy(dequantize(source))
    assert any(n.op == "QuantizeLinear" for n in result.nodes) is ("block" in name and not is_known)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.uniform(-60, 60, x.static_shape).astype(scale.dtype), "s": scale, "z": zero}
    feeds = {v.name: feeds[v.name] for v in source.inputs}
    (expected,), (got,) = (serde.run(m, feeds).values() for m in (source, result))
    # a rounding away: a step of the largest scale is 0.4
    assert np.abs(got - expected).max() <= np.max(scale) / 2 + 0.03


def test_a_relu_that_a_quantizer_left_out(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 19]>
    g (float[N,3] x) => (float[N,2] y) <float s = {0.02}, uint8 z = {0}, float t = {0.05},
        int8 p = {0}, int8[3,3] w = {10, -20, 30, -7, 5, 4, 90, -80, 2}, float u = {0.01},
        int8[3,2] v = {50, -60, 70, 20, -30, 40}> {
        a = QuantizeLinear(x, t, p) b = DequantizeLinear(a, t, p)
        c = DequantizeLinear(w, u, p) d = MatMul(b, c)
        e = QuantizeLinear(d, s, z) f = DequantizeLinear(e, s, z)
        h = DequantizeLinear(v, u, p) y = MatMul(f, h)
    }"""
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    feeds = {"x": np.random.default_rng(0).uniform(-6, 6, (40, 3)).astype(np.float32)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = run_model(onnx.load(tmp_path / "b.onnx"), feeds)
    assert np.abs(got - expected).max() < 0.05


# Models that ONNX Runtime's quantizer writes

NETWORKS = {  # inputs, nodes, and the shapes of weights
    "rows": (
        "float[N,16] x",
        "a = MatMul(x, w) b = Add(a, c) r = Relu(b) y = MatMul(r, v)",
        {"w": (16, 8), "c": (8,), "v": (8, 4)},
    ),
    "images": (
        "float[N,3,8,8] x",
        """a = Conv<pads=[1,1,1,1]>(x, w, b) r = Relu(a) c = Conv<pads=[1,1,1,1]>(r, v)
        s = Add(r, c) t = LeakyRelu(s) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(t)
        q = AveragePool<kernel_shape=[2,2]>(p) h = Sigmoid(q) k = Concat<axis=1>(h, q)
        m = GlobalAveragePool(k) f = Flatten(m) y = Gemm<transB=1>(f, u, z)""",
        {"w": (4, 3, 3, 3), "b": (4,), "v": (4, 4, 3, 3), "u": (5, 8), "z": (5,)},
    ),
    "enlarged images": (
        "float[N,3,6,6] x",
        """a = Conv(x, w) h = Sigmoid(a) e = Resize<mode="linear">(h, , s)
        n = Resize<mode="nearest">(h, , s) k = Concat<axis=1>(e, n) y = Conv(k, v)""",
        {"w": (4, 3, 3, 3), "s": [1, 1, 2, 2], "v": (2, 8, 3, 3)},
    ),
    "attention": (
        "float[N,4,6] x",
        """k = Transpose<perm=[0,2,1]>(x) a = MatMul(x, k) s = Softmax<axis=-1>(a)
        m = Mul(a, s) y = Add(m, a)""",
        {},
    ),
    "words": ("int64[N,4] x", "e = Gather(t, x) y = MatMul(e, w)", {"t": (50, 8), "w": (8, 3)}),
    "recurrent": (
        "float[5,N,4] x", "y, h = LSTM<hidden_size=3>(x, w, r, b)",
        {"w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 24)},
    ),
}  # fmt: skip
NETWORKS["bounded rows"] = (  # bounds that the quantizer leaves out: ranges do the same
    "float[N,6] x",
    "a = MatMul(x, w) b = Clip(a, l, h) c = MatMul(b, v) d = Clip(c, m, h) y = MatMul(d, u)",
    {"w": (6, 8), "v": (8, 5), "u": (5, 3), "l": -1, "h": 1, "m": -0.5},
)
METHODS = ("dynamic", "dynamic columns", "QDQ", "QDQ columns", "QOperator", "QOperator columns")


def make_network(name):
    """The float model, and inputs for it."""
    inputs, nodes, weights = NETWORKS[name]
    rng = np.random.default_rng(len(name))
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[N,M] y) {{{nodes}}}'
    model = parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for weight, shape in weights.items():
        numbers = rng.standard_normal(shape) * 0.4 if isinstance(shape, tuple) else shape
        array = np.asarray(numbers, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, weight))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    sizes = [d.dim_value or 3 for d in dims]
    if name == "words":
        return model, [{"x": rng.integers(0, 50, sizes)} for _ in range(4)]
    return model, [{"x": rng.standard_normal(sizes).astype(np.float32)} for _ in range(4)]


def quantize_network(source, target, method, feeds):
    """Write the model as ONNX Runtime quantizes it."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    how, _, by_column = method.partition(" ")
    common = {"weight_type": quantization.QuantType.QInt8, "per_channel": bool(by_column)}
    if how == "dynamic":
        extra = {"MatMulConstBOnly": not by_column}
        quantization.quantize_dynamic(source, target, extra_options=extra, **common)
        return

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter(feeds)

        def get_next(self):
            return next(self.feeds, None)

    style = quantization.QuantFormat[how]
    quantization.quantize_static(source, target, Reader(), quant_format=style, **common)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NETWORKS)
def test_what_a_quantizer_writes_becomes_floats(tmp_path, name, method):
    model, feeds = make_network(name)
    source, quantized, floats = (tmp_path / f"{n}.onnx" for n in "abc")
    onnx.save(model, source)
    quantize_network(source, quantized, method, feeds)
    report = serde.convert(quantized, floats, dequantize=True)
    ops = {n.op_type for n in onnx.load(floats).graph.node}
    assert not {op for op in ops if "Quant" in op or "Integer" in op or "QLinear" in op}
    assert not any("stays" in n for n in report.notes)
    expected = run_model(model, feeds[0])[0]
    rounded = run_at(PLAIN, quantized, feeds[0])[0]
    got = run_model(onnx.load(floats), feeds[0])[0]
    largest = np.abs(rounded - expected).max()
    assert np.abs(got - expected).max() <= max(1.5 * largest, 1e-5)


@pytest.mark.parametrize("method", [m for m in METHODS if "dynamic" not in m])
@pytest.mark.parametrize("name", sorted(NETWORKS.keys() - {"words", "enlarged images"}))
def test_numbers_beyond_what_was_calibrated_are_those_of_the_integers(tmp_path, name, method):
    model, feeds = make_network(name)
    source, quantized, floats = (tmp_path / f"{n}.onnx" for n in "abc")
    onnx.save(model, source)
    quantize_network(source, quantized, method, feeds)
    serde.convert(quantized, floats, dequantize=True, verify=True)
    large = {"x": feeds[0]["x"] * 4}
    expected, got = run_at(PLAIN, quantized, large)[0], run_model(floats, large)[0]
    assert np.abs(got - expected).max() < 0.04 * np.abs(expected).max()


@pytest.mark.parametrize("profile", ["ncnn", "tensorrt"])
@pytest.mark.parametrize("method", ["dynamic", "QOperator"])
def test_runtimes_without_integers_take_them(tmp_path, method, profile):
    model, feeds = make_network("rows")
    onnx.save(model, tmp_path / "a.onnx")
    quantize_network(tmp_path / "a.onnx", tmp_path / "b.onnx", method, feeds)
    kept = {"dequantize": True, "profile": profile, "static": {"N": 3}}
    serde.convert(tmp_path / "b.onnx", tmp_path / "c.onnx", **kept)
    expected = run_model(model, feeds[0])[0]
    got = run_model(onnx.load(tmp_path / "c.onnx"), feeds[0])[0]
    assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()


BODIES = {
    "If": """y = If (c) <then_branch = then () => (float[N,3] p) {BODY},
        else_branch = other () => (float[N,3] o) {o = Neg(z)}>""",
    "Loop": """m = Constant<value_int = 1>()
        y = Loop (m, c, z) <body = turn (int64 i, bool k, float[N,3] s) =>
        (bool l, float[N,3] p) {l = Identity(k) BODY}>""",
}
TURN = """q, d, e = DynamicQuantizeLinear(x) t = MatMulInteger(q, w, e, u)
    f = Cast<to=1>(t) g = Mul(d, v) p = Mul(f, g)"""


@pytest.mark.parametrize("name", BODIES)
def test_integers_in_bodies_become_floats(tmp_path, name):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[N,2] x, float[N,3] z, bool c) => (float[N,3] y)
    <int8[2,3] w = {{3, -4, 5, 6, -7, 8}}, int8 u = {{1}}, float[3] v = {{0.5, 0.25, 0.125}}> {{
        {BODIES[name].replace("BODY", TURN)}
    }}"""
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    done = serde.load(tmp_path / "b.onnx")
    assert "MatMulInteger" not in {n.op for n in done.all_nodes()}
    rng = np.random.default_rng(1)
    feeds = {"x": rng.standard_normal((4, 2)).astype(np.float32),
             "z": rng.standard_normal((4, 3)).astype(np.float32), "c": np.array(True)}  # fmt: skip
    weights = (np.array([[3, -4, 5], [6, -7, 8]]) - 1) * np.array([0.5, 0.25, 0.125])
    (got,) = run_model(onnx.load(tmp_path / "b.onnx"), feeds)
    np.testing.assert_allclose(got, feeds["x"] @ weights, atol=1e-5)


def test_a_note_tells_of_integers_that_stay(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,2] x, int8[2,3] w) => (int32[N,3] t, float[N,3] p) {
        q, d, e = DynamicQuantizeLinear(x) t = MatMulInteger(q, w, e)
        f = Cast<to=1>(t) p = Mul(f, d)
    }"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    assert sum("MatMulInteger ×1" in n and "stays" in n for n in report.notes) == 1


INFINITE = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
NO_ROW = np.where(np.arange(4)[:, None] == 1, np.float32(-np.inf), INFINITE)


@pytest.mark.parametrize("mask, guards", [(INFINITE, 0), (NO_ROW, 1)])
@pytest.mark.parametrize("form", ["Add", "Where", "Mul"])
def test_integers_that_stand_for_nan_stay_numbers(mask, guards, form, tmp_path):
    """Scores of which a mask leaves none: ONNX Runtime quantizes NaN as the least integer."""
    g = OnnxBuilder("g")
    x = g.input("x", F32, (4, 4))
    scores = pair(g, x)
    if form == "Add":
        masked = g.Add(scores, mask)
    elif form == "Where":
        masked = g.Where(mask == 0, scores, np.float32(-np.inf))
    else:  # 0 times infinity
        masked = g.Add(scores, pair(g, g.Mul(g.Cast(mask < 0, to=1), np.float32(-np.inf))))
    step, zero = g.const(np.float32(1 / 255)), g.const(np.uint8(0))
    q = g.QuantizeLinear(g.Softmax(masked, axis=-1), step, zero)
    source = tmp_path / "q.onnx"
    serde.save(g.build([g.Relu(g.DequantizeLinear(q, step, zero))]), source, opset=17)
    target = tmp_path / "f.onnx"
    report = serde.convert(source, target, dequantize=True, verify=True)
    assert report.verification.done and report.ok
    if form == "Add":  # none where a number is left of each row
        assert report.operators.get("IsNaN", 0) == guards
    assert "QuantizeLinear" not in report.operators
    array = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    (expected,), (got,) = (run_model(onnx.load(p), {"x": array}) for p in (source, target))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(got, expected, atol=0.05)
