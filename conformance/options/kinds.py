"""Small networks of other kinds: of several inputs, with caches, of graphs, sound and video."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto, helper

from .network import Network

Outputs = str | Sequence[str]  # one, or several


def norm(net: Network, x: str, units: int) -> str:
    return net.op("LayerNormalization", x, net.weight(units), net.weight(units))


def conv(net: Network, x: str, inward: int, outward: int, size: int = 3, rank: int = 2,
         **attributes: object) -> str:  # fmt: skip
    sides = [size] * rank
    pads = attributes.pop("pads", [size // 2] * 2 * rank)
    w = net.weight(outward, inward, *sides)
    return net.op("Conv", x, w, net.weight(outward, scale=0.1), pads=pads, **attributes)


def skips_of_scales(net: Network) -> str:
    """A U-Net of two scales."""
    x = net.op("Relu", conv(net, net.input("x", (3, 8, 8)), 3, 6))
    small = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    small = net.op("Relu", conv(net, small, 6, 8))
    up = net.op("ConvTranspose", small, net.weight(8, 6, 2, 2), strides=[2, 2])
    return conv(net, net.op("Concat", x, up, axis=1), 12, 2)


def step_of_diffusion(net: Network) -> str:
    """Group norm, Swish and a vector of the time."""
    x, t = net.input("x", (4, 8, 8)), net.input("t", (6,))
    y = net.reshape(net.reshape(x, 0, 2, -1), net.batch, 2, -1)
    y = net.op("InstanceNormalization", y, net.const([1, 1]), net.const([0, 0]))
    y = net.op("Mul", net.reshape(y, net.batch, 4, 8, 8), net.weight(4, 1, 1))
    y = conv(net, net.op("Mul", y, net.op("Sigmoid", y)), 4, 4)
    return net.op("Add", y, net.reshape(net.linear(t, 6, 4), -1, 4, 1, 1))


def dilated_gates(net: Network) -> str:
    """WaveNet: causal convolutions with gates."""
    x = net.input("x", (4, 32))
    total = x
    for step in (1, 2, 4):
        pads = {"dilations": [step], "pads": [2 * step, 0]}
        f, g = (conv(net, x, 4, 4, rank=1, **pads) for _ in range(2))
        y = net.op("Mul", net.op("Tanh", f), net.op("Sigmoid", g))
        x = net.op("Add", x, conv(net, y, 4, 4, 1, rank=1))
        total = net.op("Add", total, y)
    return total


def video(net: Network) -> str:
    x = net.op("Relu", conv(net, net.input("x", (2, 4, 6, 6)), 2, 4, rank=3))
    x = net.op("AveragePool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    return net.linear(net.op("Flatten", x), 4 * 2 * 3 * 3, 3)


def recommendation(net: Network) -> str:
    """Tables of users and of things, their product and a network of both."""
    user, thing = (
        net.op("Gather", net.weight(40, 6, scale=1), net.input(n, (), draw="integers:40"))
        for n in ("user", "thing")
    )
    product = net.op("ReduceSum", net.op("Mul", user, thing), net.ints(1), keepdims=1)
    both = net.op("Relu", net.linear(net.op("Concat", user, thing, axis=1), 12, 6))
    return net.op("Sigmoid", net.op("Add", product, net.linear(both, 6, 1)))


def twins(net: Network) -> str:
    """Two inputs by the same weights, and how alike they are."""
    w = net.weight(8, 5)
    a, b = (net.op("Tanh", net.op("MatMul", net.input(n, (8,)), w)) for n in ("a", "b"))
    lengths = net.op("Mul", *(net.op("ReduceL2", v, axes=[1], keepdims=0) for v in (a, b)))
    return net.op("Div", net.op("ReduceSum", net.op("Mul", a, b), net.ints(1), keepdims=0), lengths)


def graph_layers(net: Network) -> str:
    """Nodes and their neighbours, of one graph for each sample."""
    x = net.input("x", (5, 4))
    edges = net.op("Cast", net.input("edges", (5, 5), draw="integers:2"), to=TensorProto.FLOAT)
    degree = net.op("ReduceSum", edges, net.ints(2), keepdims=1)
    edges = net.op("Div", edges, net.op("Max", degree, net.const(1)))
    for _ in range(2):
        x = net.op("Relu", net.linear(net.op("MatMul", edges, x), 4, 4))
    return net.op("ReduceMax", x, axes=[1], keepdims=0)


def experts(net: Network) -> str:
    """A weighted sum of what three networks compute."""
    x = net.input("x", (6, 8))
    gate = net.op("Softmax", net.linear(x, 8, 3), axis=-1)
    parts = [net.op("Unsqueeze", net.linear(x, 8, 8), net.ints(2)) for _ in range(3)]
    every = net.op("Concat", *parts, axis=2)
    return net.op("Einsum", gate, every, equation="bse,bseu->bsu")


def routing(net: Network) -> str:
    """Capsules: votes are weighted by how well they agree, twice."""
    votes = net.reshape(net.linear(net.input("x", (6, 4)), 4, 12), net.batch, 6, 3, 4)
    scores = net.op("Mul", net.op("ReduceSum", votes, net.ints(3), keepdims=1), net.const(0))
    y = votes
    for _ in range(2):
        weights = net.op("Softmax", scores, axis=2)
        total = net.op("ReduceSum", net.op("Mul", weights, votes), net.ints(1), keepdims=1)
        square = net.op("ReduceSumSquare", total, axes=[3], keepdims=1)
        y = net.op(
            "Mul", total, net.op("Div", net.op("Sqrt", square), net.op("Add", square, net.const(1)))
        )
        agreed = net.op("ReduceSum", net.op("Mul", votes, y), net.ints(3), keepdims=1)
        scores = net.op("Add", scores, agreed)
    return net.op("Squeeze", y, net.ints(1))


def cached_step(net: Network) -> Outputs:
    """A step of a decoder with keys and values of before."""
    x = net.input("x", (1, 8))
    past = [net.input(n, (2, 5, 4)) for n in ("past_key", "past_value")]

    def split(y: str) -> str:
        return net.transpose(net.reshape(y, net.batch, 1, 2, 4), 0, 2, 1, 3)

    q, k, v = (split(net.linear(x, 8, 8)) for _ in range(3))
    k, v = (net.op("Concat", *pair, axis=2) for pair in zip(past, (k, v), strict=True))
    scores = net.op("Mul", net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(0.5))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    y = net.linear(net.reshape(net.transpose(mixed, 0, 2, 1, 3), net.batch, 1, 8), 8, 8)
    return y, k, v


def padded_attention(net: Network) -> str:
    """Each sample has a length of its own."""
    x = net.input("x", (6, 8))
    length = net.op("Add", net.input("length", (1,), draw="integers:5"), net.ints(1))
    is_there = net.op("Less", net.const(np.arange(6)[None], "int64"), length)
    far = net.op("Where", net.op("Unsqueeze", is_there, net.ints(1)), net.const(0), net.const(-1e4))
    q, k = net.linear(x, 8, 8), net.linear(x, 8, 8)
    scores = net.op("Add", net.op("MatMul", q, net.transpose(k, 0, 2, 1)), far)
    return net.op("MatMul", net.op("Softmax", scores, axis=-1), x)


def recurrent_of_lengths(net: Network) -> str:
    """A plain recurrent layer, from both ends, of samples of other lengths."""
    x = net.input("x", (5, 4), axis=1)
    length = net.op("Cast", net.op("Add", net.input("length", (), draw="integers:4"), net.ints(1)),
                    to=TensorProto.INT32)  # fmt: skip
    weights = net.weight(2, 3, 4), net.weight(2, 3, 3), net.weight(2, 6)
    y, _ = net.ops("RNN", 2, x, *weights, length, hidden_size=3, direction="bidirectional")
    return net.reshape(net.transpose(y, 2, 0, 1, 3), net.batch, 5, 6)


def best_path(net: Network) -> str:
    """The scores of a Viterbi search, by a Scan over the letters."""
    x = net.linear(net.input("x", (5, 4)), 4, 3)
    moves = net.weight(3, 3)

    def info(name: str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, (net.batch, 3))

    nodes = [
        helper.make_node("Unsqueeze", ["state", "axis"], ["column"]),
        helper.make_node("Add", ["column", moves], ["moved"]),
        helper.make_node("ReduceMax", ["moved"], ["best"], axes=[1], keepdims=0),
        helper.make_node("Add", ["best", "letter"], ["next"]),
        helper.make_node("Identity", ["next"], ["shown"]),
    ]
    axis = helper.make_tensor("axis", TensorProto.INT64, (1,), [2])
    body = helper.make_graph(nodes, "body", [info("state"), info("letter")],
                             [info("next"), info("shown")], [axis])  # fmt: skip
    start = net.const(np.zeros((net.batch, 3)))
    _, y = net.ops("Scan", 2, start, net.transpose(x, 1, 0, 2), body=body, num_scan_inputs=1)
    return net.transpose(y, 1, 0, 2)


def trained_for_integers(net: Network) -> str:
    """Roundings in the middle, as of training for int8."""
    x = conv(net, net.input("x", (3, 6, 6)), 3, 4)
    steps = net.op("Clip", net.op("Round", net.op("Div", x, net.const(0.1))), net.const(-128),
                   net.const(127))  # fmt: skip
    return conv(net, net.op("Mul", steps, net.const(0.1)), 4, 4)


def chosen_rows(net: Network) -> str:
    """The rows of the best scores of each sample."""
    x = net.input("x", (8, 4))
    scores = net.op("ReduceSum", x, net.ints(2), keepdims=0)
    _, places = net.ops("TopK", 2, scores, net.ints(3), axis=1)
    wide = net.op("Expand", net.op("Unsqueeze", places, net.ints(2)), net.ints(1, 1, 4))
    return net.op("GatherElements", x, wide, axis=1)


def chosen_by_coordinates(net: Network) -> str:
    """A row of each sample by GatherND with a batch dimension."""
    x = net.input("x", (8, 4))
    place = net.op("ArgMax", net.op("ReduceMax", x, axes=[2], keepdims=0), axis=1, keepdims=1)
    return net.linear(net.op("GatherND", x, place, batch_dims=1), 4, 4)


def one_of_many(net: Network) -> str:
    ids = net.input("ids", (6,), draw="integers:10")
    hot = net.op("OneHot", ids, net.const(10, "int64"), net.const([0, 1]), axis=-1)
    return norm(net, net.linear(hot, 10, 8), 8)


def histogram(net: Network) -> str:
    """Numbers entered at computed places of zeros."""
    x, ids = net.input("x", (6,)), net.input("ids", (6,), draw="integers:4")
    zeros = net.const(np.zeros((net.batch, 4)))
    return net.op("ScatterElements", zeros, ids, x, axis=1, reduction="add")


def modulation(net: Network) -> str:
    """FiLM: a vector scales and shifts the channels of an image."""
    x = conv(net, net.input("x", (3, 6, 6)), 3, 4)
    both = net.reshape(net.linear(net.input("words", (5,)), 5, 8), net.batch, 8, 1, 1)
    scale, shift = net.ops("Split", 2, both, net.ints(4, 4), axis=1)
    return net.op("Relu", net.op("Add", net.op("Mul", x, scale), shift))


def larger_image(net: Network) -> str:
    """Super-resolution beside an enlarged image."""
    x = net.input("x", (3, 6, 6))
    y = net.op("DepthToSpace", conv(net, x, 3, 12), blocksize=2)
    sizes = net.const([1, 1, 2, 2])
    return net.op("Add", y, net.op("Resize", x, "", sizes, mode="cubic"))


def spectrum(net: Network) -> str:
    """The power of a Fourier transform."""
    x = net.op("Unsqueeze", net.input("x", (16,)), net.ints(2))
    y = net.op("DFT", x, axis=1, onesided=1)
    return net.op("ReduceSumSquare", y, axes=[2], keepdims=0)


def heads_by_equation(net: Network) -> str:
    x = net.input("x", (6, 8))
    q, k, v = (net.op("Einsum", x, net.weight(8, 2, 4), equation="bsu,uhd->bhsd") for _ in range(3))
    scores = net.op("Softmax", net.op("Einsum", q, k, equation="bhid,bhjd->bhij"), axis=-1)
    mixed = net.op("Einsum", scores, v, equation="bhij,bhjd->bihd")
    return net.reshape(mixed, net.batch, 6, 8)


def disparity(net: Network) -> str:
    """Two views, compared at several shifts."""
    left, right = (conv(net, net.input(n, (2, 6, 8)), 2, 3) for n in ("left", "right"))
    costs = []
    for shift in range(3):
        padded = net.op("Pad", right, net.ints(0, 0, 0, shift, 0, 0, 0, 0))
        moved = net.slice(padded, 3, 0, 8)
        costs.append(net.op("ReduceMean", net.op("Mul", left, moved), axes=[1], keepdims=1))
    scores = net.op("Softmax", net.op("Concat", *costs, axis=1), axis=1)
    return net.op("ReduceSum", net.op("Mul", scores, net.const(np.arange(3).reshape(3, 1, 1))),
                  net.ints(1), keepdims=1)  # fmt: skip


def style(net: Network) -> str:
    """Each image with the mean and spread of another."""
    x, y = net.input("x", (3, 6, 6)), net.input("y", (3, 6, 6))
    moments = []
    for v in (x, y):
        mean = net.op("ReduceMean", v, axes=[2, 3], keepdims=1)
        square = net.op("ReduceMean", net.op("Mul", *[net.op("Sub", v, mean)] * 2), axes=[2, 3],
                        keepdims=1)  # fmt: skip
        moments.append((mean, net.op("Sqrt", net.op("Add", square, net.const(1e-5)))))
    (a, b), (c, d) = moments
    return net.op("Add", net.op("Mul", net.op("Div", net.op("Sub", x, a), b), d), c)


def queries(net: Network) -> str:
    """Learned queries look at what a sample has, as of DETR."""
    x = net.input("x", (10, 8))
    q = net.op("Expand", net.weight(1, 4, 8), net.ints(net.batch, 4, 8))
    scores = net.op("Softmax", net.op("MatMul", q, net.transpose(net.linear(x, 8, 8), 0, 2, 1)),
                    axis=-1)  # fmt: skip
    return norm(net, net.op("Add", q, net.op("MatMul", scores, x)), 8)


def patches(net: Network) -> str:
    """Channels last, in windows that are moved in a circle, as of Swin."""
    x = net.transpose(net.input("x", (4, 8, 8)), 0, 2, 3, 1)
    for axis in (1, 2):
        x = net.op("Concat", net.slice(x, axis, 2, 1000), net.slice(x, axis, 0, 2), axis=axis)
    x = net.transpose(net.reshape(x, net.batch, 2, 4, 2, 4, 4), 0, 1, 3, 2, 4, 5)
    x = net.reshape(x, -1, 16, 4)
    scores = net.op("Softmax", net.op("MatMul", x, net.transpose(x, 0, 2, 1)), axis=-1)
    x = net.reshape(net.op("MatMul", scores, x), -1, 2, 2, 4, 4, 4)
    x = net.reshape(net.transpose(x, 0, 1, 3, 2, 4, 5), net.batch, 8, 8, 4)
    return net.linear(x, 4, 4)


def selected_state(net: Network) -> str:
    """A linear recurrence whose factors depend on the input, laid out by sums (S4, Mamba)."""
    x = net.input("x", (6, 4))
    decay = net.op("Neg", net.op("Softplus", net.linear(x, 4, 4)))
    total = net.op("CumSum", decay, net.const(1, "int64"))
    y = net.op(
        "CumSum", net.op("Mul", x, net.op("Exp", net.op("Neg", total))), net.const(1, "int64")
    )
    return net.op("Mul", y, net.op("Exp", total))


def lookups_of_codes(net: Network) -> Outputs:
    """The nearest rows of a table, as of VQ-VAE."""
    x, table = net.input("x", (6, 4)), net.weight(7, 4, scale=1)
    products = net.op("MatMul", x, net.op("Transpose", table, perm=[1, 0]))
    squares = net.op("ReduceSumSquare", table, axes=[1], keepdims=0)
    far = net.op("Sub", squares, net.op("Mul", products, net.const(2)))
    codes = net.op("ArgMin", far, axis=2, keepdims=0)
    return net.op("Gather", table, codes, axis=0)


PARTS: tuple[Callable[[Network], Outputs], ...] = (
    skips_of_scales, step_of_diffusion, dilated_gates, video, recommendation, twins, graph_layers,
    experts, routing, cached_step, padded_attention, recurrent_of_lengths, best_path,
    trained_for_integers, chosen_rows, chosen_by_coordinates, one_of_many, histogram, modulation,
    larger_image, spectrum, heads_by_equation, disparity, style, queries, patches, selected_state,
    lookups_of_codes,
)  # fmt: skip


def list_networks() -> dict[str, Callable[[int, int], Network]]:
    """Every network by name; ``build(seed, batch)``."""

    def build(part: Callable[[Network], Outputs]) -> Callable[[int, int], Network]:
        def make(seed: int, batch: int) -> Network:
            net = Network(seed, batch)
            outputs = part(net)
            for value in [outputs] if isinstance(outputs, str) else outputs:
                net.output(value)
            return net

        return make

    return {f"kinds/{part.__name__}": build(part) for part in PARTS}
