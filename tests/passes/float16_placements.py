"""Models with all of their nodes in the bodies of others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array


def move_into_branch(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with all of its nodes in the branches of an ``If``."""
    (output,) = model.graph.output
    other = helper.make_node("Identity", [output.name], ["other"])
    ends = [helper.make_tensor_value_info(n, 1, None) for n in (output.name, "other")]
    nodes = list(model.graph.node)
    inside = [helper.make_graph(nodes, "t", [], ends[:1]),
              helper.make_graph([*nodes, other], "e", [], ends[1:])]  # fmt: skip
    choice = helper.make_node("If", ["chosen"], ["result"], then_branch=inside[0],
                              else_branch=inside[1])  # fmt: skip
    graph = helper.make_graph(
        [choice], "g",
        [*model.graph.input, helper.make_tensor_value_info("chosen", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("result", 1, None)], list(model.graph.initializer),
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)


def move_into_loop(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes in a ``Loop`` of two turns; its results, and the sum of their means."""
    (output,) = model.graph.output
    nodes = [
        *model.graph.node,
        helper.make_node("ReduceMean", [output.name], ["mean"], keepdims=0),
        helper.make_node("Add", ["state", "mean"], ["sum"]),
        helper.make_node("Identity", ["go"], ["on"]),
    ]
    ends = [("turn", TensorProto.INT64), ("go", TensorProto.BOOL), ("state", TensorProto.FLOAT)]
    body = helper.make_graph(
        nodes, "b", [helper.make_tensor_value_info(n, t, []) for n, t in ends],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("sum", 1, []),
         helper.make_tensor_value_info(output.name, 1, None)],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["turns", "", "start"], ["total", "results"], body=body)
    constants = [from_array(np.array(2), "turns"), from_array(np.array(0, np.float32), "start")]
    graph = helper.make_graph(
        [loop], "g", list(model.graph.input),
        [helper.make_tensor_value_info("results", 1, None)],
        [*model.graph.initializer, *constants],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)


PLACEMENTS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "graph": lambda model: model, "If": move_into_branch, "Loop": move_into_loop,
}  # fmt: skip
