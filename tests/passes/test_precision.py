"""Weights and arithmetic in fewer bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

import serde
from serde.errors import UsageError
from testing.onnx_live import PLAIN, error, model_of, run_at, run_model

F = np.float32
NETWORK = """g (float[2,3,8,8] x, int64[2] i) => (float[2,80] y, float[2,64] z, int64[2] j) {
    c = Conv<pads = [2, 2, 2, 2]>(x, k)
    b = BatchNormalization(c, s, t, m, u)
    r = Relu(b)
    g = GlobalAveragePool(r)
    f = Flatten(g)
    h = MatMul(f, w)
    q = ReduceSumSquare<keepdims = 1>(h)
    n = Div(h, q)
    y = Softmax(n)
    z = Gather(e, i)
    j = Identity(i)
}"""
SHAPES = {"k": (64, 3, 5, 5), "w": (64, 80), "s": (64,), "t": (64,), "m": (64,), "u": (64,),
          "e": (80, 64)}  # fmt: skip


@pytest.fixture
def network(tmp_path):
    """A model in a file, with inputs and outputs."""
    draws = np.random.default_rng(0)
    model = model_of(NETWORK, opset=17, ir_version=8)
    for name, shape in SHAPES.items():
        array = draws.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(from_array(array, name))
    onnx.save(model, tmp_path / "a.onnx")
    feeds = {"x": draws.standard_normal((2, 3, 8, 8)).astype(np.float32), "i": np.array([1, 4])}
    return tmp_path / "a.onnx", feeds, run_model(model, feeds)


def convert(network, **options):
    """What is made of the model, verified, and how far its outputs are off."""
    path, feeds, expected = network
    report = serde.convert(path, path.with_name("b.onnx"), verify=True, **options)
    assert report.ok
    model = onnx.load(path.with_name("b.onnx"))
    for entry in model.graph.input:
        is_half = entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        feeds = {
            **feeds,
            entry.name: feeds[entry.name].astype(
                np.float16 if is_half else feeds[entry.name].dtype
            ),
        }
    got = run_model(model, feeds)
    return model, max(error(a.astype(b.dtype), b) for a, b in zip(got, expected, strict=True)), got


def test_half_precision(network):
    model, off, got = convert(network, fp16=True)
    assert 0 < off < 2e-2
    kinds = Counter(to_array(t).dtype for t in model.graph.initializer)
    assert kinds[np.dtype(np.float32)] == 0 and kinds[np.dtype(np.float16)] == len(SHAPES)
    assert [a.dtype for a in got] == [np.float32, np.float32, np.int64]
    kept = next(n for n in model.graph.node if n.op_type == "ReduceSumSquare")
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}
    assert types[kept.output[0]] == onnx.TensorProto.FLOAT


def test_ends_in_half_precision(network):
    model, off, got = convert(network, fp16=True, fp16_io=True)
    assert off < 2e-2 and [a.dtype for a in got] == [np.float16, np.float16, np.int64]
    assert [v.name for v in model.graph.output] == ["y", "z", "j"]


def test_operators_that_are_kept(network):
    model, _, _ = convert(network, fp16=True, fp16_keep=["Conv", "BatchNormalization"])
    single = {t.name for t in model.graph.initializer if to_array(t).dtype == np.float32}
    assert single == {"k", "s", "t", "m", "u"}


@pytest.mark.parametrize("kind, bound", [("fp16", 1e-3), ("bf16", 1e-2), ("int8", 1e-2)])
def test_weights(kind, bound, network):
    model, off, _ = convert(network, weights=kind)
    assert 0 < off < bound
    counts = Counter(n.op_type for n in model.graph.node)
    assert counts["DequantizeLinear" if kind == "int8" else "Cast"] == 3


WEIGHTS = {  # text, shapes of weights, how many are compressed
    "of a look-up and products": (
        "(int64[2] i, float[3,64] x) => (float[2,64] y, float[3,64] z, float[3,64] w) "
        "{ y = Gather(e, i) z = MatMul(x, e) w = Gemm<transB = 1>(x, e) }",
        {"e": (64, 64)}, {"fp16": 1, "bf16": 1, "int8": 2}),
    "that are also added": (
        "(float[64,64] x) => (float[64,64] y) { z = MatMul(x, e) y = Add(z, e) }",
        {"e": (64, 64)}, {"fp16": 1, "bf16": 1, "int8": 1}),
    "of recurrent layers": (
        "(float[3,2,32] x) => (float[3,1,2,32] y, float[1,2,32] z) "
        "{ y, z = LSTM<hidden_size = 32>(x, w, r) }",
        {"w": (1, 128, 32), "r": (1, 128, 32)}, {"fp16": 2, "bf16": 2, "int8": 2}),
    "before the data": (
        "(float[64,3] x) => (float[80,3] y, float[64,3] z) { y = MatMul(a, x) "
        "z = Gemm<transA = 1>(b, x) }",
        {"a": (80, 64), "b": (64, 64)}, {"fp16": 2, "bf16": 2, "int8": 2}),
    "places": ("(float[64,64] x) => (float[64,64] y) { y = Add(x, e) }",
               {"e": (64, 64)}, {"fp16": 0, "bf16": 0, "int8": 0}),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["fp16", "bf16", "int8"])
@pytest.mark.parametrize("case", WEIGHTS.values(), ids=WEIGHTS)
def test_compressed_constants(case, kind, tmp_path):
    """With the bits of the kind, MatMul's data too: ONNX Runtime rounds them to int8."""
    text, shapes, counts = case
    draws = np.random.default_rng(0)
    held = {n: draws.standard_normal(s).astype(F) / 4 for n, s in shapes.items()}
    model = halve(f"g {text}", tmp_path, **held, options={"fp16": None, "weights": kind})
    original = onnx.load(tmp_path / "a.onnx")
    feeds = {v.name: draws.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim])
             .astype(F) for v in original.graph.input}  # fmt: skip
    feeds = {n: np.array([3, 60]) if n == "i" else x for n, x in feeds.items()}
    expected = run_model(original, feeds)
    for got, wanted in zip(run_at(PLAIN, model, feeds), expected, strict=True):
        assert (0 if counts[kind] else -1) < error(got, wanted) < 2e-2
    types = Counter(to_array(t).dtype for t in model.graph.initializer if len(t.dims) > 1)
    assert types.total() - types[np.dtype(F)] == counts[kind]


def test_constants_beyond_the_range(tmp_path):
    """A mask of -1e9 and an epsilon of 1e-12 become the next numbers that float16 has."""
    held = {"m": np.array([-1e9, 0], np.float32), "e": np.array([1e-12], np.float32)}
    text = "g (float[2] x) => (float[2] y) { a = Add(x, m) b = Add(a, e) y = Softmax(b) }"
    model = halve(text, tmp_path, **held)
    arrays = {t.name: to_array(t) for t in model.graph.initializer}
    assert arrays["m"].tolist() == [-65504, 0] and arrays["e"].tolist() == [2.0**-24]


def halve(text: str, folder, **held):
    """A model in text form with constants, converted to float16."""
    options = {"fp16": True, **held.pop("options", {})}
    model = model_of(text, opset=17, ir_version=8)
    model.graph.initializer.extend(from_array(np.asarray(a), n) for n, a in held.items())
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", **options)
    return onnx.load(folder / "b.onnx")


TABLE = np.arange(6000, dtype=F).reshape(3000, 2) / 6000
RANGES = {  # text, constants, inputs: numbers that float16 lacks
    "tokens": (
        "(float[3] x) => (float[3,2] y) { a = Clip(x, lo, hi) i = Cast<to = 7>(a) y = Gather(w, i) }",
        {"lo": F(0), "hi": F(2999), "w": TABLE}, {"x": F([1, 2049, 2999])}),
    "tokens behind arithmetic": (
        "(float[1,3] x) => (float[3,2] y) { a = Squeeze(x, n) b = Add(a, k) c = Floor(b) "
        "i = Cast<to = 6>(c) y = Gather(w, i) }",
        {"n": np.array([0]), "k": F(1.5), "w": TABLE}, {"x": F([[1, 2048, 2997]])}),
    "lengths": (
        "(float[2] n) => (float[2] y) { i = Range(a, b, c) j = Cast<to = 1>(i) k = Unsqueeze(n, d) "
        "m = Less(j, k) f = Cast<to = 1>(m) y = ReduceSum<keepdims = 0>(f, d) }",
        {"a": np.array(0), "b": np.array(3000), "c": np.array(1), "d": np.array([1])},
        {"n": F([2049, 2999])}),
    "classes": (
        "(float[2] x) => (float[2,2] y) { a = Unsqueeze(x, d) m = Equal(a, c) f = Cast<to = 1>(m) "
        "y = MatMul(f, w) }",
        {"c": np.arange(3000, dtype=F), "d": np.array([1]), "w": TABLE}, {"x": F([2049, 2999])}),
    "division by a count": (
        "(float[4] x, int64 n) => (float[4] y) { f = Cast<to = 1>(n) a = Mul(x, x) y = Div(a, f) }",
        {}, {"x": F([2, 200, 255, 3]), "n": np.array(100000)}),
    "sums of integers": (
        "(int32[3] x) => (float[3] y) { a = Cast<to = 1>(x) b = Mul(a, s) c = Add(b, t) "
        "y = Relu(c) }",
        {"s": F([1e-5, 2e-5, 3e-5]), "t": F(1)}, {"x": np.array([90000, 100001, -70003], np.int32)}),
    "a fraction of a place": (
        "(float[2] x) => (float[2] y) { a = Floor(x) i = Cast<to = 7>(a) b = Sub(x, a) "
        "c = Gather(w, i) d = Mul(b, c) y = Relu(d) }",
        {"w": TABLE[:, 1]}, {"x": F([1500.25, 2049.125])}),
    "a mean of squares": (
        "(float[2,4] x) => (float[2,4] y) { s = Mul(x, x) m = ReduceMean<axes = [1]>(s) "
        "a = Add(m, e) r = Sqrt(a) y = Div(x, r) }",
        {"e": F(1e-6)}, {"x": F([[900, -800, 300, 1], [1, 2, 3, 4]])}),
    "powers": (
        "(float[2,4] x) => (float[2,4] y) { s = Pow(x, p) m = ReduceMean<axes = [1]>(s) "
        "r = Pow(m, h) y = Mul(x, r) }",
        {"p": F(2), "h": F(-0.5)}, {"x": F([[900, -800, 300, 1], [1, 2, 3, 4]])}),
    "exponentials": (
        "(float[3] x) => (float[3] y) { a = Exp(x) b = Add(a, o) y = Log(b) }",
        {"o": F(1)}, {"x": F([20, 3, -5])}),
    "large divisors": (
        "(float[3] x) => (float[3] y) { a = Div(x, d) y = Mul(a, f) }",
        {"d": F(1e6), "f": F(1e5)}, {"x": F([20, 3, -5])}),
    "large variances": (
        "(float[2,2] x) => (float[2,2] y) { y = BatchNormalization(x, s, b, m, v) }",
        {"s": F([300, 2]), "b": F([0, 1]), "m": F([1, 2]), "v": F([1e6, 1])},
        {"x": F([[500, 2], [-300, 1]])}),
    "a product with a mask": (
        "(float[2,3] x, int64[2,3] m) => (float[2,3] y) { f = Cast<to = 1>(m) n = Sub(o, f) "
        "a = Mul(n, k) b = Add(x, a) y = Softmax(b) }",
        {"o": F(1), "k": F(-1e9)}, {"x": F([[1, 2, 3], [5, 5, 5]]), "m": np.array([[1, 1, 0], [0, 0, 0]])}),
}  # fmt: skip


@pytest.mark.parametrize("case", RANGES.values(), ids=RANGES)
def test_numbers_that_float16_lacks(case, tmp_path):
    text, held, feeds = case
    model = halve(f"g {text}", tmp_path, **held)
    (expected,) = run_model(onnx.load(tmp_path / "a.onnx"), feeds)
    (got,) = run_model(model, feeds)
    assert np.isfinite(got).all() and error(got, expected) < 2e-3


ENDS = {  # text, element types of inputs and outputs
    "kept operators": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                       "{ y = CumSum(x, a) z = Sinh(x) }", [10], [10, 10]),
    "an output that is read": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                               "{ y = CumSum(x, a) z = Sinh(y) }", [10], [10, 10]),
    "an output of both": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                          "{ y = Sinh(x) z = CumSum(y, a) }", [10], [10, 10]),
    "an input of both": ("(float[2,8] x, float[2,8] w) => (float[2,8] y) "
                         "{ c = CumSum(x, a) y = Add(c, x) }", [10, 10], [10]),
    "an index": ("(float[2,8] x, float[2] i) => (float[2,8] y) "
                 "{ j = Cast<to = 7>(i) y = Gather(x, j) }", [10, 1], [10]),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_names_and_types_of_ends(case, tmp_path):
    text, inputs, outputs = case
    model = halve(f"g {text}", tmp_path, a=np.array(1), options={"fp16_io": True})
    original = onnx.load(tmp_path / "a.onnx").graph
    for ends, types, before in (
        (model.graph.input, inputs, original.input), (model.graph.output, outputs, original.output)
    ):  # fmt: skip
        assert [v.name for v in ends] == [v.name for v in before]
        assert [v.type.tensor_type.elem_type for v in ends] == types
    draws = np.random.default_rng(0).uniform(0, 2, (2, 2, 8)).astype(F)
    feeds = dict(zip((v.name for v in original.input), (draws[0], draws[1]), strict=False))
    if "i" in feeds:
        feeds["i"] = F([1, 0])
    typed = {v.name: feeds[v.name].astype(np.float16 if t == 10 else F)
             for v, t in zip(model.graph.input, inputs, strict=True)}  # fmt: skip
    expected = run_model(onnx.load(tmp_path / "a.onnx"), feeds)
    for got, wanted in zip(run_model(model, typed), expected, strict=True):
        assert error(got.astype(F), wanted) < 2e-3


@pytest.mark.parametrize(
    "options", [{"fp16_io": True}, {"fp16": True, "weights": "int8"}, {"fp16": True, "fp32": True},
                {"fp16": True, "fp16_keep": ["Convolution"]}]
)  # fmt: skip
def test_options_that_mean_nothing(options, network):
    with pytest.raises(UsageError):
        serde.load(network[0], **options)


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
