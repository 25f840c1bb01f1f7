"""Reductions in ncnn, which keeps samples apart where a layer of samples does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.consumers.checks import check_form, refusals

LAYER = "h = Conv<pads = [{pads}]>(x, w) "  # which keeps samples apart
MEANS = [  # the sizes, and the axes
    ((2, 3, 4, 5), (1, 2, 3)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 3, 4), (1, 2)),
    ((1, 3, 4, 5), (0, 1, 2)),
    ((1, 3, 4, 5), (0, 3)),
    ((1, 3, 4, 5), (0,)),
    ((1, 3, 4), (0, 2)),
    ((1, 3, 4, 3, 4), (0, 1, 3)),
    ((2, 3, 4, 3, 4), (2, 4)),
    ((2, 3, 4, 3, 4), (1, 2, 3, 4)),
]
OPERATORS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


def convolve(shape: tuple[int, ...]) -> tuple[str, str, np.ndarray]:
    """The input, a layer of it whose results are positive, and the weights."""
    spatial = len(shape) - 2
    weights = np.full((2, shape[1], *[3] * spatial), 0.02, np.float32)
    layer = LAYER.replace("{pads}", ", ".join("1" * 2 * spatial)) + "p = Sigmoid(h) "
    return f"float[{', '.join(map(str, shape))}] x", layer, weights


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("shape, axes", MEANS)
def test_means_of_samples(shape, axes, keepdims, tmp_path):
    x, layer, w = convolve(shape)
    body = f"{layer} y = ReduceMean<axes = {list(axes)}, keepdims = {keepdims}>(p)"
    check_form(f"({x}) => (y)", body, {"w": w}, "ncnn", tmp_path)


@pytest.mark.parametrize("axes", [(1, 2, 3), (2, 4)])
@pytest.mark.parametrize("op", OPERATORS)
def test_operators_of_samples(op, axes, tmp_path):
    x, layer, w = convolve((2, 3, 4, 5) if axes[-1] == 3 else (2, 3, 2, 3, 2))
    body = f"{layer} y = Reduce{op}<keepdims = 0, axes = {list(axes)}>(p)"
    held = {"w": w}
    if op == "Sum":
        body = f"{layer} y = ReduceSum<keepdims = 0>(p, a)"
        held["a"] = np.array(axes)
    check_form(f"({x}) => (y)", body, held, "ncnn", tmp_path)


def test_what_follows_a_number_for_each_sample(tmp_path):
    x, layer, w = convolve((2, 3, 4, 5))
    body = layer + "m = ReduceMax<axes = [1, 2, 3], keepdims = 0>(p) t = Tanh(m) y = Add(t, m)"
    check_form(f"({x}) => (y)", body, {"w": w}, "ncnn", tmp_path)


def test_a_squeeze_to_a_number_for_each_sample(tmp_path):
    x, layer, w = convolve((2, 3, 4, 5))
    body = layer + "m = ReduceMax<axes = [1, 2, 3]>(p) y = Squeeze(m, a)"
    check_form(f"({x}) => (y)", body, {"w": w, "a": np.array([1, 2, 3])}, "ncnn", tmp_path)


def test_sums_over_several_samples_are_refused(tmp_path):
    x = convolve((2, 3, 4, 5))[0]
    body = "w = Constant<value = float[2,3,1,1] {1,2,3,4,5,6}>() h = Conv(x, w) "
    body += "y = ReduceMean<axes = [0, 2]>(h)"
    (reason,) = refusals(f"({x}) => (y)", body, "ncnn", tmp_path)
    assert reason == "ncnn keeps samples, along the first axis, apart"
