"""Forms of layers that move windows, and what is written in their place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from serde.ir import arrays
from serde.ir.budget import active_budget
from serde.ir.geometry import Ints
from serde.ir.graph import Value
from serde.version_converter.adapters.common import make_full
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.pooling import Windows, pad_window_axes, window_sums

from .form import Call, Form, decompose


def are_even(w: Windows) -> bool:
    """Whether pads are the same at both ends, and half a window at most."""
    n, pads = len(w.kernel_shape), w.pads or ()
    pairs = zip(pads[:n], pads[n:], w.covers, strict=True) if pads else ()
    return all(a == b and 0 <= 2 * a <= c for a, b, c in pairs)


def find_zero_pad(g: Any, x: Value) -> Any:
    """The Pad of zeros that made ``x``, None where none did."""
    node = g.producer(x)
    if node is None or node.op != "Pad" or node.attrs.get("mode", "constant") != "constant":
        return None
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    number = 0.0 if fill is None else fill.array() if fill.tensor is not None else 1.0
    is_zero = x.type.kind == "f" and not np.any(number) and not np.any(np.signbit(number))
    return node if is_zero else None


def average_padded(g: Any, x: Value, w: Windows, count_include_pad: int) -> Any:
    """``AveragePool`` with its padding before it, and what that adds to counts behind."""
    bare, pads = {"kernel_shape": w.kernel_shape, "strides": w.strides}, w.pads or ()
    means = g.AveragePool(pad_window_axes(g, x, pads, -0.0), **bare)  # 0 is made the pool's own
    if count_include_pad:
        return means
    return g.Div(g.Mul(means, float(math.prod(w.kernel_shape))), count_elements(g, x, w, pads))


def count_elements(g: Any, x: Value, w: Windows, pads: Ints) -> Any:
    """How many elements of ``x`` each window holds."""
    sizes: Any = x.ranked_shape[2:]
    n = len(w.kernel_shape)
    if not all(isinstance(d, int) for d in sizes) or not _affords_counts(sizes, w, pads):
        ones = make_full(g, 1.0, g.shape_from([1, 1, *g.sizes_of(x)[2:]]), x.type)
        return window_sums(g, ones, w._replace(dilations=None), pads)
    counts = arrays.ones((1, 1) + (1,) * n, x.type.numpy)
    for at, (size, k, s) in enumerate(zip(sizes, w.kernel_shape, w.strides, strict=True)):
        starts = np.arange(0, pads[at] + size + pads[at + n] - k + 1, s) - pads[at]
        inside = np.minimum(starts + k, size) - np.maximum(starts, 0)
        counts = counts * inside.reshape([-1 if a == at + 2 else 1 for a in range(n + 2)])
    return g.const(counts.astype(x.type.numpy))


def _affords_counts(sizes: Ints, w: Windows, pads: Ints) -> bool:
    """Whether the counts may be a constant: there are as many as results of a channel."""
    n = len(w.kernel_shape)
    ends = zip(sizes, pads[:n], pads[n:], w.kernel_shape, w.strides, strict=True)
    results = [max(0, (d + a + b - k) // s + 1) for d, a, b, k, s in ends]
    return active_budget().affords(8 * (4 * sum(results) + 2 * math.prod(results)))


def is_fixed(call: Call) -> bool:
    """Whether pads are numbers."""
    return call.window.auto_pad == "NOTSET"


def has_zeros_before(call: Call) -> bool:
    """Whether a Pad of zeros is before it, which runtimes make the pool's own."""
    return call.g is not None and find_zero_pad(call.g, call.x) is not None


def keep_apart(g: Any, call: Call) -> Any:
    """The same, with padding of -0, which nobody makes the padding of a pool."""
    pad = find_zero_pad(g, call.x)
    return call.emit(g, g.Pad(pad.inputs[0], pad.inputs[1], g.const(-0.0, call.x.type)))


def pad_maximum(g: Any, call: Call) -> Any:
    """The pads as those of a Pad, with what is no maximum."""
    padded = pad_window_axes(g, call.x, call.window.pads or (), extreme_value(call.x.type, False))
    return call.emit(g, padded, pads=None, storage_order=0)


def pad_average(g: Any, call: Call) -> Any:
    """The pads as those of a Pad, and what they add to counts behind."""
    return average_padded(g, call.x, call.window, call.attrs["count_include_pad"])


def root_mean_of_powers(g: Any, call: Call) -> Any:
    """A mean of powers, times the size of a window, and its root."""
    powers = g.Pow(g.Abs(call.x), float(call.attrs["p"]))
    return root_of_sums(g, call, g.AveragePool(powers, count_include_pad=1, **call.window.basic))


def root_mean_of_padded_powers(g: Any, call: Call) -> Any:
    """The same with the pads as those of a Pad."""
    w, powers = call.window, g.Pow(g.Abs(call.x), float(call.attrs["p"]))
    padded = pad_window_axes(g, powers, w.pads or (0,) * 2 * len(w.kernel_shape), -0.0)
    bare = {"kernel_shape": w.kernel_shape, "strides": w.strides}
    return root_of_sums(g, call, g.AveragePool(padded, **bare))


def root_of_sums(g: Any, call: Call, means: Value) -> Any:
    """The root of what windows add up to."""
    return g.Pow(g.Mul(means, float(math.prod(call.window.kernel_shape))), 1 / call.attrs["p"])


def crop_behind(g: Any, call: Call) -> Any:
    """ConvTranspose without pads, and a Pad that crops."""
    pads = call.attrs["pads"]
    whole = call.emit(g, *call.inputs, pads=(0,) * len(pads))
    return pad_window_axes(g, whole, tuple(-p for p in pads))


def add_bias_behind(g: Any, call: Call) -> Any:
    """A layer without its bias, and a sum."""
    y = call.emit(g, *call.inputs[:2])
    return g.Add(y, g.Unsqueeze(call.inputs[2], list(range(1, y.rank - 1))))


def has_computed_bias(call: Call) -> bool:
    """Whether there is a bias, and it is no constant."""
    bias = call.operand(2)
    return bias is not None and bias.tensor is None


def crops_unevenly(call: Call) -> bool:
    """Whether pads of a ConvTranspose are others at both ends, or negative."""
    pads = call.attrs.get("pads") or ()
    half = len(pads) // 2
    is_open = "auto_pad" in call.attrs or "output_shape" in call.attrs
    return not is_open and (pads[:half] != pads[half:] or any(p < 0 for p in pads))


# The opset below which an adapter decomposes the form.
PLACES = Form("places of the largest elements", lambda call: call.outputs > 1, decompose(8))
MAX_DILATIONS = Form("dilations", lambda call: call.window.is_spread, decompose(10))
AVERAGE_DILATIONS = MAX_DILATIONS._replace(rewrite=decompose(19))
CEIL_MODE = Form("ceil_mode", lambda call: bool(call.window.ceil_mode), decompose(10))
ZEROS_BEFORE = Form("a Pad of zeros before it", has_zeros_before, keep_apart)
UNEVEN_MAX = Form("uneven pads", lambda call: not are_even(call.window), pad_maximum)
UNEVEN_AVERAGE = UNEVEN_MAX._replace(rewrite=pad_average)
LP_WINDOWS = [
    Form("dilations", lambda call: call.window.is_spread, decompose(18)),
    CEIL_MODE._replace(rewrite=decompose(18)),
]
LP_POOL = [  # as an AveragePool that has none of these
    *LP_WINDOWS,
    Form("auto_pad", lambda call: not is_fixed(call), decompose(18)),
    Form("any p", lambda call: True, root_mean_of_powers),
]
LP_POOL_BEHIND_PAD = [*LP_POOL[:-1], LP_POOL[-1]._replace(rewrite=root_mean_of_padded_powers)]
COMPUTED_BIAS = Form("a computed bias", has_computed_bias, add_bias_behind)
UNEVEN_CROP = Form("uneven pads", crops_unevenly, crop_behind)
