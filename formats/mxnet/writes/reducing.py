"""Reductions, and positions of extremes."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.graph import DType

from ..target import number, writes
from .sizes import Sizes, along, extent, turns_of

FARTHEST = 1 << 31  # no place along an axis is as far
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
def write_top_k(s, x, k=None, *, axis, largest, sizes: Sizes | None = None):
    """MXNet's order of equal elements is any: all are sorted, and the places of equal ones again.

    A place gets the number of its run of equal elements in front, so that no two are equal.
    """
    count = number(k) if sizes is None else sizes[0]
    if x.known[axis] == 1 and count is not None:
        return x, s.Cast(s.zeros_like(x), dtype="int64")
    frame = {"axis": axis, "k": 0, "is_ascend": not largest}
    values, places = s.topk(x, ret_typ="both", dtype="int64", outputs=2, **frame)
    before = s["_np_roll"](values, shift=(1,), axis=(axis,))
    changes = s.Cast(s.broadcast_not_equal(values, before), dtype="int64")
    runs = s["_mul_scalar"](s["_np_cumsum"](changes, axis=axis), scalar=FARTHEST)
    ordered = s.sort(s.broadcast_add(runs, places), axis=axis, is_ascend=True)
    parts = values, s.broadcast_sub(ordered, runs)
    if x.known[axis] == count and count is not None:
        return parts
    if isinstance(count, int):
        return tuple(s.slice_axis(v, axis=axis, begin=0, end=count) for v in parts)
    turns = extent(s, count) if count is not None else turns_of(s, s.Reshape(k, shape=(1,)))
    like = along(s, turns, axis % x.rank, x.rank)
    return tuple(s.slice_like(v, like, axes=(axis,)) for v in parts)


@writes("CumSum", only={"exclusive": (0,), "reverse": (0,)})
def write_cum_sum(s, x, axis):
    (along,) = axis.ints()
    return s["_np_cumsum"](x, axis=along % x.rank)
