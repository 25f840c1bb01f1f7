"""Decoders of language models: rotary positions, norms of squares, gated layers, masks."""

from __future__ import annotations

import numpy as np
import onnx

from tests.passes.float16_network import Array, Network

LENGTH, SIZE, HEADS, INNER, TOKENS = 6, 32, 4, 64, 50
LOWEST = -3.4028235e38


def make_decoder(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A decoder of two layers, and its inputs, at positions from 3000 on."""
    n = Network(np.random.default_rng([seed, 7]))
    x = n.apply("Gather", n.weights(TOKENS, SIZE), n.feed(n.rng.integers(0, TOKENS, (1, LENGTH))))
    angles = rotary_angles(n)
    cos, sin = (n.apply("Unsqueeze", n.apply(f, angles), np.array([1])) for f in ("Cos", "Sin"))
    mask, reciprocal = padding_mask(n), n.choose("Reciprocal", "Div", "")
    for _ in range(2):
        h = normalize(n, x, reciprocal)
        q, k, v = (split_heads(n, n.apply("MatMul", h, n.weights(SIZE, SIZE))) for _ in range(3))
        q, k = rotate(n, q, cos, sin), rotate(n, k, cos, sin)
        scores = n.apply("MatMul", q, n.apply("Transpose", k, perm=[0, 1, 3, 2]))
        scores = n.apply("Add", n.apply("Div", scores, np.sqrt(SIZE / HEADS)), mask)
        y = n.apply("MatMul", n.apply("Softmax", scores, axis=-1), v)
        y = n.apply("Transpose", y, perm=[0, 2, 1, 3])
        y = n.apply("Reshape", y, np.array([1, LENGTH, SIZE]))
        x = n.apply("Add", x, n.apply("MatMul", y, n.weights(SIZE, SIZE)))
        h = normalize(n, x, reciprocal)
        gate, up = (n.apply("MatMul", h, n.weights(SIZE, INNER)) for _ in range(2))
        gate = n.apply("Mul", n.apply("Mul", gate, n.apply("Sigmoid", gate)), up)
        x = n.apply("Add", x, n.apply("MatMul", gate, n.weights(INNER, SIZE)))
    y = n.apply("MatMul", normalize(n, x, reciprocal), n.weights(SIZE, TOKENS))
    return n.model(y), n.feeds


def rotary_angles(n: Network) -> str:
    count = SIZE // HEADS // 2
    frequencies = (10000.0 ** -(np.arange(count) / count)).reshape(1, count, 1)
    places = n.feed(np.arange(3000, 3000 + LENGTH).reshape(1, 1, LENGTH))
    angles = n.apply("MatMul", frequencies, n.apply("Cast", places, to=1))
    angles = n.apply("Transpose", angles, perm=[0, 2, 1])
    return n.apply("Concat", angles, angles, axis=-1)


def padding_mask(n: Network) -> str:
    present = n.feed(np.ones((1, 1, 1, LENGTH), np.int64))
    if n.choose(True, False):
        absent = n.apply("Sub", 1.0, n.apply("Cast", present, to=1))
        return n.apply("Mul", absent, LOWEST)
    mask = n.apply("Where", n.apply("Cast", present, to=9), 0.0, LOWEST)
    causal = np.triu(np.full((1, 1, LENGTH, LENGTH), LOWEST, np.float32), 1)
    return n.apply("Add", mask, causal)


def normalize(n: Network, x: str, reciprocal: str) -> str:
    squares = n.apply("ReduceMean", n.apply("Pow", x, 2.0), np.array([-1]))
    root = n.apply("Sqrt", n.apply("Add", squares, 1e-6))
    if reciprocal == "Reciprocal":
        y = n.apply("Mul", x, n.apply("Reciprocal", root))
    elif reciprocal == "Div":
        y = n.apply("Mul", x, n.apply("Div", 1.0, root))
    else:
        y = n.apply("Div", x, root)
    return n.apply("Mul", n.weights(1, SIZE)[0] + 1, y)


def split_heads(n: Network, x: str) -> str:
    x = n.apply("Reshape", x, np.array([1, LENGTH, HEADS, SIZE // HEADS]))
    return n.apply("Transpose", x, perm=[0, 2, 1, 3])


def rotate(n: Network, x: str, cos: str, sin: str) -> str:
    a, b = n.apply("Split", x, count=2, axis=-1, num_outputs=2)
    turned = n.apply("Concat", n.apply("Neg", b), a, axis=-1)
    return n.apply("Add", n.apply("Mul", x, cos), n.apply("Mul", turned, sin))
