"""The profile ncnn: what it writes is right in live ncnn, what it refuses it names."""

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
    quantized_forms,
    refusals,
)

# One test for each thing that ncnn lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_averagepool_2d_ceil test_averagepool_2d_dilations test_averagepool_2d_same_upper
test_averagepool_3d_default test_batchnorm_epsilon test_clip_default_min test_constant_pad
test_conv_with_autopad_same test_convtranspose_output_shape test_convtranspose_pads
test_depthtospace_example test_gather_1 test_gather_negative_indices test_gemm_all_attributes
test_instancenorm_epsilon test_layer_normalization_4d_axis0 test_lppool_2d_same_upper
test_matmul_4d_1d test_max_example test_maxpool_2d_ceil_output_size_reduce_by_one
test_maxpool_2d_dilations test_maxpool_2d_same_lower test_mean_two_inputs test_prelu_broadcast
test_reduce_max_default_axes_keepdims_random test_reduce_sum_do_not_keepdims_random
test_resize_upsample_scales_linear test_selu test_slice_neg_steps test_softsign
test_split_equal_parts_2d test_squeeze test_sum_example test_thresholdedrelu test_tile
""".split()


@pytest.fixture(autouse=True)
def needs_ncnn():
    """Skip where the environment of the consumers has no ncnn."""
    try:
        worker_of("ncnn").ask("version", "pnnx")
    except LiveError as error:
        pytest.skip(f"no live ncnn: {error}")


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "ncnn")


@pytest.mark.parametrize(
    "name", ["mobilenetv2_0.25", "resnet18_v2", "lstm_bidirectional", "bert_batch_dot"]
)
def test_networks(name, tmp_path):
    check_network(name, "ncnn", tmp_path, batch=2)


def draw(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_comparisons_that_choose(op, tmp_path):
    feeds = {"a": np.round(draw(20, 1)), "b": np.round(draw(1, 20))}
    signature = "(float[20,1] a, float[1,20] b) => (float[20,20] y)"
    body = f"c = {op}(a, b) n = Not(c) d = And(n, n) z = Exp(a) y = Where(d, z, b)"
    check_model(signature, body, feeds, "ncnn", tmp_path)


def test_numbers_that_look_up_rows(tmp_path):
    feeds = {"x": np.asarray([[0, 3, 6.7], [-1, -7, 2]], np.float32)}
    body = "i = Cast<to = 7>(x) y = Gather(table, i)"
    signature = "(float[2,3] x) => (float[2,3,4] y)"
    check_model(signature, body, feeds, "ncnn", tmp_path, table=draw(7, 4))


def test_padding_of_a_pool_behind_padding(tmp_path):
    """It is written as a Pad, with the least number in place of -inf."""
    signature = "(float[1,2,6,6] x) => (float[1,2,4,4] y)"
    body = (
        "z = Pad(x, pads) y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(z)"
    )
    feeds, pads = {"x": draw(1, 2, 6, 6)}, np.asarray([0, 0, 1, 1, 0, 0, 0, 0])
    check_model(signature, body, feeds, "ncnn", tmp_path, pads=pads)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_modes_of_pad(mode, tmp_path):
    """pnnx knows Pad by its mode, also by the default one."""
    pads = np.asarray([0, 0, 1, 2, 0, 0, 0, 1])
    body = f'y = Pad<mode = "{mode}">(x, pads)'
    signature = "(float[2,3,4,5] x) => (float[2,3,5,8] y)"
    check_model(signature, body, {"x": draw(2, 3, 4, 5)}, "ncnn", tmp_path, pads=pads)


@pytest.mark.parametrize("how", ["asymmetric", "half_pixel"])
def test_modes_of_resize(how, tmp_path):
    mode, nearest = ("nearest", "floor") if how == "asymmetric" else ("linear", "floor")
    form = f'mode = "{mode}", coordinate_transformation_mode = "{how}", nearest_mode = "{nearest}"'
    held = {"s": np.asarray([1, 1, 2, 2], np.float32)}
    signature = "(float[2,3,4,4] x) => (float[2,3,8,8] y)"
    body = f"y = Resize<{form}>(x, , s)"
    check_model(signature, body, {"x": draw(2, 3, 4, 4)}, "ncnn", tmp_path, **held)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 2.0, 3.0])
def test_powers(exponent, tmp_path):
    x = np.abs(draw(3, 4)) if exponent == 0.5 else draw(3, 4)
    body, held = "y = Pow(x, e)", {"e": np.float32(exponent)}
    check_model("(float[3,4] x) => (float[3,4] y)", body, {"x": x}, "ncnn", tmp_path, **held)


def test_shuffled_channels(tmp_path):
    """A Transpose of five axes."""
    held = {"s": np.asarray([2, 3, 2, 4, 5]), "t": np.asarray([2, 6, 4, 5])}
    body = "a = Reshape(x, s) b = Transpose<perm = [0, 2, 1, 3, 4]>(a) y = Reshape(b, t)"
    signature = "(float[2,6,4,5] x) => (float[2,6,4,5] y)"
    check_model(signature, body, {"x": draw(2, 6, 4, 5)}, "ncnn", tmp_path, **held)


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(float[N,2] x) => (float[N,2] y)", "y = Neg(x)",
         "'x' has the shape (N, 2); ncnn takes static shapes only: "
         "give numbers (static=, inputs=)"),
        ("(float[N,2] x) => (float[M,2] y)", "a, b = Split<axis = 0>(x) y = Add(a, b)",
         "'x' has the shape (N, 2); ncnn takes static shapes only: "
         "give numbers (static=, inputs=)"),
        ("(double[2] x) => (double[2] y)", "y = Neg(x)", "ncnn has no Neg of float64 elements. It takes float32: cast to one that holds the numbers"),
        ("(float[2] x) => (int64[2] y)", "y = Cast<to = 7>(x)", "ncnn has no Cast"),
        ("(float[0,2] x) => (float[0,2] y)", "y = Neg(x)", "ncnn has no Mul with tensors without elements. Leave them out of the model"),
        ("(float[2] x) => (float y)", "y = ReduceMax<keepdims = 0>(x)",
         "ncnn has no ReduceMax with a result without axes. Reshape the output to one axis"),
        ("(float[1,2,3,4,5] x) => (float[1,2,3,4,5] y)", "y = Relu(x)",
         "ncnn has tensors of up to 4 axes beside the samples"),
        ("(float[2,3,4,4] x) => (float[4,3,1,1] y)",
         "g = GlobalAveragePool(x) y = Concat<axis = 0>(g, g)",
         "ncnn keeps samples, along the first axis, apart"),
        ("(float[2] x) => (float[2] y)", "y = Identity(x)", "ncnn has no Identity"),
        ("(float[3] x) => (float[3] y)", "y = Pow(x, x)", "ncnn takes one constant exponent only. Make it a constant, or give static sizes (static=)"),
    ],
)  # fmt: skip
def test_forms_that_it_lacks(signature, body, reason, tmp_path):
    assert refusals(signature, body, "ncnn", tmp_path) == [reason]


# Forms that ncnn gets wrong or fails at: inputs and results, the nodes, constants and feeds.
MATRIX = np.arange(64, dtype=np.float32).reshape(8, 8) % 7 / 4 - 0.75
SELF_ATTENTION = (
    "{layers} j = Reshape(q, s) l = Reshape(k, s) n = Reshape(v, s) "
    "c = Transpose<perm = [0, 2, 1, 3]>(j) d = Transpose<perm = [0, 2, 3, 1]>(l) "
    "e = Transpose<perm = [0, 2, 1, 3]>(n) m = MatMul(c, d) i = Div(m, h) p = Softmax(i) "
    "o = MatMul(p, e) u = Transpose<perm = [0, 2, 1, 3]>(o) r = Reshape(u, f) "
    "a = MatMul(r, w) y = Add(a, b)"
)
OF_ATTENTION = {
    "w": MATRIX, "w2": MATRIX[::-1] / 2, "w3": MATRIX.T + 1, "b": np.float32([1, -1, 0, 2, 0.5, 1, 0, -2]), "h": np.float32(2),
    "s": np.array([2, 6, 2, 4]), "f": np.array([2, 6, 8]), "g": np.array([12, 8]),
}  # fmt: skip
FORMS = {
    "attention with biases": (
        "(float[2,6,8] x) => (float[2,6,8] y)",
        SELF_ATTENTION.format(
            layers="x1 = MatMul(x, w) q = Add(x1, b) x2 = MatMul(x, w2) k = Add(b, x2) "
            "x3 = MatMul(x, w3) v = Add(x3, b)"
        ),
        {n: a for n, a in OF_ATTENTION.items() if n != "g"},
    ),
    "attention whose layers read rows": (
        "(float[2,6,8] x) => (float[2,6,8] y)",
        SELF_ATTENTION.format(
            layers="x1 = Reshape(x, g) q = Gemm(x1, w, b) k = Gemm<transB = 1>(x1, w2, b) "
            "v = Gemm(x1, w3, b)"
        ),
        OF_ATTENTION,
    ),
    **quantized_forms(1),
    "numbers whose exponentials overflow": (
        "(float[1,3,4,5] x) => (float[1,3,4,5] y, float[1,4,5] z)",
        "y = Softplus(x) z = ReduceLogSumExp<axes = [1], keepdims = 0>(x)",
        {"x": np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5) * 7 % 11 + 195},
    ),
    "statistics of columns": (
        "(float[6,4] x) => (float[6,4] y)",
        "y = BatchNormalization(x, s, b, m, v)",
        {
            "s": np.float32([1, 2, 3, 4]),
            "b": np.float32([0, 1, 2, 3]),
            "m": np.float32([1, 0, -1, 2]),
            "v": np.float32([1, 4, 9, 2]),
        },
    ),
    "attention to another tensor": (
        "(float[1,6,8] x, float[1,5,8] z) => (float[1,6,8] y)",
        "q = MatMul(x, w) a = Reshape(q, s) c = Transpose<perm = [0, 2, 1, 3]>(a) "
        "k = MatMul(z, w) b = Reshape(k, t) d = Transpose<perm = [0, 2, 3, 1]>(b) "
        "e = Transpose<perm = [0, 2, 1, 3]>(b) m = MatMul(c, d) n = Div(m, h) p = Softmax(n) "
        "o = MatMul(p, e) u = Transpose<perm = [0, 2, 1, 3]>(o) r = Reshape(u, f) "
        "y = MatMul(r, w)",
        {
            "w": MATRIX,
            "h": np.float32(2),
            "s": np.array([1, 6, 2, 4]),
            "t": np.array([1, 5, 2, 4]),
            "f": np.array([1, 6, 8]),
        },
    ),
    "mask of computed lengths": (
        "(float[2,4] x, float[2,1] n) => (float[2,4] y)",
        "i = Cast<to = 7>(n) m = Less(r, i) z = Constant<value_float = -1000.0>() "
        "y = Where(m, x, z)",
        {"r": np.arange(4).reshape(1, 4), "n": np.array([[2.5], [3]], np.float32)},
    ),
    "matrix of one number": ("(float[1] x) => (float[1] y)", "y = MatMul(x, w)", {"w": draw(1, 1)}),
    "padded samples": (
        "(float[1,2,3,4] x) => (float[4,2,3,5] y)",
        "y = Pad(x, p)",
        {"p": np.array([1, 0, 0, 0, 2, 0, 0, 1])},
    ),
    "reductions of five axes": (
        "(float[1,16,5,6] x) => (float[1,8,5,6] y, float[1,2,8] z, float[1,2,1] w)",
        "v = Reshape(x, s) y = ReduceMean<axes = [1], keepdims = 0>(v) "
        "z = ReduceMax<axes = [3, 4], keepdims = 0>(v) m = ReduceSum(v, b) w = Squeeze(m, c)",
        {"s": np.array([1, 2, 8, 5, 6]), "b": np.array([2, 3, 4]), "c": np.array([3, 4])},
    ),
    "repeated volumes": (
        "(float[2,3,4] x) => (float[5,2,3,4] y)",
        "y = Expand(x, s)",
        {"s": np.array([5, 2, 3, 4])},
    ),
    "five axes that change places": (
        "(float[12,4] x) => (float[8,6] y)",
        "a = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(a) y = Reshape(t, r)",
        {"s": np.array([2, 3, 2, 2, 2]), "r": np.array([8, 6])},
    ),
    "what Tanh takes away": ("(float[2,6] x) => (float[2,6] y)", "t = Tanh(x) y = Sub(x, t)", {}),
    "quotient of a Softsign": (
        "(float[2,6] x) => (float[2,6] y)",
        "a = Abs(x) b = Add(a, o) y = Div(x, b)",
        {"o": np.float32(1)},
    ),
    "rotary embedding": (
        "(float[1,2,6,4] x, float[6,4] c, float[6,4] s) => (float[1,2,6,4] y)",
        "a = Slice(x, b, m, d) e = Slice(x, m, l, d) n = Neg(e) r = Concat<axis = 3>(n, a) "
        "p = Mul(x, c) q = Mul(r, s) y = Add(p, q)",
        {"b": np.array([0]), "m": np.array([2]), "l": np.array([4]), "d": np.array([3])},
    ),
    "channels that become samples": (
        "(float[1,2,6,4] x) => (float[1,2,4,6] y)",
        "m = MatMul(x, k) a = Reshape(m, s) t = Transpose<perm = [0, 2, 1]>(a) "
        "n = BatchNormalization(t, w, b, b, w) y = Reshape(n, r)",
        {
            "k": draw(4, 4),
            "s": np.array([2, 6, 4]),
            "w": np.float32([1, 2, 3, 4]),
            "b": np.float32([0, 1, 2, 3]),
            "r": np.array([1, 2, 4, 6]),
        },
    ),
    "LogSoftmax": (
        "(float[1,3] x) => (float[1,3] y)",
        "y = LogSoftmax(x)",
        {"x": np.array([[-150, 0.5, 1]], np.float32)},
    ),
    "mean of normalized rows": (
        "(float[1,2,4] x) => (float[1,1,1] y)",
        "a = LayerNormalization(x, w, w) b = Add(a, x) c = LayerNormalization(b, w, w) "
        "y = ReduceMean(c)",
        {"w": draw(4)},
    ),
    "mean of one normalized row": (
        "(float[1,4] x) => (float[1,1] y)",
        "a = LayerNormalization(x, w, w) y = ReduceMean(a)",
        {"w": draw(4)},
    ),
    "normalized rows side by side": (
        "(float[3,2,4] x) => (float[6,2,4] y)",
        "a = LayerNormalization(x, w, w) y = Concat<axis = 0>(x, a)",
        {"w": draw(4)},
    ),
    "normalized rows of another order": (
        "(float[2,3,4] x) => (float[3,2,4] y)",
        "t = Transpose<perm = [1, 0, 2]>(x) a = Add(t, c) y = LayerNormalization(a, w, w)",
        {"w": draw(4), "c": draw(3, 2, 1)},
    ),
    "counted padding of windows rounded up": (
        "(float[1,2,4,4] x) => (float[1,2,3,3] y)",
        "y = AveragePool<kernel_shape = [3, 3], pads = [0, 0, 1, 1], ceil_mode = 1, "
        "count_include_pad = 1>(x)",
        {},
    ),
    "windows that do not reach the end": (
        "(float[1,2,6,3] x) => (float[1,2,3,2] y)",
        "y = MaxPool<kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 1, 1]>(x)",
        {},
    ),
    "windows that reach the end": (
        "(float[1,2,6,6] x) => (float[1,2,3,3] y)",
        "y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]>(x)",
        {},
    ),
    "gaps in windows of several samples": (
        "(float[2,3,4,4] x) => (float[2,3,2,2] y)",
        "y = AveragePool<kernel_shape = [3, 2], dilations = [1, 2], pads = [0, 1, 0, 0], "
        "strides = [1, 2]>(x)",
        {},
        19,
    ),
    "powers of several channels": (
        "(float[1,3,4,4] x) => (float[1,3,2,4] y)",
        "y = LpPool<kernel_shape = [2, 1], dilations = [2, 1]>(x)",
        {},
        18,
    ),
    "padding of windows with gaps": (
        "(float[1,3,4,4] x) => (float[1,3,3,4] y)",
        "y = MaxPool<kernel_shape = [2, 1], dilations = [2, 1], pads = [1, 0, 0, 0]>(x)",
        {},
    ),
    "padding of volumes": (
        "(float[2,2,3,3,3] x) => (float[2,2,2,2,2] y)",
        "y = MaxPool<kernel_shape = [2, 2, 2], strides = [2, 2, 2], pads = [1, 1, 0, 0, 0, 1]>(x)",
        {},
    ),
    "slice of volumes": (
        "(float[2,2,3,3,3] x) => (float[2,3,5,5,6] y)",
        "y = ConvTranspose<strides = [2, 2, 2], pads = [1, 1, 1, 0, 0, 0]>(x, w)",
        {"w": draw(2, 3, 2, 2, 3)},
    ),
    "matrix beside samples": (
        "(float[2,2,3,4] x, float[4,5] z) => (float[2,2,3,5] y)",
        "c = GlobalAveragePool(x) a = Add(x, c) y = MatMul(a, z)",
        {},
    ),
    "a number before others": (
        "(float[2] x) => (float[4] y)",
        "y = Concat<axis = 0>(c, x, c)",
        {"c": draw(1)},
    ),
    "Resize to the same size": (
        "(float[1,1,4,4] x) => (float[1,1,4,4] y)",
        "a = Neg(x) y = Resize(a, , , s)",
        {"s": np.array([1, 1, 4, 4])},
    ),
    "computed bias beside constants": (
        "(float[2] b) => (float[2,2,4,4] y)",
        "y = Conv(x, w, b)",
        {"x": draw(2, 3, 4, 4), "w": draw(2, 3, 1, 1)},
    ),
    "computed bias of volumes": (
        "(float[2,3,4,4,4] x, float[2] b) => (float[2,2,4,4,4] y)",
        "y = Conv(x, w, b)",
        {"w": draw(2, 3, 1, 1, 1)},
    ),
    "powers of 0": (
        "(float[2,4] x) => (float[2,4] y)",
        "y = Pow(x, e)",
        {"x": np.array([[0, 1, 2, 0.5], [0, 0, 4, 0]], np.float32), "e": np.float32(1.3)},
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
    check_form(signature, body, held, "ncnn", tmp_path, *opset)
