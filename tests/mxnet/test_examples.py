"""What is asked for where operators leave the rank of an input open: examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import Unconvertible, UsageError
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.inferred import CONV, EMBEDDING, FC, FC_LAST, RELU, infer_inputs, two, weights
from testing.mxnet.written import chain, node, params_bytes, symbol, variable

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


def test_several_inputs_are_asked_for_at_once() -> None:
    with pytest.raises(UsageError, match="the shape of 'data', 'mean' cannot be inferred"):
        infer_inputs(two("broadcast_add"))


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
