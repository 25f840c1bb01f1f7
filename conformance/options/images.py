"""Blocks of networks of images; ``x`` has the shape (batch, channels, height, width)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .network import Network, Shape

Block = Callable[[Network, str, Shape], tuple[str, Shape]]


def conv(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, *sides = shape
    y = net.op("Conv", x, net.weight(8, channels, 3, 3), net.weight(8), pads=[1, 1, 1, 1])
    return net.op("Relu", y), (8, *sides)


def depthwise(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    w = net.weight(shape[0], 1, 3, 3)
    y = net.op("Conv", x, w, pads=[1, 1, 1, 1], group=shape[0])
    return net.op("Clip", y, net.const(0), net.const(6)), shape


def upconv(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    w = net.weight(channels, 4, 2, 2)
    return net.op("ConvTranspose", x, w, strides=[2, 2]), (4, 2 * height, 2 * width)


def batch_norm(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    variance = net.const(net.draws.uniform(0.5, 2, shape[0]))
    parameters = [net.weight(shape[0]) for _ in range(3)]
    return net.op("BatchNormalization", x, *parameters, variance), shape


def pool(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    y = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return y, (channels, height // 2, width // 2)


def average(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), shape


def squeeze_excite(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    mean = net.op("GlobalAveragePool", x)
    scale = net.op("Conv", mean, net.weight(shape[0], shape[0], 1, 1))
    return net.op("Mul", x, net.op("HardSigmoid", scale)), shape


def gated_by_vector(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels = shape[0]
    mean = net.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    gate = net.op("Sigmoid", net.linear(mean, channels, channels))
    return net.op("Mul", x, net.reshape(gate, net.batch, channels, 1, 1)), shape


def shuffle(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    parts = net.reshape(x, net.batch, 2, channels // 2, height, width)
    return net.reshape(net.transpose(parts, 0, 2, 1, 3, 4), net.batch, -1, height, width), shape


def group_norm(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    parts = net.reshape(x, net.batch, 2, -1)
    ones = net.const(np.ones(2)), net.const(np.zeros(2))
    y = net.reshape(net.op("InstanceNormalization", parts, *ones), net.batch, *shape)
    return net.op("Mul", y, net.weight(shape[0], 1, 1)), shape


def layer_norm_by_moments(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    centered = net.op("Sub", x, net.op("ReduceMean", x, axes=[1], keepdims=1))
    variance = net.op("ReduceMean", net.op("Mul", centered, centered), axes=[1], keepdims=1)
    spread = net.op("Sqrt", net.op("Add", variance, net.const(1e-5)))
    return net.op("Div", centered, spread), shape


def resize(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    sizes = net.ints(net.batch, channels, 2 * height, 2 * width)
    return net.op("Resize", x, "", "", sizes, mode="nearest"), (channels, 2 * height, 2 * width)


def resize_by_scales(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    y = net.op("Resize", x, "", net.const([1, 1, 2, 2]), mode="linear")
    return y, (channels, 2 * height, 2 * width)


def pixel_shuffle(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    y = net.op("Conv", x, net.weight(8, channels, 1, 1))
    parts = net.reshape(y, net.batch, 2, 2, 2, height, width)
    y = net.reshape(net.transpose(parts, 0, 1, 4, 2, 5, 3), net.batch, 2, 2 * height, 2 * width)
    return y, (2, 2 * height, 2 * width)


def focus(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    rows = [net.slice(x, 2, start, 1000, 2) for start in (0, 1)]
    parts = [net.slice(row, 3, start, 1000, 2) for start in (0, 1) for row in rows]
    return net.op("Concat", *parts, axis=1), (4 * channels, height // 2, width // 2)


def branches(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels = shape[0]
    first, second = net.ops(
        "Split", 2, x, net.ints(channels // 2, channels - channels // 2), axis=1
    )
    return net.op("Concat", net.op("Abs", first), net.op("Tanh", second), axis=1), shape


def coordinates(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, *sides = shape
    return net.op("Concat", x, net.samples(2, *sides), axis=1), (channels + 2, *sides)


def position(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Add", x, net.samples(*shape)), shape


def warp(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    grid = np.clip(net.draws.standard_normal((1, *shape[1:], 2)) / 2, -0.9, 0.9)
    return net.op("GridSample", x, net.const(np.repeat(grid, net.batch, 0))), shape


def pad(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    y = net.op("Pad", x, net.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
    return y, (channels, height + 2, width + 2)


def response_norm(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("LRN", x, size=3), shape


def channels_by_index(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    order = net.const(net.draws.permutation(shape[0]), "int64")
    return net.op("Gather", x, order, axis=1), shape


def channels_last(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    y = net.transpose(x, 0, 2, 3, 1)
    y = net.op("Add", net.op("MatMul", y, net.weight(shape[0], shape[0])), net.weight(shape[0]))
    return net.transpose(net.op("Elu", y), 0, 3, 1, 2), shape


def attention_of_pixels(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    flat = net.reshape(x, net.batch, channels, -1)
    scores = net.op("Softmax", net.op("MatMul", net.transpose(flat, 0, 2, 1), flat), axis=-1)
    mixed = net.op("MatMul", flat, net.transpose(scores, 0, 2, 1))
    return net.op("Add", x, net.reshape(mixed, net.batch, channels, height, width)), shape


def soft_arg_max(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    flat = net.reshape(x, net.batch * channels, height * width)
    weights = net.reshape(net.op("Softmax", flat, axis=1), net.batch, channels, height, width)
    return net.op("Mul", weights, x), shape


def computed_view(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    count = net.op("Gather", net.op("Shape", x), net.const(0, "int64"), axis=0)
    first = net.op("Unsqueeze", count, net.ints(0))
    flat = net.op("Concat", first, net.ints(channels, -1), axis=0)
    full = net.op("Concat", first, net.ints(channels, height, width), axis=0)
    return net.op("Reshape", net.op("Relu", net.op("Reshape", x, flat)), full), shape


def unfold(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    parts = net.reshape(x, net.batch, channels, height // 2, 2, width // 2, 2)
    windows = net.reshape(net.transpose(parts, 0, 2, 4, 3, 5, 1), -1, 4, channels)
    windows = net.op("Add", windows, net.linear(windows, channels, channels))
    parts = net.reshape(windows, net.batch, height // 2, width // 2, 2, 2, channels)
    y = net.transpose(parts, 0, 5, 1, 3, 2, 4)
    return net.reshape(y, net.batch, channels, height, width), shape


def normalize(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length = net.op("ReduceL2", x, axes=[1], keepdims=1)
    return net.op("Div", x, net.op("Max", length, net.const(1e-12))), shape


def slopes(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("PRelu", x, net.weight(shape[0], 1, 1)), shape


def boxed(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    mask = net.op("Greater", x, net.const(0))
    return net.op("Where", mask, x, net.op("Mul", x, net.const(0.1))), shape


# Blocks whose result depends on other samples of the batch.


def center_over_batch(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Sub", x, net.op("ReduceMean", x, axes=[0], keepdims=1)), shape


def convolve_samples(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    channels, height, width = shape
    tall = net.reshape(net.transpose(x, 1, 0, 2, 3), 1, channels, net.batch * height, width)
    w = net.weight(channels, channels, 3, 1)
    y = net.op("Conv", tall, w, pads=[1, 0, 1, 0])
    y = net.reshape(y, channels, net.batch, height, width)
    return net.transpose(y, 1, 0, 2, 3), shape


def pool_samples(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    y = net.op("MaxPool", net.transpose(x, 1, 2, 3, 0), kernel_shape=[1, 3], pads=[0, 1, 0, 1])
    return net.transpose(y, 3, 0, 1, 2), shape


def normalize_all(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    largest = net.op("ReduceMax", x, keepdims=0)
    return net.op("Div", x, largest), shape


BLOCKS: tuple[Block, ...] = (
    conv, depthwise, upconv, batch_norm, pool, average, squeeze_excite, gated_by_vector, shuffle,
    group_norm, layer_norm_by_moments, resize, resize_by_scales, pixel_shuffle, focus, branches,
    coordinates, position, warp, pad, response_norm, channels_by_index, channels_last,
    attention_of_pixels, soft_arg_max, computed_view, unfold, normalize, slopes, boxed,
)  # fmt: skip
MIXING: tuple[Block, ...] = (center_over_batch, convolve_samples, pool_samples, normalize_all)
