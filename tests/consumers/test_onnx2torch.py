"""The profile onnx2torch: PyTorch modules made of what it writes are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import serde
from testing.consumers.runtimes import run
from testing.onnx_live import error, run_model
from tests.consumers.checks import check_form, check_model, check_network, check_node_test, refusals

# One test for each thing that onnx2torch lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_and2d test_argmax_default_axis_example_select_last_index test_averagepool_2d_pads
test_averagepool_2d_same_upper test_batchnorm_example_training_mode
test_clip_default_int8_max test_clip_example test_cumsum_2d_axis_0 test_cumsum_1d_exclusive
test_depthtospace_example test_dequantizelinear_axis test_einsum_batch_matmul
test_flatten_axis0 test_gather_elements_negative_indices test_gathernd_example_int32_batch_dim1
test_globalmaxpool test_gru_seq_length test_isinf_negative test_layer_normalization_3d_axis1_epsilon
test_lppool_2d_pads test_lrn test_maxpool_2d_ceil test_maxpool_with_argmax_2d_precomputed_pads
test_nonzero_example test_pow_types_int32_float32 test_prelu_broadcast test_qlinearmatmul_2D_uint8_float32
test_reduce_max_empty_set test_reflect_pad test_edge_pad test_resize_downsample_scales_linear
test_resize_upsample_scales_nearest test_resize_upsample_sizes_cubic test_scatter_elements_with_axis
test_scatternd_add test_selu test_split_variable_parts_1d_opset13 test_top_k_negative_axis
test_top_k_same_values test_unsqueeze_unsorted_axes
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "onnx2torch")


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm_bidirectional", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "onnx2torch", tmp_path)


def convert_text(text: str, folder: Path) -> onnx.ModelProto:
    """A model in text form, which is written for onnx2torch as ``b.onnx``."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", profile="onnx2torch")
    return model


@pytest.mark.parametrize("largest", [0, 1])
def test_equal_elements_are_ranked_by_their_places(largest, tmp_path):
    """Of numbers at the ends of the range, too, which places must not move past each other."""
    edges = [0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4028235e38, 1.0, -1.0, 2.0]
    edges += [np.nextafter(np.float32(v), np.float32(w)) for v in (1, 2) for w in (0, 3)]
    x = np.random.default_rng(0).choice(np.asarray(edges, np.float32), (4, 300))
    text = f"""(float[4,300] x) => (float[4,200] v, int64[4,200] i) {{
    k = Constant<value_ints = [200]>() v, i = TopK<largest = {largest}>(x, k) }}"""
    expected = run_model(convert_text(text, tmp_path), {"x": x})
    got = run("onnx2torch", str(tmp_path / "b.onnx"), {"x": x})
    assert all((a == b).all() for a, b in zip(got, expected, strict=True))


def test_slope_as_long_as_the_last_axis_and_the_channels(tmp_path):
    draws = np.random.default_rng(0)
    x, slope = draws.standard_normal((2, 3, 3), np.float32), np.float32([0.1, 0.2, 0.3])
    signature = "(float[2,3,3] x) => (float[2,3,3] y)"
    check_model(signature, "y = PRelu(x, s)", {"x": x}, "onnx2torch", tmp_path, s=slope)


def test_channels_of_an_even_window(tmp_path):
    """ONNX Runtime has odd windows only."""
    x = np.random.default_rng(0).standard_normal((1, 7, 2, 2), np.float32)
    convert_text("(float[1,7,2,2] x) => (float[1,7,2,2] y) { y = LRN<size = 4, alpha = 2.0>(x) }",
                 tmp_path)  # fmt: skip
    (y,) = run("onnx2torch", str(tmp_path / "b.onnx"), {"x": x})
    around = [(x[:, max(0, c - 1) : c + 3] ** 2).sum(1) for c in range(7)]
    assert error(y, x / (1 + 2 / 4 * np.stack(around, 1)) ** np.float32(0.75)) < 1e-6


def test_pads_that_a_deconvolution_crops(tmp_path):
    draws = np.random.default_rng(0)
    x, w = (draws.standard_normal(s, np.float32) for s in ((1, 2, 5, 5), (2, 3, 3, 3)))
    body = "y = ConvTranspose<strides = [2, 2], pads = [1, 0, 0, 2]>(x, w)"
    signature = "(float[1,2,5,5] x) => (float[1,3,10,9] y)"
    check_model(signature, body, {"x": x}, "onnx2torch", tmp_path, w=w)


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 2]])
def test_pools_of_constants(pads, tmp_path):
    """Of which onnx2torch does not know the rank."""
    ones = np.random.default_rng(0).standard_normal((1, 1, 40, 40), np.float32)
    form = f"kernel_shape = [3, 3], pads = {pads}"
    size = 38 + pads[0] + pads[2], 38 + pads[1] + pads[3]
    signature = f"(float[1] x) => (float[1,1,{size[0]},{size[1]}] y)"
    body = f"p = AveragePool<{form}>(c) y = Mul(p, x)"
    check_model(signature, body, {"x": np.ones(1, np.float32)}, "onnx2torch", tmp_path, c=ones)


def test_ranges_that_end_before_they_start(tmp_path):
    text = """(int64[2] x) => (int64[N] y) { n = ReduceSum<keepdims = 0>(x)
    zero = Constant<value_int = 0>() one = Constant<value_int = 1>() y = Range(zero, n, one) }"""
    convert_text(text, tmp_path)
    for number in (3, -3):
        (y,) = run("onnx2torch", str(tmp_path / "b.onnx"), {"x": np.asarray([number, 0])})
        assert y.tolist() == list(range(number))


def test_outputs_are_in_the_order_of_the_file(tmp_path):
    """onnx2torch returns what a node computes as one output."""
    text = """(float[2,6] x) => (float[2,3] b, float[2,6] r, float[2,3] a) {
    a, b = Split<axis = 1>(x) r = Neg(x) }"""
    convert_text(text, tmp_path)
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    b, r, a = run("onnx2torch", str(tmp_path / "b.onnx"), {"x": x})
    assert (a == x[:, :3]).all() and (b == x[:, 3:]).all() and (r == -x).all()


@pytest.mark.parametrize("name", ["and", "Not", "forward", "type", "initializers", "training"])
def test_names_that_a_module_has_already(name, tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {
    y = Neg(x) }"""
    model = parser.parse_model(text)
    model.graph.node[0].name = name
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnx2torch")
    (y,) = run("onnx2torch", str(tmp_path / "b.onnx"), {"x": np.ones(2, np.float32)})
    assert (y == -1).all()


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,2,2] y)", "y = Conv(x, w)",
         "onnx2torch has no Conv with computed 'W': 'w'. Make it a constant, or give static sizes (static=)"),
        ("(float[2] x) => (uint16[2] y)", "y = Cast<to = 4>(x)",
         'onnx2torch has no Cast with other element types: uint16'),
    ],
)  # fmt: skip
def test_forms_that_it_lacks(signature, body, reason, tmp_path):
    assert refusals(signature, body, "onnx2torch", tmp_path) == [reason]


# Forms that onnx2torch gets wrong or fails at: inputs and results, the nodes, constants and feeds.
FORMS = {
    "a window that is larger than a volume": (
        "(float[1,2,2,3,3] x) => (float[1,2,2,3,3] y)",
        "y = AveragePool<kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]>(x)",
        {},
    ),
    "a list of no axes": (
        "(float[2,3] x) => (float y)",
        "y = ReduceSum<keepdims = 0>(x, a)",
        {"a": np.zeros(0, np.int64)},
    ),
    "start before the front, counted back": (
        "(float[3,6] x) => (float[3,1] y)",
        "y = Slice(x, s, e, a, p)",
        {"s": np.array([-9]), "e": np.array([-9]), "a": np.array([1]), "p": np.array([-1])},
    ),
    "computed start, counted back": (
        "(float[3,6] x, int64[1] s) => (float[3,1] y)",
        "y = Slice(x, s, e, a, p)",
        {"s": np.array([-9]), "e": np.array([-9]), "a": np.array([1]), "p": np.array([-1])},
    ),
    "unsigned elements, counted back": (
        "(uint16[6] x) => (uint16[3] y)",
        "y = Slice(x, s, e, a, p)",
        {
            "x": np.arange(6, dtype=np.uint16),
            "s": np.array([-1]),
            "e": np.array([-9]),
            "a": np.array([0]),
            "p": np.array([-2]),
        },
    ),
    "squares of integers": (
        "(int32[2,3] x) => (int32[2,1] y)",
        "y = ReduceSumSquare<axes = [1]>(x)",
        {},
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_that_are_written_otherwise(form, tmp_path):
    signature, body, held, *opset = form
    check_form(signature, body, held, "onnx2torch", tmp_path, *opset)
