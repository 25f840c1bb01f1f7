"""Reductions, sorting and sums along an axis."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.indexing import extreme_value

from ..target import TorchBuilder, legalizations, writes
from .shapes import number_of, place_axes

REDUCTIONS = {"ReduceMax": ".amax", "ReduceMin": ".amin", "ReduceMean": ".mean",
              "ReduceSum": ".sum", "ReduceLogSumExp": ".logsumexp"}  # fmt: skip


def find_axes(x: Value, axes: Value | None, keep_all: int) -> tuple[int, ...]:
    """The axes that are reduced."""
    if axes is None or (axes.tensor is not None and axes.tensor.size == 0):
        return () if keep_all else tuple(range(x.rank))
    require(axes.tensor is not None, "axes that are computed")
    return place_axes(x, axes.ints())


@writes.for_each(REDUCTIONS)
def write_reduction(name: str, t: TorchBuilder, x: Value, axes: Value | None = None, *,
                    keepdims: int, noop_with_empty_axes: int):  # fmt: skip
    named = find_axes(x, axes, noop_with_empty_axes)
    if not named:
        return x
    dim = named[0] if len(named) == 1 else named
    is_narrow = name == ".sum" and x.type.kind in "iu" and x.type is not DType.INT64
    dtype = x.type if is_narrow else None
    return t[name](x, dim=dim, keepdim=True if keepdims else None, dtype=dtype)


@legalizations.for_each(("ReduceMax", "ReduceMin"))
def legalize_extreme(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """PyTorch has no extreme of no elements."""
    is_known = axes is None or axes.tensor is not None
    named = find_axes(x, axes, noop_with_empty_axes) if is_known else ()
    empty = [axis for axis in named if x.ranked_shape[axis] == 0]
    if not empty:
        return None
    ends = [*[0] * x.rank, *(int(axis in empty) for axis in range(x.rank))]
    is_least = op == "ReduceMin"
    least = is_least if x.type is DType.BOOL else extreme_value(x.type, is_least)
    padded = g.Pad(x, ends, g.const(least, x.type))
    return g[op](padded, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)


@writes("ReduceProd")
def write_product(t: TorchBuilder, x: Value, axes: Value | None = None, *, keepdims: int,
                  noop_with_empty_axes: int):  # fmt: skip
    narrow = x.type if x.type.kind in "iu" and x.type is not DType.INT64 else None
    for axis in sorted(find_axes(x, axes, noop_with_empty_axes), reverse=True):
        x = t[".prod"](x, dim=axis, keepdim=True if keepdims else None, dtype=narrow)
    return x


@writes.for_each({"ArgMax": "argmax", "ArgMin": "argmin"})
def write_arg(name: str, t: TorchBuilder, x: Value, *, axis: int, keepdims: int,
              select_last_index: int):  # fmt: skip
    keepdim = True if keepdims else None
    if not select_last_index:
        return t[f"torch.{name}"](x, dim=axis, keepdim=keepdim)
    size = t.size(x, axis)
    last = t["-"](size, 1) if isinstance(size, Value) else size - 1
    return t["-"](last, t[f"torch.{name}"](t.torch.flip(x, (axis,)), dim=axis, keepdim=keepdim))


@writes("TopK", ignore=("sorted",))
def write_top_k(t: TorchBuilder, x: Value, k: Value, *, axis: int, largest: int):
    values, places = t.torch.sort(
        x, dim=axis, descending=True if largest else None, stable=True, outputs=2
    )
    count = number_of(t, k)
    index = (slice(None),) * axis + (slice(None, count),)
    return t["[]"](values, *index), t["[]"](places, *index)


@writes("CumSum")
def write_cumsum(t: TorchBuilder, x: Value, axis: Value, *, exclusive: int, reverse: int):
    is_known = axis.tensor is not None
    require(is_known or not exclusive, "exclusive sums along a computed axis. Make it a constant")
    dim = int(axis.array()) % x.rank if is_known else number_of(t, axis)
    y = t.torch.flip(x, (dim,)) if reverse else x
    if exclusive:
        lead = (slice(None),) * dim
        pads = (0, 0) * (x.rank - 1 - dim) + (1, 0)
        y = t.F.pad(t["[]"](y, *lead, slice(None, -1)), pads)
    narrow = x.type if x.type.kind in "iu" and x.type is not DType.INT64 else None
    y = t.torch.cumsum(y, dim, dtype=narrow)
    return t.torch.flip(y, (dim,)) if reverse else y


@writes("Einsum")
def write_einsum(t: TorchBuilder, *values: Value, equation: str):
    return t.torch.einsum(equation, *values)
