"""Whole networks: blocks in a row, between an input and a head, and some of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from . import images, tokens
from .network import Network, Shape

Build = Callable[[int, int], Network]  # of a seed and a number of samples
IMAGE: Shape = (4, 8, 8)
TOKENS: Shape = (6, 8)
RANDOM = 70  # networks of random blocks, of each kind


def image_network(blocks: tuple[images.Block, ...], head: str) -> Build:
    """A network of an image: blocks, then a head."""

    def build(seed: int, batch: int) -> Network:
        net = Network(seed, batch)
        x, shape = net.input("x", IMAGE), IMAGE
        for block in blocks:
            x, shape = block(net, x, shape)
        IMAGE_HEADS[head](net, x, shape)
        return net

    return build


def token_network(blocks: tuple[images.Block, ...], head: str) -> Build:
    """A network of tokens, some of them by number."""

    def build(seed: int, batch: int) -> Network:
        net = Network(seed, batch)
        if seed % 3:
            x = net.input("x", TOKENS)
        else:
            ids = net.input("ids", TOKENS[:1], draw="integers:50")
            x = net.op("Gather", net.weight(50, TOKENS[1], scale=1), ids, axis=0)
        shape = TOKENS
        for block in blocks:
            x, shape = block(net, x, shape)
        TOKEN_HEADS[head](net, x, shape)
        return net

    return build


def keep(net: Network, x: str, shape: Shape) -> None:
    net.output(x)


def classify(net: Network, x: str, shape: Shape) -> None:
    flat = net.reshape(net.op("GlobalAveragePool", x), net.batch, -1)
    net.output(net.op("Softmax", net.linear(flat, shape[0], 5), axis=1))


def flatten(net: Network, x: str, shape: Shape) -> None:
    flat = net.reshape(x, net.batch, int(np.prod(shape)))
    net.output(net.op("Gemm", flat, net.weight(3, int(np.prod(shape))), transB=1))


def detect(net: Network, x: str, shape: Shape) -> None:
    """Boxes as of YOLO, of one scale, with a grid of constants."""
    channels, height, width = shape
    y = net.op("Conv", x, net.weight(12, channels, 1, 1))
    y = net.transpose(net.reshape(y, net.batch, 2, 6, height, width), 0, 1, 3, 4, 2)
    grid = net.const(net.draws.standard_normal((1, 1, height, width, 2)))
    places = net.op("Add", net.op("Sigmoid", net.slice(y, 4, 0, 2)), grid)
    y = net.op("Concat", places, net.slice(y, 4, 2, 6), axis=4)
    net.output(net.reshape(y, net.batch, -1, 6))


def detect_scales(net: Network, x: str, shape: Shape) -> None:
    """Boxes of two scales in a row, as of YOLOX and PicoDet."""
    small, small_shape = images.pool(net, x, shape)
    parts = []
    for value, (channels, height, width) in ((x, shape), (small, small_shape)):
        y = net.op("Conv", value, net.weight(5, channels, 1, 1))
        parts.append(net.reshape(y, net.batch, 5, height * width))
    y = net.transpose(net.op("Concat", *parts, axis=2), 0, 2, 1)
    net.output(y)
    scores = net.op("ReduceMax", y, axes=[2], keepdims=0)
    net.output(net.op("ArgMax", scores, axis=1, keepdims=0), element=TensorProto.INT64)


def read_text(net: Network, x: str, shape: Shape) -> None:
    """Columns to letters, as of CRNN; the length comes first."""
    channels = shape[0]
    columns = net.op("Squeeze", net.op("ReduceMean", x, axes=[2], keepdims=1), net.ints(2))
    steps = net.transpose(columns, 2, 0, 1)
    weights = net.weight(1, 16, channels), net.weight(1, 16, 4)
    y, _, _ = net.ops("LSTM", 3, steps, *weights, hidden_size=4)
    net.output(net.op("LogSoftmax", net.op("Squeeze", y, net.ints(1)), axis=2), axis=1)


def pool_tokens(net: Network, x: str, shape: Shape) -> None:
    net.output(net.linear(net.op("ReduceMean", x, axes=[1], keepdims=0), shape[1], 4))


def first_token(net: Network, x: str, shape: Shape) -> None:
    first = net.op("Gather", x, net.const(0, "int64"), axis=1)
    net.output(net.op("Tanh", net.linear(first, shape[1], 4)))


def all_letters(net: Network, x: str, shape: Shape) -> None:
    scores = net.linear(x, shape[1], 9)
    net.output(net.op("ArgMax", scores, axis=2, keepdims=0), element=TensorProto.INT64)
    net.output(net.op("LogSoftmax", scores, axis=-1))


def similar(net: Network, x: str, shape: Shape) -> None:
    """How like the tokens of one sample are to each other."""
    length = net.op("ReduceL2", x, axes=[2], keepdims=1)
    y = net.op("Div", x, net.op("Clip", length, net.const(1e-6)))
    net.output(net.op("MatMul", y, net.transpose(y, 0, 2, 1)))


IMAGE_HEADS = {
    "keep": keep, "classify": classify, "flatten": flatten, "detect": detect,
    "detect scales": detect_scales, "read": read_text,
}  # fmt: skip
TOKEN_HEADS = {
    "keep": keep, "pool": pool_tokens, "first": first_token, "letters": all_letters,
    "similar": similar,
}  # fmt: skip


def random_network(kind: str, number: int) -> Build:
    """A network of some blocks and a head; every seventh has a block that mixes samples."""
    generator = np.random.default_rng((number, kind == "image"))
    family = images if kind == "image" else tokens
    picks = list(generator.choice(len(family.BLOCKS), generator.integers(2, 6)))
    blocks = [family.BLOCKS[i] for i in picks]
    if number % 7 == 6:
        mixing = family.MIXING[number // 7 % len(family.MIXING)]
        blocks.insert(int(generator.integers(0, len(blocks) + 1)), mixing)
    heads = IMAGE_HEADS if kind == "image" else TOKEN_HEADS
    head = sorted(heads)[generator.integers(len(heads))]
    make = image_network if kind == "image" else token_network
    return make(tuple(blocks), head)


def list_networks() -> dict[str, Build]:
    """Every network by name: each block alone, each head, and random ones."""
    networks: dict[str, Build] = {}
    for block in (*images.BLOCKS, *images.MIXING):
        networks[f"image/{block.__name__}"] = image_network((block,), "keep")
    for block in (*tokens.BLOCKS, *tokens.MIXING, *tokens.ALONE):
        networks[f"tokens/{block.__name__}"] = token_network((block,), "keep")
    for head in IMAGE_HEADS:
        networks[f"image/head {head}"] = image_network((images.conv,), head)
    for head in TOKEN_HEADS:
        networks[f"tokens/head {head}"] = token_network((tokens.feed_forward,), head)
    for kind in ("image", "tokens"):
        for number in range(RANDOM):
            networks[f"{kind}/{number}"] = random_network(kind, number)
    return networks
