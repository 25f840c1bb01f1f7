"""Pools for runtimes that pad alike at both ends and know no dilations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from serde.ir.geometry import Ints
from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.common import make_full
from serde.version_converter.adapters.pooling import Windows, pad_window_axes, window_sums


def add_rules(legalize: RuleTable, *rules: Callable[..., Any]) -> None:
    """Add each rule for the operator that it is named after: ``max_pool`` for ``MaxPool``."""
    for rule in rules:
        legalize("".join(word.capitalize() for word in rule.__name__.split("_")))(rule)


def are_even(w: Windows) -> bool:
    """Whether runtimes pad so: by the same at both ends, by half a window at most."""
    n, pads = len(w.kernel_shape), w.pads or ()
    pairs = zip(pads[:n], pads[n:], w.covers, strict=True) if pads else ()
    return all(a == b and 0 <= 2 * a <= c for a, b, c in pairs)


def keep_apart(g, x: Value) -> Value:
    """``x``, its padding of zeros as one of -0, which nobody makes the padding of a pool."""
    node = g.producer(x)
    if node is None or node.op != "Pad" or node.attrs.get("mode", "constant") != "constant":
        return x
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    number = 0.0 if fill is None else fill.array() if fill.tensor is not None else 1.0
    if x.type.kind != "f" or np.any(number) or np.any(np.signbit(number)):
        return x
    return g.Pad(node.inputs[0], node.inputs[1], g.const(-0.0, x.type))


def average_padded(g, x: Value, w: Windows, count_include_pad: int):
    """``AveragePool`` with its padding before it, and what that adds to counts behind."""
    bare, pads = {"kernel_shape": w.kernel_shape, "strides": w.strides}, w.pads or ()
    means = g.AveragePool(pad_window_axes(g, x, pads, -0.0), **bare)  # 0 is made the pool's own
    if count_include_pad:
        return means
    return g.Div(g.Mul(means, float(math.prod(w.kernel_shape))), count_elements(g, x, w, pads))


def count_elements(g, x: Value, w: Windows, pads: Ints):
    """How many elements of ``x`` each window holds."""
    sizes, n = x.ranked_shape[2:], len(w.kernel_shape)
    if not all(isinstance(d, int) for d in sizes):
        ones = make_full(g, 1.0, g.shape_from([1, 1, *g.sizes_of(x)[2:]]), x.type)
        return window_sums(g, ones, w._replace(dilations=None), pads)
    counts = np.ones((1, 1) + (1,) * n, x.type.numpy)
    for at, (size, k, s) in enumerate(zip(sizes, w.kernel_shape, w.strides, strict=True)):
        starts = np.arange(0, pads[at] + size + pads[at + n] - k + 1, s) - pads[at]
        inside = np.minimum(starts + k, size) - np.maximum(starts, 0)
        counts = counts * inside.reshape([-1 if a == at + 2 else 1 for a in range(n + 2)])
    return g.const(counts.astype(x.type.numpy))


def lp_pool(g, x, *, p: int, **window):
    """``LpPool``: a mean of powers."""
    w = Windows(**window)
    if w.is_spread or w.ceil_mode or w.auto_pad != "NOTSET":
        return g.decompose("LpPool", 18, x, p=p, **window)
    powers = pad_window_axes(g, g.Pow(g.Abs(x), float(p)), w.pads or (0,) * 2 * (x.rank - 2), -0.0)
    means = g.AveragePool(powers, kernel_shape=w.kernel_shape, strides=w.strides)
    return g.Pow(g.Mul(means, float(math.prod(w.kernel_shape))), 1 / p)
