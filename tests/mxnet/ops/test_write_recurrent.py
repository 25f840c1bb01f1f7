"""Recurrent layers of every kind in MXNet, with the numbers of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import run_symbol
from testing.onnx_live import run_model

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUSED, SPELLED = "RNN", "dot"


def layer(op, *, lengths=False, states=False, peepholes=False, bias=True, **attrs):
    """A model of one layer, with the weights it has, and feeds for it."""
    generator = np.random.default_rng(0)
    ways = 2 if attrs.get("direction") == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    weights = {
        "w": (ways, rows, INPUTS), "r": (ways, rows, HIDDEN),
        **({"b": (ways, 2 * rows)} if bias else {}),
        **({"p": (ways, 3 * HIDDEN)} if peepholes else {}),
    }  # fmt: skip
    held = {
        n: generator.uniform(-0.6, 0.6, s).astype(np.float32) for n, s in weights.items()
    }  # fmt: skip
    feeds = {"x": generator.standard_normal((STEPS, BATCH, INPUTS), np.float32)}
    if lengths:
        held["lengths"] = np.int32([STEPS, 1, 3] if lengths is True else lengths)
    names = [n for n in ("h", "c")[: 2 if op == "LSTM" else 1] if states]
    for name in names:
        feeds[name] = generator.standard_normal((ways, BATCH, HIDDEN), np.float32)
    there = {*feeds, *held}
    operands = [n if n in there else "" for n in ("x", "w", "r", "b", "lengths", "h", "c", "p")]
    outputs = ["y", "last", "cell"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(
        op, operands[: 8 if op == "LSTM" else 6], outputs, hidden_size=HIDDEN, **attrs
    )
    graph = helper.make_graph(
        [node], "layer",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in held.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return model, feeds


CASES = [
    ("LSTM", {}, FUSED),
    ("LSTM", {"states": True, "direction": "bidirectional"}, FUSED),
    ("LSTM", {"direction": "reverse", "bias": False}, FUSED),
    ("LSTM", {"lengths": True, "direction": "bidirectional"}, SPELLED),
    ("LSTM", {"peepholes": True, "states": True}, SPELLED),
    ("LSTM", {"clip": 0.3}, SPELLED),
    ("LSTM", {"input_forget": 1}, SPELLED),
    ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Relu"]}, SPELLED),
    ("GRU", {"linear_before_reset": 1, "states": True}, FUSED),
    ("GRU", {"linear_before_reset": 1, "direction": "bidirectional"}, FUSED),
    ("GRU", {}, SPELLED),
    ("GRU", {"direction": "bidirectional", "states": True}, SPELLED),
    ("GRU", {"bias": False, "direction": "reverse", "lengths": True}, SPELLED),
    ("RNN", {}, FUSED),
    ("RNN", {"activations": ["Relu"], "direction": "reverse"}, FUSED),
    ("RNN", {"activations": ["Tanh", "Relu"], "direction": "bidirectional"}, SPELLED),
    ("RNN", {"activations": ["Elu"], "activation_alpha": [0.5]}, SPELLED),
    *(
        (op, {"direction": way, "states": True, "lengths": (STEPS, 0, 2)}, SPELLED)
        for op in GATES
        for way in ("forward", "reverse", "bidirectional")
    ),
    ("GRU", {"linear_before_reset": 1, "states": True, "lengths": (0, 0, 0)}, SPELLED),
]


@pytest.mark.parametrize(("op", "options", "how"), CASES)
def test_the_numbers_are_those_of_onnx_runtime(op, options, how):
    model, feeds = layer(op, **options)
    graph = from_ir(raise_to_ir(decode(model)))
    assert how in {n.op for n in graph.nodes}
    text, arrays = encode_live(graph)
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    expected = run_model(model, feeds)
    for a, b in zip(run_symbol(text, held, feeds), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
