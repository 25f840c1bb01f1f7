"""Pools and convolutions."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.geometry import Ints, window_output
from serde.graph import Value

from . import above, below
from .common import END, bounded, filled


def left_over(op, x: Value, lowest: int, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints):
    """Padding at the end of each axis that lets plain rounding reach what ``ceil_mode`` does."""
    sizes = [d for d in x.known[2:] if isinstance(d, int)]
    require(
        len(sizes) == x.rank - 2,
        f"{op} with ceil_mode over a size known only when the model runs; opset {lowest} is the "
        "lowest that has it",
    )
    n, extra = len(kernel), []
    for i, (size, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        count = window_output(size, k, s, d, pads[i] + pads[n + i], True)
        if (count - 1) * s >= size + pads[i]:
            count -= 1  # a window that would begin in the padding at the end
        reach = (count - 1) * s + d * (k - 1) + 1
        extra.append(max(0, reach - size - pads[i] - pads[n + i]))
    return extra


def zero_padded(g, x: Value, pads: Ints, value: float = 0.0):
    """``x`` with the padding of its window axes written into it."""
    n = len(pads) // 2
    return g.Pad(x, [0, 0, *pads[:n], 0, 0, *pads[n:]], g.const(value, x.type))


def window_sums(g, x: Value, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints):
    """Sums of windows, by a convolution of each channel with ones."""
    apart = g.Reshape(x, g.Concat([-1, 1], g.Shape(x, start=2), axis=0))
    ones = filled(g, 1.0, [1, 1, *kernel], x.type)
    sums = g.Conv(apart, ones, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads)
    return g.Reshape(sums, g.Concat(g.Shape(x, end=2), g.Shape(sums, start=2), axis=0))


@below[19]("AveragePool")
def average_of_spread_windows(
    g, x: Value, *, dilations: Ints | None = None, ceil_mode: int, count_include_pad: int,
    kernel_shape: Ints, strides: Ints, pads: Ints = (), auto_pad: str = "NOTSET",
):  # fmt: skip
    """Before opset 19 windows had no gaps: divide sums by the number of elements summed."""
    if not dilations or all(d == 1 for d in dilations):
        return g.AveragePool(
            x, kernel_shape=kernel_shape, strides=strides, pads=pads or None, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad, auto_pad=auto_pad,
        )  # fmt: skip
    require(auto_pad == "NOTSET", f"dilations with auto_pad={auto_pad} over an unknown size; "
            "opset 19 is the lowest that has them")  # fmt: skip
    window = (kernel_shape, strides, dilations)
    extra = left_over("AveragePool", x, 19, *window, pads) if ceil_mode else [0] * len(kernel_shape)
    n = len(kernel_shape)
    with g.speaking(18):
        counted = filled(g, 1.0, g.Shape(x), x.type)
        if count_include_pad:
            counted = zero_padded(g, counted, pads, 1.0)
        own = (0,) * n if count_include_pad else pads[:n]
        ends = [0 if count_include_pad else p for p in pads[n:]]
        around = (*own, *(p + e for p, e in zip(ends, extra, strict=True)))
        reach = (*pads[:n], *(p + e for p, e in zip(pads[n:], extra, strict=True)))
        return g.Div(window_sums(g, x, *window, reach), window_sums(g, counted, *window, around))


@below[10]("AveragePool")
def average_of_whole_windows(
    g, x: Value, *, ceil_mode: int, count_include_pad: int, kernel_shape: Ints, strides: Ints,
    pads: Ints = (), auto_pad: str = "NOTSET",
):  # fmt: skip
    """Before opset 10 sizes were rounded down: pad what rounding up would reach."""
    more = {"kernel_shape": kernel_shape, "strides": strides}
    if not ceil_mode:
        return g.AveragePool(
            x, pads=pads or None, auto_pad=auto_pad, count_include_pad=count_include_pad, **more
        )
    n = len(kernel_shape)
    extra = left_over("AveragePool", x, 10, kernel_shape, strides, (1,) * n, pads)
    if count_include_pad:
        with g.speaking(18):
            x = zero_padded(g, x, pads)
        pads = (0,) * len(pads)
    ends = tuple(p + e for p, e in zip(pads[n:], extra, strict=True))
    return g.AveragePool(x, pads=(*pads[:n], *ends), count_include_pad=0, **more)


@below[10]("MaxPool")
def largest_of_whole_windows(
    g, x: Value, *, ceil_mode: int, dilations: Ints, kernel_shape: Ints, strides: Ints,
    storage_order: int, pads: Ints = (), auto_pad: str = "NOTSET", outputs=1,
):  # fmt: skip
    """Before opset 10 sizes were rounded down and windows had no gaps."""
    n = len(kernel_shape)
    if ceil_mode:
        extra = left_over("MaxPool", x, 10, kernel_shape, strides, dilations, pads)
        pads = (*pads[:n], *(p + e for p, e in zip(pads[n:], extra, strict=True)))
    if all(d == 1 for d in dilations):
        return g.MaxPool(
            x, kernel_shape=kernel_shape, strides=strides, pads=pads or None, auto_pad=auto_pad,
            storage_order=storage_order, outputs=outputs,
        )  # fmt: skip
    require(outputs == 1 and auto_pad == "NOTSET", "dilations with indices or auto_pad; opset 10 "
            "is the lowest that has them")  # fmt: skip
    with g.speaking(18):
        x = zero_padded(g, x, pads, float("-inf"))
        for axis, (k, s, d) in enumerate(zip(kernel_shape, strides, dilations, strict=True), 2):
            bounded(k, "a window", 1 << 12)
            behind = [d * (k - 1 - o) for o in range(k)]
            x = g.Max(
                *(
                    g.Slice(x, [o * d], [-b if b else END], [axis], [s])
                    for o, b in enumerate(behind)
                )
            )
        return x


@below[8]("MaxPool")
def largest_without_indices(g, x: Value, *, storage_order: int, outputs=1, **rest):
    require(outputs == 1, "the indices of the largest; opset 8 is the lowest that gives them")
    return g.MaxPool(x, **rest)


@below[18]("LpPool")
def norm_of_whole_windows(
    g, x: Value, *, p: int, ceil_mode: int, kernel_shape: Ints, strides: Ints,
    dilations: Ints | None = None, pads: Ints = (), auto_pad: str = "NOTSET",
):  # fmt: skip
    """Before opset 18 LpPool knew neither dilations nor ceil_mode."""
    spread = any(d != 1 for d in dilations or ())
    if not spread and not ceil_mode:
        return g.LpPool(
            x, p=p, kernel_shape=kernel_shape, strides=strides, pads=pads or None, auto_pad=auto_pad
        )
    require(auto_pad == "NOTSET", f"dilations with auto_pad={auto_pad} over an unknown size; "
            "opset 18 is the lowest that has them")  # fmt: skip
    n = len(kernel_shape)
    window = (kernel_shape, strides, dilations or (1,) * n)
    extra = left_over("LpPool", x, 18, *window, pads) if ceil_mode else [0] * n
    reach = (*pads[:n], *(a + e for a, e in zip(pads[n:], extra, strict=True)))
    with g.speaking(18):
        sums = window_sums(g, g.Pow(g.Abs(x), float(p)), *window, reach)
        return g.Pow(sums, 1.0 / p)


def integer_power(op, g, x: Value, *, p: float, **rest):
    """The norm's order was a float at opset 1."""
    require(p.is_integer(), f"{op} of order {p}; since opset 2 orders are integers")
    return g[op](x, p=int(p), **rest)


for _op in ("LpPool", "GlobalLpPool"):
    above[2](_op)(partial(integer_power, _op))
