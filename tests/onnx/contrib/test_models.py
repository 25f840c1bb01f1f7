"""Models that ONNX Runtime's quantizer and optimizer wrote, as they run before and after serde."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime import quantization

from serde import api
from tests.onnx.contrib.cases import OPSETS, compare, run

rng = np.random.default_rng(4)
HIDDEN, HEADS, WORDS, LENGTH = 32, 4, 50, 6


def floats(*shape, factor=0.3):
    return (rng.standard_normal(shape) * factor).astype(np.float32)


class Net:
    """A graph that grows by one call for each node."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def __call__(self, op, *inputs, outputs=1, **attrs):
        names = [v if isinstance(v, str) else self.weight(v) for v in inputs]
        results = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, results, name=results[0], **attrs))
        return results[0] if outputs == 1 else results

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def model(self, inputs, output, opset=17):
        infos = [helper.make_tensor_value_info(*i) for i in inputs]
        end = helper.make_tensor_value_info(output, 1, None)
        graph = helper.make_graph(self.nodes, "net", infos, [end], self.weights)
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def convolutions(opset=13):
    """Convolutions, a sum of two, both kinds of pools, and layers behind."""
    g = Net()
    first = g("Relu", g("Conv", "x", floats(8, 3, 3, 3), floats(8), pads=[1, 1, 1, 1]))
    other = g("Conv", first, floats(8, 8, 3, 3), floats(8), pads=[1, 1, 1, 1])
    total = g("Relu", g("Add", first, other))
    pooled = g("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2])
    pooled = g("AveragePool", pooled, kernel_shape=[2, 2], strides=[2, 2])
    both = g("Concat", pooled, g("Sigmoid", pooled), axis=1)
    gated = g("Mul", both, g("LeakyRelu", both, alpha=0.1))
    flat = g("Flatten", g("GlobalAveragePool", gated))
    end = g("Gemm", flat, floats(16, 10), floats(10))
    return g.model([("x", 1, ["N", 3, 16, 16])], g("Softmax", end), opset)


def normalize(g, x):
    """Layer normalization in the operators that exporters wrote before there was one."""
    apart = g("Sub", x, g("ReduceMean", x, axes=[-1]))
    spread = g("ReduceMean", g("Pow", apart, np.float32(2)), axes=[-1])
    scaled = g("Div", apart, g("Sqrt", g("Add", spread, np.float32(1e-5))))
    return g("Add", g("Mul", scaled, floats(HIDDEN) + 1), floats(HIDDEN))


def gelu(g, x):
    erf = g("Erf", g("Div", x, np.float32(np.sqrt(2))))
    return g("Mul", g("Mul", x, g("Add", erf, np.float32(1))), np.float32(0.5))


def dense(g, x, width):
    return g("Add", g("MatMul", x, floats(HIDDEN, width)), floats(width))


def split(g, x, perm):
    shape = np.array([0, 0, HEADS, HIDDEN // HEADS])
    return g("Transpose", g("Reshape", x, shape), perm=perm)


def transformer(opset=13):
    """Embeddings and one layer of an encoder, as BERT has it, with a mask of words."""
    g = Net()
    words = g("Gather", floats(WORDS, HIDDEN), "ids")
    kinds = g("Gather", floats(2, HIDDEN), "kinds")
    places = g("Gather", floats(LENGTH, HIDDEN), np.arange(LENGTH)[None])
    x = normalize(g, g("Add", g("Add", words, kinds), places))
    seen = g("Cast", g("Unsqueeze", g("Unsqueeze", "mask", np.array([1])), np.array([2])), to=1)
    hidden = g("Mul", g("Sub", np.float32(1), seen), np.float32(-10000))
    q, k, v = (
        split(g, dense(g, x, HIDDEN), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = g("Div", g("MatMul", q, k), np.float32(np.sqrt(HIDDEN // HEADS)))
    shares = g("Softmax", g("Add", scores, hidden), axis=-1)
    joined = g("Transpose", g("MatMul", shares, v), perm=[0, 2, 1, 3])
    joined = g("Reshape", joined, np.array([0, 0, HIDDEN]))
    x = normalize(g, g("Add", dense(g, joined, HIDDEN), x))
    wide = gelu(g, dense(g, x, 64))
    narrow = g("Add", g("MatMul", wide, floats(64, HIDDEN)), floats(HIDDEN))
    y = normalize(g, g("Add", narrow, x))
    return g.model([(n, 7, ["N", LENGTH]) for n in ("ids", "kinds", "mask")], y, opset)


def words(count=2):
    mask = np.ones((count, LENGTH), np.int64)
    mask[0, 4:] = 0
    return {"ids": rng.integers(0, WORDS, (count, LENGTH)),
            "kinds": rng.integers(0, 2, (count, LENGTH)), "mask": mask}  # fmt: skip


class Reader(quantization.CalibrationDataReader):
    def __init__(self):
        self.rest = iter([{"x": floats(4, 3, 16, 16, factor=1)} for _ in range(4)])

    def get_next(self):
        return next(self.rest, None)


def quantize(path, form, kind):
    source = path / "float.onnx"
    onnx.save(convolutions(), source)
    target = str(path / "quantized.onnx")
    types = {"weight_type": quantization.QuantType.QInt8, "activation_type": kind}
    quantization.quantize_static(str(source), target, Reader(), quant_format=form, **types)
    return onnx.load(target)


def optimize(model, path, level="ORT_ENABLE_EXTENDED"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return onnx.load(path / "optimized.onnx")


def kinds_of(model):
    return {n.op_type for n in model.graph.node if n.domain == "com.microsoft"}


def check(model, feeds, folder, tolerance, targets=()):
    onnx.save(model, folder / "m.onnx")
    expected = run(model, feeds)
    for opset in OPSETS:
        api.convert(folder / "m.onnx", folder / "c.onnx", opset=opset)
        new_model = onnx.load(folder / "c.onnx")
        assert not any(n.domain for n in new_model.graph.node)
        for level in ("optimized", "plain"):
            compare(run(new_model, feeds, level), expected, tolerance)
    for target in targets:
        shapes = {n: v.shape for n, v in feeds.items()}
        api.convert(folder / "m.onnx", folder / target, inputs=shapes)


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize("kind", ["QUInt8", "QInt8"])
def test_static_quantization(form, kind, tmp_path):
    model = quantize(
        tmp_path, getattr(quantization.QuantFormat, form), getattr(quantization.QuantType, kind)
    )
    assert (form == "QDQ") == (not kinds_of(model))
    feeds = {"x": floats(4, 3, 16, 16, factor=1)}
    check(model, feeds, tmp_path, 0.05, ["m-symbol.json", "m.relay"])


def test_quantized_operators_are_the_same_integers_in_onnx_runtime(tmp_path):
    model = quantize(tmp_path, quantization.QuantFormat.QOperator, quantization.QuantType.QUInt8)
    assert {"QLinearAdd", "QLinearConcat", "QLinearSigmoid", "QGemm"} <= kinds_of(model)
    api.convert(tmp_path / "quantized.onnx", tmp_path / "c.onnx", opset=17)
    for seed in range(5):
        feeds = {
            "x": np.random.default_rng(seed).standard_normal((4, 3, 16, 16)).astype(np.float32)
        }
        compare(run(str(tmp_path / "c.onnx"), feeds), run(model, feeds), 1e-6)


def test_dynamic_quantization(tmp_path):
    onnx.save(transformer(), tmp_path / "float.onnx")
    target = str(tmp_path / "dynamic.onnx")
    quantization.quantize_dynamic(str(tmp_path / "float.onnx"), target)
    fused = optimize(onnx.load(target), tmp_path)
    assert kinds_of(fused) & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention"}
    check(fused, words(), tmp_path, 0.02)


@pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"])
def test_an_optimized_transformer(level, tmp_path):
    model = optimize(transformer(), tmp_path, level)
    if level == "ORT_ENABLE_EXTENDED":
        assert {"Attention", "SkipLayerNormalization", "EmbedLayerNormalization"} & kinds_of(model)
    check(model, words(), tmp_path, 1e-5, ["m-symbol.json", "m.relay"])


def test_optimized_convolutions(tmp_path):
    model = optimize(convolutions(), tmp_path)
    assert "FusedConv" in kinds_of(model)
    feeds = {"x": floats(2, 3, 16, 16, factor=1)}
    check(model, feeds, tmp_path, 1e-5, ["m-symbol.json", "m.relay"])


def test_a_model_saved_after_the_last_optimizations_is_refused(tmp_path):
    from serde.errors import Unconvertible

    optimize(convolutions(), tmp_path, "ORT_ENABLE_ALL")
    with pytest.raises(Unconvertible, match="ORT_ENABLE_EXTENDED"):
        api.convert(tmp_path / "optimized.onnx", tmp_path / "c.onnx")
