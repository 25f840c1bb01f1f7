"""Large symbols of the shapes that models have: deep, unrolled, densely connected."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mxnet.written import Array, node, symbol, variable

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
    made = Growing("data")
    x = made.op("Convolution", [0, made.param("w", 4, 3, 3, 3)], kernel="(3, 3)", pad="(1, 1)",
                num_filter=4, no_bias=True)  # fmt: skip
    for at in range(size):
        w = made.param(f"w{at}", 4, 4, 1, 1)
        y = made.op("Convolution", [x, w], kernel="(1, 1)", num_filter=4, no_bias=True)
        names = ("gamma", "beta", "moving_mean", "moving_var")
        y = made.op("BatchNorm", [y, *(made.param(f"n{at}_{n}", 4) for n in names)])
        x = made.op("elemwise_add", [x, made.op("Activation", [y], act_type="relu")])
    return made.model


def densenet(size: int) -> Model:
    """Each layer reads the results of all before it."""
    made = Growing("data")
    results: list[Any] = [made.op("Cast", [0], dtype="float32")]
    for at in range(size):
        x = results[0] if at == 0 else made.op("Concat", [results[-1], results[-2]], dim=1)
        w = made.param(f"w{at}", 4, 3 if at == 0 else 7 if at == 1 else 8, 1, 1)
        results.append(made.op("Convolution", [x, w], kernel="(1, 1)", num_filter=4, no_bias=True))
    made.op("Concat", results[1:], dim=1, num_args=size)
    return made.model


def unrolled(size: int) -> Model:
    """A recurrent cell over ``size`` slices of one sequence; its states are joined."""
    made = Growing("data", "h")
    i, r = made.param("i", 8, 6), made.param("r", 8, 8)
    parts = made.op("SliceChannel", [0], num_outputs=size, axis=1, squeeze_axis=True)
    h, states = 1, []
    for at in range(size):
        x = made.op("FullyConnected", [[parts, at], i], num_hidden=8, no_bias=True)
        y = made.op("FullyConnected", [h, r], num_hidden=8, no_bias=True)
        h = made.op("Activation", [made.op("elemwise_add", [x, y])], act_type="tanh")
        states.append(h)
    made.op("Concat", states, dim=0, num_args=size)
    return made.model


def stepped(size: int) -> Model:
    """A recurrent cell over ``size`` inputs."""
    made = Growing("h")
    w, r = made.param("w", 8, 6), made.param("r", 8, 8)
    h = 0
    for at in range(size):
        x = made.op("FullyConnected", [made.add(variable(f"t{at}_data")), w], num_hidden=8,
                    no_bias=True)  # fmt: skip
        y = made.op("FullyConnected", [h, r], num_hidden=8, no_bias=True)
        h = made.op("elemwise_add", [x, y])
    return made.model


def gathered(size: int) -> Model:
    """A chain whose end tells the size that each link has in a wide ``Concat``."""
    made = Growing("data", *(f"x{at}" for at in range(size)))
    h, links = 0, []
    for at in range(size):
        h = made.op("elemwise_add", [h, at + 1])
        links.append(h)
    joined = made.op("Concat", links, dim=1, num_args=size)
    end = made.op("FullyConnected", [h, made.param("w", 8, 6)], num_hidden=8, no_bias=True)
    heads = [joined, end]
    return symbol(made.nodes, *heads), made.arrays


def contradicted(size: int) -> Model:
    """A chain that begins with a constant of three axes, and dense layers along it."""
    made = Growing("data")
    x, ends = made.op("broadcast_add", [0, made.param("c", 1, 3, 2)]), []
    w = made.param("w", 8, 6)
    for _ in range(size):
        x = made.op("Activation", [x], act_type="relu")
        ends.append(made.op("FullyConnected", [x, w], num_hidden=8, no_bias=True))
    return symbol(made.nodes, *ends), made.arrays


MODELS = {f.__name__: f for f in (resnet, densenet, unrolled, stepped, gathered, contradicted)}
