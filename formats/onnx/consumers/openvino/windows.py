"""Layers that move windows, and resizing: what OpenVINO has otherwise than ONNX."""

from __future__ import annotations

from typing import Any

from serde.errors import require
from serde.ir.dim_expr import Elements, shape_data_of
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form, by, decompose
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.pooling import Windows
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling
from serde.version_converter.adapters.roi import align_regions

FOREIGN_COORDINATES = frozenset({"half_pixel_symmetric", "tf_crop_and_resize"})


def legalize_windows(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Conv")(conv)
    legalize("Resize")(resize)


def decompose_average(g, call: Call):
    """The adapter of the version that brought what it lacks."""
    return decompose(19 if call.window.is_spread else 10)(g, call)


# OpenVINO counts other elements of windows that reach beyond the padding, takes a mean of them, and
# keeps those that begin in it; it counts places by rows. Of RoiAlign neither the largest of the
# samples nor their number by size is that of the standard.
WINDOWS = {
    "AveragePool": [
        windows.CEIL_MODE._replace(rewrite=decompose_average).where(
            lambda call: call.window.is_spread or call.attrs["count_include_pad"]
        )
    ],
    "LpPool": [windows.LP_WINDOWS[1]],
    "MaxPool": [windows.PLACES.where(lambda call: call.attrs["storage_order"]), windows.CEIL_MODE],
    "RoiAlign": [Form(
        "mode='max', or sampling_ratio=0",
        lambda call: call.attrs["mode"] != "avg" or not call.attrs["sampling_ratio"],
        by(align_regions),
    )],
}  # fmt: skip


def resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: tuple[int, ...] | None = None, **sampling,
):  # fmt: skip
    """OpenVINO computes coordinates from sizes only, leaves nothing out, and rounds integers.

    It resizes the last three axes only.
    """
    how, policy = Sampling.of(sampling), keep_aspect_ratio_policy
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=policy, axes=axes
    )
    if x.type.kind != "f" and how.mode != "nearest":
        resized = g.Resize(g.cast(x, DType.FLOAT32), roi, scales, sizes, **sampling)
        return g.cast_like(resized, x)
    is_cropped = scales is not None and sizes is not None
    moves_samples = not keeps_leading_sizes(x, shape_data_of(sizes))
    is_native = is_native_resize(x, how, static_scales(x, scales, sizes))
    if is_cropped or moves_samples or not is_native:
        return decompose_resize(g, x, roi, scales, sizes, how)
    return g.as_is("Resize", (x, roi, scales, sizes), sampling)


def keeps_leading_sizes(x: Value, sizes: Elements | None) -> bool:
    """Whether sizes, where they are known, are those of ``x`` but for the last three axes."""
    return sizes is None or sizes[: max(0, x.rank - 3)] == x.ranked_shape[: max(0, x.rank - 3)]


def is_native_resize(x: Value, how: Sampling, factors) -> bool:
    """Whether OpenVINO, which knows sizes and no scales, computes the same."""
    if how.exclude_outside or how.antialias or how.coordinates in FOREIGN_COORDINATES:
        return False
    if factors is None:
        return True
    if any(s != 1 for _, s in factors[: max(0, x.rank - 3)]):
        return False
    if how.coordinates != "align_corners" or not x.is_static:
        return True
    return all(m == n * s for (m, s), n in zip(factors, x.static_shape, strict=True))


def keep_product_apart(g, x: Value, kernel: Ints, most: int = 8):
    """What a ``Conv`` takes, where it would be a product with a constant of the kernel's sizes.

    OpenVINO multiplies the weights by the constant of a product that it takes for one by channels,
    also where signs, padding and other factors follow, of which ``most`` are looked through. It
    does not see one of an axis more. None where there is no such product.
    """
    node = g.producer(x)
    if not most or node is None or node.op not in ("Div", "Mul", "Neg", "Pad"):
        return None
    operands = list(node.inputs)
    is_product = node.op in ("Div", "Mul")
    if is_product and any(is_like_kernel(v, x.rank, kernel) for v in operands):
        lifted = (v if v.tensor is not None else g.Unsqueeze(v, [0]) for v in operands)
        return g.Squeeze(g[node.op](*lifted), [0])
    constants = [at for at, v in enumerate(operands[:2]) if v.tensor is not None]
    if is_product and len(constants) != 1:
        return None
    at = 1 if is_product and constants == [0] else 0
    apart = keep_product_apart(g, operands[at], kernel, most - 1)
    if apart is None:
        return None
    operands[at] = apart
    return g[node.op](*operands, **node.attrs)


def is_like_kernel(v: Value, rank: int, kernel: Ints) -> bool:
    """Whether a constant has other elements along axes of windows, and broadcasts to a kernel."""
    if v.tensor is None or v.rank > rank:
        return False
    sizes = ([1] * (rank - v.rank) + [*v.static_shape])[2:]
    fits = all(n in (1, k) for n, k in zip(sizes, kernel, strict=True))
    return fits and any(n != 1 for n in sizes)


def conv(g, x, w, b=None, *, strides=(), **frame):
    """OpenVINO loses strides, multiplies weights by other factors, and reads beyond the data."""
    kernel = w.ranked_shape[2:]
    if (apart := keep_product_apart(g, x, kernel)) is not None:
        return g.Conv(apart, w, b, strides=strides, **frame)
    is_alone = w.is_static and w.shape[1] == 1 and not x.is_static
    require(not is_alone or not reaches_kernel(w, **frame), "OpenVINO has no padding as wide as "
            "the kernel of each channel, of sizes by name: give numbers")  # fmt: skip
    if all(s == 1 for s in strides) or frame.get("auto_pad", "NOTSET") != "NOTSET" or w.rank < 3:
        return None
    if may_be_column(x, w, strides, **frame):
        y = g.Conv(x, w, b, strides=(*strides[:-1], 1), **frame)
        return g.Slice(y, [0], [2**31 - 1], [x.rank - 1], [strides[-1]])
    pads = frame.pop("pads", None) or (0,) * 2 * len(strides)
    is_point = all(k == 1 for k in w.ranked_shape[2:])
    if not is_point or not (any(pads) or is_moved(g, x, w)):
        return None
    if any(pads):
        ends = [0, 0, *pads[: len(strides)], 0, 0, *pads[len(strides) :]]
        x = g.Pad(x, ends, g.const(0, x.type))
    axes = list(range(2, x.rank))
    some = g.Slice(x, [0] * len(axes), [2**31 - 1] * len(axes), axes, strides)
    return g.Conv(some, w, b, **frame)


def may_be_column(
    x: Value, w: Value, strides: Ints, pads: Ints = (), dilations: Ints = (), **frame: Any
) -> bool:
    """Whether one channel may become a column, of a kernel that moves by 1 along it.

    OpenVINO reads beyond the data for these, where the stride of the last axis is not 1.
    """
    if x.rank < 4 or x.ranked_shape[1] != 1 or strides[-2] != 1 or strides[-1] == 1:
        return False
    if not w.is_static or w.static_shape[-1] == 1:
        return False
    cover = Windows(w.static_shape[2:], (), dilations).covers[-1]
    width = x.ranked_shape[-1]
    added = pads[x.rank - 3] + pads[-1] if pads else 0
    return not isinstance(width, int) or 0 <= width + added - cover < strides[-1]


def is_moved(g, x: Value, w: Value) -> bool:
    """Whether an integer layer reads data that a Transpose moved."""
    data, weights = (g.producer(v) for v in (x, w))
    if any(node is None or node.op != "DequantizeLinear" for node in (data, weights)):
        return False
    moved = g.producer(data.inputs[0])
    return moved is not None and moved.op == "Transpose"


def reaches_kernel(w: Value, pads: Ints = (), dilations: Ints = (), **frame: Any) -> bool:
    """Whether padding at an end is as wide as the kernel."""
    covers = Windows(w.static_shape[2:], (), dilations).covers
    return any(p >= n for p, n in zip(pads, covers * 2, strict=False))
