"""Arrays and variables: which belong together, and what is said where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError
from serde.formats.mxnet.bind.bind_params import LEAVE_OUT
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.passes.cut_inputs import cut, with_inputs
from testing.mxnet import written
from testing.mxnet.written import Array, chain, node, params_bytes, symbol, variable

SYMBOL, ARRAYS = written.network()


def decode(text: str, arrays: Any, ignore_extra: bool = False):
    """The graph of a symbol and parameters, given as arrays by name, in a list, or as None."""
    params = None if arrays is None else parse_params(params_bytes(arrays), "m-0001.params")
    return decode_symbol(parse_symbol(text), params, "m-symbol.json", ignore_extra, "m-0000.params")


def get_error(text: str, arrays: Any, **options: Any) -> str:
    """The one error of reading a symbol with parameters."""
    with pytest.raises(SerdeError) as caught:
        to_ir(decode(text, arrays, **options))
    assert isinstance(caught.value, MalformedFile), caught.value
    return str(caught.value)


def without(*names: str, **more: Array) -> dict[str, Array]:
    return {**{n: a for n, a in ARRAYS.items() if n not in names}, **more}


def zeros(*shape: int) -> Array:
    return np.zeros(shape, "float32")


STATES = ("moving_mean", "moving_var")
SPELLINGS = {
    "plain": lambda n: n,
    "prefixed": lambda n: ("aux:" if n.endswith(STATES) else "arg:") + n,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_bound_by_name(spelling: str) -> None:
    arrays = {SPELLINGS[spelling](n): a for n, a in reversed(ARRAYS.items())}
    graph = decode(SYMBOL, arrays)
    assert [v.name for v in graph.inputs] == ["data", "softmaxoutput5_label"]
    held = {v.name: v.array() for v in graph.constants()}
    assert all(np.array_equal(held[n], a) for n, a in ARRAYS.items())
    assert [v.name for v in to_ir(graph).inputs] == ["data"]


# What is wrong with the parameters: what the error says, line by line.
WRONG: dict[str, tuple[dict[str, Array], list[str]]] = {
    "missing": (
        without("convolution0_bias"),
        [
            "m-symbol.json: 1 parameter(s) are missing; m-0001.params has not:",
            "  convolution0_bias (4)",
            "give their file with --params, or the shape of one that is an input with --input",
        ],
    ),
    "misspelt": (
        without("fullyconnected4_weight", fulyconnected4_weight=zeros(3, 4)),
        [
            "1 missing (--input NAME=SHAPE makes an input of one):",
            "  fullyconnected4_weight (3, ?): perhaps 'fulyconnected4_weight'",
            "  fulyconnected4_weight (3, 4): perhaps 'fullyconnected4_weight'",
        ],
    ),
    "another name of a unique shape": (
        without("convolution0_weight", **{"0.kernel": zeros(4, 2, 3, 3)}),
        [
            "  convolution0_weight (4, ?, 3, 3): perhaps '0.kernel'",
            "  0.kernel (4, 2, 3, 3): perhaps 'convolution0_weight'",
        ],
    ),
    "wrong shapes": (
        without(convolution0_weight=zeros(4, 2, 5, 5), fullyconnected4_bias=zeros(1, 3),
                batchnorm1_gamma=zeros(1, 4)),
        [
            "3 of the wrong shape:",
            "  convolution0_weight (4, 2, 5, 5): Convolution 'convolution0' takes (4, ?, 3, 3)",
            "  batchnorm1_gamma (1, 4): BatchNorm 'batchnorm1' takes (?)",
            "  fullyconnected4_bias (1, 3): FullyConnected 'fullyconnected4' takes (3)",
        ],
    ),
    "everything": (
        without("convolution0_bias", "batchnorm1_beta", convolution0_weight=zeros(3, 3),
                other=zeros(2), conv0_bias=zeros(4)),
        [
            "1 of the wrong shape:",
            "2 missing (--input NAME=SHAPE makes an input of one):",
            "  convolution0_bias (4): perhaps 'conv0_bias'",
            "  batchnorm1_beta (?)",
            f"2 that belong to no variable ({LEAVE_OUT}):",
            "  conv0_bias (4): perhaps 'convolution0_bias'",
        ],
    ),
    "another prefix": (
        {n.replace("0_", "7_"): a for n, a in ARRAYS.items() if "0" in n} | without(
            "convolution0_weight", "convolution0_bias"),
        [
            "  convolution0_weight (4, ?, 3, 3): perhaps 'convolution7_weight'",
            "  convolution7_bias (4): perhaps 'convolution0_bias'",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_wrong(fault: str) -> None:
    arrays, lines = WRONG[fault]
    message = get_error(SYMBOL, arrays)
    assert [line for line in lines if line not in message.splitlines()] == []


# Arrays that belong to no variable, and to none that is missing: left out, as MXNet does.
EXTRA: list[dict[str, Array]] = [
    {"unused": zeros(7)},
    {"unused_weight": zeros(4, 2, 3, 3)},
    {f"fc{i}_bias": zeros(4) for i in range(9)},
]


@pytest.mark.parametrize("ignore_extra", [False, True])
@pytest.mark.parametrize("extra", EXTRA, ids=lambda e: f"{len(e)} {next(iter(e))}")
def test_extra_arrays_are_left_out(extra: dict[str, Array], ignore_extra: bool) -> None:
    graph = decode(SYMBOL, without(**extra), ignore_extra)
    assert [v.name for v in to_ir(graph).inputs] == ["data"]
    few = ", ".join(map(repr, [*extra][:5])) + (", …" if len(extra) > 5 else "")
    note = f"{len(extra)} array(s) of m-0001.params belong to no variable: {few} left out"
    assert note in graph.notes


def test_extra_arrays_whose_names_are_those_of_inputs_but_for_a_letter() -> None:
    nodes = [variable("data"), variable("scale_factor"), node("broadcast_mul", "y", [0, 1])]
    message = get_error(symbol(nodes), {"scale_factors": zeros(3)})
    assert "scale_factor: perhaps 'scale_factors'" in message
    assert decode(symbol(nodes), {"mean": zeros(3)}).notes


def test_extra_arrays_may_be_ignored_and_are_still_a_likely_match() -> None:
    message = get_error(
        SYMBOL, without("convolution0_bias", conv0_bias=zeros(4)), ignore_extra=True
    )  # fmt: skip
    assert "convolution0_bias (4): perhaps 'conv0_bias'" in message
    assert "m-0001.params has not" in message
    message = get_error(
        SYMBOL, without("convolution0_bias", convolution0_weight=zeros(1), x=zeros(1)),
        ignore_extra=True,
    )  # fmt: skip
    assert "1 of the wrong shape" in message and "belong to no variable" not in message


def test_no_parameters_at_all() -> None:
    message = get_error(SYMBOL, None)
    assert "8 parameter(s) are missing; no m-0000.params was found:" in message


def test_where_they_were_looked_for(tmp_path: Path) -> None:
    (tmp_path / "net-symbol.json").write_text(SYMBOL)
    with pytest.raises(MalformedFile) as caught:
        serde.load(tmp_path / "net")
    assert f"no net-0000.params or the like in {tmp_path} was found" in str(caught.value)


def test_long_lists_are_cut() -> None:
    text = chain(*(("FullyConnected", {"num_hidden": 2}) for _ in range(40)))
    message = get_error(text, None)
    assert "80 parameter(s) are missing" in message and message.count("\n  ") == 31
    assert "\n  …\n" in message


def test_parameters_may_be_inputs_instead() -> None:
    """Where a caller gives the shape of one, it is an input."""
    graph = with_inputs(decode(SYMBOL, without("convolution0_bias")), {"convolution0_bias": (4,)})
    assert [v.name for v in to_ir(graph).inputs] == ["data", "convolution0_bias"]


def test_parameters_of_what_is_cut_off_are_not_missed() -> None:
    arrays = without("fullyconnected4_weight", "fullyconnected4_bias")
    ir = to_ir(cut(decode(SYMBOL, arrays), ["activation2"]))
    assert [v.name for v in ir.outputs] == ["activation2_output"]


def test_variables_used_otherwise_are_known_by_their_names() -> None:
    nodes = [variable("data"), variable("l0_i2h_weight"), node("broadcast_add", "y", [0, 1])]
    assert "\n  l0_i2h_weight\n" in get_error(symbol(nodes), None)


def test_what_variables_say_is_compared() -> None:
    nodes = [variable("data"), variable("scale", __shape__="(1, 3, 1, 1)", __dtype__="0")]
    text = symbol([*nodes, node("broadcast_mul", "y", [0, 1])])
    assert "scale (3): its variable says (1, 3, 1, 1)" in get_error(text, {"scale": zeros(3)})
    assert len(decode(text, {"scale": zeros(1, 3, 1, 1)}).inputs) == 1


# Shapes operators ask of their parameters: operator, attributes, shapes that fit, that do not.
ASKED = [
    ("Convolution", {"num_filter": 4, "kernel": "(3,)"}, [(4, 2, 3), (4,)], [(4, 2, 3, 3), (5,)]),
    ("Convolution", {"num_filter": 4, "kernel": "(3, 1)", "layout": "NHWC"},
     [(4, 3, 1, 2), (4,)], [(4, 2, 3, 1), (4, 1)]),
    ("Deconvolution", {"num_filter": 4, "kernel": "(2, 2)", "num_group": 2, "no_bias": "False"},
     [(6, 2, 2, 2), (4,)], [(6, 4, 2, 2), (6,)]),
    ("FullyConnected", {"num_hidden": 4}, [(4, 7), (4,)], [(7, 4), (7,)]),
    ("Embedding", {"input_dim": 9, "output_dim": 4}, [(9, 4)], [(4, 9)]),
    ("LayerNorm", {}, [(4,), (5,)], [(1, 4), (4, 1)]),
    ("RNN", {"state_size": 2, "num_layers": 1, "mode": "gru"}, [(99,)], [(9, 11)]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs", "good", "bad"), ASKED, ids=str)
def test_shapes_asked(op, attrs, good, bad) -> None:
    text = chain((op, attrs))
    names = [f"{op.lower()}0_{p}" for p in written.PARAMETERS[op]]
    fitting = dict(zip(names, (zeros(*s) for s in good), strict=True))
    assert len(decode(text, fitting).inputs) == 1
    for name, shape in zip(names, bad, strict=True):
        assert f"{name} ({', '.join(map(str, shape))}): {op}" in get_error(
            text, {**fitting, name: zeros(*shape)}
        )


def test_attributes_that_are_wrong_are_left_to_the_rule() -> None:
    text = chain(("FullyConnected", {"num_hidden": "many"}))
    arrays = {"fullyconnected0_weight": zeros(3, 4), "fullyconnected0_bias": zeros(3)}
    assert len(decode(text, arrays).inputs) == 1


NAMES = list(ARRAYS)
STATES_LAST = sorted(NAMES, key=lambda n: n.endswith(STATES))


@pytest.mark.parametrize("order", [NAMES, STATES_LAST], ids=["variables", "states last"])
def test_arrays_without_names_are_bound_in_order(order: list[str]) -> None:
    held = {v.name: v.array() for v in decode(SYMBOL, [ARRAYS[n] for n in order]).constants()}
    assert all(np.array_equal(held[n], a) for n, a in ARRAYS.items())


def test_arrays_without_names_that_fit_in_no_order_or_several() -> None:
    arrays = list(ARRAYS.values())
    assert "7 arrays without names for 8 parameters" in get_error(SYMBOL, arrays[:-1])
    assert "have no names, and fit the parameters in no order" in get_error(SYMBOL, arrays[::-1])
    text = chain(("BatchNorm", {}), ("BatchNorm", {}))
    assert "fit them in several orders: save them by name" in get_error(text, [zeros(4)] * 8)


def test_a_variable_read_twice_is_bound_once() -> None:
    nodes = [
        *(variable("data"), variable("w")),
        node("Embedding", "e", [0, 1], input_dim=5, output_dim=4),
        node("FullyConnected", "f", [2, 1], num_hidden=5, no_bias=True, flatten=False),
    ]
    ir = to_ir(with_inputs(decode(symbol(nodes), {"w": zeros(5, 4)}), {"data": ("N", "T")}))
    assert ir.outputs[0].shape == ("N", "T", 5)
    assert "w (4, 4): Embedding 'e' takes (5, 4)" in get_error(symbol(nodes), {"w": zeros(4, 4)})


BLOCK = {  # names as Gluon's save_parameters gives them
    "features.0.weight": zeros(4, 3, 1, 1),
    "features.1.gamma": zeros(4),
    "features.1.beta": zeros(4),
    "features.1.running_mean": zeros(4),
    "features.1.running_var": zeros(4) + 1,
    "output.weight": zeros(2, 4),
    "output.bias": zeros(2) + 7,
}


def block_symbol() -> str:
    """A convolution without a bias, a BatchNorm and a dense layer, with names of their own."""
    named = ("data", "c_weight", "n_gamma", "n_beta", "n_moving_mean", "n_moving_var", "d_weight",
             "d_bias")  # fmt: skip
    convolution = {"kernel": "(1, 1)", "num_filter": "4", "no_bias": "True"}
    nodes = [
        *(variable(n) for n in named),
        node("Convolution", "c", [0, 1], **convolution),
        node("BatchNorm", "n", [8, 2, 3, 4, 5]),
        node("FullyConnected", "d", [9, 6, 7], num_hidden="2"),
    ]
    return symbol(nodes)


def matched_graph(arrays: dict[str, Array]):
    params = parse_params(params_bytes(arrays), "net.params")
    return decode_symbol(parse_symbol(block_symbol()), params, "m", match_params=True)


def test_names_are_matched_by_kind_shape_and_order() -> None:
    graph = matched_graph(BLOCK)
    assert [v.name for v in graph.inputs] == ["data"]
    held = {v.name: v.array() for v in graph.constants()}
    assert held["d_bias"][0] == 7 and held["n_moving_var"][0] == 1
    assert graph.notes[0] == "c_weight      is features.0.weight, by kind, shape and order"
    assert len(graph.notes) == len(BLOCK)


def test_what_cannot_be_matched_is_refused() -> None:
    other = {**BLOCK, "output.weight": BLOCK["features.0.weight"]}
    other["features.0.weight"] = BLOCK["output.weight"]
    with pytest.raises(MalformedFile, match="not in the order of the variables"):
        matched_graph(other)
    fewer = {n: a for n, a in BLOCK.items() if n != "output.weight"}
    with pytest.raises(MalformedFile, match="1 arrays that are a weight"):
        matched_graph(fewer)
