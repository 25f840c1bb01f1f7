"""Random chains of operators over counts, positions and ordinary numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from tests.passes.float16_network import Array, Network

Shape = tuple[int, int]
Step = Callable[[Network, str, Shape], str]
UNARY = (
    "Relu Abs Neg Sigmoid Tanh Softplus Elu LeakyRelu HardSwish Sin Cos Sqrt Log Exp "
    "Erf Mish Reciprocal Softsign".split()
)
DEFINED = {"Sqrt": 1e-3, "Log": 1e-3, "Reciprocal": 1.0}  # what is added to magnitudes before


def apply_unary(n: Network, x: str, shape: Shape) -> str:
    op = n.choose(*UNARY)
    if op in DEFINED:
        x = n.apply("Add", n.apply("Abs", x), DEFINED[op])
    if op == "Exp":
        x = n.apply("Neg", n.apply("Abs", x))
    return n.apply(op, x)


def reduce(n: Network, op: str, x: str) -> str:
    return n.apply(op, x, np.array([1]))


def apply_image(n: Network, op: str, x: str, *weights: Array, **attrs: object) -> str:
    image = n.apply("Unsqueeze", x, np.array([1]))
    return n.apply("Squeeze", n.apply(op, image, *weights, **attrs), np.array([1]))


STEPS: Mapping[str, Step] = {
    "function": apply_unary,
    "another function": apply_unary,
    "shift": lambda n, x, s: n.apply("Add", x, n.weights(1, s[1])[0] * n.choose(1, 10, 1000)),
    "factor": lambda n, x, s: n.apply("Mul", x, n.choose(1e-3, 0.1, 0.5, 2.0, 30.0, 1000.0)),
    "divisor": lambda n, x, s: n.apply("Div", x, n.choose(1e-2, 0.5, 8.0, 255.0, 1000.0)),
    "MatMul": lambda n, x, s: n.apply("MatMul", x, n.weights(s[1], s[1])),
    "Gemm": lambda n, x, s: n.apply("Gemm", x, n.weights(s[1], s[1]), n.weights(1, s[1])[0]),
    "Einsum": lambda n, x, s: n.apply("Einsum", x, n.weights(s[1], s[1]), equation="bi,io->bo"),
    "norm": lambda n, x, s: n.apply("LayerNormalization", x, np.ones(s[1], "f")),
    "Softmax": lambda n, x, s: n.apply("Softmax", x),
    "centre": lambda n, x, s: n.apply("Sub", x, reduce(n, "ReduceMean", x)),
    "below the largest": lambda n, x, s: n.apply("Sub", x, reduce(n, "ReduceMax", x)),
    "share": lambda n, x, s: n.apply(
        "Div", x, n.apply("Add", reduce(n, "ReduceSum", n.apply("Abs", x)), 1e-3)),
    "unit": lambda n, x, s: n.apply("Div", x, n.apply("Add", reduce(n, "ReduceL2", x), 1e-6)),
    "two": lambda n, x, s: n.apply(n.choose("Add", "Mul", "Max", "Sub"), x, n.floats(*s)),
    "clip": lambda n, x, s: n.apply("Clip", x, *n.choose((0.0, 6.0), (-1.0, 1.0), (-1e4, 1e4))),
    "mask": lambda n, x, s: n.apply(
        "Where", n.feed(n.rng.random(s) > 0.4), x, n.choose(0.0, -1e9)),
    "pool": lambda n, x, s: apply_image(
        n, n.choose("AveragePool", "MaxPool"), x, kernel_shape=[3], pads=[1, 1]),
    "Conv": lambda n, x, s: apply_image(n, "Conv", x, n.weights(1, 1, 3), pads=[1, 1]),
    "moved": lambda n, x, s: n.apply(
        "Reshape", n.apply("Transpose", x, perm=[1, 0]), np.array(s)),
    "statistics": lambda n, x, s: n.apply(
        "BatchNormalization", x, np.ones(s[1], "f"), np.zeros(s[1], "f"), np.zeros(s[1], "f"),
        np.full(s[1], n.choose(0.5, 100.0), "f")),
    "power": lambda n, x, s: n.apply("Pow", n.apply("Abs", x), n.choose(2.0, 0.5, 3.0)),
    "CumSum": lambda n, x, s: n.apply("CumSum", x, np.array(1)),
}  # fmt: skip
SOURCES: Mapping[str, Callable[[Network, Shape], str]] = {
    "counts": lambda n, s: n.counts(*s),
    "positions": lambda n, s: n.apply("Cast", n.positions(*s), to=1),
    "ordinary numbers": lambda n, s: n.floats(*s),
}


def make_chain(source: str, seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of two to six steps, and its inputs."""
    n, shape = Network(np.random.default_rng([seed, *source.encode()])), (4, 8)
    x = SOURCES[source](n, shape)
    for _ in range(n.rng.integers(2, 7)):
        x = STEPS[n.choose(*STEPS)](n, x, shape)
    return n.model(x), n.feeds
