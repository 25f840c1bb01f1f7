"""Large symbols of the shapes that models have: deep, unrolled, densely connected."""

from __future__ import annotations

from typing import Any

import numpy as np

from testing.mxnet.written import Array, node, symbol, variable

Model = tuple[str, dict[str, Array]]


class Growing:
    """The nodes of a symbol, and the arrays of its parameters."""

    def __init__(self, *inputs: str) -> None:
        self.nodes: list[Any] = [variable(n) for n in inputs]
        self.arrays: dict[str, Array] = {}

    def param(self, name: str, *shape: int) -> int:
        self.arrays[name] = np.ones(shape, "float32")
        return self.add(variable(name))

    def op(self, op: str, inputs: list[Any], **attrs: Any) -> int:
        return self.add(node(op, f"{op.lower()}{len(self.nodes)}", inputs, **attrs))

    def add(self, entry: Any) -> int:
        self.nodes.append(entry)
        return len(self.nodes) - 1

    @property
    def model(self) -> Model:
        return symbol(self.nodes), self.arrays


def resnet(size: int) -> Model:
    """Convolutions, normalised and added to what they read."""
    net = Growing("data")
    x = net.op("Convolution", [0, net.param("w", 4, 3, 3, 3)], kernel="(3, 3)", pad="(1, 1)",
               num_filter=4, no_bias=True)  # fmt: skip
    for at in range(size):
        w = net.param(f"w{at}", 4, 4, 1, 1)
        y = net.op("Convolution", [x, w], kernel="(1, 1)", num_filter=4, no_bias=True)
        names = ("gamma", "beta", "moving_mean", "moving_var")
        y = net.op("BatchNorm", [y, *(net.param(f"n{at}_{n}", 4) for n in names)])
        x = net.op("elemwise_add", [x, net.op("Activation", [y], act_type="relu")])
    return net.model


def densenet(size: int) -> Model:
    """Each layer reads the results of all before it."""
    net = Growing("data")
    results: list[Any] = [net.op("Cast", [0], dtype="float32")]
    for at in range(size):
        x = results[0] if at == 0 else net.op("Concat", [results[-1], results[-2]], dim=1)
        w = net.param(f"w{at}", 4, 3 if at == 0 else 7 if at == 1 else 8, 1, 1)
        results.append(net.op("Convolution", [x, w], kernel="(1, 1)", num_filter=4, no_bias=True))
    net.op("Concat", results[1:], dim=1, num_args=size)
    return net.model


def unrolled(size: int) -> Model:
    """A recurrent cell over ``size`` slices of one sequence; its states are joined."""
    net = Growing("data", "h")
    i, r = net.param("i", 8, 6), net.param("r", 8, 8)
    parts = net.op("SliceChannel", [0], num_outputs=size, axis=1, squeeze_axis=True)
    h, states = 1, []
    for at in range(size):
        x = net.op("FullyConnected", [[parts, at], i], num_hidden=8, no_bias=True)
        y = net.op("FullyConnected", [h, r], num_hidden=8, no_bias=True)
        h = net.op("Activation", [net.op("elemwise_add", [x, y])], act_type="tanh")
        states.append(h)
    net.op("Concat", states, dim=0, num_args=size)
    return net.model


def stepped(size: int) -> Model:
    """A recurrent cell over ``size`` inputs."""
    net = Growing("h")
    w, r = net.param("w", 8, 6), net.param("r", 8, 8)
    h = 0
    for at in range(size):
        x = net.op("FullyConnected", [net.add(variable(f"t{at}_data")), w], num_hidden=8,
                   no_bias=True)  # fmt: skip
        y = net.op("FullyConnected", [h, r], num_hidden=8, no_bias=True)
        h = net.op("elemwise_add", [x, y])
    return net.model


def gathered(size: int) -> Model:
    """A chain whose end tells the size that each link has in a wide ``Concat``."""
    net = Growing("data", *(f"x{at}" for at in range(size)))
    h, links = 0, []
    for at in range(size):
        h = net.op("elemwise_add", [h, at + 1])
        links.append(h)
    joined = net.op("Concat", links, dim=1, num_args=size)
    end = net.op("FullyConnected", [h, net.param("w", 8, 6)], num_hidden=8, no_bias=True)
    heads = [joined, end]
    return symbol(net.nodes, *heads), net.arrays


def contradicted(size: int) -> Model:
    """A chain that begins with a constant of three axes, and dense layers along it."""
    net = Growing("data")
    x, ends = net.op("broadcast_add", [0, net.param("c", 1, 3, 2)]), []
    w = net.param("w", 8, 6)
    for _ in range(size):
        x = net.op("Activation", [x], act_type="relu")
        ends.append(net.op("FullyConnected", [x, w], num_hidden=8, no_bias=True))
    return symbol(net.nodes, *ends), net.arrays


MODELS = {f.__name__: f for f in (resnet, densenet, unrolled, stepped, gathered, contradicted)}
