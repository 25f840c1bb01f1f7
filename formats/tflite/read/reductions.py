"""Operators that take axes together, sort them or add up along them."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..rules import reads
from .shapes import long

REDUCERS = {
    "MEAN": "ReduceMean", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd", "SUM": "ReduceSum",
}  # fmt: skip


def read_axes(g, x: Value, axes: Value):
    """Axes from the front, each once."""
    if axes.tensor is None:
        return g.Reshape(long(g, axes), [-1])
    return sorted({axis_of(a, x.rank) for a in axes.ints()})


@reads.for_each(REDUCERS)
def read_reduction(op, g, x, axes, *, keep_dims: bool = False):
    places = read_axes(g, x, axes)
    if op == "ReduceMean" and x.type.kind != "f":
        require(not isinstance(places, Value), "computed axes of a mean of integers. Make them "
                "constants")  # fmt: skip
        total = g.ReduceSum(x, places, keepdims=int(keep_dims))
        count = g.multiply_sizes([g.size_of(x, a) for a in places])
        if isinstance(count, int):
            return g.Div(total, g.const(count, x.type))
        return g.Div(total, g.cast(g.Squeeze(count, [0]), x.type))
    if not isinstance(places, Value) and not places:
        return x
    return g[op](x, places, keepdims=int(keep_dims))


@reads.for_each({"REDUCE_ANY": "ReduceMax", "REDUCE_ALL": "ReduceMin"})
def read_logical_reduction(op, g, x, axes, *, keep_dims: bool = False):
    places = read_axes(g, x, axes)
    if not isinstance(places, Value) and not places:
        return x
    y = g[op](g.cast(x, DType.INT32), places, keepdims=int(keep_dims))
    return g.cast(y, DType.BOOL)


@reads.for_each({"ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin"}, ignore=("output_type",))
def read_arg(op, g, x, axis, *, results: Hint[tuple[Value, ...]]):
    places = g[op](x, axis=axis_of(axis.ints()[0], x.rank), keepdims=0)
    return g.cast(places, results[0].type)


@reads("CUMSUM")
def read_cumsum(g, x, axis, *, exclusive: bool = False, reverse: bool = False):
    axis = g.const(axis.ints()[0], DType.INT64)
    return g.CumSum(x, axis, exclusive=int(exclusive), reverse=int(reverse))


@reads("TOPK_V2")
def read_top_k(g, x, k, *, results: Hint[tuple[Value, ...]]):
    values, places = g.TopK(x, g.Reshape(long(g, k), [1]), axis=-1, outputs=2)
    kind = results[1].dtype if len(results) > 1 else DType.INT32
    return values, g.cast(places, kind or DType.INT32)


@reads("UNIQUE", ignore=("idx_out_type",))
def read_unique(g, x, *, results: Hint[tuple[Value, ...]]):
    """Of int64 in place of other integers, of which ONNX Runtime has no kernel."""
    values_in = x if x.type.kind == "f" else long(g, x)
    values, _, places = g.Unique(values_in, sorted=0, axis=None, outputs=3)
    return g.cast(values, x.type), g.cast(
        places, results[1].type if len(results) > 1 else DType.INT32
    )


@reads("L2_NORMALIZATION")
def read_l2_normalization(g, x):
    """The last axis in units of its length, which counts as 1e-6 at least."""
    length = g.Sqrt(g.ReduceSum(g.Mul(x, x), [-1], keepdims=1))
    return g.Div(x, g.Max(length, g.scalar(1e-6, x)))


@reads("SOFTMAX")
def read_softmax(g, x, *, beta: float = 0.0):
    return g.Softmax(x if beta == 1 else g.Mul(x, g.scalar(beta, x)), axis=-1)


@reads("LOG_SOFTMAX")
def read_log_softmax(g, x):
    return g.LogSoftmax(x, axis=-1)


@reads("LOCAL_RESPONSE_NORMALIZATION")
def read_lrn(g, x, *, radius: int = 0, bias: float = 0.0, alpha: float = 0.0, beta: float = 0.0):
    """ONNX divides alpha by the size of the window, which goes over the second axis."""
    require(radius >= 0 and x.rank == 4, "a window over other than four axes. Reshape the tensor")
    size = 2 * radius + 1
    y = g.LRN(g.Transpose(x, perm=(0, 3, 1, 2)), size=size, bias=bias, alpha=alpha * size,
              beta=beta)  # fmt: skip
    return g.Transpose(y, perm=(0, 2, 3, 1))
