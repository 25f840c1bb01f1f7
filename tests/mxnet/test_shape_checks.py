"""Shapes that MXNet refuses are refused, with the reason; those it takes are not."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from serde.errors import SerdeError, UsageError
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.passes.cut_inputs import cut, with_inputs
from testing.mxnet.written import node, params_bytes, symbol, variable
from testing.mxnet_live import live_mxnet

Shape = tuple[int, ...]
WINDOW = {"kernel": "(3, 3)", "num_filter": 4, "no_bias": True}
# Operator, shapes of its operands, attributes; what the refusal says.
REFUSED: list[tuple[str, list[Shape], dict[str, Any], str]] = [
    ("slice", [(3, 4)], {"begin": "(2,)", "end": "(2,)"}, "no elements: its shape is (0, 4)"),
    ("slice", [(3, 4)], {"begin": "(0, 3)", "end": "(2, 1)"}, "its shape is (2, 0)"),
    ("slice", [(3,)], {"begin": "(0,)", "end": "(3,)", "step": "(0,)"}, "step=(0,)"),
    ("slice_axis", [(3, 4)], {"axis": 1, "begin": 2, "end": 2}, "begin=2, end=2 of an axis of 4"),
    ("slice_axis", [(3, 4)], {"axis": -1, "begin": 2, "end": 5}, "end=5 of an axis of 4"),
    ("slice_axis", [(3, 4)], {"axis": 0, "begin": -4, "end": "None"}, "begin=-4, end=None"),
    ("_split_v2", [(3, 4)], {"indices": "(0, 5)", "axis": 1}, "indices=(0, 5) of an axis of 4"),
    ("_split_v2", [(3, 4)], {"indices": "(0, 3, 2)", "axis": 1}, "indices=(0, 3, 2) of an axis"),
    ("_split_v2", [(3, 2)], {"indices": "(0, 0, 1)", "axis": 1, "squeeze_axis": True}, "axis"),
    ("squeeze", [(3,)], {"axis": 0}, "axis=(0,) of shape (3)"),
    ("transpose", [(3, 4, 5)], {"axes": "(1, 0)"}, "axes=(1, 0) of a tensor of 3 axes"),
    ("tile", [(3,)], {"reps": "(0,)"}, "no elements"),
    ("one_hot", [(3,)], {"depth": 0}, "no elements"),
    ("Pad", [(2, 3, 4)], {"mode": "edge", "pad_width": "(0,0,0,0,1,1)"}, "3 axes; MXNet pads"),
    ("Pad", [(2, 3, 4, 4)], {"mode": "edge", "pad_width": "(1,0,0,0,0,0,0,0)"}, "neither of"),
    ("broadcast_to", [(2, 1)], {"shape": "(3, 2, 4)"}, "shape=(3, 2, 4) for a tensor"),
    ("broadcast_axis", [(2, 1)], {"axis": -1, "size": 3}, "counts them from the front"),
    ("broadcast_axis", [(2, 1)], {"axis": 0, "size": 2}, "which are not all of size 1"),
    ("broadcast_like", [(3,), (2, 3)], {}, "shapes (3) and (2, 3)"),
    ("broadcast_like", [(3, 2), (1, 2)], {}, "shape (3, 2) like (1, 2)"),
    *((op, [(2, 3), (1, 3)], {}, "operands of shapes (2, 3) and (1, 3)")
      for op in ("elemwise_add", "elemwise_mul", "_maximum", "_equal", "_hypot")),
    ("add_n", [(2, 3), (3,)], {"num_args": 2}, "operands of shapes (2, 3) and (3)"),
    ("dot", [(2,), (2,)], {"transpose_a": True}, "a vector has nothing to transpose"),
    ("batch_dot", [(2, 3), (3, 4)], {}, "not of 3 axes or more"),
    ("batch_dot", [(2, 3, 4), (1, 4, 5)], {}, "operands of shapes (2) and (1)"),
    ("_linalg_gemm2", [(2, 3, 4), (1, 4, 5)], {}, "operands of shapes (2) and (1)"),
    ("pick", [(2, 3), (3,)], {}, "operands of shapes (2) and (3)"),
    ("where", [(2, 3), (2, 3), (2, 1)], {}, "operands of shapes (2, 3) and (2, 1)"),
    ("Embedding", [(2,), (3, 4)], {"input_dim": 5, "output_dim": 4}, "(3, 4) and (5, 4)"),
    ("gather_nd", [(2, 3), (2,)], {}, "which has one axis"),
    ("slice_like", [(2, 3), (3, 3)], {}, "which is larger"),
    ("slice_like", [(2, 3), (2,)], {}, "shape (2, 3) like (2)"),
    ("reshape_like", [(2, 3), (4,)], {}, "has not as many elements as (4)"),
    ("depth_to_space", [(1, 6, 2, 2)], {"block_size": 2}, "6 channels, which blocksize²=4 does not divide"),
    ("space_to_depth", [(1, 3, 2, 3)], {"block_size": 2}, "3 columns, which blocksize=2 does not divide"),
    ("Convolution", [(1, 3, 8, 8), (4, 2, 3, 3)], WINDOW, "2 input channels, and the data have 3"),
    ("Convolution", [(1, 3, 8), (4, 3, 3, 3)], WINDOW, "takes data of 4 axes, and they have 3"),
    ("Convolution", [(1, 3, 8, 8), (5, 3, 3, 3)], WINDOW, "(5, 3, 3, 3) and (4, ?, 3, 3)"),
    ("Convolution", [(1, 3, 2, 8), (4, 3, 3, 3)], WINDOW, "over data of shape (1, 3, 2, 8)"),
    ("Deconvolution", [(1, 3, 8, 8), (2, 4, 3, 3)], WINDOW, "2 input channels, and the data"),
    ("Pooling", [(1, 3, 2, 8)], {"kernel": "(3, 3)"}, "kernel=(3, 3), dilate=(1, 1)"),
    ("FullyConnected", [(2, 7), (4, 6)], {"num_hidden": 4, "no_bias": True}, "has 7 features"),
    ("LayerNorm", [(2, 4), (3,), (3,)], {}, "of shape (3) does not broadcast"),
    ("InstanceNorm", [(2,), (2,), (2,)], {}, "which has no channels"),
    ("L2Normalization", [(2, 3)], {"mode": "channel"}, "of a tensor of 2 axes"),
    ("SequenceMask", [(2, 3, 4)], {"axis": 2}, "axis=2; MXNet takes 0 and 1"),
    ("SequenceReverse", [(3,)], {}, "which has no axis for samples"),
    ("Crop", [(1, 2, 4, 4)], {"num_args": 1, "h_w": "(5, 4)"}, "h_w=(5, 4) at (0, 0)"),
    ("UpSampling", [(1, 2, 4)], {"scale": 2, "sample_type": "nearest", "num_args": 1}, "--input x0=D0,D1,D2,D3?"),
    ("_contrib_index_copy", [(4, 3), (2,), (3, 3)], {}, "is not of shape (2, 3)"),
]  # fmt: skip
# What looks alike, and MXNet takes.
TAKEN: list[tuple[str, list[Shape], dict[str, Any]]] = [
    ("slice", [(3, 4)], {"begin": "(2, None)", "end": "(9, -1)"}),
    ("slice_axis", [(3, 4)], {"axis": -1, "begin": -2, "end": "None"}),
    ("_split_v2", [(3, 4)], {"indices": "(0, 3)", "axis": 1}),
    ("_split_v2", [(3, 4)], {"indices": "(0, 2, 2, 4)", "axis": 1}),
    ("squeeze", [(3, 1)], {}),
    ("Pad", [(2, 3, 4, 4)], {"mode": "reflect", "pad_width": "(0,0,0,0,3,0,0,3)"}),
    ("broadcast_to", [(2, 1)], {"shape": "(0, 4)"}),
    ("broadcast_like", [(2, 1), (2, 3)], {}),
    ("broadcast_add", [(2, 3), (1, 3)], {}),
    ("add_n", [(2, 3), (2, 3), (2, 3)], {"num_args": 3}),
    ("dot", [(3,), (3,)], {}),
    ("pick", [(2, 3), (2,)], {"keepdims": True}),
    ("pick", [(2, 3), (2, 1)], {}),
    ("where", [(2,), (2, 3), (2, 3)], {}),
    ("slice_like", [(2, 3), (5, 2)], {"axes": "(1,)"}),
    ("reshape_like", [(2, 3), (3, 2)], {}),
    ("Convolution", [(1, 4, 8, 8), (4, 2, 3, 3)], {**WINDOW, "num_group": 2}),
    ("Pooling", [(1, 3, 2, 8)], {"kernel": "(3, 3)", "pad": "(1, 1)"}),
    ("Pooling", [(1, 3, 2, 8)], {"kernel": "(3, 3)", "global_pool": True}),
    ("FullyConnected", [(2, 3, 2), (4, 6)], {"num_hidden": 4, "no_bias": True}),
    ("LayerNorm", [(2, 4), (2,), (2,)], {"axis": 0}),
    ("L2Normalization", [(2, 3)], {"mode": "instance"}),
    ("Crop", [(1, 2, 4, 4)], {"num_args": 1, "h_w": "(2, 2)", "offset": "(2, 2)"}),
]


def symbol_of(op: str, count: int, attrs: dict[str, Any], **flags: int) -> str:
    nodes = [variable(f"x{i}") for i in range(count)]
    return symbol([*nodes, node(op, "y", list(range(count)), **attrs)], **flags)


def name_shapes(shapes: list[Shape]) -> dict[str, Shape]:
    return {f"x{i}": shape for i, shape in enumerate(shapes)}


def convert_text(text: str, shapes: list[Shape]) -> Any:
    return to_ir(with_inputs(decode_symbol(parse_symbol(text), None, "m"), name_shapes(shapes)))


def infers(text: str, shapes: list[Shape], np_shape: bool = False) -> bool:
    """Whether MXNet itself infers the shape of the result."""
    mx = live_mxnet()
    with mx.util.np_shape(np_shape), contextlib.suppress(mx.MXNetError, UserWarning):
        _, out_shapes, _ = mx.sym.load_json(text).infer_shape(**name_shapes(shapes))
        return out_shapes is not None and (np_shape or 0 not in out_shapes[0])
    return False


@pytest.mark.parametrize(("op", "shapes", "attrs", "message"), REFUSED, ids=str)
def test_what_mxnet_refuses(op, shapes, attrs, message) -> None:
    text = symbol_of(op, len(shapes), attrs)
    with pytest.raises(SerdeError) as caught:
        convert_text(text, shapes)
    assert message in str(caught.value)
    assert not infers(text, shapes)


@pytest.mark.parametrize(("op", "shapes", "attrs"), TAKEN, ids=str)
def test_what_mxnet_takes(op, shapes, attrs) -> None:
    text = symbol_of(op, len(shapes), attrs)
    mx = live_mxnet()
    _, out_shapes, _ = mx.sym.load_json(text).infer_shape(**name_shapes(shapes))
    assert convert_text(text, shapes).outputs[0].shape == out_shapes[0]


def test_numpy_shapes_may_be_empty() -> None:
    text = symbol_of("slice", 1, {"begin": "(2,)", "end": "(2,)"}, is_np_shape=1)
    assert infers(text, [(3, 4)], np_shape=True)
    assert convert_text(text, [(3, 4)]).outputs[0].shape == (0, 4)


def test_numpy_shapes_of_a_part_may_be_empty() -> None:
    nodes = [
        variable("data"), node("slice", "part", [0], begin="(2,)", end="(2,)"),
        variable("w"), node("broadcast_add", "rest", [1, 2]),
    ]  # fmt: skip
    params = parse_params(params_bytes({"w": np.ones(4, np.float32)}), "m.params")
    text = symbol(nodes, is_np_shape=1)
    graph = decode_symbol(parse_symbol(text), params, "m", outputs=["part"])
    graph = cut(with_inputs(graph, {"data": (3, 4)}), ["part"])
    assert to_ir(graph).outputs[0].shape == (0, 4)


NORM = ("gamma", "beta", "moving_mean", "moving_var")
# Shapes that callers give and stored parameters contradict: what is said.
CONTRADICTED: list[tuple[str, dict[str, Any], dict[str, Shape], Any, str]] = [
    ("Convolution", WINDOW, {"weight": (4, 3, 3, 3)}, (1, 4, 8, 8),
     "layer (Convolution): the weight has 3 input channels, and the data have 4: "
     "--input data=1,3,8,8?"),
    ("Convolution", WINDOW, {"weight": (4, 3, 3, 3)}, ("N", 4, "H", "W"), "--input data=N,3,H,W?"),
    ("Convolution", WINDOW, {"weight": (4, 3, 3, 3)}, (3, 8, 8), "--input data=N,3,H,W?"),
    ("Convolution", {**WINDOW, "layout": "NHWC"}, {"weight": (4, 3, 3, 3)}, (1, 8, 8, 4),
     "--input data=1,8,8,3?"),
    ("Convolution", {**WINDOW, "kernel": "(3,)"}, {"weight": (4, 3, 3)}, (1, 4, 8),
     "--input data=1,3,8?"),
    ("Deconvolution", WINDOW, {"weight": (3, 4, 3, 3)}, (1, 4, 8, 8), "--input data=1,3,8,8?"),
    ("BatchNorm", {}, dict.fromkeys(NORM, (3,)), (1, 4, 8, 8), "--input data=1,3,8,8?"),
    ("BatchNorm", {"axis": -1}, dict.fromkeys(NORM, (3,)), (1, 4, 8, 8), "--input data=1,4,8,3?"),
    ("LayerNorm", {}, dict.fromkeys(NORM[:2], (3,)), (1, 4), "--input data=1,3?"),
    ("InstanceNorm", {}, dict.fromkeys(NORM[:2], (3,)), (1, 4, 8), "--input data=1,3,8?"),
    ("FullyConnected", {"num_hidden": 4, "no_bias": True, "flatten": False}, {"weight": (4, 6)},
     ("N", "T", 7), "--input data=N,T,6?"),
    ("RNN", {"mode": "gru", "state_size": 3, "num_layers": 1}, {"parameters": (90,)}, (2, 1, 6),
     "--input data=2,1,5?"),
]  # fmt: skip


@pytest.mark.parametrize("between", [[], ["relu"], ["_mul_scalar", "BlockGrad"]], ids=str)
@pytest.mark.parametrize(("op", "attrs", "stored", "shape", "hint"), CONTRADICTED, ids=str)
def test_given_shapes_that_parameters_contradict(op, attrs, stored, shape, hint, between) -> None:
    nodes = [variable("data"), *(variable(n) for n in stored)]
    last = 0
    for number, name in enumerate(between):
        scalar = {"scalar": 2} if "scalar" in name else {}
        nodes.append(node(name, f"b{number}", [last], **scalar))
        last = len(nodes) - 1
    states = []
    if op == "RNN":
        nodes.append(variable("state"))
        states = [len(nodes) - 1]
    nodes.append(node(op, "layer", [last, *range(1, len(stored) + 1), *states], **attrs))
    arrays = {n: np.ones(s, "float32") for n, s in stored.items()}
    graph = decode_symbol(parse_symbol(symbol(nodes)), parse_params(params_bytes(arrays), "m"), "m")
    with pytest.raises(UsageError) as caught:
        to_ir(with_inputs(graph, {"data": shape}))
    assert str(caught.value).startswith(f"layer ({op}): ") and hint in str(caught.value)
