"""Reading images at places the model computes."""

from __future__ import annotations

from itertools import product

import numpy as np

from serde.decompositions.detectors import correlate
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.vision import decompose_grid_sample

from ..rules import reads
from ..target import legalizations, writes
from .convolution import TUNING, convolve, normalize_pads, repeat_per_axis
from .layouts import pack_layout, require_static_sizes, unpack_layout
from .unary import round_half_away

METHODS = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def clamp_index(g, index: Value, size: int):
    """An index moved into ``0 … size - 1``."""
    return g.Min(g.Max(index, g.scalar(0, index)), g.scalar(size - 1, index))


def sample_bilinear(g, x: Value, y: Value, across: Value, fading: bool = False):
    """``x`` (N, C, H, W) at places ``(N, P)``: (N, C, P).

    Neighbours outside are those at the edge, or with ``fading``, behind the far one, 0.
    """
    height, width = require_static_sizes(x)
    corners, shares = [], []
    for at, size in ((y, height), (across, width)):
        low = g.Floor(at)
        share = g.Sub(at, low)
        corners.append([clamp_index(g, low, size), clamp_index(g, g.Ceil(at), size)])
        far = g.Where(g.Greater(at, float(size - 1)), 0.0, share) if fading else share
        shares.append([g.Sub(g.scalar(1, share), share), far])
    flat = g.Reshape(x, [0, 0, -1])
    total = None
    for i, j in product((0, 1), repeat=2):
        value = gather_pixels(g, flat, corners[0][i], corners[1][j], width)
        part = g.Mul(value, g.Unsqueeze(g.Mul(shares[0][i], shares[1][j]), [1]))
        total = part if total is None else g.Add(total, part)
    return total


def gather_pixels(g, flat: Value, y: Value, across: Value, width: int):
    """The elements of (N, C, H·W) at whole places ``(N, P)``."""
    index = g.Add(g.Mul(g.cast(y, DType.INT64), width), g.cast(across, DType.INT64))
    channels = g.size_of(flat, 1)
    shape = [1, channels, 1] if isinstance(channels, int) else g.Concat([1], channels, [1], axis=0)
    return g.GatherElements(flat, g.Expand(g.Unsqueeze(index, [1]), shape), axis=2)


@reads("image.grid_sample")
def read_grid_sample(
    g, x, grid, *, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True
):
    """The grid's coordinates lie along its second axis, in ONNX along the last."""
    require(layout == ("NCHW", "NCDHW")[x.rank - 4], f"layout={layout!r}")
    require(method in ("nearest", "bilinear", "bicubic"), f"method={method!r} is unknown")
    form = {"mode": method.removeprefix("bi"), "padding_mode": padding_mode}
    form["align_corners"] = int(align_corners)
    turned = g.Transpose(grid, perm=(0, *range(2, grid.rank), 1))
    if method == "bicubic" and padding_mode == "border":  # each element is moved to the border
        return decompose_grid_sample(g, x, turned, **form)
    return g.GridSample(x, turned, **form)


@reads("image.affine_grid")
def read_affine_grid(g, theta, *, target_shape: Ints):
    """Each place, from -1 to just below 1, and 1, times the rows of ``theta``."""
    height, width = target_shape
    step = [np.float32((2.0 - 1e-7) / (n - 1)) for n in target_shape]
    y, across = (
        np.float32(-1) + arrays.arange(n, dtype=np.float32) * s
        for n, s in zip(target_shape, step, strict=True)
    )
    arrays.charge_elements(3, height, width)
    rows = [np.tile(across, height), np.repeat(y, width), np.ones(height * width, np.float32)]
    places = g.MatMul(theta, g.const(np.stack(rows).astype(theta.type.numpy)))
    return g.Reshape(places, [0, 0, height, width])


@reads("image.crop_and_resize")
def read_crop_and_resize(
    g, x, boxes, which, *, crop_size: Ints, layout="NCHW", method="bilinear",
    extrapolation_value=0.0, out_dtype: DType | None = None,
):  # fmt: skip
    """Boxes are (y1, x1, y2, x2), as parts of the image; each is resized by itself."""
    require(method in ("bilinear", "nearest_neighbor"), f"method={method!r}")
    dtype = out_dtype or x.type
    x = unpack_layout(g, x, layout, "NCHW")
    images = g.Gather(g.cast(x, DType.FLOAT32), g.cast(which, DType.INT64), axis=0)
    places, outside, sizes = [], [], require_static_sizes(x)
    for at, (size, count) in enumerate(zip(sizes, crop_size, strict=True)):
        place = crop_positions(g, boxes, at, size, count)
        far = g.Or(g.Less(place, 0.0), g.Greater(place, float(size - 1)))
        shape = (1, count, 1) if at == 0 else (1, 1, count)
        places.append(broadcast_positions(g, place, crop_size, at))
        outside.append(g.Reshape(far, [0, *shape[1:]]))
    if method == "bilinear":
        y = sample_bilinear(g, images, places[0], places[1])
    else:
        rows, columns = (
            clamp_index(g, round_half_away(g, p), s) for p, s in zip(places, sizes, strict=True)
        )
        y = gather_pixels(g, g.Reshape(images, [0, 0, -1]), rows, columns, sizes[1])
    y = g.Reshape(y, [0, 0, *crop_size])
    y = g.cast(g.Where(g.Unsqueeze(g.Or(*outside), [1]), extrapolation_value, y), dtype)
    return pack_layout(g, y, "NCHW", layout)


def crop_positions(g, boxes: Value, at: int, size: int, count: int):
    """Places along one axis for each box: (boxes, count)."""
    first, last = (g.Slice(boxes, [i], [i + 1], [1], [1]) for i in (at, at + 2))
    step = g.Div(g.Mul(g.Sub(last, first), float(size - 1)), float(max(count - 1, 1)))
    along = g.const(arrays.arange(count, dtype=np.float32)[None])
    return g.Add(g.Mul(first, float(size - 1)), g.Mul(step, along))


def broadcast_positions(g, place: Value, counts: Ints, at: int):
    """Places along one axis as places of all results: (boxes, H·W)."""
    height, width = counts
    shape = [0, height, 1] if at == 0 else [0, 1, width]
    return g.Reshape(g.Expand(g.Reshape(place, shape), [1, height, width]), [0, -1])


@reads("nn.deformable_conv2d", ignore=TUNING, only={"out_layout": ("",)})
def read_deformable_conv2d(
    g, x, offset, w, *, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1),
    deformable_groups=1, groups=1, data_layout="NCHW", kernel_layout="OIHW",
    out_dtype: DType | None = None,
):  # fmt: skip
    """A place before the image is 0 as a whole; ONNX's own operator fades it in."""
    x, offset = (unpack_layout(g, v, data_layout, "NCHW") for v in (x, offset))
    w = unpack_layout(g, w, kernel_layout, "OIHW")
    channels, height, width = require_static_sizes(x, 1)
    rows, columns = require_static_sizes(offset)
    kernel = w.static_shape[2:]
    count = kernel[0] * kernel[1]
    moves = g.Reshape(offset, [-1, deformable_groups, count, 2, rows * columns])
    each = channels // deformable_groups
    images = g.Reshape(x, [-1, each, height, width])
    places = []
    begins, gaps = normalize_pads(padding, 2)[:2], repeat_per_axis(dilation, 2)
    frame = zip((rows, columns), repeat_per_axis(strides, 2), begins, gaps, strict=True)
    arrays.charge_elements(2, count, rows, columns)
    for at, (size, stride, pad, step) in enumerate(frame):
        base = arrays.arange(size)[None] * stride - pad + arrays.arange(kernel[at])[:, None] * step
        shape = ((kernel[0], 1, rows, 1), (1, kernel[1], 1, columns))[at]
        grid = np.broadcast_to(base.reshape(shape), (*kernel, rows, columns))
        move = g.Gather(moves, at, axis=3)
        still = g.const(grid.reshape(1, 1, count, -1).astype(np.float32))
        places.append(g.Reshape(g.Add(move, still), [-1, count * rows * columns]))
    inside = [
        g.And(g.GreaterOrEqual(p, 0.0), g.Less(p, float(s)))
        for p, s in zip(places, (height, width), strict=True)
    ]
    y = sample_bilinear(g, images, places[0], places[1], fading=True)
    y = g.Where(g.Unsqueeze(g.And(*inside), [1]), y, 0.0)
    # one patch for each result: a convolution whose windows do not overlap
    patches = g.Reshape(y, [-1, channels, count, rows, columns])
    columns_of_patches = g.Reshape(patches, [-1, channels * count, rows, columns])
    kernel_shape = {"kernel_shape": (1, 1), "strides": (1, 1), "dilations": (1, 1),
                    "pads": (0, 0, 0, 0)}  # fmt: skip
    flat = g.Reshape(w, [w.static_shape[0], w.static_shape[1] * count, 1, 1])
    result = convolve(g, columns_of_patches, flat, groups, kernel_shape, out_dtype or x.type)
    return pack_layout(g, result, "NCHW", data_layout)


@reads("image.dilation2d")
def read_dilation2d(
    g, x, w, *, strides: Ints = (1, 1), padding: Ints = (0, 0), dilations: Ints = (1, 1),
    data_layout="NCHW", kernel_layout="IHW", out_dtype: DType | None = None,
):  # fmt: skip
    """The greatest sum of a window and the kernel; padding is 0."""
    require(out_dtype in (None, x.type), f"out_dtype={out_dtype}")
    w = unpack_layout(g, w, kernel_layout, "IHW")
    x = unpack_layout(g, x, data_layout, "NCHW")
    pads = normalize_pads(padding, 2)
    x = g.Pad(x, (0, 0, *pads[:2], 0, 0, *pads[2:]))
    kernel = w.static_shape[1:]
    parts = []
    for i, j in product(*map(range, kernel)):
        starts = [i * dilations[0], j * dilations[1]]
        spans = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        ends = [s - span or 2**31 - 1 for s, span in zip(starts, spans, strict=True)]
        shifted = g.Slice(x, starts, ends, [2, 3], list(strides))
        tap = g.Slice(w, [i, j], [i + 1, j + 1], [1, 2], [1, 1])
        parts.append(g.Add(shifted, tap))
    return pack_layout(g, g.Max(*parts), "NCHW", data_layout)


@reads("nn.correlation")
def read_correlation(
    g, a, b, *, kernel_size=1, max_displacement=1, stride1=1, stride2=1, padding: Ints = (0, 0),
    is_multiply=True, layout="NCHW",
):  # fmt: skip
    """The mean product of two images, one of them moved by each displacement."""
    require(layout == "NCHW", f"layout={layout!r}")
    require(kernel_size % 2 == 1, f"kernel_size={kernel_size} is even: TVM takes odd ones")
    pads = normalize_pads(padding, 2)
    a, b = (g.Pad(v, (0, 0, *pads[:2], 0, 0, *pads[2:])) for v in (a, b))
    return correlate(g, a, b, kernel_size, max_displacement, stride1, stride2, is_multiply)


@legalizations("GridSample")
def legalize_grid_sample(g, x, grid, *, mode: str, padding_mode: str, align_corners: int):
    """Relay's bicubic sampling moves the elements to the border, ONNX's the place between them."""
    image = x.rank == 4 or (x.rank == 5 and mode != "cubic")
    if image and (mode, padding_mode) != ("cubic", "border") and x.type.bits == 32:
        return None
    attrs = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    return g.decompose("GridSample", 16, x, grid, **attrs)


@writes("GridSample")
def write_grid_sample(r, x, grid, *, mode: str, padding_mode: str, align_corners: int):
    """The grid's coordinates lie along its second axis, in ONNX along the last."""
    turned = r.transpose(grid, axes=(0, grid.rank - 1, *range(1, grid.rank - 1)))
    return r.image.grid_sample(
        x, turned, method=METHODS[mode], layout="NCHW" if x.rank == 4 else "NCDHW",
        padding_mode=padding_mode, align_corners=align_corners,
    )  # fmt: skip
