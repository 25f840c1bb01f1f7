"""Images and signals: resized, sampled, pooled by regions; windows and transforms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import DType

from ..generator import Generator, Maker
from .layers import image


def make_resize(g: Generator) -> None:
    x = image(g, "Resize") if g.chance(0.7) else g.operand(g.types("Resize"), 1)
    rank = g.of(x).ndim
    mode = g.choice(("nearest", "linear", "cubic"))
    attrs: dict[str, Any] = {"mode": mode}
    places = (
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric",
    )
    if g.chance(0.7):
        attrs["coordinate_transformation_mode"] = g.choice(places)
    if mode == "nearest" and g.chance(0.6):
        attrs["nearest_mode"] = g.choice(
            ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        )
    if mode == "cubic" and g.chance(0.4):
        attrs["cubic_coeff_a"] = g.choice((-0.5, -0.75))
    if mode == "cubic" and g.chance(0.3):
        attrs["exclude_outside"] = 1
    if mode != "nearest" and g.chance(0.2):
        attrs["antialias"] = 1
    free = [1.0] * (rank - 2) if rank > 2 else []
    if g.chance(0.5):
        scales = [
            *free,
            *(g.choice((0.5, 1.0, 1.5, 2.0, 0.6, 3.0)) for _ in range(rank - len(free))),
        ]
        g.emit("Resize", [x, "", g.const(scales, np.float32)], **attrs)
    else:
        shape = g.of(x).shape
        sizes = [*shape[: len(free)], *(g.choice((1, 2, 3, 5, 7)) for _ in shape[len(free) :])]
        g.emit("Resize", [x, "", "", g.index(sizes)], **attrs)


def make_upsample_sizes(g: Generator) -> None:
    x = image(g, "Resize")
    axes = list(range(2, g.of(x).ndim))
    policy = g.choice(("stretch", "not_larger", "not_smaller"))
    sizes = g.const([g.choice((3, 4, 8)) for _ in axes])
    g.emit("Resize", [x, "", "", sizes], axes=axes, keep_aspect_ratio_policy=policy, mode="linear")


def make_grid_sample(g: Generator) -> None:
    dtype = g.pick_type(g.types("GridSample"))
    x = g.like(dtype, (g.choice((1, 2)), g.choice((1, 3)), 4, 5))
    kind = dtype if dtype.kind == "f" else DType.FLOAT32
    grid = (g.numbers.random((g.of(x).shape[0], 3, 2, 2)) * 2.6 - 1.3).astype(kind.numpy)
    modes = (
        ("linear", "nearest", "cubic", None)
        if g.opset >= 20
        else ("bilinear", "nearest", "bicubic")
    )
    attrs = {"mode": g.choice(modes), "align_corners": g.choice((0, 1, None))}
    padding = g.choice(("zeros", "border", "reflection", None))
    g.emit("GridSample", [x, g.hold(grid)], padding_mode=padding, **attrs)


def make_affine_grid(g: Generator) -> None:
    theta = g.leaf(g.pick_type(g.types("AffineGrid")), (2, 2, 3))
    size = g.index([2, 3, g.choice((1, 4)), g.choice((2, 5))])
    g.emit("AffineGrid", [theta, size], align_corners=g.choice((0, 1, None)))


def make_roi_align(g: Generator) -> None:
    dtype = g.pick_type(g.types("RoiAlign"))
    x = g.like(dtype, (2, g.choice((1, 2)), 6, 5))
    corners = np.sort(g.numbers.random((3, 2, 2)) * 6, axis=1).reshape(3, 4)
    rois = g.hold(corners.astype(dtype.numpy))
    batch = g.hold(g.numbers.integers(0, 2, (3,)).astype(np.int64))
    attrs = {"mode": g.choice(("avg", "max", None)), "sampling_ratio": g.choice((0, 1, 2, None)),
             "output_height": g.choice((1, 2, None)), "output_width": g.choice((1, 3, None)),
             "spatial_scale": g.choice((0.5, 1.0, None)),
             "coordinate_transformation_mode": g.choice(("half_pixel", "output_half_pixel", None)),
    }  # fmt: skip
    g.emit("RoiAlign", [x, rois, batch], **attrs)


def make_max_roi_pool(g: Generator) -> None:
    x = g.like(g.pick_type(g.types("MaxRoiPool")), (2, 2, 6, 5))
    corners = np.sort(g.numbers.integers(0, 5, (3, 2, 2)), axis=1).reshape(3, 4)
    batch = g.numbers.integers(0, 2, (3, 1))
    rois = g.hold(np.concatenate([batch, corners], 1).astype(g.dtype(x).numpy))
    scale = g.choice((0.5, 1.0, None))
    g.emit("MaxRoiPool", [x, rois], pooled_shape=[g.choice((1, 2)), 2], spatial_scale=scale)


def make_suppression(g: Generator) -> None:
    boxes = np.sort(g.numbers.random((1, 6, 2, 2)), axis=2).reshape(1, 6, 4).astype(np.float32)
    scores = g.hold(g.numbers.permutation(12).reshape(1, 2, 6).astype(np.float32) / 12)
    operands = [g.hold(boxes), scores, g.index([g.choice((1, 2, 5))])]
    if g.chance(0.8):
        operands.append(g.const([g.choice((0.0, 0.3, 0.5))], np.float32))
        if g.chance(0.6):
            operands.append(g.const([g.choice((0.2, 0.5))], np.float32))
    g.emit("NonMaxSuppression", operands, center_point_box=g.choice((0, 1, None)))


def make_dft(g: Generator) -> None:
    dtype = g.pick_type(g.types("DFT"))
    last = g.choice((1, 2))
    x = g.like(dtype, (g.size(), g.choice((3, 4, 5)), last))
    length = g.index(g.choice((2, 4, 6))) if g.chance(0.3) else ""
    inverse = g.choice((0, 1, None))
    onesided = g.choice((0, 1)) if last == 1 and not inverse else None
    attrs = {"inverse": inverse, "onesided": onesided}
    if g.opset < 20:
        g.emit("DFT", [x, length] if length else [x], axis=1, **attrs)
    else:
        g.emit("DFT", [x, length, g.index(g.choice((1, -2)))], **attrs)


def make_stft(g: Generator) -> None:
    dtype = g.pick_type(g.types("STFT"))
    x = g.like(dtype, (g.size(), 12, 1))
    frame = g.choice((4, 5))
    operands = [x, g.index(g.choice((2, 3)))]
    operands += [g.leaf(dtype, (frame,))] if g.chance(0.6) else ["", g.const(frame)]
    g.emit("STFT", operands, onesided=g.choice((0, 1, None)))


def make_window(op: str, g: Generator) -> None:
    g.emit(op, [g.index(g.choice((1, 2, 5, 8)))], periodic=g.choice((0, 1, None)))


def make_mel(g: Generator) -> None:
    ends = [g.const(4), g.const(16), g.const(8000), *(g.const(f, np.float32) for f in (20, 3500))]
    g.emit("MelWeightMatrix", ends)


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    for name, make in globals().items():
        if name.startswith("make_") and name != "make_window":
            yield make
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield partial(make_window, op)
