"""Blocks of networks of tokens; ``x`` has the shape (batch, length, units)."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .images import Block
from .network import Network, Shape

HEADS = 2


def layer_norm(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("LayerNormalization", x, net.weight(shape[1]), net.weight(shape[1])), shape


def feed_forward(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    units = shape[1]
    h = net.linear(x, units, 12)
    h = net.op("Mul", h, net.op("Sigmoid", h))
    return net.op("Add", x, net.linear(h, 12, units)), shape


def gelu(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    erf = net.op("Erf", net.op("Div", x, net.const(2**0.5)))
    y = net.op("Mul", net.op("Mul", x, net.op("Add", erf, net.const(1))), net.const(0.5))
    return y, shape


def flat_linear(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    flat = net.reshape(x, net.batch * length, units)
    y = net.op("Gemm", flat, net.weight(units, units), net.weight(units), transB=1)
    return net.reshape(y, net.batch, length, units), shape


def open_flat_linear(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    units = shape[1]
    y = net.op("Gemm", net.reshape(x, -1, units), net.weight(units, units), net.weight(units))
    return net.reshape(y, net.batch, -1, units), shape


def attention(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """Batch first, as in BERT and ViT."""
    length, units = shape
    size = units // HEADS

    def split(y: str) -> str:
        return net.transpose(net.reshape(y, net.batch, length, HEADS, size), 0, 2, 1, 3)

    q, k, v = (split(net.linear(x, units, units)) for _ in range(3))
    scores = net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2))
    weights = net.op("Softmax", net.op("Div", scores, net.const(size**0.5)), axis=-1)
    mixed = net.transpose(net.op("MatMul", weights, v), 0, 2, 1, 3)
    return net.op("Add", x, net.reshape(mixed, net.batch, length, units)), shape


def fused_attention(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """With one product for queries, keys and values, as in timm."""
    length, units = shape
    size = units // HEADS
    joint = net.reshape(net.linear(x, units, 3 * units), net.batch, length, 3, HEADS, size)
    parts = net.ops("Split", 3, net.transpose(joint, 2, 0, 3, 1, 4), net.ints(1, 1, 1), axis=0)
    q, k, v = (net.op("Squeeze", p, net.ints(0)) for p in parts)
    weights = net.op("Softmax", net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), axis=-1)
    mixed = net.transpose(net.op("MatMul", weights, v), 0, 2, 1, 3)
    return net.op("Add", x, net.reshape(mixed, net.batch, length, units)), shape


def attention_length_first(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """Length first, heads beside the batch, as in PyTorch's MultiheadAttention."""
    length, units = shape
    size, places = units // HEADS, net.batch * HEADS
    turned = net.transpose(x, 1, 0, 2)

    def split(y: str) -> str:
        return net.transpose(net.reshape(y, length, places, size), 1, 0, 2)

    q, k, v = (split(net.linear(turned, units, units)) for _ in range(3))
    weights = net.op("Softmax", net.op("MatMul", q, net.transpose(k, 0, 2, 1)), axis=-1)
    mixed = net.transpose(net.op("MatMul", weights, v), 1, 0, 2)
    flat = net.reshape(mixed, length * net.batch, units)
    y = net.op("Gemm", flat, net.weight(units, units), net.weight(units), transB=1)
    y = net.transpose(net.reshape(y, length, net.batch, units), 1, 0, 2)
    return net.op("Add", x, y), shape


def class_token(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    return net.op("Concat", net.samples(1, units), x, axis=1), (length + 1, units)


def expanded_token(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    token = net.op("Expand", net.weight(1, 1, units), net.ints(net.batch, 1, units))
    return net.op("Concat", token, x, axis=1), (length + 1, units)


def zeros_before(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    zeros = net.op("ConstantOfShape", net.ints(net.batch, 2, units))
    return net.op("Concat", zeros, x, axis=1), (length + 2, units)


def position(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Add", x, net.weight(1, *shape)), shape


def lstm(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """As PyTorch exports it: length first, with states of zeros for the batch."""
    length, units = shape
    size = units // 2
    weights = net.weight(2, 4 * size, units), net.weight(2, 4 * size, size), net.weight(2, 8 * size)
    zeros = [net.const(np.zeros((2, net.batch, size))) for _ in range(2)]
    turned = net.transpose(x, 1, 0, 2)
    y, _, _ = net.ops("LSTM", 3, turned, *weights, "", *zeros, hidden_size=size,
                      direction="bidirectional")  # fmt: skip
    y = net.transpose(y, 2, 0, 1, 3)
    return net.reshape(y, net.batch, length, 2 * size), (length, 2 * size)


def gru(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    units = shape[1]
    weights = net.weight(1, 3 * units, units), net.weight(1, 3 * units, units)
    state = net.op("ConstantOfShape", net.ints(1, net.batch, units))
    turned = net.transpose(x, 1, 0, 2)
    y, _ = net.ops("GRU", 2, turned, *weights, "", "", state, hidden_size=units)
    return net.transpose(net.op("Squeeze", y, net.ints(1)), 1, 0, 2), shape


def convolve_length(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    units = shape[1]
    y = net.op("Conv", net.transpose(x, 0, 2, 1), net.weight(units, units, 3), pads=[1, 1])
    return net.transpose(net.op("LeakyRelu", y), 0, 2, 1), shape


def shift(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    parts = net.slice(x, 1, 1, 1000), net.slice(x, 1, 0, 1)
    return net.op("Concat", *parts, axis=1), shape


def running_sum(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    y = net.op("CumSum", x, net.const(1, "int64"))
    return net.op("Div", y, net.const(shape[0])), shape


def equation(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    mixed = net.op("Einsum", x, net.weight(shape[0], shape[0]), equation="bsu,ts->btu")
    return mixed, shape


def best(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    values, _ = net.ops("TopK", 2, x, net.ints(3), axis=1)
    return values, (3, shape[1])


def mask(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    allowed = np.arange(shape[0]) < shape[0] - 1
    keep = net.op("Expand", net.const(allowed[None, :, None], "bool"),
                  net.ints(net.batch, *shape))  # fmt: skip
    return net.op("Where", keep, x, net.const(0)), shape


def computed_mask(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    zeros = net.op("ConstantOfShape", net.op("Shape", x))
    return net.op("Where", net.op("Less", x, zeros), zeros, x), shape


def rotate(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    half = shape[1] // 2
    first, second = net.slice(x, 2, 0, half), net.slice(x, 2, half, shape[1])
    turned = net.op("Concat", net.op("Neg", second), first, axis=2)
    angles = np.outer(np.arange(shape[0]), np.ones(shape[1]))
    cos, sin = net.const(np.cos(angles)[None]), net.const(np.sin(angles)[None])
    return net.op("Add", net.op("Mul", x, cos), net.op("Mul", turned, sin)), shape


def chosen_by_scan(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """A Scan over the length, whose state has the batch."""
    from onnx import TensorProto, helper

    def info(name: str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, (net.batch, shape[1]))

    nodes = [
        helper.make_node("Add", ["state", "step"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
        helper.make_node("Identity", ["next"], ["shown"]),
    ]
    body = helper.make_graph(nodes, "body", [info("state"), info("step")],
                             [info("next"), info("shown")])  # fmt: skip
    state = net.const(np.zeros((net.batch, shape[1])))
    turned = net.transpose(x, 1, 0, 2)
    _, y = net.ops("Scan", 2, state, turned, body=body, num_scan_inputs=1)
    return net.transpose(y, 1, 0, 2), shape


# Blocks whose result depends on other samples of the batch.


def gram(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    flat = net.reshape(x, net.batch * shape[0], shape[1])
    mixed = net.op("MatMul", net.op("MatMul", flat, net.transpose(flat, 1, 0)), flat)
    return net.reshape(mixed, net.batch, *shape), shape


def reverse_all(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    flat = net.reshape(x, net.batch * shape[0], shape[1])
    return net.reshape(net.slice(flat, 0, -1, -1000, -1), net.batch, *shape), shape


def attention_over_all(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    parts = net.reshape(x, net.batch * length, HEADS, units // HEADS)
    turned = net.transpose(parts, 1, 0, 2)
    weights = net.op("Relu", net.op("MatMul", turned, net.transpose(turned, 0, 2, 1)))
    mixed = net.transpose(net.op("MatMul", weights, turned), 1, 0, 2)
    return net.reshape(mixed, net.batch, length, units), shape


def lstm_over_all(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    length, units = shape
    flat = net.reshape(x, net.batch * length, 1, units)
    weights = net.weight(1, 4 * units, units), net.weight(1, 4 * units, units)
    y, _, _ = net.ops("LSTM", 3, flat, *weights, hidden_size=units)
    return net.reshape(y, net.batch, length, units), shape


def roll_all(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    flat = net.reshape(x, -1, shape[1])
    y = net.op("Concat", net.slice(flat, 0, 1, 1000), net.slice(flat, 0, 0, 1), axis=0)
    return net.reshape(y, net.batch, *shape), shape


def first_sample(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Add", x, net.op("Gather", x, net.const(0, "int64"), axis=0)), shape


def divide_by_count(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Div", x, net.op("Cast", net.op("Size", x), to=1)), shape


def softmax_of_samples(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    return net.op("Softmax", x, axis=0), shape


def called_twice(net: Network, x: str, shape: Shape) -> tuple[str, Shape]:
    """Two calls of a function that the file defines."""
    opset = helper.make_opsetid("", net.opset)
    body = [helper.make_node("MatMul", ["a", "w"], ["product"]),
            helper.make_node("Sigmoid", ["a"], ["gate"]),
            helper.make_node("Mul", ["product", "gate"], ["y"])]  # fmt: skip
    net.functions.append(
        helper.make_function("local", "GatedLinear", ["a", "w"], ["y"], body, [opset])
    )
    for _ in range(2):
        x = net.op("GatedLinear", x, net.weight(shape[1], shape[1]), domain="local")
    return x, shape


BLOCKS: tuple[Block, ...] = (
    layer_norm, feed_forward, gelu, flat_linear, open_flat_linear, attention, fused_attention,
    attention_length_first, class_token, expanded_token, zeros_before, position, lstm, gru,
    convolve_length, shift, running_sum, equation, best, mask, computed_mask, rotate,
    chosen_by_scan,
)  # fmt: skip
MIXING: tuple[Block, ...] = (
    gram, reverse_all, attention_over_all, lstm_over_all, roll_all, first_sample, divide_by_count,
    softmax_of_samples,
)  # fmt: skip
ALONE: tuple[Block, ...] = (called_twice,)  # in no random network
