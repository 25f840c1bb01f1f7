"""Ranges of values, compared with what ONNX Runtime computes of large random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import serde
from serde.ir.graph import DType
from serde.passes.value_ranges import find_range
from serde.spec.onnx_builder import OnnxBuilder

F32 = DType.FLOAT32
MAKE = {  # of numbers x of shape (1, 4, 6), and the range that is found
    "nothing": (lambda g, x: g.Neg(x), (-math.inf, math.inf)),
    "a Relu": (lambda g, x: g.Relu(x), (0, math.inf)),
    "a Sigmoid": (lambda g, x: g.Sigmoid(x), (0, 1)),
    "a Tanh, moved": (lambda g, x: g.Transpose(g.Tanh(x), perm=[0, 2, 1]), (-1, 1)),
    "a Clip": (lambda g, x: g.Clip(x, np.float32(-2), np.float32(3)), (-2, 3)),
    "half a Clip": (lambda g, x: g.Clip(g.Tanh(x), np.float32(0.5)), (0.5, 1)),
    "a Clip beyond": (lambda g, x: g.Clip(g.Tanh(x), np.float32(2), np.float32(3)), (2, 2)),
    "a Clip of one number": (lambda g, x: g.Clip(x, np.float32(4), np.float32(-4)), (-4, -4)),
    "the greatest of a Clip": (
        lambda g, x: g.MaxPool(g.Clip(x, np.float32(2), np.float32(3)), kernel_shape=[3]), (2, 3),
    ),
    "means with zeros": (
        lambda g, x: g.AveragePool(g.Clip(x, np.float32(2), np.float32(3)), kernel_shape=[3],
                                   pads=[1, 1], count_include_pad=1), (0, 3),
    ),
    "enlarged": (
        lambda g, x: g.Resize(g.Tanh(x), None, None, np.array([1, 4, 9]), mode="linear"), (-1, 1),
    ),
    "enlarged by cubes": (
        lambda g, x: g.Resize(g.Tanh(g.Unsqueeze(x, [0])), None, None, np.array([1, 1, 8, 9]),
                              mode="cubic"),
        (-math.inf, math.inf),
    ),
    "joined": (lambda g, x: g.Concat(g.Relu(x), g.Tanh(x), axis=1), (-1, math.inf)),
    "joined with others": (lambda g, x: g.Concat(x, g.Tanh(x), axis=1), (-math.inf, math.inf)),
    "chosen": (lambda g, x: g.Where(g.Greater(x, np.float32(0)), g.Relu(x), g.Tanh(x)),
               (-1, math.inf)),
    "the larger": (lambda g, x: g.Max(g.Sigmoid(x), g.Tanh(x)), (-1, 1)),
    "a mean of two": (lambda g, x: g.Mean(g.Sigmoid(x), g.Tanh(x)), (-1, 1)),
    "an angle": (lambda g, x: g.Atan(x), (-3.2, 3.2)),
    "a sum": (lambda g, x: g.Add(g.Tanh(x), g.Tanh(x)), (-math.inf, math.inf)),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKE)
def test_ranges_hold_what_is_computed(name):
    make, expected = MAKE[name]
    g = OnnxBuilder("g")
    y = make(g, g.input("x", F32, (1, 4, 6)))
    assert find_range(g, y) == expected
    x = np.random.default_rng(0).uniform(-50, 50, (1, 4, 6)).astype(np.float32)
    (numbers,) = serde.run(g.build([y]), {"x": x}).values()
    assert expected[0] <= numbers.min() and numbers.max() <= expected[1]


def test_places_of_the_largest_are_no_elements():
    g = OnnxBuilder("g")
    _, places = g.MaxPool(g.Tanh(g.input("x", F32, (1, 4, 6))), kernel_shape=[3], outputs=2)
    assert find_range(g, places) == (-math.inf, math.inf)


def test_long_chains_are_followed_a_few_steps():
    g = OnnxBuilder("g")
    y = g.Tanh(g.input("x", F32, (1, 1, 1)))
    for _ in range(24):
        y = g.Slice(g.Concat(y, y, axis=2), [0], [1], [2])
    assert find_range(g, y) == (-math.inf, math.inf)
