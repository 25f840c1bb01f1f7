"""The profile tract: what it writes is right in live tract."""

from __future__ import annotations

import pytest

from tests.consumers.checks import check_network, check_node_test, check_recurrent, refusals

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
         "tract has no Expand to a size that depends on data"),
        ("(int32[3] x) => (int32[3] y)", "y = Mul(x, x)", "tract has no squares of integers"),
    ],
)  # fmt: skip
def test_forms_that_it_lacks(signature, body, reason, tmp_path):
    assert refusals(signature, body, "tract", tmp_path) == [reason]
