"""The profile tract: what it writes is right in live tract."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.consumers.tract.target import TRACT
from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from tests.consumers.checks import (
    MIXED_STATISTICS,
    check_form,
    check_network,
    check_node_test,
    check_recurrent,
    refusals,
)

# One test for each thing that tract lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_attention_23_boolmask_fullymasked_row_nan_robustness
test_attention_4d_diff_heads_mask4d_padded_kv test_celu_float16 test_col2im_pads
test_dequantizelinear_blocked test_lppool_2d_pads test_lstm_reverse test_matmul_1d_1d
test_nllloss_NCd1_ii test_onehot_out_of_range_indices test_quantizelinear_uint16
test_reduce_max_bool_inputs test_simple_rnn_reverse test_stft_with_window
test_unique_not_sorted_without_axis test_wrap_pad
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "tract")


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm", "rnn_relu", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "tract", tmp_path)


@pytest.mark.parametrize(
    "op, attributes",
    [
        ("RNN", 'activations = ["Sigmoid"]'),
        ("GRU", 'activations = ["Relu", "Tanh"]'),
        ("GRU", "clip = 0.3"),
        ("LSTM", "input_forget = 1"),
    ],
)
def test_attributes_that_it_ignores(op, attributes, tmp_path):
    check_recurrent(op, attributes, "tract", tmp_path)


@pytest.mark.parametrize(
    "signature, body, reason",
    [
        ("(int64[2] s) => (float[M,N] y)", "c = Constant<value_float = 1.0>() y = Expand(c, s)",
         'tract has no Expand with a size that depends on data. Give numbers (static=, inputs=)'),
        ("(uint32[3] x) => (uint32[3] y)", "y = Mul(x, x)", "tract has no Mul with squares of integers. Cast them to floats before"),
        ("(float[2,2,N,5] x, float[3,4] b, int64[3] i) => (float[3,2,1,1] y)",
         "y = RoiAlign<sampling_ratio = 1>(x, b, i)",
         'tract takes images whose sizes have numbers. Give numbers (static=, inputs=)'),
        ("(float[N,2,M] x) => (float[A,B] y)", "y = Flatten<axis = 2>(x)",
         'tract has no products of sizes by name. Give numbers (static=, inputs=)'),
        ("(float[2,N] x) => (float[2] y)", "y = Squeeze(x)",
         'tract has no Squeeze with axes that depend on sizes by name. Give numbers (static=, inputs=), or list the axes'),
        ("(float[N,3] x) => (float[7,3] y)",
         "s = Constant<value_ints = [7, 3]>() y = Expand(x, s)",
         'tract has no Expand with a size by name expanded to a number. Give numbers (static=, inputs=)'),
        ("(float[N] x, int64[4] i) => (int64[4] y)", "s = Shape(x) a = Add(i, i) y = Mod(a, s)",
         'tract has no remainders by sizes by name. Give numbers (static=, inputs=)'),
        ("(float[N] x) => (int64[4] y)",
         "i = Constant<value_ints = [1, 2, 3, 4]>() s = Shape(x) y = Mod(i, s)",
         'tract has no remainders by sizes by name. Give numbers (static=, inputs=)'),
        ("(float[2,N] x) => (float[4,M] y)",
         "s = Constant<value_ints = [4, -1]>() y = Reshape(x, s)",
         "tract has no Reshape with a size by name to parts or a number. Give numbers (static=, "
         "inputs=)"),
        ("(float[2,N] x) => (float[3,4] y)",
         "s = Constant<value_ints = [3, 4]>() y = Reshape(x, s)",
         "tract has no Reshape with a size by name to parts or a number. Give numbers (static=, "
         "inputs=)"),
        ("(int64[N] x) => (int64[N] y)", "s = Shape(x) y = Add(x, s)",
         'tract has no Add with int64 and a size by name. Use int32. Give numbers (static=, inputs=)'),
        ("(int64[N] x) => (float[N] y)", "s = Shape(x) p = Mul(x, s) y = Cast<to = 1>(p)",
         'tract has no Mul with int64 and a size by name. Use int32. Give numbers (static=, inputs=)'),
        ("(int64[N] x) => (float[N] y)", "s = Shape(x) p = Div(x, s) y = Cast<to = 1>(p)",
         'tract has no Div with int64 and a size by name. Use int32. Give numbers (static=, inputs=)'),
        ("(float[2,N] x) => (float[2,M] y)",
         "s = Constant<value_ints = [0]>() e = Constant<value_ints = [2147483647]>() "
         "a = Constant<value_ints = [1]>() t = Constant<value_ints = [2]>() "
         "y = Slice(x, s, e, a, t)",
         'tract has no Slice with steps along a size by name. Give numbers (static=, inputs=)'),
        ("(float[N] x) => (float[N] y)", "k = Shape(x) y, i = TopK(x, k)",
         'tract has no TopK with as many elements as a size by name. Give numbers (static=, inputs=)'),
        ("(float n, float[4] s) => (float[M] y)",
         "f = Constant<value_float = 0.0>() d = Constant<value_float = 1.0>() r = Range(f, n, d) "
         "y = LayerNormalization(r, s)",
         'tract has no LayerNormalization with a dynamic size and a number. Give numbers (static=, inputs=)'),
        ("(float[1,3,8,8] x, float[3,2,H,W] w) => (float[1,2,A,B] y)", "y = ConvTranspose(x, w)",
         "tract has no ConvTranspose with 'W' of sizes by name: 'w' has the shape (3, 2, H, W). Give numbers (static=, inputs=)"),
        ("(uint8[2,3] x) => (uint8[2,2] y)", 'y = Einsum<equation = "ij,kj->ik">(x, x)',
         "tract has no Einsum of uint8 elements. "
         "It takes float32, float64: cast to one that holds the numbers"),
        ("(float[M,3] x, float[4,3] z) => (float[4,3] y)", 'y = Einsum<equation = "ij,ij->ij">(x, z)',
         'tract has no Einsum with sizes that are to be the same and have other names: 4 and M. Give numbers (static=, inputs=)'),
        ("(float[N,3,4] x, float[2,4,3] z) => (float[2,3,3] y)", "y = MatMul(x, z)",
         'tract has no MatMul with sizes that are to be the same and have other names: 2 and N. Give numbers (static=, inputs=)'),
        ("(float[N,3] x, float[M,3] z) => (float[N,6] y)", "y = Concat<axis = 1>(x, z)",
         'tract has no Concat with sizes that are to be the same and have other names: M and N. Give numbers (static=, inputs=)'),
        ("(float[1,C,4,4] x) => (float[1,D,8,8] y)", "y = DepthToSpace<blocksize = 2>(x)",
         "tract has no DepthToSpace with 'input' of sizes by name along axis 1: 'x' has the shape (1, C, 4, 4). Give numbers (static=, inputs=)"),
        ("(float[N,3] x) => (int64[2] y)",
         "s = Shape(x) c = Constant<value_ints = [1, 0]>() y = Max(s, c)",
         'tract has no Max with a size by name for a result, of which tract returns a symbol. Give numbers (static=, inputs=)'),
    ],
)  # fmt: skip
def test_forms_that_it_lacks(signature, body, reason, tmp_path):
    assert refusals(signature, body, "tract", tmp_path) == [reason]


def test_channels_of_a_size_by_name_in_groups(tmp_path):
    signature = "(float[2,N,4] x, float[N] s) => (float[2,N,4] y)"
    body = "y = GroupNormalization<num_groups = 2>(x, s, s)"
    reason = "tract has no GroupNormalization with 'X' of sizes by name along axis 1: 'x' has the shape (2, N, 4). Give numbers (static=, inputs=)"
    assert refusals(signature, body, "tract", tmp_path, opset=21) == [reason]


def test_scales_of_a_size_by_name():
    """As where nodes require different numbers of a name; one that they agree on becomes that."""
    g = OnnxBuilder("g")
    x, s = g.input("x", DType.FLOAT32, (2, 6, 4)), g.input("s", DType.FLOAT32, ("N",))
    g.GroupNormalization(x, s, s, num_groups=6)
    reason = "tract has no GroupNormalization with scales of a size by name for a number of channels. Give numbers (--static, --input)"
    assert TRACT.illegal_form(g.nodes[-1]) == reason


# Forms that tract gets wrong or fails at: inputs and results, the nodes, constants and feeds.
SELECTED = "(float[1,9,4] x, float[1,2,9] w) => (int32[M] y)", "n = NonMaxSuppression(x, w, most) "
WEIGHTS = {
    "w": np.random.default_rng(1).standard_normal((2, 12, 2), np.float32),
    "r": np.random.default_rng(2).standard_normal((2, 12, 3), np.float32),
}
FORWARD = {name: array[:1] for name, array in WEIGHTS.items()}
FORMS = {
    "a signal of two axes": (
        "(float[2,40] x) => (float[2,5,5,2] y)",
        "y = STFT(x, s, w)",
        {"s": np.int64(8), "w": np.hanning(8).astype(np.float32)},
    ),
    "an LSTM that returns its cells": (
        "(float[N,4,2] x, float[1,4,3] h, float[1,4,3] c) => (float[N,1,4,3] y, float[1,4,3] t)",
        "y, s, t = LSTM<hidden_size = 3>(x, w, r, , , h, c)",
        FORWARD,
    ),
    "an LSTM of a static batch that returns its cells": (
        "(float[5,4,2] x) => (float[1,4,3] s, float[1,4,3] t)",
        "y, s, t = LSTM<hidden_size = 3>(x, w, r)",
        FORWARD,
    ),
    "an LSTM of two directions and a batch by name": (
        "(float[5,N,2] x) => (float[5,2,N,3] y)",
        'y = LSTM<hidden_size = 3, direction = "bidirectional">(x, w, r)',
        WEIGHTS,
    ),
    "an axis of a dynamic size that is dropped": (
        "(float[1,2,3] x, bool[3] b) => (float[2] y)",
        "c = Compress<axis = 2>(x, b) y = Squeeze(c, a)",
        {"b": np.array([False, True, False]), "a": np.array([0, 2])},
    ),
    "far ends of int32": (
        "(int32[N,M] x) => (int32[N,A] y)",
        "y = Slice(x, s, e, a)",
        {"s": np.int32([1]), "e": np.int32([2**31 - 1]), "a": np.int32([1])},
    ),
    "bytes that are quantized again as the other type": (
        "(float[2,3,4,4] x) => (float[2,3,2,2] y)",
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d) r = QuantizeLinear(m, t, k) "
        "y = DequantizeLinear(r, t, k)",
        {"s": np.float32(0.02), "z": np.uint8(128), "t": np.float32(0.03), "k": np.int8(5)},
    ),
    "one number for each box that is selected": (
        SELECTED[0],
        f"{SELECTED[1]} s = Shape<start = 0, end = 1>(n) y = Expand(c, s)",
        {"c": np.int32(3), "most": np.array([5])},
        21,
    ),
    "a list of one number for each box that is selected": (
        SELECTED[0],
        f"{SELECTED[1]} a = Shape(n) s = Slice(a, zero, one) y = Expand(c, s)",
        {"c": np.int32([3]), "most": np.array([5]), "zero": np.array([0]), "one": np.array([1])},
    ),
    "one number for each element that is selected": (
        "(float[9] x) => (float[M] y)",
        "k = Compress(x, b) s = Shape(k) y = Expand(c, s)",
        {"c": np.float32(0.5), "b": np.array([0, 1, 1, 0, 0, 1, 0, 1, 1], bool)},
    ),
    "a row that is repeated, in a product": (
        "(float[1,1,4] x) => (float[1,6,2] y, float[1,6,2] z)",
        "e = Expand(x, s) y = MatMul(e, w) t = Tile(x, r) z = MatMul(t, w)",
        {"s": np.array([1, 6, 4]), "r": np.array([1, 6, 1]), "w": np.ones((4, 2), np.float32)},
    ),
    "a row of integers that is repeated, in a product": (
        "(int32[1,1,4] x) => (float[1,6,2] y, int32[1,6,2] z)",
        "e = Expand(x, s) c = Cast<to = 1>(e) y = MatMul(c, w) z = MatMul(e, v)",
        {
            "s": np.array([1, 6, 4]),
            "w": np.ones((4, 2), np.float32),
            "v": np.ones((4, 2), np.int32),
        },
    ),
    "a column that is repeated, in a product": (
        "(float[6,1] x) => (float[6,2] y)",
        "e = Expand(x, s) y = MatMul(e, w)",
        {"s": np.array([6, 4]), "w": np.ones((4, 2), np.float32)},
    ),
    "a number that is repeated for samples, in a product": (
        "(float[N,4] x) => (float[N,4] y)",
        "s = Shape(x) e = Expand(c, s) p = MatMul(e, w) y = Add(p, x)",
        {"c": np.ones((1, 1), np.float32), "w": np.arange(16, dtype=np.float32).reshape(4, 4)},
    ),
    "a repeated row beside others, in a product": (
        "(float[N,6,4] x) => (float[N,6,2] y)",
        "a = Slice(x, z, o, o) s = Shape(x) e = Expand(a, s) c = Concat<axis = 2>(x, e) "
        "y = MatMul(c, w)",
        {"z": np.array([0]), "o": np.array([1]), "w": np.ones((8, 2), np.float32)},
    ),
    "sizes that PyTorch asks whether they are -1": (
        "(int64[N,6] x) => (int64[N,6] y)",
        "s = Shape<end = 1>(x) c = Concat<axis = 0>(s, m) i = Equal(c, n) w = Where(i, o, c) "
        "e = Expand(r, w) y = Add(e, x)",
        {"m": np.array([-1]), "n": np.array([-1, -1]), "o": np.array([1, 6]), "r": np.array([[7]])},
    ),
    "what is looked up by places of a size by name": (
        "(float[N,3] x) => (float[N,1] y)",
        "s = Shape<end = 1>(x) n = Squeeze(s) r = Range(z, n, o) u = Unsqueeze(r, a) "
        "d = Concat<axis = 0>(s, a) e = Expand(k, d) i = Concat<axis = 1>(u, e) "
        "v = GatherND(x, i) y = Unsqueeze(v, a)",
        {"z": 0, "o": 1, "a": np.array([1]), "k": np.array([[2]])},
    ),
    "sizes of images of a batch by name": (
        "(float[N,2,5,4] x) => (float[N,2,7,8] y)",
        's = Shape<end = 2>(x) c = Concat<axis = 0>(s, t) y = Resize<mode = "linear">(x, , , c)',
        {"t": np.array([7, 8])},
    ),
    "one sample by name with two": (
        "(float[N,1,4] x, float[2,3,4] z, float[2,4,5] w) => (float[A,B,C] y)",
        "a = Add(x, z) b = MatMul(a, w) y = Softmax(b)",
        {"x": np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 1, 4)},
    ),
    "two samples by name with two": (
        "(float[N,1,M] x, float[2,3,4] z, float[2,3,1] w) => (float[A,B,C] y)",
        "c = Greater(z, w) a = Where(c, x, z) y = Concat<axis = 1>(a, z)",
        {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 1, 4)},
    ),
    "pads that crop a batch by name": (
        "(float[N,4,5] x) => (float[N,3,6] y)",
        "y = Pad(x, p)",
        {"p": np.array([0, -1, 2, 0, 0, -1])},
    ),
    "sums of all products": (
        "(float[2,3,4] x, float[2,4,5] z) => (float y, float v, float w)",
        'y = Einsum<equation = "bij,bjk->">(x, z) v = Einsum<equation = "bij->">(x) '
        'w = Einsum<equation = "bij,bij">(x, x)',
        {},
    ),
    "sums along an axis in a list": (
        "(float[3,4] x) => (float[3,4] y)",
        "y = CumSum(x, a)",
        {"a": np.array([1])},
    ),
    "equal booleans": (
        "(float[6] x, float[6] z) => (bool[6] y)",
        "a = Cast<to = 9>(x) b = Less(x, z) y = Equal(a, b)",
        {"x": np.float32([0, 1, 0, 2, 0, 3])},
    ),
    "squares of integers": (
        "(int32[3] x, int64[3] z) => (int32[3] y, int64[3] w)",
        "y = Mul(x, x) a = Abs(z) w = Pow(a, n)",
        {"n": np.array(2)},
    ),
    "a spread that is small beside the mean": (
        "(float[2,3,4] x) => (float[2,3,4] y)",
        "y = MeanVarianceNormalization<axes = [2]>(x)",
        {"x": 1000 + np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2 / 64},
    ),
    "largest of what is scattered to integers of a Cast": (
        "(float[4] x) => (int64[4] y)",
        'c = Cast<to = 7>(x) y = ScatterElements<reduction = "max">(c, i, u)',
        {"i": np.array([1, 1, 3]), "u": np.array([-9, 9, 0])},
        18,
    ),
    "places of tokens": (
        "(int64[1,6] x) => (float[1,6] y)",
        "n = Not(b) m = Cast<to = 6>(n) w = Cast<to = 7>(m) s = CumSum(w, a) y = Cast<to = 1>(s)",
        {"b": np.array([[True, False, False, True, False, False]]), "a": np.array(1)},
    ),
    "a spectrum of float16": (
        "(float16[1,8,1] x) => (float16[1,3,3,2] y)",
        "y = STFT(x, n, w)",
        {"n": np.array(2), "w": np.float16([1, 0.5, 0.25, 0.5])},
    ),
    "statistics of another type": MIXED_STATISTICS,
    "parts of a product with a size by name": (
        "(float[N,4,3] x) => (float[A,4,B] y, float[N,C,3] z)",
        "f = Reshape(x, m) r = Relu(f) y = Reshape(r, p) z = Reshape(x, q)",
        {"m": np.array([-1, 3]), "p": np.array([-1, 4, 3]), "q": np.array([0, -1, 3])},
    ),
    "indices of int64 from the end of a size by name": (
        "(float[N,3] x, int64[3] i) => (float[3,3] y)",
        "s = Shape<end = 1>(x) a = Add(i, s) c = Less(i, o) j = Where(c, a, i) y = Gather(x, j)",
        {"i": np.array([0, -1, 2]), "o": np.array([0])},
    ),
    "int64 and a size by name, as floats": (
        "(int64[N] x) => (float[N] y, float[N] z)",
        "s = Shape(x) p = Sub(s, x) y = Cast<to = 1>(p) q = Max(x, s) z = Cast<to = 1>(q)",
        {},
    ),
    "axes in any order": (
        "(float[1,3,1,2] x) => (float[3,2] y)",
        "y = Squeeze(x, a)",
        {"a": np.array([2, 0])},
    ),
    "sum over axes in any order": (
        "(float[1,3] x) => (float y)",
        "y = ReduceLogSumExp<axes = [-1, 0], keepdims = 0>(x)",
        {},
    ),
    "causal mask of a dynamic size": (
        "(float[N,1] x) => (float[N,N] y)",
        "s = Shape(x) n = Gather(s, zero) r = Range(zero, n, one) a = Unsqueeze(r, rows) "
        "b = Unsqueeze(r, columns) c = Less(a, b) z = Constant<value_float = 0.0>() "
        "y = Where(c, z, x)",
        {"zero": 0, "one": 1, "rows": np.array([1]), "columns": np.array([0])},
    ),
    "attention to a dynamic number of places": (
        "(float[2,1,4] q, float[2,N,4] k) => (float[2,1,4] y)",
        "y = Attention<is_causal = 1, q_num_heads = 2, kv_num_heads = 2>(q, k, k)",
        {},
        23,
    ),
    "remainder that is broadcast": (
        "(float[2,1] x, float[2,3] z) => (float[2,3] y)",
        "y = Mod<fmod = 1>(x, z)",
        {},
    ),
    "powers of another type": (
        "(float16[1,2,4] x) => (float16[1,2,2] y)",
        "y = LpPool<kernel_shape = [3]>(x)",
        {},
    ),
    "padded transform": (
        "(float[1,3,1] x) => (float[1,4,2] y)",
        "y = DFT<axis = 1>(x, n)",
        {"n": np.array(4)},
    ),
    "indices from the end": (
        "(float[5] x, int64[2,1] i) => (float[2] y)",
        "y = GatherND(x, i)",
        {"i": np.array([[-2], [1]])},
    ),
    "scattered from the end": (
        "(float[5] x, int64[2,1] i) => (float[5] y)",
        "y = ScatterND(x, i, u)",
        {"i": np.array([[-2], [1]]), "u": np.ones(2, np.float32)},
    ),
    "slice that counts back": (
        "(float[6] x) => (float[1] y)",
        "y = Slice(x, s, e, a, p)",
        {"s": np.array([-2]), "e": np.array([3]), "a": np.array([0]), "p": np.array([-2])},
    ),
    "Gemm of float64": (
        "(double[2,3] x) => (double[2,2] y)",
        "y = Gemm<beta = 0.5>(x, w, c)",
        {"w": np.arange(6.0).reshape(3, 2), "c": np.ones((1, 2))},
    ),
    "LogSoftmax": (
        "(float[1,3] x) => (float[1,3] y)",
        "y = LogSoftmax(x)",
        {"x": np.array([[-150, 0.5, 1]], np.float32)},
    ),
    "log of a sum": (
        "(float[1,3] x) => (float[1,1] y)",
        "y = ReduceLogSumExp<axes = [1]>(x)",
        {"x": np.array([[95, 0.5, 99]], np.float32)},
    ),
    "Softplus": (
        "(float[3] x) => (float[3] y)",
        "y = Softplus(x)",
        {"x": np.array([-90, 0.5, 99], np.float32)},
    ),
    "known result of Expand": (
        "(float[2,3] x, int64[2] s) => (float[2,3] y)",
        "y = Expand(x, s)",
        {"s": np.array([2, 3])},
    ),
    "squares of no axes": (
        "(float[2,3] x) => (float[2,3] y)",
        "y = ReduceSumSquare<noop_with_empty_axes = 1>(x)",
        {},
        18,
    ),
    "one element of several": (
        "(float[1,1,2,2] x) => (float[1,1,1,2] y)",
        'y = Resize<mode = "cubic", coordinate_transformation_mode = '
        '"pytorch_half_pixel">(x, , , s)',
        {"s": np.array([1, 1, 1, 2])},
    ),
    "all results of an LSTM": (
        "(float[3,4,2] x) => (float[3,1,4,1] y, float[1,4,1] h, float[1,4,1] c)",
        "y, h, c = LSTM<hidden_size = 1>(x, w, r)",
        {
            "w": np.arange(8, dtype=np.float32).reshape(1, 4, 2) / 9,
            "r": np.ones((1, 4, 1), np.float32) / 3,
        },
    ),
    "order of activations": (
        "(float[3,4,2] x) => (float[3,1,4,1] y)",
        'y, h = GRU<hidden_size = 1, activations = ["Tanh", "Tanh"]>(x, w, r)',
        {
            "w": np.arange(6, dtype=np.float32).reshape(1, 3, 2) / 9,
            "r": np.ones((1, 3, 1), np.float32) / 3,
        },
    ),
    "a layer of one feature": (
        "(float[5,2,1] x) => (float[5,1,2,1] y)",
        "y, h = GRU<hidden_size = 1, linear_before_reset = 1>(x, w, r)",
        {"w": np.ones((1, 3, 1), np.float32), "r": np.ones((1, 3, 1), np.float32) / 3},
    ),
    "pools of a dynamic number of channels": (
        "(float[N,N,8,N] x) => (float[N,N,4,N] y)",
        "y = AveragePool<kernel_shape = [3, 2], pads = [1, 0, 0, 1], strides = [2, 1]>(x)",
        {},
    ),
    "sizes by name in one part": ("(float[N,M,2] x) => (float[A,12] y)", "y = Flatten(x)", {}),
    "indices of a batch of one": (
        "(float[1,3] x) => (float[1] y)",
        "y = GatherND<batch_dims = 1>(x, i)",
        {"i": np.array([[1]])},
    ),
    "padding of what is cast to int64": (
        "(float[3] x) => (int64[6] y)",
        "i = Cast<to = 7>(x) y = Pad(i, p, f)",
        {"p": np.array([1, 2]), "f": np.array(3)},
    ),
    "places of what is cast to int64": (
        "(float[3] x) => (int64[1] a, int64[2] y, int64[2] z)",
        "i = Cast<to = 7>(x) a = ArgMax(i) y, z = TopK(i, k)",
        {"x": np.array([-2, 5, 3], np.float32), "k": np.array([2])},
    ),
    "signs of what is cast to int64": (
        "(float[3] x) => (int64[3] y)",
        "i = Cast<to = 7>(x) y = Sign(i)",
        {"x": np.array([-2, 0, 3], np.float32)},
    ),
    "start before the front, counted back": (
        "(float[1] x) => (float[1] y)",
        "y = Slice(x, s, e, a, p)",
        {"s": np.array([-9]), "e": np.array([-3]), "a": np.array([0]), "p": np.array([-2])},
    ),
    "lengths of samples": (
        "(float[3,2,2] x, int32[2] n) => (float[3,1,2,1] y)",
        "y, h = RNN<hidden_size = 1>(x, w, r, , n)",
        {
            "w": np.ones((1, 1, 2), np.float32),
            "r": np.ones((1, 1, 1), np.float32),
            "n": np.array([2, 3], np.int32),
        },
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_that_are_written_otherwise(form, tmp_path):
    signature, body, held, *opset = form
    check_form(signature, body, held, "tract", tmp_path, *opset)


def test_indices_are_followed_once(tmp_path):
    """Each of these reads the one before twice, and what they pick from has sizes by name."""
    steps = " ".join(f"p{i + 1} = Where(c, p{i}, p{i})" for i in range(64))
    body = f"v, p0 = TopK<axis = 0>(x, k) {steps} u = Unsqueeze(p64, a) y = GatherND(x, u)"
    held = {"k": np.array([3]), "a": np.array([1]), "c": np.array([True, False, True])}
    check_form("(float[N] x, bool[3] c) => (float[3] y)", body, held, "tract", tmp_path)
