"""Reductions, and positions of extremes."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.graph import DType

from .table import number, writes

REDUCTIONS = {
    "ReduceMax": ("max", {}),
    "ReduceMean": ("mean", {}),
    "ReduceMin": ("min", {}),
    "ReduceProd": ("prod", {}),
    "ReduceSum": ("sum", {}),
    "ReduceL2": ("norm", {"ord": 2}),
}


def write_reduction(name, extra, s, x, axes=None, *, keepdims, noop_with_empty_axes):
    require(name != "norm" or x.type.kind == "f", f"a norm of {x.type.value} elements")
    chosen = axes.ints() if axes is not None else ()
    if not chosen:
        if noop_with_empty_axes:
            require(name in ("sum", "mean", "max", "min", "prod"), "no axes that are none")
            return x
        chosen = tuple(range(x.rank))
    return s[name](x, axis=chosen or (0,), keepdims=bool(keepdims), **extra)


for _op, (_name, _extra) in REDUCTIONS.items():
    writes(_op)(partial(write_reduction, _name, _extra))


def write_arg(name, s, x, *, axis, keepdims):
    """MXNet's positions are float32: exact below 2**24. Before 1.7 it asks floats only."""
    if x.type.kind != "f" and not s.release.has_doubles:
        require(x.type is not DType.INT64, f"{name} of int64 elements before MXNet 1.7")
        x = s.Cast(x, dtype="float64")
    return s.Cast(s[name](x, axis=axis, keepdims=bool(keepdims)), dtype="int64")


for _op, _name in {"ArgMax": "argmax", "ArgMin": "argmin"}.items():
    writes(_op, only={"select_last_index": (0,)})(partial(write_arg, _name))


@writes("TopK", ignore=("sorted",))
def write_top_k(s, x, k, *, axis, largest):
    count = number(k)
    require(count is not None, "a count computed while the model runs")
    frame = {"axis": axis, "k": int(count), "is_ascend": not largest}  # type: ignore[arg-type]
    if s.release.lacking("topk", {"dtype": "int64"}) is None:
        return s.topk(x, ret_typ="both", dtype="int64", outputs=2, **frame)
    values, places = s.topk(x, ret_typ="both", dtype="int32", outputs=2, **frame)
    return values, s.Cast(places, dtype="int64")


@writes("CumSum", only={"exclusive": (0,), "reverse": (0,)})
def write_cum_sum(s, x, axis):
    (along,) = axis.ints()
    return s["_np_cumsum"](x, axis=along % x.rank)
