"""The profile mnn: what it writes is right in live MNN, what it refuses it names."""

from __future__ import annotations

import numpy as np
import pytest

from testing.consumers.runtimes import worker_of
from testing.live_worker import LiveError
from tests.consumers.checks import (
    check_form,
    check_model,
    check_network,
    check_node_test,
    pooled_regions,
    quantized_forms,
    refusals,
)

# One test for each thing that MNN lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_argmax_no_keepdims_example_select_last_index test_averagepool_2d_ceil_last_window_starts_on_pad
test_averagepool_2d_dilations test_batchnorm_epsilon test_batchnorm_example_training_mode
test_clip_min_greater_than_max test_col2im_pads test_conv_with_autopad_same test_convtranspose_1d
 test_gather_elements_negative_indices test_gelu_default_2
test_gridsample_nearest_align_corners_0_additional_1 test_gru_reverse test_isinf_negative
test_l2normalization_axis_0 test_layer_normalization_4d_axis0 test_less test_lppool_2d_same_upper
test_lstm_reverse test_matmul_4d_1d test_maxpool_2d_ceil_output_size_reduce_by_one
test_maxpool_2d_dilations test_maxpool_with_argmax_2d_precomputed_pads test_mean_two_inputs
test_onehot_negative_indices test_prelu_broadcast test_reduce_l1_keep_dims_example
test_reduce_min_bool_inputs test_reduce_sum_empty_axes_input_noop_example
test_resize_upsample_scales_nearest test_reversesequence_batch test_roialign_mode_max
test_rotary_embedding test_round test_scatter_elements_with_negative_indices test_scatternd_add
test_sum_one_input test_top_k_same_values
""".split()


@pytest.fixture(autouse=True)
def needs_mnn():
    """Skip where the environment of the consumers has no MNN."""
    try:
        worker_of("mnn").ask("version", "mnn")
    except LiveError as error:
        pytest.skip(f"no live MNN: {error}")


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "mnn")


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm_bidirectional", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "mnn", tmp_path)


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons_that_broadcast_both_operands(op, tmp_path):
    a, b = np.random.default_rng(0).standard_normal((2, 20), np.float32)
    feeds = {"a": a.reshape(20, 1), "b": b.reshape(1, 20)}
    signature = "(float[20,1] a, float[1,20] b) => (float[20,20] y)"
    check_model(signature, f"c = {op}(a, b) y = Cast<to = 1>(c)", feeds, "mnn", tmp_path)


def test_where_that_broadcasts_all_operands(tmp_path):
    draws = np.random.default_rng(0)
    feeds = {n: draws.standard_normal(s, np.float32) for n, s in (("x", (3, 1)), ("y", (4,)))}
    feeds["c"] = draws.random((2, 3, 1)) < 0.5
    signature = "(bool[2,3,1] c, float[3,1] x, float[4] y) => (float[2,3,4] z)"
    check_model(signature, "z = Where(c, x, y)", feeds, "mnn", tmp_path)


def test_slices_that_count_back(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 3, 2, 5), np.float32)
    held = {"s": [-1, 3], "e": [-9, 0], "a": [0, 3], "p": [-1, -2]}
    constants = {n: np.asarray(v) for n, v in held.items()}
    signature = "(float[4,3,2,5] x) => (float[4,3,2,2] y)"
    check_model(signature, "y = Slice(x, s, e, a, p)", {"x": x}, "mnn", tmp_path, **constants)


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(float[1,4,D,4,4] x, float[4,4,3,3,3] w) => (float[1,4,E,2,2] y)", "y = Conv(x, w)",
         "MNN convolves volumes of static sizes only. Give numbers (static=, inputs=)"),
        ("(float[1,2,H,4] x) => (float[1,2,A,2] y)",
         'y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_LOWER">(x)',
         "MNN has no MaxPool with padding by sizes by name. Give numbers (static=, inputs=)"),
        ("(float[1,3,4,4,4,4] x, float[3,2,3,3,3,3] w) => (float[1,2,6,6,6,6] y)",
         "y = ConvTranspose(x, w)",
         "MNN has no ConvTranspose with other than one to three axes of windows"),
        ("(double[2] x) => (double[2] y)", "y = Neg(x)", "MNN has no Neg of float64 elements. It takes float32: cast to one that holds the numbers"),
        ("(float[2] x) => (float[2] y)", "t = Cast<to = 10>(x) y = Cast<to = 1>(t)",
         "MNN has no Cast with other element types: float16. Leave out fp16=, or give fp32= for a model "
         "of it"),
        ("(int32[2] x) => (int32[2] y)",
         "c = Constant<value = int32[1] {123456789}>() y = Mul(x, c)",
         "multiplies integers to more than 32 bits, which MNN does in float32. Use smaller numbers"),
        ("(float[0,2] x) => (float[0,2] y)", "y = Neg(x)",
         "MNN has no Neg with tensors without elements. Leave them out of the model"),
        ("(float[1,1,2,2] x) => (float[1,1,1,1] y)",
         "c = Constant<value = float[1,1,2,2] {1, 1, 1, 1}>() "
         "p = AveragePool<kernel_shape = [2, 2]>(c) q = AveragePool<kernel_shape = [2, 2]>(x) "
         "y = Add(q, p)",
         "MNN has no AveragePool with a constant operand. Make it an input of the model"),
        ("(float[N,6,4] b, float[N,1,6] s) => (int64[K,3] y)",
         "m = Constant<value_ints = [6]>() y = NonMaxSuppression(b, s, m)",
         "MNN suppresses boxes of one sample where the batch has a name: give its size (static=, "
         "inputs=)"),
        ("(float[1,M,4,4] x, float[M,1,3,3] w) => (float[1,1,6,6] y)", "y = ConvTranspose(x, w)",
         "MNN has no ConvTranspose with 'W' of sizes by name: 'w' has the shape (M, 1, 3, 3). Give "
         "numbers (static=, inputs=)"),
    ],
)  # fmt: skip
def test_forms_that_it_lacks(signature, body, reason, tmp_path):
    assert refusals(signature, body, "mnn", tmp_path) == [reason]


# Forms that MNN gets wrong or fails at: inputs and results, the nodes, constants and feeds.
FORMS = {
    "a norm of a volume, whose last axis is long": (
        "(float[4,3,1,1,2] x) => (float[4,3,1,1,1] y)",
        "y = GlobalLpPool<p = 2>(x)",
        {},
    ),
    "a transposed convolution that is cropped by more than its kernel": (
        "(float[1,2,3,6] x) => (float[1,4,3,2] y)",
        "y = ConvTranspose<pads = [1, 2, 1, 2]>(x, w)",
        {"w": np.arange(24, dtype=np.float32).reshape(2, 4, 3, 1)},
    ),
    "place of the largest integer": (
        "(int64[3,4] x) => (int64[3] y, int64[3] z)",
        "y = ArgMax<axis = 1, keepdims = 0>(x) "
        "z = ArgMin<axis = 1, keepdims = 0, select_last_index = 1>(x)",
        {"x": np.array([[5, 5, 1, 1], [16777216, 16777217, 0, -1], [-3, -2, -2, -3]])},
    ),
    "convolved volumes": (
        "(float[N,2,6,5,4] x, float[3,2,2,3,2] v) => (float[N,3,A,B,C] y, float[N,3,D,E,F] z)",
        "y = Conv<strides = [2, 1, 2], pads = [1, 0, 1, 0, 2, 1]>(x, w, b) "
        "z = Conv<dilations = [3, 2, 1]>(x, v)",
        {
            "w": np.random.default_rng(1).standard_normal((3, 2, 3, 2, 2), np.float32),
            "b": np.float32([1, -2, 0.5]),
        },
    ),
    "sums with a constant of as many numbers as there are channels": (
        "(float[1,2,4,4] x, float[3,2] m) => (float[1,4,4,4] y, float[1,4,4,4] z, float[3,3] v, "
        "float[1,1,4,4] k, float[N,4,4] g)",
        "c = Conv(x, w) r = Relu(c) y = Add(r, b) z = Add(c, n) p = MatMul(m, q) v = Add(t, p) "
        "o = Conv(x, u) f = Clip(o, low) k = Add(f, one) i = Squeeze(x, zero) "
        "j = Reshape(i, flat) g = Add(j, n)",
        {
            "w": np.random.default_rng(1).standard_normal((4, 2, 3, 3), np.float32)[:, :, :1, :1],
            "u": np.random.default_rng(2).standard_normal((1, 2, 1, 1), np.float32),
            "q": np.random.default_rng(3).standard_normal((2, 3), np.float32),
            "b": np.float32([[[1]], [[-2]], [[3]], [[0.5]]]),
            "n": np.float32([1, -2, 3, 0.5]),
            "t": np.float32([[1], [-2], [3]]),
            "low": np.float32(0),
            "one": np.float32(1),
            "zero": np.array([0]),
            "flat": np.array([-1, 4, 4]),
        },
    ),
    "images whose channels were last, as many as there are columns": (
        "(float[1,6,6,4] x, float[N,H,W,H] z) => (float[1,2,4,6] y, float[N,A,B,C] p, "
        "float[1,D,4,6] q)",
        "t = Transpose<perm = [0, 2, 3, 1]>(x) y = Conv(t, w) "
        "u = Transpose<perm = [0, 2, 3, 1]>(z) p = MaxPool<kernel_shape = [2, 1]>(u) "
        "q = ConvTranspose(t, v)",
        {
            "w": np.random.default_rng(1).standard_normal((2, 6, 1, 1), np.float32),
            "v": np.random.default_rng(2).standard_normal((6, 3, 1, 1), np.float32),
            "z": np.random.default_rng(3).standard_normal((1, 5, 4, 5), np.float32),
        },
    ),
    "the largest of one operand": ("(float[2,3] x) => (float[2,3] y)", "y = Max(x)", {}),
    "one number less an image": (
        "(float[2,3,4,5] x) => (float[2,2,4,5] y, float[2,2,4,5] z, float[1,1,1,1] v)",
        "t = Conv(x, w) y = Sub(c, t) z = Max(c, t) v = Identity(c)",
        {
            "w": np.random.default_rng(1).standard_normal((2, 3, 1, 1), np.float32),
            "c": np.ones((1, 1, 1, 1), np.float32),
        },
    ),
    "products of matrices and a column": (
        "(float[N,3] x) => (float[2,N] y)",
        "y = Gemm<transB = 1, beta = 2.0>(w, x, c)",
        {
            "w": np.random.default_rng(1).standard_normal((2, 3), np.float32),
            "c": np.float32([[1], [-2]]),
        },
    ),
    "products of bytes": (
        "(float[N,3,4,5] x, float[2,6] v) => (float[N,2,A,B] y, float[2,4] t)",
        "q = QuantizeLinear(x, s, z) c = ConvInteger<pads = [1, 0, 1, 0]>(q, w, z, k) "
        "y = Cast<to = 1>(c) p = QuantizeLinear(v, s, z) m = MatMulInteger(p, f, z, g) "
        "t = Cast<to = 1>(m)",
        {
            "s": np.float32(0.02),
            "z": np.uint8(130),
            "w": np.random.default_rng(1).integers(0, 256, (2, 3, 3, 2)).astype(np.uint8),
            "k": np.uint8(120),
            "f": np.random.default_rng(2).integers(-128, 128, (6, 4)).astype(np.int8),
            "g": np.int8([1, -2, 0, 100]),
        },
    ),
    "convolved volumes in groups": (
        "(float[N,4,6,5,4] x) => (float[N,6,A,B,C] y, float[N,4,D,E,F] z)",
        "y = Conv<group = 2, strides = [2, 1, 2], pads = [1, 0, 1, 0, 2, 1]>(x, w, b) "
        "z = Conv<group = 4>(x, v)",
        {
            "w": np.random.default_rng(1).standard_normal((6, 2, 3, 2, 2), np.float32),
            "v": np.random.default_rng(2).standard_normal((4, 1, 2, 3, 2), np.float32),
            "b": np.arange(6, dtype=np.float32),
        },
    ),
    "transposed convolutions of volumes": (
        "(float[N,4,3,5,4] x) => (float[N,6,A,B,C] y, float[N,3,D,E,F] z)",
        "y = ConvTranspose<group = 2, strides = [2, 1, 3], pads = [1, 0, 1, 0, 1, 1], "
        "output_padding = [1, 0, 2]>(x, w, b) "
        "z = ConvTranspose<dilations = [2, 1, 2], pads = [3, 0, 0, 0, 0, 0]>(x, v)",
        {
            "w": np.random.default_rng(1).standard_normal((4, 3, 3, 2, 2), np.float32),
            "v": np.random.default_rng(2).standard_normal((4, 3, 2, 3, 2), np.float32),
            "b": np.arange(6, dtype=np.float32),
        },
    ),
    "pools of volumes": (
        "(float[N,2,5,4,6] x) => (float[N,2,3,2,6] y, float[N,2,3,2,6] z, float[N,2,5,4,6] w)",
        "y = MaxPool<kernel_shape = [3, 2, 3], strides = [2, 2, 1], pads = [1, 0, 1, 1, 0, 1]>(x) "
        "z = AveragePool<kernel_shape = [3, 2, 3], strides = [2, 2, 1], "
        "pads = [1, 0, 1, 1, 0, 1]>(x) "
        "w = AveragePool<kernel_shape = [3, 1, 1], pads = [1, 0, 0, 1, 0, 0], "
        "count_include_pad = 1>(x)",
        {},
    ),
    "product of sizes": (
        "(float[N,3] x) => (float y)",
        "s = Shape(x) p = ReduceProd<keepdims = 0>(s) f = Cast<to = 1>(p) m = ReduceMax<"
        "keepdims = 0>(x) y = Mul(f, m)",
        {},
    ),
    "powers of integers": (
        "(int64[3] x) => (int64[3] y)",
        "a = Abs(x) y = Pow(a, n)",
        {"n": np.array(3)},
    ),
    "pads that crop a batch by name": (
        "(float[N,4,5] x) => (float[N,3,6] y)",
        "y = Pad(x, p)",
        {"p": np.array([0, -1, 2, 0, 0, -1])},
    ),
    **quantized_forms(2),
    "logits above 88": (
        "(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z)",
        "y = Softmax<axis = 1>(x) z = Softmax(x)",
        {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 + 90},
    ),
    "bytes that wrap around": (
        "(int32[4] x) => (float[4] y, int32[4] z)",
        "u = Cast<to = 2>(x) y = Cast<to = 1>(u) i = Cast<to = 3>(x) z = Cast<to = 6>(i)",
        {"x": np.array([-1, 300, 128, 7], np.int32)},
    ),
    "-0 and 0": (
        "(float[4] x, float[4] z) => (bool[4] y, bool[4] a, bool[4] b)",
        "y = Equal(x, z) a = Cast<to = 9>(x) b = Equal(x, c)",
        {
            "x": np.array([-0.0, 0, 1, 2], np.float32),
            "z": np.array([0, -0.0, 1, 3], np.float32),
            "c": np.array([0, 0, 2, 2], np.float32),
        },
    ),
    "max of three": (
        "(float[2,3] x, float[3] z) => (float[2,3] y)",
        "y = Max(x, z, c)",
        {"c": np.ones((1, 3), np.float32) / 3},
    ),
    "max of integers": (
        "(int32[3] x) => (int32[3] y)",
        "y = Max(x, c)",
        {
            "x": np.array([2**24 + 1, 7, -5], np.int32),
            "c": np.array([1, 9, -(2**24) - 3], np.int32),
        },
    ),
    "transposed Gemm": (
        "(float[4,3] x) => (float[3,5] y)",
        "y = Gemm<transA = 1>(x, w)",
        {"w": np.arange(20, dtype=np.float32).reshape(4, 5)},
    ),
    "instance normalization": (
        "(float[2,3,1,2] x) => (float[2,3,1,2] y)",
        "y = InstanceNormalization(x, s, s)",
        {"s": np.ones(3, np.float32)},
    ),
    "Softplus": (
        "(float[3] x) => (float[3] y)",
        "y = Softplus(x)",
        {"x": np.array([-90, 0.5, 99], np.float32)},
    ),
    "log of a sum": (
        "(float[1,3] x) => (float[1,1] y)",
        "y = ReduceLogSumExp<axes = [1]>(x)",
        {"x": np.array([[95, 0.5, 99]], np.float32)},
    ),
    "filled with 0": (
        "(int64[1] x) => (float[n] y)",
        "f = ConstantOfShape(x) o = Cast<to = 1>(x) y = Add(f, o)",
        {"x": np.array([4])},
    ),
    "padded at several axes": (
        "(float[2,3,4,5] x) => (float[4,3,6,5] y)",
        "y = Pad(x, p, f)",
        {"p": np.array([1, 0, 1, 0] * 2), "f": np.float32(1.5)},
    ),
    "edges at several axes": (
        "(float[2,3,4,5] x) => (float[4,3,6,5] y)",
        'y = Pad<mode = "edge">(x, p)',
        {"p": np.array([1, 0, 1, 0] * 2)},
    ),
    "slice from before the front": (
        "(float[6] x) => (float[3] y)",
        "y = Slice(x, s, e)",
        {"s": np.array([-9]), "e": np.array([3])},
    ),
    "slice of a size by name": (
        "(float[N] x) => (float[n] y)",
        "y = Slice(x, s, e)",
        {"s": np.array([-9]), "e": np.array([3])},
    ),
    "indices from the end": (
        "(float[5] x, int64[1,2,1] i) => (float[5] y)",
        "y = ScatterND(x, i, u)",
        {"i": np.array([[[-2], [1]]]), "u": np.ones((1, 2), np.float32)},
    ),
    "parts of ScatterND": (
        "(float[3,5,4] x) => (float[3,5,4] y)",
        "y = ScatterND(x, i, u)",
        {"i": np.array([[2, 1], [0, 4]]), "u": np.ones((2, 4), np.float32)},
    ),
    "batches of indices": (
        "(float[5,1,4] x, int64[5,1,2] i) => (float[5,1] y)",
        "y = GatherND<batch_dims = 1>(x, i)",
        {"i": np.array([[[0, -4 + k % 3]] for k in range(5)])},
    ),
    "clipped after Squeeze": (
        "(float[1,3] x) => (float[3] y)",
        "s = Add(x, x) t = Squeeze(s, a) y = Clip(t, l)",
        {"a": np.array([0]), "l": np.float32(0.5)},
    ),
    "product that is read": (
        "(float[2,4] x) => (float[2,5] a, float[2,5] y)",
        "a = MatMul(x, w) y = Sigmoid(a)",
        {"w": np.arange(20, dtype=np.float32).reshape(4, 5) / 20},
    ),
    "product of a vector that is read": (
        "(float[4] x) => (float[5] a, float[5] y)",
        "a = MatMul(x, w) y = Relu(a)",
        {"x": np.ones(4, np.float32), "w": np.arange(20, dtype=np.float32).reshape(4, 5) / 20},
    ),
    "results that are equal constants": (
        "(float[1] x) => (int64[1] a, int64[1] b, float[1] y)",
        "t = Neg(x) y = Reshape(t, s) a = Identity(s) b = Identity(c)",
        {"s": np.array([1]), "c": np.array([1])},
    ),
    "result that is read": (
        "(float[2,3] x) => (float[6] t, float[6] y)",
        "t = Reshape(x, s) y = Tanh(t)",
        {"s": np.array([6])},
    ),
    "result of another shape": (
        "(float[2,3] x) => (float[6] t, float[6] y)",
        "t = Reshape(x, s) u = Reshape(x, s) y = Tanh(u)",
        {"s": np.array([6])},
    ),
    "computed bias": (
        "(float[1,2,4,4] x, float[3] b) => (float[1,3,4,4] y)",
        "y = Conv(x, w, b)",
        {"w": np.ones((3, 2, 1, 1), np.float32) / 7},
    ),
    "uneven pads": (
        "(float[1,1,5,5] x) => (float[1,1,5,5] y)",
        "y = ConvTranspose<pads = [0, 1, 2, 1]>(x, w)",
        {"w": np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)},
    ),
    "quotients by sizes by name": (
        "(float[N,1,3] x) => (float[1] y, float[N,1,3] z, float[N,1,3] a, float r)",
        "s = Shape<end = 1>(x) t = Cast<to = 1>(s) y = Div(c, t) z = Div(x, t) q = Sqrt(t) "
        "a = Div(x, q) n = Size(x) f = Cast<to = 1>(n) u = ReduceSum<keepdims = 0>(x) r = Div(u, f)",
        {"c": np.array([7], np.float32)},
    ),
    "a batch by name resized to a number": (
        "(float[N,1,3] x) => (float[7,5,3] y)",
        "y = Resize(x, , , c)",
        {"c": np.array([7, 5, 3])},
    ),
    "computed bounds beyond the ends": (
        "(int64[4,1,2] x, int64[1] i, int64[1] j) => (int64[A,1,2] y, int64[B,1,2] z)",
        "y = Slice(x, i, e, a) z = Slice(x, f, j, a, s)",
        {
            "i": np.array([-9]),
            "e": np.array([2**63 - 1]),
            "a": np.array([0]),
            "f": np.array([-3]),
            "j": np.array([9]),
            "s": np.array([2]),
        },
    ),
    "computed pads that cut at both ends": (
        "(float[2,3,5] x, int64[6] p) => (float[A,B,C] y, float[D,E,F] z)",
        'y = Pad(x, p, c) z = Pad<mode = "reflect">(x, p)',
        {"p": np.array([0, 1, -1, 0, -1, -2]), "c": np.float32(-11)},
    ),
    "results that a Relu reads": (
        "(float[2,3] x, float[2,3] z) => (float[2,3] a, float[2,3] b, float[2,3] c, float[2,3] d)",
        "a = Add(x, z) b = Relu(a) c = Mul(x, z) d = Relu(c)",
        {},
    ),
    "sums of many numbers": (
        "(float[1,1,1048576] x, float[2,64,300] z) => (float[1,1,1] y, float[2] v, float[2] w)",
        "y = ReduceMean<axes = [2]>(x) v = ReduceL2<axes = [1, 2], keepdims = 0>(z) "
        "n = Constant<value_ints = [1, 2]>() w = ReduceSum<keepdims = 0>(z, n)",
        {"x": (np.arange(2**20, dtype=np.float32) % 7).reshape(1, 1, -1)},
    ),
    "results that a sigmoid reads": (
        "(float[2,8] x) => (float[4,4] y, float[4,4] z)",
        "r = Reshape(x, s) y = Tanh(r) z = Sigmoid(y)",
        {"s": np.array([4, 4])},
    ),
    "squeezed results that a Relu reads": (
        "(float[1,8,4] x) => (float[8,4] y, float[8,4] z, float[8,4] v, float[8,4] w)",
        "e = Exp(x) y = Squeeze(e, a) z = LeakyRelu(y) f = Sin(x) r = Squeeze(f, a) v = Cos(r) "
        "w = Relu(r)",
        {"a": np.array([0])},
    ),
    "squares of no axes": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = ReduceSumSquare<noop_with_empty_axes = 1>(x)",
        {},
        18,
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_that_are_written_otherwise(form, tmp_path):
    signature, body, held, *opset = form
    check_form(signature, body, held, "mnn", tmp_path, *opset)


def test_pools_of_regions(tmp_path):
    signature, body, held = pooled_regions()
    check_form(signature, body, held, "mnn", tmp_path)
