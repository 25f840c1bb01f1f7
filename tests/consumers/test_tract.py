"""The profile tract: what it writes is right in live tract."""

from __future__ import annotations

import pytest

from tests.consumers.checks import check_network, check_node_test

# One test for each thing that tract lacks or gets wrong, and the profile writes otherwise.
NODE_TESTS = """
test_attention_23_boolmask_fullymasked_row_nan_robustness
test_lstm_reverse test_matmul_1d_1d test_nllloss_NCd1_ii test_simple_rnn_reverse
""".split()


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name):
    check_node_test(name, "tract")


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm", "bert_interleaved"])
def test_networks(name, tmp_path):
    check_network(name, "tract", tmp_path)
