"""Calls of sums, means, extrema and what accumulates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call


def make_reduction(function: Any, kinds: str = "biuhf", **more: Any) -> Any:
    """Calls of a reduction; ``more`` are options and the values that they take."""

    def case(d: Draw) -> Call:
        x = d.array(kinds, low=more.get("low", -40), high=more.get("high", 40))
        options = {k: d.pick(*v) for k, v in more.items() if k not in ("low", "high")}
        options = {k: v for k, v in options.items() if v is not None}
        if options.pop("where", False):
            options["where"] = d.array("b", shape=x.shape)
        return call(function, x, axis=d.axes(x), keepdims=d.flag(), **options)

    return case


def along(function: Any, kinds: str = "biuf", none: bool = True, **more: Any) -> Any:
    """Calls of a function along one axis."""

    def case(d: Draw) -> Call:
        x = d.array(kinds, rank=(more.get("least", 0), 3), low=-6, high=6)
        options = {k: d.pick(*v) for k, v in more.items() if k != "least"}
        options = {k: v for k, v in options.items() if v is not None}
        return call(function, x, axis=d.axis(x, none=none), **options)

    return case


def with_nan(function: Any) -> Any:
    """Calls of a function whose array has NaN in it."""

    def apply(x: Any, **options: Any) -> Any:
        return function(np.where(x > 2, x.dtype.type(np.nan), x), **options)

    return lambda d: call(apply, (x := d.array("f")), axis=d.axes(x), keepdims=d.flag())


def draw_average(d: Draw) -> Call:
    x = d.array("iuf", rank=(1, 3))
    if d.flag():
        return call(np.average, x, d.axes(x))
    at = d.integer(0, x.ndim - 1)
    return call(np.average, x, at, d.array("f", shape=x.shape[at : at + 1], low=1))


def make_sum(function: Any, **more: Any) -> Any:
    """Calls of a sum or product, whose numbers are small."""
    return make_reduction(function, low=-4, high=4, where=(None, True), initial=(None, 2),
                          dtype=(None, "float64", "int64"), **more)  # fmt: skip


CASES: dict[str, Any] = {
    "np.sum": make_sum(np.sum),
    "np.prod": make_sum(np.prod),
    "np.mean": make_reduction(np.mean, dtype=(None, "float64"), where=(None, True)),
    "np.var": make_reduction(np.var, ddof=(0, 1)),
    "np.std": make_reduction(np.std, ddof=(0, 1)),
    "np.average": draw_average,
    "np.max": make_reduction(np.max, initial=(None, None, 3)),
    "np.min": make_reduction(np.min, initial=(None, None, 3)),
    "np.ptp": make_reduction(np.ptp),
    "np.all": make_reduction(np.all, where=(None, True)),
    "np.any": make_reduction(np.any, where=(None, True)),
    "np.count_nonzero": make_reduction(np.count_nonzero, low=-1, high=1),
    "np.argmax": along(np.argmax, keepdims=(False, True)),
    "np.argmin": along(np.argmin, keepdims=(False, True)),
    "np.nansum": with_nan(np.nansum),
    "np.nanprod": with_nan(np.nanprod),
    "np.nanmax": with_nan(np.nanmax),
    "np.nanmin": with_nan(np.nanmin),
    "np.nanmean": with_nan(np.nanmean),
    "np.nancumsum": along(np.nancumsum),
    "np.cumsum": along(np.cumsum, dtype=(None, "float64")),
    "np.cumprod": along(np.cumprod),
    "np.cumulative_sum": along(np.cumulative_sum, include_initial=(False, True)),
    "np.cumulative_prod": along(np.cumulative_prod, include_initial=(False, True)),
    "np.diff": along(np.diff, none=False, n=(1, 2, 0), prepend=(None, 1), append=(None, 2)),
    "np.ediff1d": lambda d: call(np.ediff1d, d.array("if"), d.pick(None, 2, [3, 4]),
                                 d.pick(None, 1)),
    "np.trapezoid": along(np.trapezoid, "if", none=False, dx=(1.0, 0.5)),
    "np.median": make_reduction(np.median, "iuf"),
    "np.quantile": along(np.quantile, "if", least=1, q=(0.25, 0.0, [0.1, 0.9], 1.5),
                         method=("linear", "lower", "higher", "midpoint", "nearest")),
    "np.percentile": along(np.percentile, "if", least=1, q=(25, 100, [[10], [90]]),
                           keepdims=(False, True)),
}  # fmt: skip
CASES["np.amax"], CASES["np.amin"] = CASES["np.max"], CASES["np.min"]
