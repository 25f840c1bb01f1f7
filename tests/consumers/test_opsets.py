"""The opsets that each consumer is measured with: it is right at the first and the last."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from conformance.matrix import target_of
from conformance.onnx_nodes import ConstantNodeTests
from serde.errors import UsageError
from serde.plugins.targets import get_consumer
from testing.consumers.runtimes import TITLES, is_here
from testing.onnx_live import model_of

# Operators whose operands and attributes changed from opset 13 to 22.
NODE_TESTS = """
test_averagepool_2d_pads test_batchnorm_example test_center_crop_pad_crop_axes_chw test_clip_example
test_constant_pad test_dropout_default test_gelu_default_1 test_hardswish test_l1normalization_axis_1
test_layer_normalization_2d_axis1 test_logsoftmax_axis_1 test_lstm_defaults test_max_two_inputs
test_prelu_example test_reduce_l1_keep_dims_example test_reduce_l2_do_not_keepdims_example
test_reduce_log_sum_desc_axes test_reduce_log_sum_exp_keepdims_example test_reduce_max_keepdims_example
test_reduce_mean_negative_axes_keepdims_example test_reduce_min_keepdims_example
test_reduce_prod_keepdims_example test_reduce_sum_keepdims_example
test_reduce_sum_square_keepdims_example test_reshape_extended_dims test_slice test_softmax_axis_1
test_split_1d_uneven_split_opset18 test_split_equal_parts_1d_opset18 test_squeeze test_sub_bcast
test_unsqueeze_axis_1 test_where_example
""".split()
RECORDS = Path(__file__).parents[2] / "conformance" / "results"


@pytest.mark.parametrize("at", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("name", TITLES)
def test_node_tests_at_the_first_and_the_last_opset(name, at):
    if not is_here(name):
        pytest.skip(f"no live {name}")
    source, target = ConstantNodeTests(), target_of(name)
    known = json.loads((RECORDS / f"onnx-nodes-constant.{name}.json").read_text())
    opset = str(get_consumer(name).known_opsets()[at])
    wrong = {}
    for case in (c for c in NODE_TESTS if known[c] == "right"):
        sample = source.sample(case)
        for feeds, expected in sample.data:
            why = sample.differs(expected, target.run(sample.graph, feeds, opset))
            if why is not None:
                wrong[case] = why
    assert not wrong


@pytest.mark.parametrize("name", TITLES)
def test_other_opsets_are_refused(name, tmp_path):
    model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }", opset=17, ir_version=8)
    model.graph.initializer.append(from_array(np.ones(3, np.float32), "w"))
    onnx.save(model, tmp_path / "a.onnx")
    opsets = get_consumer(name).known_opsets()
    for opset in (opsets[0] - 1, opsets[-1] + 1):
        with pytest.raises(
            UsageError, match=f"opsets {opsets[0]} to {opsets[-1]}, .* {opset} wrong: leave"
        ):
            serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile=name, opset=opset)
