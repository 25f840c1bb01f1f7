"""Pools and transposed convolutions without their forms compute what they did with them."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to_target
from serde.legalize.forms import windows
from serde.legalize.target import Target, legalization_table
from serde.pipeline import load
from serde.spec import schema
from testing.onnx_live import run_model

OPSET = 21
LACKS = {
    "AveragePool": [windows.AVERAGE_DILATIONS, windows.ZEROS_BEFORE, windows.CEIL_MODE,
                    windows.UNEVEN_AVERAGE],
    "Conv": [windows.COMPUTED_BIAS],
    "ConvTranspose": [windows.UNEVEN_CROP, windows.COMPUTED_BIAS],
    "LpPool": windows.LP_POOL_BEHIND_PAD,
    "MaxPool": [windows.PLACES, windows.ZEROS_BEFORE, windows.MAX_DILATIONS, windows.CEIL_MODE,
                windows.UNEVEN_MAX],
}  # fmt: skip
TARGET = Target("t", OPSET, {op: {} for op in schema.names(OPSET)}, LACKS,
                legalization_table("none"))  # fmt: skip
POOLS = ("AveragePool", "LpPool", "MaxPool")


def run_both(node, x, **weights):
    """The outputs of ONNX Runtime of a node, and of what a target without its forms gets."""
    feeds = {"x": x, **weights}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in feeds.items()]
    kinds = (TensorProto.FLOAT, TensorProto.INT64)
    results = [helper.make_tensor_value_info(o, k, None) for o, k in zip(node.output, kinds,
               strict=False)]  # fmt: skip
    graph = helper.make_graph([node], "g", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    lowered = to_proto(lower_to_target(load(decode(model), format="onnx"), TARGET))
    return lowered, run_model(model, feeds), run_model(lowered, feeds)


@pytest.mark.parametrize(
    "op, gap, pads, ceil_mode", [*product(POOLS, (1, 2), ((0, 0), (1, 1), (1, 0)), (0, 1))]
)
def test_pools(op, gap, pads, ceil_mode):
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "dilations": [gap] * 2,
             "pads": [pads[0]] * 2 + [pads[1]] * 2, "ceil_mode": ceil_mode}  # fmt: skip
    node = helper.make_node(op, ["x"], ["y", "i"][: 1 + (op == "MaxPool")], **attrs)
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 10), np.float32)
    lowered, expected, outputs = run_both(node, x)
    assert "LpPool" not in {n.op_type for n in lowered.graph.node}
    for a, b in zip(expected, outputs, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("op, pads", [("Conv", (1, 0, 0, 1)), ("ConvTranspose", (1, 0, 0, 1))])
def test_layers(op, pads):
    rng = np.random.default_rng(0)
    node = helper.make_node(op, ["x", "w", "b"], ["y"], pads=pads)
    x, w = (rng.standard_normal(s, np.float32) for s in ((1, 2, 6, 6), (2, 2, 3, 3)))
    lowered, expected, outputs = run_both(node, x, w=w, b=np.float32([1, 2]))
    assert [n.op_type for n in lowered.graph.node if n.op_type == "Add"] == ["Add"]
    np.testing.assert_allclose(expected[0], outputs[0], 1e-5, 1e-5)


def test_a_pad_of_zeros_is_kept_apart():
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[1,1,4,4] x) => (float[1,1,3,3] y) '
        "<int64[8] p = {0,0,1,1,0,0,1,1}> { z = Pad(x, p) "
        "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(z) }"
    )
    graph = lower_to_target(load(decode(model), format="onnx"), TARGET)
    (fill,) = (n.inputs[2].array() for n in graph.nodes if n.op == "Pad")
    assert fill == 0 and np.signbit(fill)
