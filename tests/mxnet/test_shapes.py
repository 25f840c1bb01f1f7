"""Shapes and types of inputs nothing was said of: what operators tell of them, and do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import Unconvertible, UsageError
from serde.formats.mxnet.bind.bind_params import bind_params
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.infer_shapes.infer_inputs import InputShapes, complete_inputs
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.passes.drop_labels import drop_labels
from serde.formats.mxnet.to_ir import to_ir
from serde.ir.printer import show_value
from serde.passes.cut_inputs import with_inputs
from testing.mxnet import deep_symbols
from testing.mxnet.written import chain, network, node, params_bytes, symbol, variable
from testing.mxnet_live import live_mxnet

CONV = ("Convolution", {"kernel": "(3, 3)", "num_filter": 4})
CONV_WEIGHTS = {"convolution{}_weight": (4, 3, 3, 3), "convolution{}_bias": (4,)}
FC = ("FullyConnected", {"num_hidden": 4})
FC_LAST = ("FullyConnected", {"num_hidden": 4, "flatten": False})
FC_WEIGHTS = {"fullyconnected{}_weight": (4, 6), "fullyconnected{}_bias": (4,)}
LSTM = ("RNN", {"state_size": 5, "num_layers": 2, "mode": "lstm", "bidirectional": True})
LSTM_SIZE = 2 * (4 * 5 * (6 + 5) + 4 * 5 * (10 + 5)) + 2 * 2 * 2 * 4 * 5
EMBEDDING = ("Embedding", {"input_dim": 9, "output_dim": 6})
RELU = ("Activation", {"act_type": "relu"})


def weights(shapes: dict[str, tuple[int, ...]], number: int = 0, dtype: str = "float32"):
    return {n.format(number): np.ones(s, dtype) for n, s in shapes.items()}


def infer_inputs(text: str, arrays: Any = None, **inputs: Any) -> str:
    """The inputs of a symbol, but for labels, as they are printed."""
    symbol = parse_symbol(text)
    graph = bind_params(
        symbol, parse_params(params_bytes(arrays or {}), "m.params"), "m", searched=""
    )
    graph = drop_labels(with_inputs(graph, inputs))
    inputs_ = complete_inputs(graph, symbol.variables).inputs
    return ", ".join(show_value(v)[1:] for v in inputs_ if v.shape is not None)


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


IMAGES = "N,3,224,224"
NOT_TOLD: list[tuple[list[Any], str]] = [  # chains that leave the rank open; the example given
    ([RELU], IMAGES),
    ([("Flatten", {}), FC], IMAGES),
    ([("Reshape", {"shape": "(0, -1)"}), FC], IMAGES),
    ([("mean", {}), FC], IMAGES),
    ([("BatchNorm", {}), ("softmax", {})], IMAGES),
    ([FC_LAST], IMAGES),
    ([EMBEDDING], "N,128"),
    ([("SwapAxis", {"dim1": 0, "dim2": 1})], IMAGES),
    ([("Convolution", {"num_filter": 4, "kernel": "nonsense"})], IMAGES),
    ([("Convolution", {"num_filter": 4, "kernel": "(1, 1, 1, 1)"})], "N,3,224,224,224,224"),
    ([("squeeze", {}), CONV], IMAGES),
    ([("squeeze", {}), ("Convolution", {"num_filter": 4, "kernel": "(3,)"})], "N,3,224"),
    ([("batch_dot", {})], "N,8,8"),
    ([("repeat", {"repeats": 2}), ("Reshape", {"shape": "(0, 3)"})], IMAGES),
]


def asked_for(example: str, name: str = "data") -> str:
    """What the error says of an input whose rank is not known."""
    return (
        f"the shape of {name!r} cannot be inferred from the operators: give it, as "
        f"--input {name}={example}"
    )


@pytest.mark.parametrize(("operators", "example"), NOT_TOLD, ids=str)
def test_not_told(operators, example) -> None:
    with pytest.raises(UsageError) as caught:
        infer_inputs(chain(*operators, params={}))
    assert str(caught.value) == asked_for(example)


# Guesses that a node around them cannot take: operators, shapes of weights, the example.
DENSE = ("FullyConnected", {"num_hidden": 4})
NORM = ("gamma", "beta", "moving_mean", "moving_var")
DROPPED: list[tuple[list[Any], dict[str, Any], str]] = [
    ([("BatchNorm", {}), DENSE], {"BatchNorm": (3,), "FullyConnected": (4, 48)}, "N,3,4,4"),
    ([("BatchNorm", {}), RELU, DENSE], {"BatchNorm": (3,), "FullyConnected": (4, 45)}, "N,3,15"),
    ([("BatchNorm", {"axis": 3}), DENSE], {"BatchNorm": (3,), "FullyConnected": (4, 45)},
     "N,3,15"),
    ([("LayerNorm", {}), DENSE], {"LayerNorm": (5,), "FullyConnected": (4, 45)}, "N,45"),
    ([("transpose", {"axes": "(0, 2, 1)"}), RELU, DENSE], {"FullyConnected": (4, 45)}, ""),
    ([("SwapAxis", {"dim1": 1, "dim2": 2}), DENSE], {"FullyConnected": (4, 45)}, IMAGES),
    ([("Reshape", {"shape": "(-1, 7)"}), RELU, DENSE], {"FullyConnected": (4, 7)}, IMAGES),
]  # fmt: skip


@pytest.mark.parametrize(("operators", "shapes", "example"), DROPPED, ids=str)
def test_guesses_that_contradict_a_node_are_dropped(operators, shapes, example) -> None:
    kinds = {"BatchNorm": NORM, "LayerNorm": NORM[:2], "FullyConnected": ("weight", "bias")}
    held = {}
    for number, (op, _) in enumerate(operators):
        for kind in kinds.get(op, ()) if op in shapes else ():
            shape = shapes[op][:1] if kind == "bias" else shapes[op]
            held[f"{op.lower()}{number}_{kind}"] = np.ones(shape, "float32")
    text = chain(*operators, params={op: kinds[op] for op in shapes})
    if not example:
        assert infer_inputs(text, held) == "data: float32[?,?,?]"
        return
    with pytest.raises(UsageError) as caught:
        infer_inputs(text, held)
    assert str(caught.value) == asked_for(example)


BROADCAST = [  # of what is broadcast with `data` before a dense layer of 12: the example, if asked
    ((1, 3, 4), "N,3,4"),
    ((2, 3, 4), "N,3,4"),
    ((1, 2, 2, 3), "N,2,2,3"),
    ((5, 1, 1), "N,12"),
    ((1, 12), None),
    ((12,), None),
    ((1,), None),
]


@pytest.mark.parametrize("op", ["broadcast_add", "broadcast_mul", "broadcast_maximum"])
@pytest.mark.parametrize(("shape", "example"), BROADCAST, ids=str)
def test_guesses_of_what_is_broadcast(op, shape, example) -> None:
    nodes = [variable(n) for n in ("x", "c", "w", "b")]
    nodes.append(node(op, "y", [0, 1]))
    nodes.append(node("FullyConnected", "fc", [4, 2, 3], num_hidden=5))
    held = {"c": np.ones(shape), "w": np.ones((5, 12)), "b": np.ones(5)}
    held = {n: a.astype("float32") for n, a in held.items()}
    if example is None:
        assert infer_inputs(symbol(nodes), held).startswith("x: float32[N,")
        return
    with pytest.raises(UsageError) as caught:
        infer_inputs(symbol(nodes), held)
    assert str(caught.value) == asked_for(example, "x")


NAMED = [
    ("softmax_label", "N"),
    ("valid_length", "N"),
    ("token_types", "N,128"),
    ("word_ids", "N,128"),
    ("begin_state", "N,8"),
    ("image", IMAGES),
]


@pytest.mark.parametrize(("name", "example"), NAMED)
def test_examples_by_name(name: str, example: str) -> None:
    with pytest.raises(UsageError) as caught:
        infer_inputs(symbol([variable(name), node("relu", "y", [0])]))
    assert str(caught.value) == asked_for(example, name)


def two(op: str, *after: Any, other: str = "mean", **attrs: Any) -> str:
    """A symbol of an operator of ``data`` and another, and then a convolution or so."""
    text = [variable("data"), variable(other), node(op, "both", [0, 1], **attrs)]
    for number, (name, options) in enumerate(after):
        text.append(node(name, f"after{number}", [len(text) - 1], **options))
    return symbol(text)


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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_type_is_that_of_the_weights(dtype: str) -> None:
    operators = [("BatchNorm", {}), RELU, ("Pooling", {"kernel": "(1, 1)"}), CONV]
    held = weights(CONV_WEIGHTS, 3, dtype)
    held |= {f"batchnorm0_{p}": np.ones(3, "float32") for p in ("gamma", "beta")}
    assert infer_inputs(chain(*operators, params={
        "Convolution": ("weight", "bias"), "BatchNorm": ("gamma", "beta")
    }), held) == f"data: {dtype}[N,3,H,W]"  # fmt: skip


@pytest.mark.parametrize("op", ["Concat", "dot", "stack", "where"])
def test_operands_that_mxnet_wants_of_one_type(op: str) -> None:
    """The condition of ``where`` is of any type."""
    names = ["condition", "data", "k"][op != "where" :]
    attrs = {"num_args": "2"} if op in ("Concat", "stack") else {}
    text = symbol([*map(variable, names), node(op, "y", [*range(len(names))], **attrs)])
    net = live_mxnet().sym.load_json(text)
    types, _, _ = net.infer_type(k="float16", **dict.fromkeys(names[:-2], "float32"))
    inferred = infer_inputs(text, {"k": np.ones((4, 4), "float16")},
                            **dict.fromkeys(names[:-1], (4, 4)))  # fmt: skip
    expected = zip(names[:-1], types[:-1], strict=True)
    assert inferred == ", ".join(f"{name}: {np.dtype(t)}[4,4]" for name, t in expected)


def test_types_end_at_casts_and_tables() -> None:
    held = weights(CONV_WEIGHTS, 1, "float16")
    for op in ("Cast", "amp_cast"):
        text = chain((op, {"dtype": "float16"}), CONV, params={"Convolution": ("weight", "bias")})
        assert infer_inputs(text, held) == "data: float32[N,3,H,W]"
    held = {"embedding0_weight": np.ones((9, 6), "float16")}
    text = chain(EMBEDDING, LSTM, params={"Embedding": ("weight",)})
    assert infer_inputs(text, held) == "data: float32[T,N]"


SAID = [
    ({"__shape__": "(2, 3, 8, 8)"}, "float32[2,3,8,8]"),
    ({"__shape__": "(0, 3, 8, 8)"}, "float32[N,3,8,8]"),
    ({"__shape__": "(0, 0, 8, 8)", "__dtype__": "2"}, "float16[N,3,8,8]"),
    ({"__dtype__": "3"}, "uint8[N,3,H,W]"),
    ({"__shape__": "(0, 3)"}, "float32[?,3]"),
    ({"__shape__": "()"}, "float32[N,3,H,W]"),
]


@pytest.mark.parametrize(("attrs", "expected"), SAID, ids=str)
def test_what_the_node_says_comes_first(attrs, expected) -> None:
    nodes = [variable("data", **attrs), variable("w"), variable("b")]
    nodes.append(node(CONV[0], "c", [0, 1, 2], **CONV[1]))
    held = {"w": np.ones((4, 3, 3, 3), "float32"), "b": np.ones(4, "float32")}
    assert infer_inputs(symbol(nodes), held) == f"data: {expected}"


GIVEN = [
    ((1, 3, 8, 8), "float32[1,3,8,8]"),
    (("B", 3, None, 8), "float32[B,3,?,8]"),
    (((2, 3, 8, 8), "float16"), "float16[2,3,8,8]"),
    ((None, "float16"), "float16[N,3,H,W]"),
    (np.zeros((2, 3, 4, 4), "uint8"), "uint8[2,3,4,4]"),
]


@pytest.mark.parametrize(("data", "expected"), GIVEN, ids=str)
def test_what_callers_give_comes_before_all(data, expected) -> None:
    text = chain(CONV, params={"Convolution": ("weight", "bias")})
    assert infer_inputs(text, weights(CONV_WEIGHTS), data=data) == f"data: {expected}"


def test_names_of_callers_are_used_again_where_sizes_must_be_equal() -> None:
    text = two("elemwise_add", CONV)
    assert infer_inputs(text, mean=("N", 3, "W", "H")) == (
        "data: float32[N,3,W,H], mean: float32[N,3,W,H]"
    )


def test_names_of_callers_stay_though_they_must_be_equal() -> None:
    shapes = {"data": ("A", 3), "mean": ("B", 3)}
    expected = "data: float32[A,3], mean: float32[B,3]"
    assert infer_inputs(two("elemwise_add"), **shapes) == expected


def test_several_inputs_are_asked_for_at_once() -> None:
    with pytest.raises(UsageError, match="the shape of 'data', 'mean' cannot be inferred"):
        infer_inputs(two("broadcast_add"))


def test_labels_are_no_inputs_of_the_result() -> None:
    text, arrays = network()
    params = parse_params(params_bytes(arrays), "m.params")
    ir = to_ir(decode_symbol(parse_symbol(text), params, "m"))
    assert [show_value(v) for v in ir.inputs] == ["%data: float32[N,2,H,W]"]


def test_labels_that_are_read_otherwise_are_inputs() -> None:
    nodes = [
        variable("x"),
        variable("y"),
        node("SoftmaxOutput", "s", [0, 1]),
        node("relu", "r", [1]),
    ]
    with pytest.raises(UsageError, match="the shape of 'y' cannot"):
        infer_inputs(symbol(nodes, 2, 3), x=(2, 3))


def test_long_chains() -> None:
    operators = [*(RELU for _ in range(2000)), CONV]
    text = chain(*operators, params={"Convolution": ("weight", "bias")})
    assert infer_inputs(text, weights(CONV_WEIGHTS, 2000)) == "data: float32[N,3,H,W]"


def count_evaluations(text: str, arrays: Any) -> tuple[int, int]:
    """The relations that inference asks, and the operands and outputs of a symbol's nodes."""
    symbol = parse_symbol(text)
    graph = bind_params(symbol, parse_params(params_bytes(arrays), "m.params"), "m")
    links = sum(len(n.inputs) + len(n.outputs) for n in graph.nodes)
    return InputShapes(graph, symbol.variables).propagation.evaluations, links


@pytest.mark.parametrize("kind", deep_symbols.MODELS)
def test_work_is_linear_in_the_size_of_a_symbol(kind: str) -> None:
    for size in (100, 400):
        evaluations, links = count_evaluations(*deep_symbols.MODELS[kind](size))
        assert 0 < evaluations <= 20 * links


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


def test_a_guess_that_a_rule_refuses_is_asked_for() -> None:
    operators = [("L2Normalization", {"mode": "channel"}), DENSE]
    kinds = {"FullyConnected": ("weight", "bias")}
    held = weights({"fullyconnected1_weight": (4, 48), "fullyconnected1_bias": (4,)})
    params = parse_params(params_bytes(held), "m.params")
    graph = decode_symbol(parse_symbol(chain(*operators, params=kinds)), params, "m")
    with pytest.raises(UsageError) as caught:
        to_ir(graph)
    assert str(caught.value) == (
        "l2normalization0 (L2Normalization): mode='channel' of a tensor of 2 axes; "
        "'data' was taken to be (N, 48), but " + asked_for("N,3,4,4")
    )
    assert to_ir(with_inputs(graph, {"data": ("N", 3, 4, 4)})).outputs[0].shape == ("N", 4)


def test_what_no_shape_helps_is_not_asked_for() -> None:
    operators = [("L2Normalization", {"mode": "channel", "invented": 1}), DENSE]
    kinds = {"FullyConnected": ("weight", "bias")}
    held = weights({"fullyconnected1_weight": (4, 48), "fullyconnected1_bias": (4,)})
    params = parse_params(params_bytes(held), "m.params")
    graph = decode_symbol(parse_symbol(chain(*operators, params=kinds)), params, "m")
    with pytest.raises(Unconvertible, match="unknown attribute invented"):
        to_ir(graph)
