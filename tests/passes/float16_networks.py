"""Random small networks with numbers that float16 lacks, by family: models and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from tests.passes.float16_network import Array, Network

FAMILIES: dict[str, Callable[[Network], str]] = {}


def family(function: Callable[[Network], str]) -> Callable[[Network], str]:
    FAMILIES[function.__name__] = function
    return function


def end(n: Network, x: str, size: int) -> str:
    """What networks end with, of numbers of ordinary size in ``size`` channels."""
    kind = n.choose("", "Relu", "Sigmoid", "MatMul", "Gelu", "Norm")
    if kind == "MatMul":
        return n.apply("MatMul", x, n.weights(size, 6))
    if kind == "Norm":
        return n.apply("LayerNormalization", x, np.ones(size, "f"), axis=-1)
    if kind == "Gelu":
        return n.apply("Mul", x, n.apply("Sigmoid", n.apply("Mul", x, 1.702)))
    return n.apply(kind, x) if kind else x


def angles(n: Network, p: str, size: int) -> str:
    """Positions (1, S) times frequencies: (1, S, size)."""
    inv = 10000.0 ** -(np.arange(size) / size)
    kind = n.choose("Mul", "MatMul", "Einsum", "Div", "first")
    if kind == "Einsum":
        return n.apply("Einsum", p, inv, equation="bs,d->bsd")
    column = n.apply("Unsqueeze", p, np.array([2]))
    if kind == "MatMul":
        return n.apply("MatMul", column, inv.reshape(1, size))
    if kind == "Div":
        return n.apply("Div", column, 1 / inv)
    if kind == "first":
        row = n.apply("Unsqueeze", p, np.array([1]))
        product = n.apply("MatMul", inv.reshape(1, size, 1), row)
        return n.apply("Transpose", product, perm=[0, 2, 1])
    return n.apply("Mul", column, inv)


@family
def rotary(n: Network) -> str:
    p = n.apply("Cast", n.positions(1, 5), to=1)
    angle = angles(n, p, 4)
    if n.choose(True, False):
        angle = n.apply("Concat", angle, angle, axis=-1)
    else:
        angle = n.apply("Tile", angle, np.array([1, 1, 2]))
    x = n.floats(1, 5, 8)
    a, b = n.apply("Split", x, count=2, axis=-1, num_outputs=2)
    turned = n.apply("Concat", n.apply("Neg", b), a, axis=-1)
    cos = n.apply("Mul", x, n.apply("Cos", angle))
    return end(n, n.apply("Add", cos, n.apply("Mul", turned, n.apply("Sin", angle))), 8)


@family
def timesteps(n: Network) -> str:
    t = n.feed(n.rng.uniform(0, 1000, (1, 3)).astype(np.float32))
    if n.choose(True, False):
        t = n.apply("Mul", t, float(n.rng.uniform(1, 8)))
    angle = angles(n, t, 6)
    y = n.apply("Concat", n.apply("Sin", angle), n.apply("Cos", angle), axis=-1)
    return end(n, y, 12)


@family
def phases(n: Network) -> str:
    f0 = n.feed(n.rng.uniform(80, 400, (1, 3000)).astype(np.float32))
    step = n.apply("Div", f0, 24000.0) if n.choose(True, False) else n.apply("Mul", f0, 1 / 24000)
    turns = n.apply("CumSum", step, np.array(1))
    if n.choose(True, False):
        turns = n.apply("Add", turns, 0.25)
    angle = n.apply("Mul", turns, 2 * np.pi)
    wave = n.apply(n.choose("Sin", "Cos"), angle)
    return n.apply("Tanh", n.apply("Mul", wave, 0.3))


READERS: Mapping[str, Callable[[Network, str], str]] = {
    "MatMul": lambda n, x: n.apply("MatMul", x, n.weights(8, 5)),
    "Gemm": lambda n, x: n.apply("Gemm", x, n.weights(8, 5), n.weights(5, 1)[:, 0]),
    "Einsum": lambda n, x: n.apply("Einsum", x, n.weights(8, 5), equation="bi,io->bo"),
    "Conv": lambda n, x: n.apply("Conv", n.apply("Unsqueeze", x, np.array([1])), n.weights(3, 1, 3)),
    "LayerNormalization": lambda n, x: n.apply("LayerNormalization", x, np.ones(8, "f")),
    "InstanceNormalization": lambda n, x: n.apply(
        "InstanceNormalization", n.apply("Unsqueeze", x, np.array([1])), np.ones(1, "f"),
        np.zeros(1, "f")),
    "BatchNormalization": lambda n, x: n.apply(
        "BatchNormalization", x, np.ones(8, "f"), np.zeros(8, "f"), np.full(8, 1e5, "f"),
        np.full(8, 1e9, "f")),
    "Relu": lambda n, x: n.apply("MatMul", n.apply("Relu", x), n.weights(8, 5)),
    "Softplus": lambda n, x: n.apply("Softplus", n.apply("Sub", x, 1e5)),
    "Log": lambda n, x: n.apply("MatMul", n.apply("Log", n.apply("Add", x, 1.0)), n.weights(8, 5)),
    "Sqrt": lambda n, x: n.apply("Sqrt", x),
    "Sub": lambda n, x: n.apply("Sub", x, n.apply("ReduceMean", x, np.array([1]))),
    "Div": lambda n, x: n.apply("Div", x, n.apply("ReduceMax", x, np.array([1]))),
    "scaled": lambda n, x: n.apply("MatMul", n.apply("Mul", x, 1e-6), n.weights(8, 5)),
    "Concat": lambda n, x: n.apply("MatMul", n.apply("Concat", x, n.floats(4, 2), axis=1),
                                   n.weights(10, 5)),
    "Add": lambda n, x: n.apply("Add", x, n.floats(4, 8)),
    "Mul": lambda n, x: n.apply("Mul", x, n.floats(4, 8)),
    "Max": lambda n, x: n.apply("Max", x, n.floats(4, 8)),
    "PRelu": lambda n, x: n.apply("PRelu", n.apply("Sub", x, 70000.0), np.full(8, 0.1, "f")),
    "ReduceMean": lambda n, x: n.apply("ReduceMean", x, np.array([1])),
    "ReduceSum": lambda n, x: n.apply("ReduceSum", x, np.array([1])),
    "ReduceL2": lambda n, x: n.apply("Div", x, n.apply("ReduceL2", x, np.array([1]))),
    "AveragePool": lambda n, x: n.apply("AveragePool", n.apply("Unsqueeze", x, np.array([1])),
                                        kernel_shape=[2]),
    "Softmax": lambda n, x: n.apply("Softmax", n.apply("Div", x, 3e6)),
    "Tanh": lambda n, x: n.apply("Tanh", n.apply("Div", n.apply("Sub", x, 1e6), 1e6)),
    "layers": lambda n, x: n.apply("MatMul", n.apply("Relu", n.apply(
        "Add", n.apply("MatMul", x, n.weights(8, 16)), n.weights(16, 1)[:, 0])), n.weights(16, 3)),
    "standardized": lambda n, x: n.apply("Relu", n.apply("MatMul", n.apply(
        "Div", n.apply("Sub", x, np.full(8, 1e5)), np.full(8, 1e6)), n.weights(8, 5))),
    "squared": lambda n, x: n.apply("Sqrt", n.apply("ReduceMean", n.apply("Mul", x, x),
                                                    np.array([1]))),
    "compared": lambda n, x: n.apply("MatMul", n.apply("Cast", n.apply(
        "Greater", x, n.apply("Sub", n.apply("ReduceMax", x, np.array([1])), 0.5)), to=1),
        n.weights(8, 5)),
}  # fmt: skip


@family
def counts(n: Network) -> str:
    return READERS[n.choose(*READERS)](n, n.counts(4, 8))


@family
def indices(n: Network) -> str:
    table = np.linspace(-1, 1, 3001, dtype=np.float32)
    kind = n.choose("sum", "product", "scaled", "mean", "clipped", "fraction")
    if kind == "sum":
        ones = n.apply("Cast", n.feed(n.rng.random((2, 3000)) > 0.3), to=1)
        at = n.apply("Sub", n.apply("ReduceSum", ones, np.array([1]), keepdims=0), 1.0)
    elif kind == "product":
        hot = np.eye(3000, dtype=np.float32)[n.rng.integers(0, 3000, 4)]
        at = n.apply("MatMul", n.feed(hot), np.arange(3000, dtype=np.float32))
    elif kind == "scaled":
        at = n.apply("Mul", n.apply("Sigmoid", n.floats(5)), 2999.0)
        at = n.apply("Mul", n.apply("Floor", n.apply("Div", at, 50.0)), 50.0)
    elif kind == "mean":
        x = n.feed(n.rng.integers(0, 3000, (4, 2)).astype(np.float32))
        at = n.apply("ReduceMean", x, np.array([1]), keepdims=0)
    elif kind == "clipped":
        at = n.apply("Clip", n.feed(n.rng.integers(-5, 3050, 6).astype("f")), 0.0, 3000.0)
    else:
        x = n.feed(n.rng.uniform(0, 2999, 6).astype(np.float32))
        floor = n.apply("Floor", x)
        part = n.apply("Sub", x, floor)
        found = n.apply("Gather", table, n.apply("Cast", floor, to=7))
        return n.apply("Mul", part, found)
    return n.apply("Gather", table, n.apply("Cast", at, to=n.choose(6, 7)))


@family
def large_products(n: Network) -> str:
    kind = n.choose(
        "cosine",
        "linear attention",
        "divided",
        "scaled",
        "steps",
        "power",
        "sum",
        "weights",
        "exp",
        "mean",
        "norm",
    )
    x, y = n.floats(4, 8, scale=500), n.floats(4, 8, scale=500)
    if kind == "cosine":
        a = n.apply("MatMul", x, n.apply("Transpose", y, perm=[1, 0]))
        lengths = [n.apply("ReduceL2", v, np.array([1])) for v in (x, y)]
        lengths[1] = n.apply("Transpose", lengths[1], perm=[1, 0])
        return n.apply("Div", a, n.apply("Mul", *lengths))
    if kind == "linear attention":
        x, y = n.apply("Relu", x), n.apply("Relu", y)
        a = n.apply(
            "MatMul", x, n.apply("MatMul", n.apply("Transpose", y, perm=[1, 0]), n.floats(4, 6))
        )
        total = n.apply(
            "ReduceSum", n.apply("Mul", x, n.apply("ReduceSum", y, np.array([0]))), np.array([1])
        )
        return n.apply("Div", a, n.apply("Add", total, 1e-6))
    if kind == "divided":
        z = n.feed(n.rng.uniform(500, 900, (4, 8)).astype(np.float32))
        return end(n, n.apply("Div", n.apply("Mul", x, y), n.apply("Mul", z, z)), 8)
    if kind == "scaled":
        return end(n, n.apply("Mul", n.apply("Mul", x, y), 4e-6), 8)
    if kind == "steps":
        a = n.apply("Mul", n.apply("Mul", n.floats(4, 8), 1000.0), 1000.0)
        return end(n, n.apply("Div", a, 1e6), 8)
    if kind == "power":
        return end(n, n.apply("Div", n.apply("Pow", x, n.choose(2.0, 3.0)), 1e6), 8)
    if kind == "sum":
        a = n.apply("ReduceSum", n.feed(n.rng.uniform(0, 90, (2, 4000)).astype("f")), np.array([1]))
        return n.apply("Div", n.apply(n.choose("Identity", "Relu"), a), 4000.0)
    if kind == "weights":
        a = n.apply("MatMul", n.floats(4, 8), 3e4 * n.weights(8, 8))
        return end(n, n.apply("Div", n.apply("Add", a, 100.0), 3e4), 8)
    if kind == "exp":
        e = n.apply("Exp", n.feed(n.rng.uniform(9, 14, (4, 8)).astype(np.float32)))
        return end(n, n.apply("Div", e, n.apply("ReduceSum", e, np.array([1]))), 8)
    if kind == "mean":
        a = n.apply("ReduceMean", n.apply("Mul", x, y), np.array([1]))
        return n.apply("Div", x, n.apply("Sqrt", n.apply("Add", n.apply("Abs", a), 1.0)))
    a = n.apply("Sqrt", n.apply("ReduceSum", n.apply("Pow", x, 2.0), np.array([1])))
    return end(n, n.apply("Div", x, a), 8)


@family
def quiet_signals(n: Network) -> str:
    x = n.floats(2, 64, scale=1e-4)
    kind = n.choose(
        "spectrum",
        "energy",
        "rms",
        "product",
        "norm",
        "peak",
        "variance",
        "root",
        "loudest",
        "gain",
    )
    if kind == "loudest":
        e = n.apply("Unsqueeze", n.apply("Mul", x, x), np.array([1]))
        e = n.apply("AveragePool", e, kernel_shape=[16], strides=[16])
        return n.apply("Div", e, n.apply("ReduceMax", e))
    if kind == "gain":
        e = n.apply("MatMul", n.apply("Pow", x, 2.0), np.abs(n.weights(64, 8)))
        smooth = n.apply("Add", n.apply("ReduceMean", e, np.array([0])), 1e-12)
        e = n.apply("Mul", e, n.apply("Pow", smooth, -0.98))
        return n.apply("Sub", n.apply("Pow", n.apply("Add", e, 2.0), 0.5), 2**0.5)
    if kind == "spectrum":
        t = 2 * np.pi * np.outer(np.arange(64), np.arange(16)) / 64
        x = n.apply("Mul", x, np.hanning(64))
        parts = [n.apply("MatMul", x, f(t)) for f in (np.cos, np.sin)]
        if n.choose(True, False):
            parts = [n.apply("Mul", p, p) for p in parts]
        else:
            parts = [n.apply("Pow", p, 2.0) for p in parts]
        power = n.apply("Add", *parts)
        if n.choose(True, False):
            power = n.apply("MatMul", power, np.abs(n.weights(16, 8)))
        if n.choose(True, False):
            return n.apply("Log", n.apply("Add", power, 1e-10))
        return n.apply("Log", n.apply("Clip", power, 1e-10))
    if kind == "energy":
        e = n.apply("ReduceMean", n.apply("Mul", x, x), np.array([1]))
        return n.apply("Log", n.apply("Max", e, 1e-12))
    if kind == "rms":
        e = n.apply("ReduceMean", n.apply("Pow", x, 2.0), np.array([1]))
        return n.apply("Div", x, n.apply("Sqrt", n.apply("Add", e, 1e-12)))
    if kind == "product":
        return n.apply("Mul", x, n.floats(2, 64, scale=1e-4))
    if kind == "norm":
        return n.apply("LayerNormalization", x, np.ones(64, "f"), epsilon=1e-12)
    if kind == "peak":
        top = n.apply("ReduceMax", n.apply("Abs", x), np.array([1]))
        return n.apply("Div", x, n.apply("Add", top, 1e-9))
    if kind == "variance":
        c = n.apply("Sub", x, n.apply("ReduceMean", x, np.array([1])))
        v = n.apply("ReduceMean", n.apply("Mul", c, c), np.array([1]))
        return n.apply("Mul", c, n.apply("Reciprocal", n.apply("Sqrt", n.apply("Add", v, 1e-12))))
    return n.apply("Sqrt", n.apply("Add", n.apply("Mul", x, x), 1e-12))


@family
def masks(n: Network) -> str:
    q, k, v = (n.floats(2, 6, 8) for _ in range(3))
    scores = n.apply("MatMul", q, n.apply("Transpose", k, perm=[0, 2, 1]))
    scores = n.apply("Div", scores, np.sqrt(8.0))
    present = n.rng.random((2, 1, 6)) > 0.3
    present[..., 0] = True
    kind = n.choose("added", "selected", "bool", "slopes", "pooled")
    if kind == "added":
        m = n.apply("Cast", n.feed(present.astype(np.int64)), to=1)
        m = n.apply("Mul", n.apply("Sub", 1.0, m), n.choose(-1e4, -1e9, -3.4e38))
        scores = n.apply("Add", scores, m)
    elif kind == "selected":
        scores = n.apply("Where", n.feed(present), scores, n.choose(-1e4, -1e9, -np.inf))
    elif kind == "bool":
        m = n.apply("Where", n.feed(present), 0.0, n.choose(-1e4, -1e9, -np.inf))
        scores = n.apply("Add", scores, m)
    elif kind == "slopes":
        at = n.apply("Cast", n.feed(np.arange(5000, 5006).reshape(1, 1, 6)), to=1)
        scores = n.apply("Add", scores, n.apply("Mul", at, 0.5))
    else:
        m = n.apply("Cast", n.feed(present.transpose(0, 2, 1).astype(np.int64)), to=1)
        total = n.apply("ReduceSum", n.apply("Mul", v, m), np.array([1]))
        return n.apply("Div", total, n.apply("Clip", n.apply("ReduceSum", m, np.array([1])), 1e-9))
    return n.apply("MatMul", n.apply("Softmax", scores, axis=-1), v)


@family
def transformers(n: Network) -> str:
    x = n.floats(2, 6, 16)
    for _ in range(2):
        c = n.apply("Sub", x, n.apply("ReduceMean", x, np.array([-1])))
        v = n.apply("ReduceMean", n.apply("Pow", c, 2.0), np.array([-1]))
        h = n.apply("Div", c, n.apply("Sqrt", n.apply("Add", v, 1e-5)))
        q, k, v = (n.apply("MatMul", h, n.weights(16, 16)) for _ in range(3))
        s = n.apply("MatMul", q, n.apply("Transpose", k, perm=[0, 2, 1]))
        a = n.apply("Softmax", n.apply("Div", s, 4.0), axis=-1)
        x = n.apply("Add", x, n.apply("MatMul", a, v))
        u = n.apply("MatMul", x, n.weights(16, 32))
        cube = n.apply("Add", u, n.apply("Mul", n.apply("Pow", u, 3.0), 0.044715))
        gate = n.apply("Add", n.apply("Tanh", n.apply("Mul", cube, 0.7979)), 1.0)
        u = n.apply("Mul", n.apply("Mul", u, gate), 0.5)
        x = n.apply("Add", x, n.apply("MatMul", u, n.weights(32, 16)))
    return x


@family
def convolutions(n: Network) -> str:
    x, width = n.floats(1, 3, 12, 12), 3
    for _ in range(3):
        y = n.apply("Conv", x, n.weights(8, width, 3, 3), pads=[1, 1, 1, 1])
        y = n.apply("BatchNormalization", y, *np.ones((1, 8), "f"), *np.zeros((2, 8), "f"),
                    np.full(8, 0.7, "f"))  # fmt: skip
        if n.choose(True, False):
            gate = n.apply("Div", n.apply("Clip", n.apply("Add", y, 3.0), 0.0, 6.0), 6.0)
            y = n.apply("Mul", y, gate)
        else:
            y = n.apply("Relu", y)
        if n.choose(True, False):
            s = n.apply("Sigmoid", n.apply("Conv", n.apply("GlobalAveragePool", y),
                                           n.weights(8, 8, 1, 1)))  # fmt: skip
            y = n.apply("Mul", y, s)
        x, width = (n.apply("Add", x, y) if width == 8 else y), 8
    return n.apply("MatMul", n.apply("Flatten", n.apply("GlobalAveragePool", x)), n.weights(8, 10))


def make(name: str, seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of a family and its inputs."""
    network = Network(np.random.default_rng([seed, *name.encode()]))
    result = FAMILIES[name](network)
    return network.model(result), network.feeds
