"""Custom operators of MediaPipe compute as its kernels do, which are restated here element by
element; its transposed convolution is LiteRT's with a bias and a shape."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from testing.pt2.run import run_onnx
from testing.tflite.flexbuffers import pack_map
from testing.tflite.models import Case, Operand, Result, build, write
from testing.tflite.whole_models import make_custom
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
SAME, VALID = 1, 2
MATRICES = [  # rows of a matrix from a small image to a larger one
    [[0.7, 0.2, 0, 1.1], [-0.3, 0.9, 0, 2.2]],
    [[1.3, 0, 0, -1.5], [0, 1.7, 0, 0]],  # partly outside
    [[0, 1, 0, 0], [1, 0, 0, 0]],  # on whole pixels
]


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def load_custom(folder: Path, name: str, options: bytes, operands, results: int = 1):
    """The graph of a file of one custom operator."""
    case = Case("ADD", operands, [Result()] * results)
    (folder / "m.tflite").write_bytes(write(make_custom(name, options, case)))
    return serde.load(folder / "m.tflite")


def run_everywhere(graph, feeds, worker, folder: Path):
    """What ONNX Runtime computes, and LiteRT of the file that is written without the operator."""
    serde.save(graph, folder / "m.onnx")
    serde.save(graph, folder / "again.tflite")
    return [run_onnx(folder / "m.onnx", feeds), *run_both(worker, folder / "again.tflite", feeds)]


@needs_litert
@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("strides", [(2, 2), (1, 3)])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 2), (1, 4)])
def test_transposed_convolutions_with_a_bias(kernel, strides, padding, worker, tmp_path) -> None:
    x, w, b = draw(2, 4, 5, 3), draw(6, *kernel, 3), draw(6)
    options = struct.pack("<3i", padding, *strides[::-1])
    constants = [Operand(w, True), Operand(b, True)]
    graph = load_custom(tmp_path, "Convolution2DTransposeBias", options, [Operand(x), *constants])
    sizes = [
        s * (n - 1) + k - (max(0, k - (n - 1) % s - 1) if padding == SAME else 0)
        for n, k, s in zip(x.shape[1:3], kernel, strides, strict=True)
    ]
    shape = Operand(np.array([2, *sizes, 6], np.int32), True)
    case = Case(
        "TRANSPOSE_CONV", [shape, constants[0], Operand(x), constants[1]],
        options={"padding": padding - 1, "stride_h": strides[0], "stride_w": strides[1]}, version=3,
    )  # fmt: skip
    (tmp_path / "plain.tflite").write_bytes(write(build(case)))
    (expected,) = worker.run(str(tmp_path / "plain.tflite"), [x], delegates=False)
    for (got,) in run_everywhere(graph, [x], worker, tmp_path):
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


@needs_litert
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 1)])
def test_pools_tell_places_and_are_undone(rows, columns, worker, tmp_path: Path) -> None:
    options = struct.pack("<8i", SAME, columns, rows, columns, rows, 0, -1, -1)
    x = draw(2, 6, 4, 3)
    x[0, :2, :2] = 1  # the first of equal ones
    values, places = np.zeros((2, 2, 6 // rows, 4 // columns, 3), np.float32)
    whole = np.zeros_like(x)
    for n, r, c, k in np.ndindex(values.shape):
        window = x[n, r * rows : (r + 1) * rows, c * columns : (c + 1) * columns, k]
        place = int(window.argmax())
        values[n, r, c, k], places[n, r, c, k] = window.max(), place + 0.1
        whole[n, r * rows + place // columns, c * columns + place % columns, k] = window.max()
    graph = load_custom(tmp_path, "MaxPoolingWithArgmax2D", options, [Operand(x)], 2)
    for got in run_everywhere(graph, [x], worker, tmp_path):
        np.testing.assert_array_equal(got, [values, places])
    operands = [Operand(values), Operand(places)]
    graph = load_custom(tmp_path, "MaxUnpooling2D", options, operands)
    for (got,) in run_everywhere(graph, [values, places], worker, tmp_path):
        np.testing.assert_array_equal(got, whole)


def turn_box(points, chosen, ends, angle, size, scales):
    """The matrix of MediaPipe's kernel, by its steps."""
    dx, dy = points[ends[1]] - points[ends[0]]
    r = angle - np.arctan2(dy, dx)
    turn = np.array([[np.cos(r), -np.sin(r)], [np.sin(r), np.cos(r)]])
    turned = points[chosen] @ turn.T
    low, high = turned.min(0), turned.max(0)
    matrix = np.eye(4)
    for rotation, shift in (
        (np.eye(2), (low + high) / 2 @ turn), (turn.T, np.zeros(2)),
        (np.diag((high - low) * scales / size), np.zeros(2)), (np.eye(2), -np.array(size) / 2),
    ):  # fmt: skip
        step = np.eye(4)
        step[:2, :2], step[:2, 3] = rotation, shift
        matrix = matrix @ step
    return matrix[None]


@needs_litert
@pytest.mark.parametrize(("ends", "angle"), [((0, 3), 0.0), ((2, 1), 0.7), ((1, 1), 0.3)])
def test_boxes_around_landmarks(ends, angle, worker, tmp_path: Path) -> None:
    points, chosen = 20 * draw(1, 7, 3), [0, 3, 2, 5, 6]
    options = pack_map({
        "subset_idxs": chosen, "left_rotation_idx": ends[0], "right_rotation_idx": ends[1],
        "target_rotation_radians": angle, "output_height": 6, "output_width": 8, "scale_x": 1.5,
        "scale_y": 1.25,
    })  # fmt: skip
    graph = load_custom(tmp_path, "Landmarks2TransformMatrix", options, [Operand(points)])
    expected = turn_box(points[0, :, :2].astype(np.float64), chosen, ends, angle, (8, 6),
                        (1.5, 1.25))  # fmt: skip
    for (got,) in run_everywhere(graph, [points], worker, tmp_path):
        np.testing.assert_allclose(got, expected, 1e-4, 1e-4)


def look_up(image, x: float, y: float):
    """A pixel between others, zeros outside."""
    height, width, _ = image.shape
    if not (0 <= x <= width - 1 and 0 <= y <= height - 1):
        return np.zeros(image.shape[2])
    row, column = int(y), int(x)
    below, behind = min(row + 1, height - 1), min(column + 1, width - 1)
    upper, lower = (
        image[r, column] * (1 - x + column) + image[r, behind] * (x - column) for r in (row, below)
    )
    return upper * (1 - y + row) + lower * (y - row)


@needs_litert
@pytest.mark.parametrize("rows", MATRICES)
def test_images_and_landmarks_are_moved(rows, worker, tmp_path: Path) -> None:
    matrix = np.array([[*rows, [0, 0, 1, 0], [0, 0, 0, 1]]], np.float32)
    image = draw(1, 7, 9, 2)
    options = pack_map({"output_height": 4, "output_width": 5})
    expected = np.zeros((1, 4, 5, 2), np.float32)
    for r, c in np.ndindex(4, 5):
        x, y = matrix[0, :2].astype(np.float64) @ [c + 0.5, r + 0.5, 0, 1] - 0.5
        expected[0, r, c] = look_up(image[0], x, y)
    feeds = [image, matrix]
    graph = load_custom(tmp_path, "TransformTensorBilinear", options, [*map(Operand, feeds)])
    for (got,) in run_everywhere(graph, feeds, worker, tmp_path):
        np.testing.assert_allclose(got, expected, 1e-4, 1e-4)
    for count in (2, 3):
        points = draw(1, 5, count)
        moved = points.copy()
        moved[..., :2] = points[..., :2] @ matrix[0, :2, :2].T + matrix[0, :2, 3]
        feeds = [points, matrix]
        graph = load_custom(tmp_path, "TransformLandmarks", b"", [*map(Operand, feeds)])
        for (got,) in run_everywhere(graph, feeds, worker, tmp_path):
            np.testing.assert_allclose(got, moved, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("MaxUnpooling2D", struct.pack("<6i", SAME, 1, 1, 2, 2, 0), "Make the two the same"),
        ("MaxPoolingWithArgmax2D", struct.pack("<6i", SAME, 4, 4, 4, 4, 0), "Pad the image"),
        ("MaxPoolingWithArgmax2D", struct.pack("<6i", SAME, 2, 2, 2, 2, 1), "the activation 1"),
        ("MaxPoolingWithArgmax2D", struct.pack("<6i", 0, 2, 2, 2, 2, 0), "not its own"),
        ("MaxPoolingWithArgmax2D", b"\1\0\0", "not its own"),
        ("Convolution2DTransposeBias", struct.pack("<3i", SAME, 0, 1), "strides"),
    ],
)
def test_options_that_cannot_be_are_refused(name, options, message, tmp_path: Path) -> None:
    image, weights = Operand(draw(1, 6, 6, 2)), Operand(draw(2, 2, 2, 2), True)
    operands = {
        "MaxUnpooling2D": [image, image], "MaxPoolingWithArgmax2D": [image],
        "Convolution2DTransposeBias": [image, weights, Operand(draw(2), True)],
    }  # fmt: skip
    with pytest.raises(Unconvertible, match=message):
        load_custom(tmp_path, name, options, operands[name], 1 + ("Argmax" in name))
