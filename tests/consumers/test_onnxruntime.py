"""The profile onnxruntime: ONNX Runtime has a kernel for all that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from conformance import onnxruntime_kernels
from serde.formats.onnx.consumers.onnxruntime import support_table
from testing.onnx_live import model_of, run_model
from tests.consumers.checks import check_network, check_node_test, check_recurrent, refusals

# What no kernel is of: the types, operators and forms that the profile writes otherwise.
NODE_TESTS = """
test_batchnorm_epsilon_training_mode test_bitshift_right_int16
test_celu_bfloat16_expanded test_center_crop_pad_crop test_convinteger_with_padding
test_gru_batchwise test_hardswish test_lstm_batchwise test_max_int16 test_min_uint16 test_mish
test_nllloss_NCd1_ii test_reduce_max_empty_set_bool test_sce_mean test_sequence_map_add_2_sequences
test_simple_rnn_batchwise test_where_example test_identity_sequence test_cast_FLOAT_to_BFLOAT16
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "onnxruntime")


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "onnxruntime", tmp_path)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_keep_activations(op, tmp_path):
    names = {"RNN": ["Sigmoid"], "GRU": ["Relu", "Tanh"], "LSTM": ["Relu", "Tanh", "Sigmoid"]}[op]
    text = ", ".join(f'"{n}"' for n in names)
    check_recurrent(op, f"activations = [{text}]", "onnxruntime", tmp_path)


def test_recurrent_layers_of_float64(tmp_path):
    draws = np.random.default_rng(0)
    text = "(double[4,2,3] x, double[1,8,3] w, double[1,8,2] r) => (double[4,1,2,2] y)"
    save_text(f"{text} {{ y = LSTM<hidden_size = 2>(x, w, r) }}", tmp_path / "a.onnx")
    single = text.replace("double", "float")
    save_text(f"{single} {{ y = LSTM<hidden_size = 2>(x, w, r) }}", tmp_path / "single.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    shapes = {"x": (4, 2, 3), "w": (1, 8, 3), "r": (1, 8, 2)}
    feeds = {name: draws.standard_normal(shape) for name, shape in shapes.items()}
    (y,) = run_model(tmp_path / "b.onnx", feeds)
    (expected,) = run_model(
        tmp_path / "single.onnx", {n: a.astype(np.float32) for n, a in feeds.items()}
    )
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, expected, 1e-4, 1e-5)


BOOLEANS = np.array([[True, False], [False, True]])
LARGE = 2**60 + 1  # no float64
FORMS = {
    "choice of booleans": (
        "(bool[2,2] x, bool[2,2] v) => (bool[2,2] y)", "y = Where(x, v, x)",
        (BOOLEANS, ~BOOLEANS), np.zeros((2, 2), bool),
    ),
    "places of float64": (
        "(double[2,2] x) => (int64[2,K] y)", "y = NonZero(x)", (BOOLEANS * 0.5,),
        np.array([[0, 1], [0, 1]]),
    ),
    "identity of booleans": (
        "(bool[2,2] x) => (bool[2,2] y)", "y = EyeLike(x)", (BOOLEANS,), np.eye(2, dtype=bool),
    ),
    "identity of float16": (
        "(float[2,3] x) => (float16[2,3] y)", "y = EyeLike<dtype = 10, k = 1>(x)",
        (np.zeros((2, 3), np.float32),), np.eye(2, 3, 1, np.float16),
    ),
    "Relu of int64": (
        "(int64[3] x) => (int64[3] y)", "y = Relu(x)", (np.array([-LARGE, 0, LARGE]),),
        np.array([0, 0, LARGE]),
    ),
    "PRelu of int64": (
        "(int64[3] x, int64[1] v) => (int64[3] y)", "y = PRelu(x, v)",
        (np.array([-LARGE, 0, LARGE]), np.array([3])), np.array([-3 * LARGE, 0, LARGE]),
    ),
    "product of int64": (
        "(int64[1,2] x) => (int64[1,1] y)", "y = Gemm<transB = 1>(x, x)",
        (np.array([[2**30 + 1, 1]]),), np.array([[(2**30 + 1) ** 2 + 1]]),
    ),
    "blocks of int64": (
        "(int64[1,4,1,1] x) => (int64[1,1,2,2] y)", "y = DepthToSpace<blocksize = 2>(x)",
        (np.array([1, 2, 3, LARGE]).reshape(1, 4, 1, 1),),
        np.array([1, 2, 3, LARGE]).reshape(1, 1, 2, 2),
    ),
    "one-hot int32": (
        "(int32[2] x) => (int32[2,3] y)",
        "d = Constant<value_int = 3>() v = Constant<value = int32[2] {5, 7}>() y = OneHot(x, d, v)",
        (np.array([0, -1], np.int32),), np.array([[7, 5, 5], [5, 5, 7]], np.int32),
    ),
    "tangent of float64": (
        "(double[3] x) => (double[3] y)", "y = Tan(x)", (np.array([-1.0, 0, 0.5]),),
        np.tan([-1.0, 0, 0.5]),
    ),
    "grid of another type": (
        "(double[1,1,1,2] x, float[1,1,2,2] v) => (double[1,1,1,2] y)",
        "y = GridSample<align_corners = 1>(x, v)",
        (np.array([[[[0.1, 0.3]]]]), np.array([[[[0, 0], [1, 0]]]], np.float32)),
        np.array([[[[0.2, 0.3]]]]),
    ),
    "statistics of another type": (
        "(double[1,2] x, float[2] v) => (double[1,2] y)",
        "y = BatchNormalization<epsilon = 0.0>(x, v, v, v, v)",
        (np.array([[3.0, 8.0]]), np.array([1, 4], np.float32)), np.array([[3.0, 12.0]]),
    ),
    "int8 by uint8": (
        "(int8[1,2] x, uint8[2,1] v) => (int8[1,1] y)",
        "s = Constant<value_float = 1.0>() z = Constant<value = int8 {0}>() "
        "o = Constant<value = uint8 {0}>() y = QLinearMatMul(x, s, z, v, s, o, s, z)",
        (np.array([[-3, 2]], np.int8), np.array([[20], [200]], np.uint8)),
        np.array([[127]], np.int8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_without_a_kernel(form, tmp_path):
    signature, body, feeds, expected = FORMS[form]
    save_text(f"{signature} {{ {body} }}", tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    (y,) = run_model(tmp_path / "b.onnx", dict(zip("xv", feeds, strict=False)))
    np.testing.assert_allclose(y, expected, 1e-12, strict=True)


# Operators whose kernels are of float32, and their numbers by NumPy.
DOUBLES = {
    "Acosh": lambda x: np.arccosh(x + 2),
    "Asinh": np.arcsinh,
    "Atanh": lambda x: np.arctanh(x / 4),
    "Cosh": np.cosh,
    "Elu<alpha = 0.5>": lambda x: np.where(x < 0, np.expm1(x) / 2, x),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "GlobalLpPool<p = 2>": lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)),
    "GlobalMaxPool": lambda x: x.max((2, 3), keepdims=True),
    "Hardmax<axis = 3>": lambda x: (x == x.max(3, keepdims=True)).astype(np.float64),
    "HardSigmoid<alpha = 0.5>": lambda x: np.clip(x / 2 + 0.5, 0, 1),
    "LeakyRelu<alpha = 0.5>": lambda x: np.where(x < 0, x / 2, x),
    "Selu<alpha = 2.0, gamma = 3.0>": lambda x: 3 * np.where(x < 0, 2 * np.expm1(x), x),
    "Sinh": np.sinh,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + abs(x)),
    "Tan": np.tan,
    "ThresholdedRelu<alpha = 0.5>": lambda x: np.where(x > 0.5, x, 0),
}
SHIFTED = {"Acosh": ("Add", 2.0), "Atanh": ("Div", 4.0)}  # into what they are defined for


@pytest.mark.parametrize("op", DOUBLES)
def test_float64_without_a_kernel(op, tmp_path):
    shift, by = SHIFTED.get(op, ("Mul", 1.0))
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 5))
    signature = "(double[2,3,4,5] x, double[1] c) => (double[A,B,C,D] y)"
    save_text(f"{signature} {{ s = {shift}(x, c) y = {op}(s) }}", tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    (y,) = run_model(tmp_path / "b.onnx", {"x": x, "c": np.array([by])})
    np.testing.assert_allclose(y, DOUBLES[op](x), 1e-12, 1e-15, strict=True)


@pytest.mark.parametrize(
    "kernel, stride, pads, more",
    [((4, 4), 2, (1, 1, 1, 1), (0, 0)), ((5, 4), 2, (1, 0, 2, 2), (0, 0)),
     ((5, 5), 2, (2, 2, 2, 2), (1, 1)), ((8, 9), 4, (2, 3, 2, 2), (0, 0)),
     ((3, 3), 1, (1, 0, 1, 2), (0, 0))],
)  # fmt: skip
@pytest.mark.parametrize("bias", [True, False])
def test_transposed_convolutions_of_many_channels(kernel, stride, pads, more, bias, tmp_path):
    save_transposed(tmp_path / "a.onnx", 128, kernel, stride, pads, more, bias)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    ops = [n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node]
    assert ops.count("Conv") == stride**2 and "ConvTranspose" not in ops
    x = np.random.default_rng(1).standard_normal((2, 128, 5, 6), np.float32)
    (expected,) = run_model(tmp_path / "a.onnx", {"x": x})
    (y,) = run_model(tmp_path / "b.onnx", {"x": x})
    np.testing.assert_allclose(y, expected, 1e-4, 1e-4, strict=True)


@pytest.mark.parametrize(
    "channels, kernel, stride, pads",
    [(64, (4, 4), 2, (1, 1, 1, 1)), (136, (4, 4), 2, (1, 1, 1, 1)), (128, (2, 2), 2, (0, 0, 0, 0)),
     (128, (4, 4), 2, (0, 0, 0, 0)), (128, (4, 5), 2, (1, 2, 1, 2))],
)  # fmt: skip
def test_transposed_convolutions_that_are_as_fast_stay(channels, kernel, stride, pads, tmp_path):
    save_transposed(tmp_path / "a.onnx", channels, kernel, stride, pads, (0, 0), False)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    ops = [n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node]
    assert ops == ["ConvTranspose"]


def save_transposed(path, channels, kernel, stride, pads, more, bias) -> None:
    draws = np.random.default_rng(0)
    weights = draws.standard_normal((channels, channels, *kernel), np.float32) / 16
    constants = {"w": weights, "b": draws.standard_normal(channels, np.float32)}
    form = {"strides": [stride] * 2, "pads": pads, "output_padding": more}
    attributes = ", ".join(f"{name} = {list(value)}" for name, value in form.items())
    text = f"(float[N,{channels},H,W] x) => (float[N,{channels},A,B] y)"
    operands = "x, w, b" if bias else "x, w"
    model = model_of(f"g {text} {{ y = ConvTranspose<{attributes}>({operands}) }}")
    used = list(constants)[: 1 + bias]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(constants[n], n) for n in used)
    onnx.save(model, path)


def test_statistics_that_training_reads_twice_are_not_overwritten(tmp_path):
    body = "y, m, v = BatchNormalization<training_mode = 1, epsilon = 0.0>(x, s, s, s, s)"
    save_text(f"(float[2,3,4] x, float[3] s) => (float[2,3,4] y) {{ {body} }}", tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    x, s = np.random.default_rng(0).random((2, 3, 4), np.float32), np.float32([1, 2, 3])
    (y,) = run_model(tmp_path / "b.onnx", {"x": x, "s": s})
    mean, std = x.mean((0, 2), keepdims=True), x.std((0, 2), keepdims=True)
    np.testing.assert_allclose(y, ((x - mean) / std + 1) * s[:, None], 1e-5, 1e-5)


def test_operators_of_its_own_domains_stay(tmp_path):
    text = "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.BifurcationDetector(x) }"
    model = model_of(f"g {text}")
    model.opset_import.add(domain="com.microsoft", version=1)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    assert [n.domain for n in onnx.load(tmp_path / "b.onnx").graph.node] == ["com.microsoft"]


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(double[1,1,4] x, double[1,1,2] w) => (double[1,1,3] y)", "y = Conv(x, w)",
         "onnxruntime has no Conv of float64 elements. "
         "It takes float16, float32: cast to one that holds the numbers"),
        ("(uint64[4] x) => (uint64[1] y, int64[1] i)",
         "k = Constant<value_ints = [1]>() y, i = TopK(x, k)",
         "onnxruntime has no TopK of uint64 elements. "
         "It takes float16, float32, float64, int16, int32, int64, int8, uint8: cast to one that holds the numbers"),
        ("(uint8[9] x) => (uint8[A,B,3] y)", "y = ImageDecoder(x)",
         "onnxruntime has no ImageDecoder"),
    ],
)  # fmt: skip
def test_refusals_name_what_is_lacking(signature, body, reason, tmp_path):
    assert refusals(signature, body, "onnxruntime", tmp_path, opset=21) == [reason]


def test_the_table_is_that_of_the_installed_kernels():
    written = support_table.__doc__ or ""
    if f"onnxruntime {onnxruntime.__version__}," not in written:
        pytest.skip(f"ONNX Runtime {onnxruntime.__version__} is another than the table's")
    assert f"\n{onnxruntime_kernels.table()}\n" == support_table.MEASURED


def save_text(text: str, path: Path) -> None:
    """Write the model whose graph ``text`` spells, but for its name."""
    onnx.save(model_of(f"g {text}"), path)
