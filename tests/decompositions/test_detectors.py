"""Boxes and likeness of images, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from serde.decompositions.detectors import correlate, decode_boxes, make_anchors, move_boxes
from serde.errors import ConversionError
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.formats.relay.ops.sampling import read_correlation
from serde.ir.graph import DType, Graph
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import LEVELS, run_at

Array = np.ndarray[Any, Any]
CENTERS = np.float32([[[2, 3, 4, 2], [8, 8, 1, 6]]])
CORNERS = np.float32([[[0, 2, 4, 4], [7, 5, 9, 11]]])
DELTAS = np.float32([[[0.5, -0.5, 0.1, -0.2], [-1, 0, 0.3, 0]]])


def compute(level: str, emit: Callable[..., Any], **arrays: Array) -> list[Array]:
    g = OnnxBuilder("g")
    inputs = [g.input(name, DType.of(x.dtype), x.shape) for name, x in arrays.items()]
    outputs = emit(g, *inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    graph = Graph("g", tuple(inputs), outputs, tuple(g.nodes))
    return list(run_at(level, to_proto(from_ir(graph, 17)), arrays))


@pytest.mark.parametrize("level", LEVELS)
def test_boxes_in_terms_of_anchors(level: str) -> None:
    spreads = (0.1, 0.1, 0.2, 0.2)
    (got,) = compute(
        level, lambda g, x, anchors: decode_boxes(g, x, anchors, spreads), x=DELTAS, anchors=CENTERS
    )
    deltas = DELTAS * np.float32(spreads)
    middle = deltas[..., :2] * CENTERS[..., 2:] + CENTERS[..., :2]
    reach = np.exp(deltas[..., 2:]) * CENTERS[..., 2:] / 2
    np.testing.assert_allclose(got, np.concatenate([middle - reach, middle + reach], -1), 1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_boxes_of_pixels(level: str) -> None:
    """The last pixel belongs to a box: without moves it stays, but for half a pixel."""
    still = compute(level, move_boxes, boxes=CORNERS, deltas=np.zeros_like(DELTAS))
    np.testing.assert_array_equal(np.concatenate(still, -1), CORNERS)
    low, high = compute(level, move_boxes, boxes=CORNERS, deltas=DELTAS)
    size = CORNERS[..., 2:] - CORNERS[..., :2] + 1
    np.testing.assert_allclose(high - low + 1, size * np.exp(DELTAS[..., 2:]), 1e-6)
    moved = (high + low) / 2 - (CORNERS[..., 2:] + CORNERS[..., :2]) / 2
    np.testing.assert_allclose(moved, DELTAS[..., :2] * size, 1e-5)


def test_anchors_of_the_first_place() -> None:
    """Those of Faster R-CNN, as its authors list them (generate_anchors.py)."""
    expected = [
        [-84, -40, 99, 55], [-176, -88, 191, 103], [-56, -56, 71, 71], [-120, -120, 135, 135],
        [-36, -80, 51, 95], [-80, -168, 95, 183],
    ]  # fmt: skip
    np.testing.assert_array_equal(make_anchors(16, (8, 16), (0.5, 1, 2)), expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("kernel", "most", "stride", "step"), [(1, 2, 1, 1), (3, 2, 2, 2)])
@pytest.mark.parametrize("is_multiply", [True, False])
def test_likeness(level: str, kernel: int, most: int, stride: int, step: int, is_multiply) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((1, 3, 10, 9)).astype(np.float32) for _ in range(2))
    form = kernel, most, stride, step, is_multiply
    (got,) = compute(level, lambda g, a, b: correlate(g, a, b, *form), a=a, b=b)
    moves = range(-(most // step) * step, most + 1, step)
    rows, columns = (range(most, n - most - kernel + 1, stride) for n in a.shape[2:])
    expected = np.zeros((1, len(moves) ** 2, len(rows), len(columns)), np.float32)
    for plane, (down, right) in enumerate((i, j) for i in moves for j in moves):
        for at in np.ndindex(len(rows), len(columns)):
            y, x = rows[at[0]], columns[at[1]]
            one = a[0, :, y : y + kernel, x : x + kernel]
            other = b[0, :, y + down : y + down + kernel, x + right : x + right + kernel]
            alike = one * other if is_multiply else abs(one - other)
            expected[0, plane, at[0], at[1]] = alike.mean()
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


def test_an_even_kernel_has_no_middle() -> None:
    g = OnnxBuilder("g")
    a, b = (g.input(name, DType.FLOAT32, (1, 1, 8, 8)) for name in "ab")
    with pytest.raises(ConversionError, match="kernel_size=2 is even"):
        read_correlation(g, a, b, kernel_size=2)
