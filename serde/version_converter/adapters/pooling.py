"""Pools."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NamedTuple

from serde.errors import require
from serde.ir.geometry import Ints, window_output
from serde.ir.graph import BYTES, DType, Value

from . import downgrades, upgrades
from .common import END, cast, count_range, lay_along, make_full, require_expandable, size
from .indexing import extreme_value


def is_spread(attrs) -> bool:
    """Whether there are gaps in the windows."""
    return any(d != 1 for d in attrs.get("dilations") or ())


def rounds_up(attrs) -> bool:
    """Whether how many windows there are, or where, depends on more than plain rounding."""
    return bool(attrs.get("ceil_mode")) or is_spread(attrs)


def ceil_mode_pads(x: Value, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints):
    """Padding at the end of each axis that lets plain rounding reach what ``ceil_mode`` does.

    None where it depends on a dynamic size.
    """
    sizes = [d for d in x.ranked_shape[2:] if isinstance(d, int)]
    if len(sizes) < x.rank - 2:
        return None
    n, extra = len(kernel), []
    for i, (length, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        count = window_output(length, k, s, d, pads[i] + pads[n + i], True)
        if (count - 1) * s >= length + pads[i]:
            count -= 1  # a window that would begin in the padding at the end
        reach = (count - 1) * s + d * (k - 1) + 1
        extra.append(max(0, reach - length - pads[i] - pads[n + i]))
    return extra


class Windows(NamedTuple):
    """The windows a pool moves: how large, how far apart, and what is put around the tensor."""

    kernel_shape: Ints
    strides: Ints
    dilations: Ints | None = None
    pads: Ints | None = None
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0

    @property
    def gaps(self) -> Ints:
        """The dilation of each axis."""
        return self.dilations or (1,) * len(self.kernel_shape)

    @property
    def is_spread(self) -> bool:
        """Whether there are gaps in the windows."""
        return any(d != 1 for d in self.gaps)

    @property
    def covers(self) -> Ints:
        """How many elements there are from a window's first to its last."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel_shape, self.gaps, strict=True))

    @property
    def basic(self) -> dict[str, Any]:
        """The attributes that pools had from the first."""
        window = {"kernel_shape": self.kernel_shape, "strides": self.strides}
        return {**window, "pads": self.pads or None, "auto_pad": self.auto_pad}

    def reach(self, x: Value) -> Ints | None:
        """Padding with what ``ceil_mode`` adds behind; None where it depends on dynamic sizes."""
        if self.auto_pad != "NOTSET":
            return None
        n = len(self.kernel_shape)
        pads = self.pads or (0,) * 2 * n
        if not self.ceil_mode:
            return pads
        extra = ceil_mode_pads(x, self.kernel_shape, self.strides, self.gaps, pads)
        if extra is None:
            return None
        return (*pads[:n], *(p + e for p, e in zip(pads[n:], extra, strict=True)))


def dynamic_pads(g, x: Value, w: Windows):
    """Padding before and behind each axis, and what ``ceil_mode`` reaches beyond, when run."""
    n, pads = len(w.kernel_shape), []
    for i, (cover, s) in enumerate(zip(w.covers, w.strides, strict=True)):
        length = size(g, x, 2 + i)
        before, behind, more = (g.const([v]) for v in (0, 0, 0))
        if w.auto_pad.startswith("SAME"):
            count = g.Div(g.Add(length, s - 1), s)
            total = g.Max(g.Sub(g.Add(g.Mul(g.Sub(count, 1), s), cover), length), 0)
            small = g.Div(total, 2)
            parts = small, g.Sub(total, small)
            before, behind = parts if w.auto_pad == "SAME_UPPER" else parts[::-1]
        elif w.pads:
            before, behind = (g.const([w.pads[j]]) for j in (i, n + i))
        if w.ceil_mode:
            room = g.Add(g.Add(length, before), behind)
            count = g.Add(g.Div(g.Add(g.Sub(room, cover), s - 1), s), 1)
            starts = g.Less(g.Mul(g.Sub(count, 1), s), g.Add(length, before))
            count = g.Sub(count, cast(g, g.Not(starts), DType.INT64))
            reach = g.Add(g.Mul(g.Sub(count, 1), s), cover)
            more = g.Max(g.Sub(reach, room), 0)
        pads.append((before, behind, more))
    return tuple(list(v) for v in zip(*pads, strict=True))


def pad_dynamically(g, x: Value, before: list[Value], behind: list[Value], value: float):
    """``x`` with padding of computed sizes written into it."""
    zero = g.const([0, 0])
    return g.Pad(x, g.Concat(zero, *before, zero, *behind, axis=0), g.const(value, x.type))


def average_dynamic_windows(g, x: Value, w: Windows, count_include_pad: int):
    """AveragePool over a dynamic number of windows."""
    before, behind, more = dynamic_pads(g, x, w)
    counted = make_full(g, 1.0, g.Shape(x), x.type)
    filler = 1.0 if count_include_pad else 0.0
    counted = pad_dynamically(g, counted, before, behind, filler)
    nothing = [g.const([0])] * len(more)
    x = pad_dynamically(g, pad_dynamically(g, x, before, behind, 0.0), nothing, more, 0.0)
    counted = pad_dynamically(g, counted, nothing, more, 0.0)
    pads = (0,) * (2 * len(w.kernel_shape))
    return g.Div(window_sums(g, x, w, pads), window_sums(g, counted, w, pads))


def max_pool_by_gathering(g, x: Value, w: Windows, storage_order: int, outputs: int):
    """MaxPool by gathering each window's elements side by side."""
    before, behind, more = dynamic_pads(g, x, w)
    behind = [g.Add(a, b) for a, b in zip(behind, more, strict=True)]
    keys = cast(g, x, DType.INT32) if x.type in BYTES else x  # padding is less than any byte
    y = pad_dynamically(g, keys, before, behind, extreme_value(keys.type, False))
    n = len(w.kernel_shape)
    taps = require_expandable(prod(w.kernel_shape), "a window", 1 << 16)
    starts: list[Value] = []
    for i, (k, s, d, cover) in enumerate(
        zip(w.kernel_shape, w.strides, w.gaps, w.covers, strict=True)
    ):
        axis = 2 + 2 * i
        count = g.Add(g.Div(g.Sub(size(g, y, axis), cover), s), 1)
        starts.append(g.Mul(count_range(g, count), s))
        at = g.Add(g.Unsqueeze(starts[-1], [1]), g.const([[d * j for j in range(k)]]))
        y = g.Gather(y, at, axis=axis)
    order = (0, 1, *range(2, 2 + 2 * n, 2), *range(3, 2 + 2 * n, 2))
    y = g.Transpose(y, perm=order)
    y = g.Reshape(y, g.Concat(g.Shape(y, start=0, end=2 + n), [taps], axis=0))
    largest = cast(g, g.ReduceMax(y, [2 + n], keepdims=0), x.type)
    if outputs == 1:
        return largest
    which = g.ArgMax(y, axis=2 + n, keepdims=0)
    return largest, flat_indices(g, x, w, which, starts, before, storage_order)


def flat_indices(g, x: Value, w: Windows, which: Value, starts, before, storage_order: int):
    """Where in ``x``, flattened, the elements lie that ``which`` counts within their windows."""
    n, rest = len(w.kernel_shape), which
    places: list[Value] = []
    for i in reversed(range(n)):
        turns = g.Div(rest, w.kernel_shape[i])
        inner = g.Sub(rest, g.Mul(turns, w.kernel_shape[i]))
        rest = turns
        first = lay_along(g, g.Sub(starts[i], before[i]), 2 + i, 2 + n)
        places.insert(0, g.Add(first, g.Mul(inner, w.gaps[i])))
    order = range(n) if storage_order == 0 else reversed(range(n))
    flat = None
    for i in order:
        flat = places[i] if flat is None else g.Add(g.Mul(flat, size(g, x, 2 + i)), places[i])
    images = g.Mul(size(g, x, 0), size(g, x, 1))
    image_size = g.ReduceProd(g.Shape(x, start=2), [0], keepdims=1)
    image = g.Reshape(count_range(g, images), g.Concat(g.Shape(x, start=0, end=2), [1] * n, axis=0))
    return g.Add(g.Mul(image, image_size), flat)


def pad_window_axes(g, x: Value, pads: Ints, value: float = 0.0):
    """``x`` with the padding of its window axes written into it."""
    n = len(pads) // 2
    return g.Pad(x, [0, 0, *pads[:n], 0, 0, *pads[n:]], g.const(value, x.type))


def window_sums(g, x: Value, w: Windows, pads: Ints):
    """Sums of windows, by a convolution of each channel with ones."""
    apart = g.Reshape(x, g.Concat([-1, 1], g.Shape(x, start=2), axis=0))
    ones = make_full(g, 1.0, [1, 1, *w.kernel_shape], x.type)
    window = {"kernel_shape": w.kernel_shape, "strides": w.strides, "dilations": w.gaps}
    sums = g.Conv(apart, ones, pads=pads, **window)
    return g.Reshape(sums, g.Concat(g.Shape(x, end=2), g.Shape(sums, start=2), axis=0))


@downgrades[19]("AveragePool", sizes=is_spread)
def average_of_spread_windows(g, x: Value, *, ceil_mode: int, count_include_pad: int, **window):
    """Before opset 19 windows had no gaps: divide sums by the number of elements summed."""
    w = Windows(ceil_mode=ceil_mode, **window)
    if not w.is_spread:
        return g.AveragePool(
            x, ceil_mode=ceil_mode, count_include_pad=count_include_pad, **w.basic
        )  # fmt: skip
    with g.at_opset(18):
        if (reach := w.reach(x)) is None:
            return average_dynamic_windows(g, x, w, count_include_pad)
        counted, around = make_full(g, 1.0, g.Shape(x), x.type), reach
        if count_include_pad and w.pads:
            counted = pad_window_axes(g, counted, w.pads, 1.0)
            around = tuple(r - p for r, p in zip(reach, w.pads, strict=True))
        return g.Div(window_sums(g, x, w, reach), window_sums(g, counted, w, around))


@downgrades[10]("AveragePool", sizes=rounds_up)
def average_of_whole_windows(g, x: Value, *, ceil_mode: int, count_include_pad: int, **window):
    """Before opset 10 sizes were rounded down: pad what rounding up would reach."""
    w = Windows(ceil_mode=ceil_mode, **window)
    if not ceil_mode:
        return g.AveragePool(x, count_include_pad=count_include_pad, **w.basic)
    with g.at_opset(18):
        if (reach := w.reach(x)) is None:
            return average_dynamic_windows(g, x, w, count_include_pad)
        if count_include_pad and w.pads:
            x = pad_window_axes(g, x, w.pads)
            reach = tuple(r - p for r, p in zip(reach, w.pads, strict=True))
    return g.AveragePool(x, **w.basic | {"pads": reach}, count_include_pad=0)


@downgrades[10]("MaxPool", sizes=rounds_up)
def largest_of_whole_windows(g, x: Value, *, storage_order: int, outputs=1, **window):
    """Before opset 10 sizes were rounded down and windows had no gaps."""
    w = Windows(**window)
    reach = w.reach(x) if w.ceil_mode or w.is_spread else w.pads or ()
    if reach is None or (w.is_spread and outputs > 1):
        with g.at_opset(18):
            return max_pool_by_gathering(g, x, w, storage_order, outputs)
    if not w.is_spread:
        window = w.basic | {"pads": reach or None}
        return g.MaxPool(x, **window, storage_order=storage_order, outputs=outputs)
    with g.at_opset(18):
        x = pad_window_axes(g, x, reach, extreme_value(x.type, False))
        for axis, (k, s, d) in enumerate(zip(w.kernel_shape, w.strides, w.gaps, strict=True), 2):
            require_expandable(k, "a window", 1 << 12)
            behind = [d * (k - 1 - o) for o in range(k)]
            x = g.Max(
                *(
                    g.Slice(x, [o * d], [-b if b else END], [axis], [s])
                    for o, b in enumerate(behind)
                )
            )
        return x


@downgrades[8]("MaxPool")
def largest_without_indices(g, x: Value, *, storage_order: int, outputs=1, **window):
    if outputs == 1:
        return g.MaxPool(x, **Windows(**window).basic)
    with g.at_opset(18):
        return max_pool_by_gathering(g, x, Windows(**window), storage_order, outputs)


@downgrades[18]("LpPool")
def norm_of_whole_windows(g, x: Value, *, p: int, **window):
    """Before opset 18 LpPool knew neither dilations nor ceil_mode."""
    w = Windows(**window)
    if not w.is_spread and not w.ceil_mode:
        return g.LpPool(x, p=p, **w.basic)
    if x.type is DType.FLOAT16:  # whose powers overflow
        norm = norm_of_whole_windows(g, cast(g, x, DType.FLOAT32), p=p, **window)
        return cast(g, norm, DType.FLOAT16)
    with g.at_opset(18):
        powers, reach = g.Pow(g.Abs(x), float(p)), w.reach(x)
        if reach is None:
            before, behind, more = dynamic_pads(g, x, w)
            behind = [g.Add(a, b) for a, b in zip(behind, more, strict=True)]
            powers = pad_dynamically(g, powers, before, behind, 0.0)
            reach = (0,) * 2 * len(w.kernel_shape)
        return g.Pow(window_sums(g, powers, w, reach), 1.0 / p)


def integer_power(op, g, x: Value, *, p: float, **rest):
    """The norm's order was a float at opset 1."""
    require(p.is_integer(), f"{op} of order {p}; since opset 2 orders are integers")
    return g[op](x, p=int(p), **rest)


for _op in ("LpPool", "GlobalLpPool"):
    upgrades[2](_op)(partial(integer_power, _op))
