"""Symbol JSON of every age, and damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from serde.errors import MalformedFile
from serde.formats.mxnet.bind.declared import Declared
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.ir.graph import DType
from testing.mxnet.written import node, symbol, variable
from testing.mxnet_live import live_mxnet


def variables(*names: str) -> list[dict[str, Any]]:
    return [variable(n) for n in names]


# A model in today's JSON, in which every difference between the ages shows.
TODAY = symbol(
    [
        *variables("data", "conv_weight", "conv_bias"),
        node("Convolution", "conv", [0, 1, 2], kernel="(3,3)", num_filter=4, __ctx_group__="dev1"),
        *variables("bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"),
        node("BatchNorm", "bn", [3, 4, 5, 6, 7], eps="0.001", fix_gamma="True"),
        node("elemwise_add", "plus", [8, 3]),
        node("add_n", "sum", [9, 3, 8], num_args=3),
        node("_mul_scalar", "times", [10], scalar=2),
        node("IdentityAttachKLSparseReg", "sparse", [11, 13]),
        variable("sparse_moving_avg"),
        node("SliceChannel", "parts", [12], num_outputs=2),
        node("argmax", "best", [(14, 1)]),
        variable("label"),
        node("SoftmaxOutput", "out", [(14, 0), 16]),
    ],
    15,
    17,
)


def downgrade(change: Callable[[dict[str, Any], dict[str, Any]], None], version: int | None) -> str:
    """Today's JSON with every node and the graph changed, and another version."""
    raw = json.loads(TODAY)
    raw["attrs"] = {"mxnet_version": ["int", version]}
    if version is None:
        del raw["attrs"]
    for one in raw["nodes"]:
        change(one, raw)
    return json.dumps(raw)


def attr(one: dict[str, Any], raw: dict[str, Any]) -> None:
    """0.9 to 0.11: attributes under ``attr``, annotations without underscores were still read."""
    attrs = one.pop("attrs", {})
    one["attr"] = {k.strip("_") if k.startswith("__") else k: v for k, v in attrs.items()}


OLD = {"elemwise_add": "_Plus", "add_n": "ElementWiseSum", "_mul_scalar": "_MulScalar",
       "SoftmaxOutput": "Softmax"}  # fmt: skip


def param(one: dict[str, Any], raw: dict[str, Any]) -> None:
    """0.8: ``param`` beside annotations in ``attr``, pairs for entries, no auxiliary variables."""
    attrs = one.pop("attrs", {})
    one["op"] = OLD.get(one["op"], one["op"])
    one["attr"] = {k.strip("_"): v for k, v in attrs.items() if k.startswith("__")}
    one["attr"] |= {"weight_lr_mult": "2.0"} if one["op"] == "Convolution" else {}
    one["param"] = {k: v for k, v in attrs.items() if not k.startswith("__")}
    one["param"] |= {"axis": "-1"} if one["op"] == "argmax" else {}
    one["backward_source_id"] = -1
    own = {"BatchNorm": 3, "IdentityAttachKLSparseReg": 1}.get(one["op"])
    one["inputs"] = [link[:2] for link in one["inputs"]][:own]
    raw["heads"] = [link[:2] for link in raw["heads"]]


def attr_and_axis(one: dict[str, Any], raw: dict[str, Any]) -> None:
    """Up to 0.9.4: the axis of argmax was -1 where none was given."""
    attr(one, raw)
    one["attr"] |= {"axis": "-1"} if one["op"] == "argmax" else {}


AGES = {
    "1.9": TODAY,
    "0.11": downgrade(attr, 1100),
    "0.9.4": downgrade(attr_and_axis, 904),
    "0.8": downgrade(param, None),
}


@pytest.mark.parametrize("age", AGES)
def test_one_model_in_every_age_gives_one_graph(age: str) -> None:
    assert str(parse_symbol(AGES[age]).graph) == str(parse_symbol(TODAY).graph)


@pytest.mark.parametrize("age", AGES)
def test_ages_read_as_mxnet_upgrades_them(age: str) -> None:
    symbol = live_mxnet().sym.load_json(AGES[age])
    graph = parse_symbol(AGES[age]).graph
    assert str(graph) == str(parse_symbol(symbol.tojson()).graph)
    assert [v.name for v in graph.inputs] == symbol.list_inputs()
    assert [v.name for v in graph.outputs] == symbol.list_outputs()


def test_the_printed_graph() -> None:
    assert str(parse_symbol(TODAY).graph) == PRINTED


PRINTED = """\
graph symbol(%data: ?[?], %conv_weight: ?[?], %conv_bias: ?[?], %bn_gamma: ?[?], %bn_beta: ?[?], \
%bn_moving_mean: ?[?], %bn_moving_var: ?[?], %sparse_moving_avg: ?[?], %label: ?[?]):
  %conv_output: ?[?] = mxnet.Convolution(%data, %conv_weight, %conv_bias, __ctx_group__='dev1', \
kernel='(3,3)', num_filter='4')
  %bn_output: ?[?] = mxnet.BatchNorm(%conv_output, %bn_gamma, %bn_beta, %bn_moving_mean, \
%bn_moving_var, eps='0.001', fix_gamma='True')
  %plus_output: ?[?] = mxnet.elemwise_add(%bn_output, %conv_output)
  %sum_output: ?[?] = mxnet.add_n(%plus_output, %conv_output, %bn_output, num_args='3')
  %times_output: ?[?] = mxnet._mul_scalar(%sum_output, scalar='2')
  %sparse_output: ?[?] = mxnet.IdentityAttachKLSparseReg(%times_output, %sparse_moving_avg)
  %parts_output0: ?[?], %parts_output1: ?[?] = mxnet.SliceChannel(%sparse_output, num_outputs='2')
  %best_output: ?[?] = mxnet.argmax(%parts_output1)
  %out_output: ?[?] = mxnet.SoftmaxOutput(%parts_output0, %label)
  return %best_output, %out_output"""


@pytest.mark.parametrize(
    ("version", "axis"), [(None, None), (904, None), (905, "-1"), (10901, "-1")]
)
def test_argmax_of_axis_minus_1_meant_none(version, axis) -> None:
    text = symbol([variable("x"), node("argmax", "y", [0], axis=-1)], version=version)
    assert parse_symbol(text).graph.nodes[0].attrs.get("axis") == axis


@pytest.mark.parametrize(("version", "count"), [(None, 5), (899, 5), (900, 3)])
def test_auxiliary_variables_are_made_before_09(version, count) -> None:
    nodes = [*variables("x", "g", "b"), node("BatchNorm", "bn", [0, 1, 2])]
    assert len(parse_symbol(symbol(nodes, version=version)).graph.inputs) == count


@pytest.mark.parametrize(
    ("attrs", "read"),
    [
        ({"lr_mult": "2"}, {"__lr_mult__": "2"}),
        ({"__profiler_scope__": "a"}, {"__profiler_scope__": "a"}),
        ({"mirror_stage": "1", "num_hidden": "3"}, {"__mirror_stage__": "1", "num_hidden": "3"}),
        ({"weight_wd_mult": "0", "bias_lr_mult": "2"}, {}),
        ({"num_hidden": 3, "flatten": False}, {"num_hidden": "3", "flatten": "false"}),
    ],
)
def test_annotations(attrs, read) -> None:
    one = {**node("FullyConnected", "y", [0]), "attrs": attrs}
    assert parse_symbol(symbol([variable("x"), one])).graph.nodes[0].attrs == read


@pytest.mark.parametrize(
    ("attrs", "np_shape", "expected"),
    [
        ({}, 0, Declared()),
        ({"__shape__": "(0, 3, 224, 224)"}, 0, Declared((None, 3, 224, 224))),
        ({"__shape__": "[2, 3]", "__dtype__": "2"}, 0, Declared((2, 3), DType.FLOAT16)),
        ({"__shape__": "()"}, 0, Declared()),
        ({"__shape__": "()", "__dtype__": "-1"}, 1, Declared(())),
        ({"__shape__": "(0, -1)"}, 1, Declared((0, None))),
        ({"__shape__": "None", "__dtype__": "99"}, 1, Declared()),
        ({"__dtype__": "12"}, 0, Declared(None, DType.BFLOAT16)),
    ],
)
def test_what_variables_say(attrs, np_shape, expected) -> None:
    text = symbol([variable("x", **attrs), node("relu", "y", [0])], is_np_shape=np_shape)
    assert parse_symbol(text).variables["x"] == expected


def test_only_what_the_heads_need_is_read_in_the_order_of_mxnet() -> None:
    nodes = [
        *variables("b", "a", "dead"),
        node("relu", "gone", [2]),
        node("elemwise_add", "inner", [1, 0]),
        node("elemwise_add", "outer", [4, 0]),
    ]
    graph = parse_symbol(symbol(nodes)).graph
    assert [v.name for v in graph.inputs] == ["a", "b"]
    assert [n.name for n in graph.nodes] == ["inner", "outer"]
    assert live_mxnet().sym.load_json(symbol(nodes)).list_inputs() == ["a", "b"]


def test_nodes_may_come_in_any_order() -> None:
    nodes = [node("tanh", "y", [1]), node("relu", "x", [2]), variable("data")]
    assert [n.name for n in parse_symbol(symbol(nodes, 0)).graph.nodes] == ["x", "y"]


def test_variables_of_one_name_are_one() -> None:
    nodes = [*variables("x", "x"), node("elemwise_add", "y", [0, 1])]
    graph = parse_symbol(symbol(nodes)).graph
    assert len(graph.inputs) == 1 and graph.nodes[0].inputs == (graph.inputs[0],) * 2


def test_subgraphs_are_of_the_age_of_what_is_around_them() -> None:
    """They bear no version themselves."""
    inner = json.loads(symbol([variable("a"), node("argmax", "b", [0], axis=-1)], version=None))
    loop = {**node("_foreach", "loop", [0], num_args=2), "subgraphs": [inner]}
    for version, kept in ((10901, {"axis": "-1"}), (None, {})):
        layer = parse_symbol(symbol([variable("x"), loop], version=version)).graph.nodes[0]
        (body,) = layer.graphs()
        assert dict(body.nodes[0].attrs) == kept
        assert str(body).startswith("graph symbol(%a: ?[?])")


def test_deep_models_are_walked_without_recursion() -> None:
    count = 5_000
    nodes = [variable("x"), *(node("relu", f"r{i}", [i]) for i in range(count))]
    assert len(parse_symbol(symbol(nodes)).graph.nodes) == count


X, RELU = variable("x"), node("relu", "y", [0])


def alter(**fields: Any) -> str:
    return json.dumps({**json.loads(symbol([X, RELU])), **fields})


def nest(depth: int) -> dict[str, Any]:
    body = json.loads(symbol([X, RELU]))
    for _ in range(depth):
        body = json.loads(symbol([X, {**RELU, "subgraphs": [body]}]))
    return body


FAULTS = {
    "the file is empty": b"",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n",
    "an HTML or XML page": b"<!DOCTYPE html><html></html>",
    "MXNet's parameters, not symbol JSON": b"\x12\1" + b"\0" * 30,
    "an ONNX model, not symbol JSON": b"\x08\x08\x12\x05serde",
    "a zip archive, not symbol JSON": b"PK\3\4" + b"\0" * 30,
    "line 1 column 2: not symbol JSON": "{",
    "not symbol JSON: it has no list of nodes": "[1, 2]",
    "no list of nodes": alter(nodes={}),
    "an object has one key twice": '{"nodes": [], "nodes": []}',
    "it nests too deep": '{"nodes": ' + "[" * 200_000,
    "not symbol JSON: Exceeds the limit": '{"nodes": [' + "1" * 5000 + "]}",
    "not symbol JSON: 'utf": b"{\xff\xff\xff\xff",
    "$.nodes[1]: a node is not an object": alter(nodes=[X, 7]),
    "$.nodes[1]: a node has no op": alter(nodes=[X, {"name": "y"}]),
    "$.nodes[1]: a node has no name": alter(nodes=[X, {"op": "relu", "name": 7}]),
    "name '\\ud800' is no text": alter(nodes=[{**X, "name": "\ud800"}, RELU]),
    "a graph that TVM compiled": alter(nodes=[X, {**RELU, "op": "tvm_op"}], arg_nodes=[0]),
    "attrs is not an object": alter(nodes=[X, {**RELU, "attrs": [1]}]),
    "subgraphs is not a list": alter(nodes=[X, {**RELU, "subgraphs": {"a": 1}}]),
    ".inputs: 0 is not a [node, output] pair": alter(nodes=[X, {**RELU, "inputs": [0]}]),
    "[True, 0] is not": alter(nodes=[X, {**RELU, "inputs": [[True, 0]]}]),
    "[-1, 0, 0] is not": alter(nodes=[X, {**RELU, "inputs": [[-1, 0, 0]]}]),
    "[0] is not": alter(nodes=[X, {**RELU, "inputs": [[0]]}]),
    "$.nodes[1].inputs: reads node 2, and there are 2": alter(nodes=[X, node("relu", "y", [2])]),
    "$.nodes[1]: 'y' reads 'y', which depends on it: a cycle": alter(
        nodes=[X, node("relu", "y", [1])]
    ),
    "'y' reads 'z', which depends on it": alter(
        nodes=[X, node("relu", "z", [2]), node("relu", "y", [1])], heads=[[1, 0, 0]]
    ),
    "$.nodes[0]: a variable has one output": alter(nodes=[X, node("relu", "y", [(0, 1)])]),
    "output 300000 of node 1 is read": alter(heads=[[1, 300_000, 0]]),
    "$.heads: reads node 9": alter(heads=[[9, 0, 0]]),
    "$.heads: the symbol has no outputs": alter(heads=[]),
    "$.heads: is not a list": alter(heads=None),
    "mxnet_version is not ['int', number]": alter(attrs={"mxnet_version": "1.9"}),
    "is_np_shape is not": alter(attrs={"is_np_shape": ["int", True]}),
    "__shape__ or __dtype__: 'abc' is not": alter(
        nodes=[variable("x", __shape__="abc"), RELU]
    ),
    "subgraphs nest more than 16 deep": json.dumps(nest(18)),
}  # fmt: skip


@pytest.mark.parametrize("reason", FAULTS)
def test_faults(reason: str) -> None:
    with pytest.raises(MalformedFile) as caught:
        parse_symbol(FAULTS[reason], "model-symbol.json")
    assert reason in str(caught.value) and "model-symbol.json" in str(caught.value)


def test_nodes_without_names_get_their_operator_and_position() -> None:
    """C++ front ends leave names out; no two are alike, nor like a name that is there."""
    nodes = [
        variable("data"),
        variable(""),
        variable("relu3"),
        node("relu", "", [0]),
        node("broadcast_add", "", [3, 1]),
        node("broadcast_mul", "", [4, 2]),
        node("_plus_scalar", "", [5], scalar=1),
        node("SliceChannel", "", [6], num_outputs=2, axis=0),
    ]
    graph = parse_symbol(symbol(nodes, 5, [7, 0], [7, 1])).graph
    assert [n.name for n in graph.nodes] == [
        "relu3_", "broadcast_add4", "broadcast_mul5", "plus_scalar6", "slicechannel7"
    ]  # fmt: skip
    assert [v.name for v in graph.inputs] == ["data", "variable1", "relu3"]
    assert [v.name for v in graph.outputs] == [
        "broadcast_mul5_output", "slicechannel7_output0", "slicechannel7_output1"
    ]  # fmt: skip
