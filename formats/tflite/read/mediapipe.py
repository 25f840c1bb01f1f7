"""Custom operators of MediaPipe's networks: segmentation, and landmarks with attention.

Its runtime has them, LiteRT has not. Options of the layers are a struct of integers, those of the
others a map.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.budget import active_budget
from serde.ir.graph import DType, Value

from ..io.read_flexbuffer import read_map
from ..rules import reads
from .audio import read_options
from .shapes import swap_blocks
from .windows import SAME, VALID, arrange, convolve_backwards

PADDINGS = {1: SAME, 2: VALID}  # of the structs; those of tables count from 0
MIDDLE = 0.5  # of a pixel


def read_struct(data: bytes, count: int) -> tuple[int, ...]:
    """How a window is padded, and the integers behind that.

    Raises:
        ConversionError: where some are left out, or the padding is none.
    """
    try:
        padding, *numbers = struct.unpack_from(f"<{count}i", data)
        return (PADDINGS[padding], *numbers)
    except (KeyError, struct.error) as error:
        raise ConversionError(
            f"options that are not its own ({error}). Write the model anew"
        ) from None


@reads("Convolution2DTransposeBias")
def read_transpose_conv_bias(g, x, w, b, *, custom_options: bytes = b""):
    """A TRANSPOSE_CONV whose result is as large as its window and its padding make it."""
    padding, *strides = read_struct(custom_options, 3)
    strides = strides[::-1]  # those of columns are first
    kernel, areas = w.static_shape[1:3], x.ranked_shape[1:3]
    require(min(strides) > 0, f"strides {strides}. Give numbers above 0")
    require(all(isinstance(a, int) for a in areas), "an image of unknown size. Give it "
            "(--static, --input)")  # fmt: skip
    sizes = []
    for area, k, s in zip(areas, kernel, strides, strict=True):
        left = max(0, k - (area - 1) % s - 1) if padding == SAME else 0
        sizes.append(s * (area - 1) + k - left)
    w = arrange(g, w, (3, 0, 1, 2))
    return convolve_backwards(g, sizes, w, x, b, kernel, strides, padding)


def read_window(data: bytes) -> tuple[int, int]:
    """The rows and columns of windows that lie side by side."""
    _, column, row, columns, rows, activation = read_struct(data, 6)
    require((row, column) == (rows, columns) and min(rows, columns) > 0, f"windows of {rows} x "
            f"{columns} at strides {row} x {column}. Make the two the same")  # fmt: skip
    require(activation == 0, f"the activation {activation}. Leave it out")
    return rows, columns


def divide_windows(g, x: Value, rows: int, columns: int):
    """An image with the elements of each window on an axis in front of the channels."""
    batch, height, width, channels = g.sizes_of(x)
    require(isinstance(height, int) and isinstance(width, int), "an image of unknown size. "
            "Give it (--static, --input)")  # fmt: skip
    parts = (batch, height // rows, rows, width // columns, columns, channels)
    result = [*parts[:2], parts[3], rows * columns, channels]
    return swap_blocks(g, x, [*parts], (0, 1, 3, 2, 4, 5), result)


@reads("MaxPoolingWithArgmax2D")
def read_max_pool_argmax(g, x, *, custom_options: bytes = b""):
    """The largest element of each window, and where it is in the window, by rows."""
    rows, columns = read_window(custom_options)
    _, height, width, _ = x.ranked_shape
    require(not any(isinstance(n, int) and n % k for n, k in ((height, rows), (width, columns))),
            f"windows of {rows} x {columns} over {height} x {width}. Pad the image")  # fmt: skip
    parts = divide_windows(g, x, rows, columns)
    place = g.cast(g.ArgMax(parts, axis=3, keepdims=0), DType.FLOAT32)
    return g.ReduceMax(parts, [3], keepdims=0), g.Add(place, np.float32(0.1))


@reads("MaxUnpooling2D")
def read_max_unpool(g, x, places, *, custom_options: bytes = b""):
    """An element at its place of each window, zeros at the others."""
    rows, columns = read_window(custom_options)
    active_budget().charge(rows * columns * 4, "the places in a window")
    batch, height, width, channels = g.sizes_of(x)
    each = np.arange(rows * columns, dtype=np.int32).reshape(-1, 1)
    is_there = g.Equal(g.Unsqueeze(g.cast(places, DType.INT32), [3]), each)
    parts = g.Where(is_there, g.Unsqueeze(x, [3]), np.float32(0))
    result = [batch, *(g.multiply_sizes(p) for p in ([height, rows], [width, columns])), channels]
    sizes = [batch, height, width, rows, columns, channels]
    return swap_blocks(g, parts, sizes, (0, 1, 3, 2, 4, 5), result)


@reads("Landmarks2TransformMatrix")
def read_landmarks_to_matrix(g, landmarks, *, custom_options: bytes = b""):
    """The matrix from a small image to the turned box around some landmarks."""
    left, right, height, width = read_options(
        custom_options, "left_rotation_idx", "right_rotation_idx", "output_height", "output_width"
    )
    options = read_map(custom_options)
    places, angle = options.get("subset_idxs"), float(options.get("target_rotation_radians", 0))
    scales = np.float32([options.get("scale_x", 0), options.get("scale_y", 0)])
    require(isinstance(places, list) and bool(places) and min(height, width) > 0
            and min(scales) > 0, "options that are not its own. Write the model anew")  # fmt: skip
    points = g.Squeeze(g.slice_axis(landmarks, 2, 0, 2), [0])
    turn = find_turn(g, points, left, right, angle)
    turned = g.MatMul(g.Gather(points, np.int64(places), axis=0), g.Transpose(turn, perm=(1, 0)))
    low, high = g.ReduceMin(turned, [0]), g.ReduceMax(turned, [0])
    middle = g.MatMul(g.Mul(g.Add(low, high), np.float32(0.5)), turn)
    factors = g.Mul(g.Sub(high, low), scales / np.float32([width, height]))
    rows = g.Mul(g.Transpose(turn, perm=(1, 0)), factors)
    half = np.float32([[width / 2], [height / 2]])
    shift = g.Sub(g.Transpose(middle, perm=(1, 0)), g.MatMul(rows, half))
    upper = g.Concat(rows, np.zeros((2, 1), np.float32), shift, axis=1)
    return g.Unsqueeze(g.Concat(upper, np.eye(4, dtype=np.float32)[2:], axis=0), [0])


def find_turn(g, points: Value, left: int, right: int, angle: float):
    """The matrix that turns the line between two points to an angle."""
    ends = [g.Gather(points, np.int64([at]), axis=0) for at in (left, right)]
    line = g.Sub(ends[1], ends[0])
    length = g.ReduceL2(line, [1])
    is_point = g.Equal(length, np.float32(0))
    line = g.Where(
        is_point, np.float32([[1, 0]]), g.Div(line, g.Where(is_point, np.float32(1), length))
    )
    c, s = np.cos(angle), np.sin(angle)
    # cos and sin of the angle less that of the line, then the two rows of the matrix
    both = g.MatMul(line, np.float32([[c, s], [s, -c]]))
    weights = np.float32([[1, 0, 0, 1], [0, -1, 1, 0]])
    return g.reshape(g.MatMul(both, weights), [2, 2])


@reads("TransformLandmarks", ignore=("custom_options",))
def read_transform_landmarks(g, landmarks, matrix):
    """Landmarks with their first two coordinates moved by a matrix."""
    count = landmarks.ranked_shape[-1]
    require(count in (2, 3), f"landmarks of {count} coordinates. Write the model anew")
    moved = move_points(g, g.slice_axis(landmarks, 2, 0, 2), matrix)
    return moved if count == 2 else g.Concat(moved, g.slice_axis(landmarks, 2, 2, 3), axis=2)


def move_points(g, points: Value, matrix: Value):
    """Points (…, 2) by the first two rows of a matrix."""
    rows = g.slice_axis(g.reshape(matrix, [4, 4]), 0, 0, 2)
    turn, shift = g.slice_axis(rows, 1, 0, 2), g.slice_axis(rows, 1, 3, 4)
    turn, shift = (g.Transpose(v, perm=(1, 0)) for v in (turn, shift))
    return g.Add(g.MatMul(points, turn), shift)


@reads("TransformTensorBilinear")
def read_transform_tensor(g, x, matrix, *, custom_options: bytes = b""):
    """An image of the places that a matrix leads to, zeros outside of the one that is read."""
    sizes = read_options(custom_options, "output_height", "output_width")
    batch, height, width, _ = x.ranked_shape
    require(batch == 1 and min(sizes) > 0 and isinstance(height, int) and isinstance(width, int),
            "several images, or of unknown size. Give sizes (--static, --input)")  # fmt: skip
    active_budget().charge(2 * math.prod(sizes) * 4, "the places of an image")
    columns, rows = np.meshgrid(*(np.arange(n, dtype=np.float32) + MIDDLE for n in sizes[::-1]))
    grid = np.stack([columns, rows], axis=-1)[None]
    places = g.Sub(move_points(g, g.const(grid), matrix), np.float32(MIDDLE))
    last = np.float32([width - 1, height - 1])
    is_in = g.And(g.GreaterOrEqual(places, np.float32(0)), g.LessOrEqual(places, last))
    is_in = g.Greater(g.ReduceMin(g.cast(is_in, DType.FLOAT32), [3]), np.float32(0.5))
    scaled = g.Sub(g.Mul(places, 2 / np.maximum(last, 1)), np.float32(1))
    image = g.GridSample(g.Transpose(x, perm=(0, 3, 1, 2)), scaled, mode="linear",
                         padding_mode="zeros", align_corners=1)  # fmt: skip
    return g.Where(is_in, g.Transpose(image, perm=(0, 2, 3, 1)), np.float32(0))
