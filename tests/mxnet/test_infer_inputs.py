"""Shapes and types of inputs: those of callers, of nodes, and of what is around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import UsageError
from serde.formats.mxnet.bind.bind_params import bind_params
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.infer_shapes.infer_inputs import InputShapes
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.ir.printer import show_value
from testing.mxnet import deep_symbols
from testing.mxnet.inferred import (
    CONV,
    CONV_WEIGHTS,
    EMBEDDING,
    LSTM,
    RELU,
    infer_inputs,
    two,
    weights,
)
from testing.mxnet.written import chain, network, node, params_bytes, symbol, variable
from testing.mxnet_live import live_mxnet


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
