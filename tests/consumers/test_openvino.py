"""The profile openvino: what it writes is right in live OpenVINO, what it refuses it names."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.numpy_helper import from_array

import serde
from serde.bridges.mxnet import run as run_mxnet
from testing.consumers.consumers_live import CONSUMERS
from testing.mxnet.int8 import needs_exact_int8
from testing.mxnet.quantised_networks import quantise_network
from testing.onnx_live import error, run_model
from tests.consumers.checks import (
    MIXED_STATISTICS,
    check_form,
    check_model,
    check_network,
    check_node_test,
    check_recurrent,
    pooled_regions,
    refusals,
)

# One test for each thing that OpenVINO lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_attention_4d_gqa_with_past_and_present test_cast_DOUBLE_to_FLOAT test_col2im_5d test_dft_rfft
test_gridsample_volumetric_bilinear_align_corners_0 test_gru_batchwise test_if
test_layer_normalization_3d_axis1_epsilon test_loop11 test_lstm_with_peepholes test_max_one_input
test_maxpool_2d_ceil_output_size_reduce_by_one test_mod_float_edge_cases_fmod_0_float32
test_nllloss_NCd1_ii test_nonmaxsuppression_iou_threshold_boundary test_qlinearconv
test_quantizelinear_blocked_symmetric test_reduce_l1_do_not_keepdims_example
test_reduce_log_sum_desc_axes test_reduce_log_sum_exp_keepdims_example test_reduce_max_empty_set
test_resize_downsample_scales_cubic_align_corners test_resize_downsample_scales_linear_antialias
test_resize_downsample_sizes_nearest_not_smaller test_resize_tf_crop_and_resize_axes_2_3
test_resize_upsample_scales_cubic_A_n0p5_exclude_outside test_roialign_mode_max test_wrap_pad
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "openvino")


@pytest.mark.parametrize("name", ["squeezenet1.0", "lstm_bidirectional", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "openvino", tmp_path)


@needs_exact_int8
def test_integers_are_those_of_onnx_runtime(tmp_path):
    """As near to MXNet as the same file is in ONNX Runtime."""
    prefix, feeds = quantise_network("resnet18_v1", "calibrated", tmp_path)
    (expected,) = run_mxnet(str(prefix), feeds)
    path = tmp_path / "m.onnx"
    serde.convert(prefix, path, inputs=feeds, profile="openvino")
    ops = {n.op_type for n in onnx.load(path).graph.node}
    assert ops.isdisjoint({"QLinearConv", "MatMulInteger"})
    (reference,) = run_model(onnx.load(path), feeds)
    (got,) = CONSUMERS.run(str(path), feeds, command="openvino")
    assert error(got, expected) < max(2 * error(reference, expected), 1e-6)


def test_strides_of_a_moved_point_convolution(tmp_path):
    """OpenVINO drops the strides of this form; the result had the size of its data."""
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,8,8,16] x) => (float[2,32,4,4] y) <float one = {1}, uint8 zero = {0}> {
        q = QuantizeLinear(x, one, zero)
        t = Transpose<perm = [0, 3, 1, 2]>(q)
        d = DequantizeLinear(t, one, zero)
        v = DequantizeLinear<axis = 0>(w, s, z)
        y = Conv<strides = [2, 2]>(d, v)
    }"""
    model = parser.parse_model(text)
    draws = np.random.default_rng(0)
    held = {"w": draws.integers(-100, 100, (32, 16, 1, 1)).astype(np.int8),
            "s": np.full(32, 0.01, np.float32), "z": np.zeros(32, np.int8)}  # fmt: skip
    model.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    feeds = {"x": (draws.random((2, 8, 8, 16)) * 90).astype(np.float32)}
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="openvino")
    (got,) = CONSUMERS.run(str(tmp_path / "b.onnx"), feeds, command="openvino")
    assert error(got, run_model(model, feeds)[0]) < 1e-6


def test_an_attribute_that_it_ignores(tmp_path):
    check_recurrent("LSTM", "input_forget = 1", "openvino", tmp_path)


def test_a_computed_limit_of_overlap(tmp_path):
    """A box that overlaps by just as much as it may stays."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 3, 1]]], np.float32)
    feeds = {"boxes": boxes, "limit": np.array([0.5], np.float32)}
    held = {"scores": np.array([[[0.9, 0.8, 0.7]]], np.float32), "most": np.array([3])}
    signature = "(float[1,3,4] boxes, float[1] limit) => (int64[N,3] y)"
    body = "y = NonMaxSuppression(boxes, scores, most, limit)"
    check_model(signature, body, feeds, "openvino", tmp_path, **held)


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(string[2] x) => (string[N] y)", 'y = StringNormalizer<case_change_action = "LOWER">(x)',
         "OpenVINO has no StringNormalizer"),
        ("(float[2] x) => (double[2] y)", "y = Cast<to = 11>(x)",
         'OpenVINO has no Cast with a result of float64, which it computes in float32. Use float32'),
        ("(float[N,M,5,3] x) => (float[N,M,5,3] y)", "y = LRN<size = 3>(x)",
         'OpenVINO has LRN of static channels only. Give numbers (static=, inputs=)'),
        ("(float[2] x) => (float[N] y)", "c = Constant<value_floats = [1.0, 2.0]>() y = Unique(c)",
         'OpenVINO has no Unique with a constant'),
        ("(float[2] x) => (int64[N] y)", "s = Shape<start = 1>(x) y = Identity(s)",
         'OpenVINO has no Identity with a constant without elements'),
        ("(float[2] x) => (float[N] y)", "s = Shape<start = 1>(x) y = Gather(x, s)",
         'OpenVINO has no Gather with a constant without elements'),
        ("(float[2] x) => (float[N] y)",
         "c = Constant<value = bool[2] {0, 0}>() y = Compress<axis = 0>(x, c)",
         'OpenVINO has no Compress with no flags, or none that is set'),
        ("(float[2,3] x, int64[1] a) => (float[N,M] y)", "y = Slice(x, a, a, a)",
         "OpenVINO has no Slice with computed 'axes': 'a'. Make it a constant, or give static sizes (static=)"),
        ("(float[N,1] x) => (float[M] y)", "y = Squeeze(x)",
         'OpenVINO has no Squeeze with axes that depend on sizes by name. Give numbers (static=, inputs=), or list the axes'),
        ("(float[N,4] x, bool c) => (float[M] y)",
         "r = If(c) <then_branch = t () => (float[4] p) "
         "{ z = Constant<value_ints = [0]>() p = Squeeze(x, z) }, "
         "else_branch = e () => (float[K,4] q) { q = Abs(x) }> "
         "k = Constant<value_ints = [-1]>() y = Reshape(r, k)",
         'OpenVINO has no If with branches of other ranks. Give numbers (static=, inputs=)'),
        ("(float[1,M,N] x, float[2,M,3] w) => (float[1,2,L] y)", "y = Conv(x, w)",
         "OpenVINO has no Conv with 'W' of sizes by name along axis 0 and 1: 'w' has the shape (2, M, 3). Give numbers (static=, inputs=)"),
        ("(float[1,1,N] x, float[1,1,1] w) => (float[1,1,L] y)", "y = Conv<pads = [1, 0]>(x, w)",
         "OpenVINO has no padding as wide as the kernel of each channel, of sizes by name: "
         "give numbers"),
    ],
)  # fmt: skip
def test_what_it_lacks_is_refused_by_name(signature, body, reason, tmp_path):
    assert refusals(signature, body, "openvino", tmp_path) == [reason]


# Forms that OpenVINO gets wrong or fails at: inputs and results, the nodes, constants and feeds.
DRAWS = np.random.default_rng(3)
INT8_LAYERS = {
    "s": np.float32(0.03), "z": np.int8(-4), "t": np.float32(0.05),
    "w": (np.arange(216) * 37 % 255 - 127).astype(np.int8).reshape(3, 8, 3, 3),
}  # fmt: skip
FORMS = {
    "one column of samples by name and a number for each channel": (
        "(float[N,2,3,4] x) => (float[N,2,3,1] y, float[N,2,3,1] z)",
        "m = MatMul(x, w) y = Add(m, c) n = MatMul(x, v) z = PRelu(n, c)",
        {
            "w": np.float32([[1], [-2], [3], [0.5]]),
            "v": np.float32([[1], [2], [-1], [0.5]]),
            "c": np.float32([[[0.5]], [[-2]]]),
        },
    ),
    "int8 put together before a convolution": (
        "(float[1,4,5,6] x) => (float[1,3,5,6] y)",
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) n = Neg(d) "
        "p = QuantizeLinear(n, t, z) e = DequantizeLinear(p, t) c = Concat<axis = 1>(d, e) "
        "v = DequantizeLinear(w, t) y = Conv<pads = [1, 1, 1, 1]>(c, v)",
        INT8_LAYERS,
    ),
    "int8 of what is put together": (
        "(float[1,4,5,6] x) => (float[1,3,5,6] y, int8[1,8,5,6] q)",
        "n = Neg(x) c = Concat<axis = 1>(x, n) q = QuantizeLinear(c, s, z) "
        "d = DequantizeLinear(q, s, z) v = DequantizeLinear(w, t) "
        "y = Conv<pads = [1, 1, 1, 1]>(d, v)",
        INT8_LAYERS,
    ),
    "uint8 of what is put together, multiplied": (
        "(float[1,4,5,6] x) => (float[1,8,5,2] y)",
        "n = Neg(x) c = Concat<axis = 1>(x, n) q = QuantizeLinear(c, s, u) "
        "d = DequantizeLinear(q, s, u) v = DequantizeLinear(m, t) y = MatMul(d, v)",
        {**INT8_LAYERS, "u": np.uint8(130), "m": np.arange(-6, 6, dtype=np.int8).reshape(6, 2)},
    ),
    "as many heads as places, whose queries are multiplied": (
        "(float[1,3,3,4] x, float[1,3,3,4] k, float[1,3,3,4] v) => (float[1,3,3,4] y)",
        "q = Mul(x, c) t = Transpose<perm = [0, 1, 3, 2]>(k) m = MatMul(q, t) "
        "f = Softmax<axis = 3>(m) o = MatMul(f, v) y = Transpose<perm = [0, 2, 1, 3]>(o)",
        {"c": np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)},
    ),
    "as many heads as places, moved before only": (
        "(float[1,3,3,4] x, float[1,3,3,4] k, float[1,3,3,4] v) => (float[1,3,3,4] y)",
        "s = Mul(x, c) q = Transpose<perm = [0, 2, 1, 3]>(s) "
        "t = Transpose<perm = [0, 2, 3, 1]>(k) m = MatMul(q, t) f = Softmax<axis = 3>(m) "
        "w = Transpose<perm = [0, 2, 1, 3]>(v) y = MatMul(f, w)",
        {"c": np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)},
    ),
    "factors along an axis of a convolution's kernel": (
        "(float[2,3,4,3] x) => (float[2,2,4,3] y, float[2,2,4,3] z, float[2,2,4,3] v)",
        "a = Mul(x, c) y = Conv<pads = [1, 1, 1, 1]>(a, w) "
        "b = Div(c, x) d = Neg(b) z = Conv<pads = [1, 1, 1, 1]>(d, w) "
        "e = Mul(x, s) f = Mul(e, c) v = Conv<pads = [1, 1, 1, 1]>(f, w)",
        {
            "c": np.float32([0.5, 2, -3]),
            "s": np.float32([[[1]], [[0.5]], [[3]]]),
            "w": DRAWS.standard_normal((2, 3, 3, 3), np.float32),
        },
    ),
    "a mean of a transposed tensor with an axis of one": (
        "(float[2,3,4,1] x) => (float[2,1,4] y)",
        "t = Transpose<perm = [0, 3, 2, 1]>(x) y = ReduceMean<axes = [3], keepdims = 0>(t)",
        {},
    ),
    "constants of one column behind a product": (
        "(float[N,2,3,4] x) => (float[N,2,3,4] y)",
        "p = MatMul(x, w) q = Add(p, c) r = Elu(q) y = Mul(c, r)",
        {"w": DRAWS.standard_normal((4, 4), np.float32), "c": np.float32([[[0.5]], [[-2]]])},
    ),
    "slopes by channel behind a product of as many columns": (
        "(float[1,2,3,4] x) => (float[1,2,3,2] y)",
        "p = MatMul(x, w) q = PRelu(p, s) y = Neg(q)",
        {"w": DRAWS.standard_normal((4, 2), np.float32), "s": np.float32([[[0.5]], [[-2]]])},
    ),
    "the last state of one sample of a length": (
        "(float[3,1,2] x, int32[1] l) => (float[1,1,2] h)",
        "y, s = GRU<hidden_size = 2>(x, w, r, , l) h = Neg(s)",
        {
            "w": np.random.default_rng(1).standard_normal((1, 6, 2), np.float32),
            "r": np.random.default_rng(2).standard_normal((1, 6, 2), np.float32),
            "l": np.int32([2]),
        },
    ),
    "a norm of images of sizes by name": (
        "(float[N,3,H,2] x) => (float[N,3,1,1] y)",
        "y = GlobalLpPool<p = 3>(x)",
        {},
    ),
    "a batch by name that is resized to a number": (
        "(float[M,1,N,M] x) => (float[7,1,3,2] y)",
        "y = Resize(x, , , s)",
        {"s": np.array([7, 1, 3, 2])},
    ),
    "powers of int64, and a product of sizes": (
        "(int64[N] x) => (int64[N] y, int64 z)",
        "a = Abs(x) y = Pow(a, n) s = Shape(x) z = ReduceProd<keepdims = 0>(s)",
        {"n": np.array(3)},
    ),
    "integers that are the same float32": (
        "(int32[4] x, int32[4] z) => (bool[4] a, bool[4] b, bool[4] c, bool[4] d, bool[4] e)",
        "a = Equal(x, z) b = Less(x, z) c = Greater(x, z) d = LessOrEqual(x, z) "
        "e = GreaterOrEqual(x, z)",
        {
            "x": np.array([2**24 + 1, -(2**24) - 1, 2**31 - 1, 5], np.int32),
            "z": np.array([2**24, -(2**24), -(2**31), 5], np.int32),
        },
    ),
    "bytes of a size by name that are shifted": (
        "(uint8[N] x, uint8[1] n) => (uint8[N] y)",
        'y = BitShift<direction = "RIGHT">(x, n)',
        {"x": np.arange(256, dtype=np.uint8), "n": np.array([2], np.uint8)},
    ),
    "quotients of bytes of a size by name": (
        "(int8[N] x, int8[N] z) => (int8[N] y)",
        "y = Div(x, z)",
        {"x": np.array([5, -7, 3], np.int8), "z": np.array([3, 4, 7], np.int8)},
    ),
    "a diagonal": ("(float[3,3] x) => (float y)", 'y = Einsum<equation = "ii">(x)', {}),
    "statistics of another type": MIXED_STATISTICS,
    "a body that reads what is around it": (
        "(float[5,2,3] x, float[3,3] w, float[2,3] h) => (float[2,3] a, float[5,2,3] b)",
        "n = Neg(w) a, b = Scan<num_scan_inputs = 1, body = f (float[2,3] state, float[2,3] row) "
        "=> (float[2,3] next, float[2,3] out) { p = MatMul(row, n) q = Add(p, state) "
        "r = Mul(q, h) next = Tanh(r) out = Neg(next) }>(h, x)",
        {},
    ),
    "parts of a size by name": (
        "(float[N,2] x) => (float[a,2] y, float[b,2] z)",
        "y, z = Split<num_outputs = 2>(x)",
        {"x": np.ones((7, 2), np.float32)},
        18,
    ),
    "expanded to no axes": (
        "(float[2] x, int64[0] s) => (float y)",
        "r = ReduceSum<keepdims = 0>(x) y = Expand(r, s)",
        {"s": np.zeros(0, np.int64)},
    ),
    "HardSigmoid from 0": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = HardSigmoid<beta = 0.0>(x)",
        {},
    ),
    "places by columns": (
        "(float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i)",
        "y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2], storage_order = 1>(x)",
        {},
    ),
    "frames of a computed window": (
        "(float[1,8,1] x, float[4] w) => (float[1,3,3,2] y)",
        "y = STFT(x, s, w)",
        {"s": np.array(2)},
    ),
    "squares of no axes": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = ReduceSumSquare<noop_with_empty_axes = 1>(x)",
        {},
        18,
    ),
    "arithmetic on sums of integers": (
        "(int32[2,3,4] x) => (int32[a] y, int32[a] z)",
        "s = ReduceSum<keepdims = 0>(x, axes) y = Sub(n, s) m = ReduceMean<axes = [1, 2], "
        "keepdims = 0>(x) z = Neg(m)",
        {"axes": np.array([1, 2]), "n": np.array(10, np.int32)},
    ),
    "an integer quotient of sums": (
        "(int32[2,3,4] x) => (int32[a,1,1] y)",
        "s = ReduceSum(x, axes) t = Add(s, n) y = Div(t, n)",
        {"axes": np.array([1, 2]), "n": np.array(10, np.int32)},
    ),
    "a quotient of bytes": (
        "(int8[6] x) => (int8[6] y)",
        "a = Abs(x) y = Div(a, n)",
        {"n": np.array(3, np.int8)},
    ),
    "an integer quotient of products": (
        "(int64[4,4] x) => (int64[4,4] y)",
        "s = MatMul(x, x) y = Div(s, n)",
        {"n": np.array(-7)},
    ),
    "other activations of two directions": (
        "(float[3,4,2] x) => (float[3,2,4,2] y)",
        'y = RNN<hidden_size = 2, direction = "bidirectional", '
        'activations = ["Sigmoid", "HardSigmoid"]>(x, w, r)',
        {
            "w": np.arange(8, dtype=np.float32).reshape(2, 2, 2) / 9,
            "r": np.ones((2, 2, 2), "f4") / 3,
        },
    ),
    "lengths over steps by name": (
        "(float[N,2,2] x) => (float[N,1,2,2] y)",
        "y = RNN<hidden_size = 2>(x, w, r, , n)",
        {
            "w": np.arange(4, dtype=np.float32).reshape(1, 2, 2) / 9,
            "r": np.ones((1, 2, 2), "f4") / 3,
            "n": np.array([6, 3], np.int32),
        },
    ),
    "regions with as many samples as they need": (
        "(float[2,3,6,7] x, int64[2] i) => (float[2,3,2,2] y)",
        "y = RoiAlign<output_height = 2, output_width = 2>(x, b, i)",
        {"b": np.array([[0, 0, 9, 8], [1, 2, 3, 3]], np.float32), "i": np.array([1, 0])},
    ),
    "a fraction as a bias": (
        "(float[2,4,3,3] x) => (float[2,4,3,3] y)",
        "y = LRN<size = 3, bias = 0.75>(x)",
        {},
    ),
    "Selu from 0": ("(float[2,3] x) => (float[2,3] y)", "y = Selu<alpha = 0.0>(x)", {}),
    "a negative bound": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = Shrink<lambd = -0.5, bias = 0.2>(x)",
        {},
    ),
    "parts of unlike sizes": (
        "(float[2,3] x) => (float[1,3] y, float[1,3] z)",
        "y, z, e = Split<num_outputs = 3>(x)",
        {},
        18,
    ),
    "frames without a window": (
        "(float[N,12,1] x) => (float[N,a,b,2] y)",
        "y = STFT(x, step, , length)",
        {"step": np.array(2), "length": np.array(5)},
    ),
    "norms of small numbers": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = LpNormalization<axis = 1>(x)",
        {"x": np.array([[1e-5, 2e-5, 0], [0, 0, 0]], np.float32)},
    ),
    "ranks of equal elements": (
        "(float[2,99] x) => (float[2,30] y, int64[2,30] i)",
        "y, i = TopK(x, k)",
        {"x": np.arange(198, dtype=np.float32).reshape(2, 99) * 7 % 5, "k": np.array([30])},
    ),
    "strides and pads of a 1x1 kernel": (
        "(float[1,2,5,7] x) => (float[1,3,4,5] y)",
        "r = Relu(x) y = Conv<strides = [2, 2], pads = [0, 2, 2, 0]>(r, w)",
        {"w": np.arange(6, dtype=np.float32).reshape(3, 2, 1, 1)},
    ),
    "a column of one channel": (
        "(float[2,1,20,3] x) => (float[2,8,18,1] y)",
        "y = Conv<strides = [1, 2]>(x, w)",
        {"w": np.arange(72, dtype=np.float32).reshape(8, 1, 3, 3)},
    ),
    "a column of one channel and dynamic size": (
        "(float[2,1,20,N] x) => (float[2,8,18,M] y)",
        "y = Conv<strides = [1, 2]>(x, w)",
        {
            "x": np.arange(120, dtype=np.float32).reshape(2, 1, 20, 3),
            "w": np.arange(72, dtype=np.float32).reshape(8, 1, 3, 3),
        },
    ),
    "a batch that is resized": (
        "(float[2,3,4,5] x) => (float[4,3,4,5] y)",
        "y = Resize(x, , , s)",
        {"s": np.array([4, 3, 4, 5])},
    ),
    "groups of one channel": (
        "(float[5,1,3] x) => (float[5,1,3] y)",
        "y = GroupNormalization<num_groups = 1>(x, s, s)",
        {"s": np.array([3], np.float32)},
        21,
    ),
    "equal elements of a dynamic size": (
        "(float[N,M] x) => (float[N,K] y, int64[N,K] i)",
        "y, i = TopK(x, k)",
        {"x": np.arange(198, dtype=np.float32).reshape(2, 99) * 7 % 5, "k": np.array([30])},
    ),
    "integers of fractions that are not 0": (
        "(float[3] x) => (int64[1,M] y, int64[1,K] z)",
        "i = Cast<to = 7>(x) y = NonZero(i) b = Cast<to = 9>(i) z = NonZero(b)",
        {"x": np.array([0.5, 2, -0.5], np.float32)},
    ),
    "booleans of indices": (
        "(float[2,3] x) => (bool[2,1] y)",
        "i = ArgMax<axis = 1>(x) c = Cast<to = 9>(i) y = Or(c, c)",
        {},
    ),
    "booleans of NaN": (
        "(float[3] x) => (bool[3] y)",
        "c = Cast<to = 9>(x) y = And(c, c)",
        {"x": np.array([np.nan, 0, 2], np.float32)},
    ),
    "groups of a matrix": (
        "(float[N,4] x) => (float[N,4] y)",
        "y = GroupNormalization<num_groups = 2>(x, s, s)",
        {"s": np.arange(4, dtype=np.float32)},
        21,
    ),
    "means of windows beyond the padding": (
        "(float[1,2,5,6,7] x) => (float[1,2,2,2,3] y)",
        "y = AveragePool<kernel_shape = [2, 2, 3], strides = [3, 3, 3], ceil_mode = 1, "
        "count_include_pad = 1, pads = [1, 0, 0, 0, 1, 0]>(x)",
        {},
    ),
    "a range that leads away from its end": (
        "(int64 x) => (int64[2] y)",
        "r = Range(x, l, d) y = Concat<axis = 0>(r, s)",
        {"x": np.array(2), "l": np.array(-1), "d": np.array(2), "s": np.array([3, 4])},
    ),
    "dilated windows beyond the data": (
        "(float[1,2,5] x) => (float[1,2,2] y)",
        "y = AveragePool<kernel_shape = [2], strides = [3], dilations = [2], ceil_mode = 1>(x)",
        {},
        19,
    ),
    "norms of windows beyond the data": (
        "(float[1,2,5] x) => (float[1,2,3] y)",
        "y = LpPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)",
        {},
        18,
    ),
    "resized integers": (
        "(int32[1,1,3,4] x) => (int32[1,1,6,8] y)",
        'y = Resize<mode = "linear">(x, , , sizes)',
        {"sizes": np.array([1, 1, 6, 8])},
    ),
    "flags of all elements": (
        "(float[N,2] x) => (float[a] y)",
        "y = Compress(x, c)",
        {"c": np.arange(12) % 3 == 0},
    ),
    "back from before the front": (
        "(float[N] x) => (float[a] y)",
        "y = Slice(x, s, e, a, t)",
        {"s": np.array([-9]), "e": np.array([-9]), "a": np.array([0]), "t": np.array([-2])},
    ),
    "shifted bytes that overflow": (
        "(uint8[3] x) => (uint8[3] y)",
        'y = BitShift<direction = "LEFT">(x, n)',
        {"x": np.array([1, 3, 200], np.uint8), "n": np.array([7, 7, 9], np.uint8)},
    ),
    "a computed bound of a constant": (
        "(float x) => (float[1] y)",
        "y = Clip(c, x)",
        {"c": np.ones(1, np.float32), "x": np.array(2, np.float32)},
    ),
    "another activation": (
        "(float[3,4,2] x) => (float[3,1,4,1] y)",
        'y, h = GRU<hidden_size = 1, activations = ["Sigmoid", "Softsign"]>(x, w, r)',
        {
            "w": np.arange(6, dtype=np.float32).reshape(1, 3, 2) / 9,
            "r": np.ones((1, 3, 1), np.float32) / 3,
        },
    ),
    "a power of a float by an integer": (
        "(float[2,3] x, int64[3] e) => (float[2,3] y)",
        "a = Abs(x) b = Pow(a, e) c = Pow(b, two) y = Add(b, c)",
        {"e": np.arange(3), "two": np.int64(2)},
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_that_are_written_otherwise(form, tmp_path):
    signature, body, held, *opset = form
    check_form(signature, body, held, "openvino", tmp_path, *opset)


def test_pools_of_regions(tmp_path):
    signature, body, held = pooled_regions()
    check_form(signature, body, held, "openvino", tmp_path)
