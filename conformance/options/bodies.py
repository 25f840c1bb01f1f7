"""Networks whose nodes lie in the bodies of If and Loop, as exporters of decoders write them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from testing.onnx_live import PLAIN, run_at

from .network import Network
from .whole import Build


def in_branch(build: Build) -> Build:
    """The nodes in both branches of an If; the other branch negates the results."""

    def make(seed: int, batch: int) -> Network:
        net = build(seed, batch)
        names = [o.name for o in net.outputs]
        elements = [o.type.tensor_type.elem_type for o in net.outputs]
        graphs = []
        for kind in ("then", "else"):
            ends = [f"{kind}/{n}" for n in names]
            sign = [helper.make_node("Neg" if kind == "else" else "Identity", [n], [e])
                    for n, e in zip(names, ends, strict=True)]  # fmt: skip
            outputs = [helper.make_tensor_value_info(e, t, None)
                       for e, t in zip(ends, elements, strict=True)]  # fmt: skip
            graphs.append(helper.make_graph([*net.nodes, *sign], kind, [], outputs, net.weights))
        net.inputs.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, ()))
        net.feeds["flag"] = np.array(True)
        branches = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        net.nodes = [helper.make_node("If", ["flag"], names, "if", **branches)]
        net.weights = []
        return net

    return make


def in_loop(build: Build) -> Build:
    """The nodes in a Loop of two rounds that are added up; weights lie around it."""

    def make(seed: int, batch: int) -> Network:
        net = build(seed, batch)
        floats = (o for o in net.outputs if o.type.tensor_type.elem_type == TensorProto.FLOAT)
        output = next(floats)
        name, at = output.name, net.outputs.index(output)
        nodes = [*net.nodes, helper.make_node("Add", ["sum", name], ["next"]),
                 helper.make_node("Identity", ["go"], ["on"])]  # fmt: skip
        info = helper.make_tensor_value_info
        body = helper.make_graph(
            nodes, "body",
            [info("i", TensorProto.INT64, ()), info("go", TensorProto.BOOL, ()),
             info("sum", TensorProto.FLOAT, None)],
            [info("on", TensorProto.BOOL, ()), info("next", TensorProto.FLOAT, None)],
        )  # fmt: skip
        shape = run_at(PLAIN, net.model(), net.feeds)[at].shape
        for value, constant in (("rounds", np.array(2)), ("go0", np.array(True)),
                                ("zeros", np.zeros(shape, "f"))):  # fmt: skip
            net.weights.append(numpy_helper.from_array(constant, value))
        net.nodes = [
            helper.make_node("Loop", ["rounds", "go0", "zeros"], [name], "loop", body=body)
        ]
        net.outputs = [output]
        return net

    return make
