"""What operators tell of the shapes of inputs nothing was said of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from testing.mxnet.inferred import (
    CONV,
    CONV_WEIGHTS,
    EMBEDDING,
    FC,
    FC_LAST,
    FC_WEIGHTS,
    LSTM,
    LSTM_SIZE,
    RELU,
    infer_inputs,
    two,
    weights,
)
from testing.mxnet.written import chain, node, symbol, variable
from testing.mxnet_live import live_mxnet

# A chain of operators before one that tells, and what the input is.
BEFORE_CONVOLUTION = {
    "": "float32[N,3,H,W]",
    "Activation act_type=relu": "float32[N,3,H,W]",
    "BatchNorm": "float32[N,3,H,W]",
    "Dropout|_mul_scalar scalar=2|_minus_scalar scalar=1": "float32[N,3,H,W]",
    "Cast dtype=float32": "float32[N,3,H,W]",
    "transpose axes=(0,3,1,2)": "float32[N,H,W,3]",
    "transpose": "float32[W,H,3,N]",
    "SwapAxis dim1=1 dim2=3": "float32[N,W,H,3]",
    "SwapAxis dim1=-1 dim2=0|transpose axes=(0,3,1,2)": "float32[3,H,W,N]",
    "expand_dims axis=0": "float32[3,H,W]",
    "expand_dims axis=-3": "float32[N,H,W]",
    "squeeze axis=2": "float32[N,3,1,H,W]",
    "slice begin=(None,0) end=(None,3)": "float32[?,?,H,W]",
    "slice_axis axis=1 begin=0 end=3": "float32[N,?,H,W]",
    "slice_axis axis=-1 begin=0 end=3": "float32[N,3,H,?]",
    "SliceChannel num_outputs=2 axis=1": "float32[N,?,H,W]",
    "SliceChannel num_outputs=2 axis=1 squeeze_axis=True": "float32[N,2,3,H,W]",
    "mean axis=1": "float32[N,?,3,H,W]",
    "sum axis=(1,2)": "float32[N,?,?,3,H,W]",
    "max axis=1 keepdims=True": "float32[N,?,H,W]",
    "Pad mode=constant pad_width=(0,0,0,0,1,1,1,1)": "float32[?,?,?,?]",
    "UpSampling scale=2 sample_type=nearest num_args=1": "float32[?,?,?,?]",
    "Pooling kernel=(2,2) pool_type=max": "float32[N,3,H,W]",
    "Pooling global_pool=True pool_type=max": "float32[N,3,H,W]",
    "LRN nsize=3": "float32[N,3,H,W]",
}


def calls(text: str) -> list[tuple[str, dict[str, str]]]:
    parts = [part.split() for part in text.split("|") if part]
    return [(op, dict(a.split("=") for a in attrs)) for op, *attrs in parts]


@pytest.mark.parametrize("before", BEFORE_CONVOLUTION)
def test_before_a_convolution(before: str) -> None:
    text = chain(*calls(before), CONV, params={"Convolution": ("weight", "bias")})
    arrays = weights(CONV_WEIGHTS, len(calls(before)))
    assert infer_inputs(text, arrays) == f"data: {BEFORE_CONVOLUTION[before]}"


def attrs_of(call: tuple[str, dict[str, Any]], **more: Any) -> tuple[str, dict[str, Any]]:
    return call[0], {**call[1], **more}


# Chains that tell: the operators, the shapes of their weights, the input.
TOLD: list[tuple[list[Any], dict[str, tuple[int, ...]], str]] = [
    ([("Convolution", {"kernel": "(3,)", "num_filter": 4})],
     {"convolution0_weight": (4, 2, 3), "convolution0_bias": (4,)}, "float32[N,2,W]"),
    ([("Convolution", {"kernel": "(1, 2, 3)", "num_filter": 4, "num_group": 2})],
     {"convolution0_weight": (4, 2, 1, 2, 3), "convolution0_bias": (4,)}, "float32[N,4,D,H,W]"),
    ([attrs_of(CONV, layout="NHWC")],
     {"convolution0_weight": (4, 3, 3, 2), "convolution0_bias": (4,)}, "float32[N,H,W,2]"),
    ([("Deconvolution", {"kernel": "(2, 2)", "num_filter": 4, "num_group": 2})],
     {"deconvolution0_weight": (6, 2, 2, 2), "deconvolution0_bias": (4,)}, "float32[N,6,H,W]"),
    ([CONV], {}, "float32[N,?,H,W]"),
    ([("Pooling", {"kernel": "(2,)", "pool_type": "max"})], {}, "float32[N,?,W]"),
    ([("Pooling", {"kernel": "(2, 2)", "layout": "NHWC"})], {}, "float32[N,H,W,?]"),
    ([FC], FC_WEIGHTS, "float32[N,6]"),
    ([("BatchNorm", {}), RELU, FC], FC_WEIGHTS, "float32[N,6]"),
    ([attrs_of(CONV), FC], CONV_WEIGHTS, "float32[N,3,H,W]"),
    ([LSTM], {"rnn0_parameters": (LSTM_SIZE,)}, "float32[T,N,6]"),
    ([LSTM], {}, "float32[T,N,?]"),
    ([EMBEDDING, LSTM], {}, "float32[T,N]"),
    ([EMBEDDING, ("SwapAxis", {"dim1": 0, "dim2": 1}), LSTM], {}, "float32[N,T]"),
    ([EMBEDDING, ("transpose", {"axes": "(0, 2, 1)"}),
      ("Convolution", {"kernel": "(3,)", "num_filter": 4})], {}, "float32[N,W]"),
    ([("LRN", {"nsize": 3})], {}, "float32[?,?,?,?]"),
    ([("transpose", {"axes": "(1, 0, 2)"})], {}, "float32[?,?,?]"),
    ([("_contrib_interleaved_matmul_selfatt_qk", {"heads": 2})], {}, "float32[?,?,?]"),
    ([FC_LAST, ("_contrib_interleaved_matmul_selfatt_qk", {"heads": 2})], FC_WEIGHTS,
     "float32[?,?,6]"),
]  # fmt: skip

BOUND = {"Convolution": ("weight", "bias"), "Deconvolution": ("weight", "bias"),
         "FullyConnected": ("weight", "bias"), "RNN": ("parameters",)}  # fmt: skip


@pytest.mark.parametrize(("operators", "shapes", "expected"), TOLD, ids=str)
def test_told(operators, shapes, expected) -> None:
    ops = [op for op, _ in operators]
    bound = {
        op: names for op, names in BOUND.items() if any(n.startswith(op.lower()) for n in shapes)
    }
    number = next((ops.index(op) for op in bound), 0)
    text = chain(*operators, params=bound)
    assert infer_inputs(text, weights(shapes, number)) == f"data: {expected}"


# Operators of two: what is known of the second, and what that tells of the first.
BESIDE = [
    (two("elemwise_add"), {"mean": (2, 3)}, {}, "data: float32[2,3]"),
    (two("elemwise_mul"), {}, {"mean": ("M", 3)}, "data: float32[M,3], mean: float32[M,3]"),
    (two("elemwise_sub", CONV), {}, {}, "data: float32[N,?,H,W], mean: float32[N,?,H,W]"),
    (two("broadcast_sub", CONV), {"mean": (3, 1, 1)}, {}, "data: float32[N,?,H,W]"),
    (two("broadcast_sub", CONV), {"mean": (1, 3, 1, 1)}, {}, "data: float32[N,?,H,W]"),
    (two("broadcast_sub", CONV), {"mean": (1,)}, {}, "data: float32[N,?,H,W]"),
    (two("Concat", CONV, dim=1, num_args=2), {"mean": (2, 3, 4, 5)}, {}, "data: float32[2,?,4,5]"),
    (two("SoftmaxOutput"), {"mean": (2,)}, {"data": ("N", 3)}, "data: float32[N,3]"),
    (two("SoftmaxOutput", other="my_label"), {}, {"data": (2, 3)}, "data: float32[2,3]"),
    (two("LinearRegressionOutput", other="odd"), {}, {"data": (2, 3)}, "data: float32[2,3]"),
    (two("slice_like", CONV), {"mean": (2, 3, 4, 5)}, {}, "data: float32[?,?,?,?]"),
    (two("SequenceMask", LSTM, use_sequence_length=True), {}, {},
     "data: float32[T,N,?], mean: float32[N]"),
    (two("SequenceReverse", use_sequence_length=True), {}, {"data": (8, "B")},
     "data: float32[8,B], mean: float32[B]"),
    (two("SequenceMask", use_sequence_length=True, axis=1), {}, {"data": ("B", 8, 6)},
     "data: float32[B,8,6], mean: float32[B]"),
    (two("SequenceLast", FC_LAST, use_sequence_length=True), {}, {"data": (8, 2, 6)},
     "data: float32[8,2,6], mean: float32[2]"),
    (two("SequenceMask", LSTM, use_sequence_length=True), {}, {"mean": (3,)},
     "data: float32[T,3,?], mean: float32[3]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "arrays", "inputs", "expected"), BESIDE, ids=str)
def test_beside_another(text, arrays, inputs, expected) -> None:
    held = {n: np.ones(s, "float32") for n, s in arrays.items()}
    assert infer_inputs(text, held, **inputs) == expected


JOINED = [
    ({"mean": (2, 4)}, {}, "data: float32[2,2]"),
    ({}, {"mean": ("N", 2)}, "data: float32[N,4], mean: float32[N,2]"),
    ({}, {"mean": ("N", 9)}, "data: float32[N,?], mean: float32[N,9]"),
]


@pytest.mark.parametrize(("arrays", "inputs", "expected"), JOINED, ids=str)
def test_what_is_joined_makes_the_sum(arrays, inputs, expected) -> None:
    nodes = [variable(n) for n in ("data", "mean", "w", "b")]
    nodes.append(node("Concat", "both", [0, 1], dim=1, num_args=2))
    nodes.append(node("FullyConnected", "fc", [4, 2, 3], num_hidden=4))
    tensors = {"w": (4, 6), "b": (4,), **arrays}
    held = {n: np.ones(s, "float32") for n, s in tensors.items()}
    assert infer_inputs(symbol(nodes), held, **inputs) == expected


@pytest.mark.parametrize(("mode", "states"), [("gru", ["h"]), ("lstm", ["h", "c"])])
def test_a_recurrent_layer_takes_the_length_of_each_sample(mode, states) -> None:
    nodes = [variable(n) for n in ("data", "flat", *states, "lengths")]
    attrs = {"state_size": 5, "num_layers": 1, "mode": mode, "use_sequence_length": True}
    text = symbol([*nodes, node("RNN", "rnn", [*range(len(nodes))], **attrs)])
    assert infer_inputs(text, data=(7, "B", 6), flat=(260,)).endswith(", lengths: float32[B]")


# Layers of floats of which there are such of integers, with the shape of the weight.
TWINS = [
    ("Convolution", "conv", {"kernel": "(3, 3)", "num_filter": 4}, (4, 3, 3, 3)),
    ("Pooling", "pooling", {"kernel": "(2, 2)", "pool_type": "max"}, None),
    ("Flatten", "flatten", {}, None),
    ("FullyConnected", "fully_connected", {"num_hidden": 4, "flatten": False}, (4, 3)),
]


@pytest.mark.parametrize(("floats", "integers", "attrs", "weight"), TWINS, ids=str)
def test_layers_of_integers_tell_what_those_of_floats_do(floats, integers, attrs, weight) -> None:
    """Between the node that makes integers and one that makes numbers of them."""
    held = {} if weight is None else {"w": np.ones(weight, "float32")}
    nodes = [variable("data"), variable("like"), *map(variable, held)]
    operands = range(2, len(nodes))
    plain = [node("_copy", "q", [0]), node(floats, "y", [len(nodes), *operands], **attrs),
             node("_copy", "f", [len(nodes) + 1])]  # fmt: skip
    quantized = [
        node("_contrib_quantize_v2", "q", [0]),
        node(f"_contrib_quantized_{integers}", "y", [len(nodes), *operands], **attrs),
        node("_contrib_dequantize", "f", [len(nodes) + 1]),
    ]
    behind = node("elemwise_add", "sum", [len(nodes) + 2, 1])
    texts = [symbol([*nodes, *layer, behind]) for layer in (plain, quantized)]
    known = {} if integers in ("conv", "pooling") else {"data": ("B", 3)}
    expected, told = (infer_inputs(text, held, **known) for text in texts)
    assert told == expected and "like: float32[" in told


def test_states_of_a_recurrent_layer() -> None:
    nodes = [variable(n) for n in ("data", "flat", "h", "c")]
    nodes.append(node("RNN", "rnn", [0, 1, 2, 3], **LSTM[1]))
    held = {"flat": np.ones(LSTM_SIZE, "float16")}
    assert infer_inputs(symbol(nodes), held) == (
        "data: float16[T,N,6], h: float16[4,N,5], c: float16[4,N,5]"
    )


@pytest.mark.parametrize(("layers", "both", "small"), [(1, False, 3), (2, True, 2), (3, False, 4)])
def test_a_projected_lstm_is_as_mxnet_infers_it(layers, both, small) -> None:
    """The features are told from the number of parameters, the states from the projection."""
    sizes = {"state_size": 6, "num_layers": layers, "bidirectional": both}
    text = chain(
        ("RNN", {**sizes, "mode": "lstm", "projection_size": small}),
        params={"RNN": ("parameters", "state", "state_cell")},
    )
    net = live_mxnet().sym.load_json(text)
    shapes, _, _ = net.infer_shape(data=(5, 2, 7))
    arg_shapes = dict(zip(net.list_arguments(), shapes, strict=True))
    (states, _, state), (_, _, cell) = arg_shapes["rnn0_state"], arg_shapes["rnn0_state_cell"]
    held = {"rnn0_parameters": np.ones(arg_shapes["rnn0_parameters"], "float32")}
    assert infer_inputs(text, held) == (
        f"data: float32[T,N,7], rnn0_state: float32[{states},N,{state}], "
        f"rnn0_state_cell: float32[{states},N,{cell}]"
    )


@pytest.mark.parametrize("mode", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}])
def test_joined_weights_of_recurrent_layers_tell_the_features(mode, options, tmp_path) -> None:
    """As Gluon exports them, joined from arrays of each gate: all of them are compared."""
    mx = live_mxnet()
    kinds = {"rnn": mx.gluon.rnn.RNN, "gru": mx.gluon.rnn.GRU, "lstm": mx.gluon.rnn.LSTM}
    layer = kinds[mode](4, **options)
    layer.initialize()
    layer.hybridize()
    layer(mx.nd.zeros((5, 2, 3)))
    layer.export(str(tmp_path / "m"))
    report = serde.convert(tmp_path / "m", tmp_path / "m.onnx", verify=True)
    assert report.inputs[0]["shape"] == "(T, N, 3)"
    assert report.ok and report.verification.done, report.verification
