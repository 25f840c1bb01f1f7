"""Reductions, sorting and sums along an axis."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..promotion import as_type, promote, promote_to_float
from ..rules import reads
from .linear import p_norm

EXTREMES = {"max": "Max", "min": "Min"}


def axes_of(x, dims) -> list[int]:
    """Axes that count from the front; all of them where none is given."""
    dims = (dims,) if isinstance(dims, int) else dims
    if not dims or x.rank == 0:
        return list(range(x.rank))
    return [axis_of(d, x.rank) for d in dims]


def reduce(g, op, x, dims, keepdim=False):
    """A reduction over axes; a number stays itself."""
    if x.rank == 0:
        return g.Identity(x)
    return g["Reduce" + op](x, axes_of(x, dims), keepdims=int(keepdim))


def summed_type(x, dtype) -> DType:
    """The type that sums and products are of."""
    return dtype or (x.type if x.type.kind == "f" else DType.INT64)


@reads.for_each({"sum": "Sum", "prod": "Prod"})
def read_total(op, g, x, *, dtype):
    return reduce(g, op, g.cast(x, summed_type(x, dtype)), None)


@reads.for_each({"sum.dim_IntList": "Sum", "prod.dim_int": "Prod"})
def read_sum(op, g, x, dims, keepdim, *, dtype):
    return reduce(g, op, g.cast(x, summed_type(x, dtype)), dims, keepdim)


@reads("mean")
def read_mean_all(g, x, *, dtype):
    return reduce(g, "Mean", x if dtype is None else g.cast(x, dtype), None)


@reads("mean.dim")
def read_mean(g, x, dims, keepdim, *, dtype):
    return reduce(g, "Mean", x if dtype is None else g.cast(x, dtype), dims, keepdim)


@reads.for_each({"amax": "Max", "amin": "Min"})
def read_extreme(op, g, x, dims, keepdim):
    return extreme(g, op, x, dims, keepdim)


def extreme(g, op, x, dims, keepdim):
    """The greatest or the least, NaN where there is one."""
    if x.type is DType.BOOL:
        return g.cast(reduce(g, op, g.cast(x, DType.INT32), dims, keepdim), DType.BOOL)
    return reduce(g, op, x, dims, keepdim)


@reads.for_each(EXTREMES)
def read_extreme_all(op, g, x):
    return extreme(g, op, x, None, False)


@reads.for_each({"max.dim": "Max", "min.dim": "Min"})
def read_extreme_dim(op, g, x, dim, keepdim):
    if x.rank == 0:
        return g.Identity(x), g.const(0, DType.INT64)
    axis = axis_of(dim, x.rank)
    values = extreme(g, op, x, axis, keepdim)
    searched = g.cast(x, DType.INT32) if x.type is DType.BOOL else x
    return values, g["Arg" + op](searched, axis=axis, keepdims=int(keepdim))


@reads("aminmax")
def read_both_extremes(g, x, *, dim, keepdim):
    return tuple(extreme(g, op, x, dim, keepdim) for op in ("Min", "Max"))


@reads("count_nonzero.dim_IntList", "count_nonzero")
def read_count(g, x, dims):
    return reduce(g, "Sum", g.cast(g.is_true(x), DType.INT64), dims)


@reads.for_each({"nansum": False, "nanmean": True})
def read_sum_of_numbers(is_mean, g, x, dims, keepdim, *, dtype):
    """The sum, or mean, of what is a number."""
    x = g.cast(x, summed_type(x, dtype))
    is_number = g.Not(g.IsNaN(x)) if x.type.kind == "f" else g.full_like(x, 1, DType.BOOL)
    total = reduce(g, "Sum", g.Where(is_number, x, as_type(g, 0, x.type)), dims, keepdim)
    if not is_mean:
        return total
    return g.Div(total, reduce(g, "Sum", g.cast(is_number, x.type), dims, keepdim))


@reads.for_each({"argmax": "ArgMax", "argmin": "ArgMin"})
def read_arg(op, g, x, dim, keepdim):
    x = g.cast(x, DType.INT32) if x.type is DType.BOOL else x
    if dim is None or x.rank == 0:
        y = g[op](g.Reshape(x, [-1]), axis=0, keepdims=0)
        return g.Reshape(y, [1] * x.rank) if keepdim else y
    return g[op](x, axis=axis_of(dim, x.rank), keepdims=int(keepdim))


@reads.for_each({"any": "Max", "all": "Min"})
def read_any_all(op, g, x):
    return any_or_all(g, op, x, None, False)


@reads.for_each({"any.dim": "Max", "any.dims": "Max", "all.dim": "Min", "all.dims": "Min"})
def read_any(op, g, x, dims, keepdim):
    return any_or_all(g, op, x, dims, keepdim)


def any_or_all(g, op, x, dims, keepdim):
    """Whether any element is not zero, or all; the latter of unsigned bytes is one too."""
    y = reduce(g, op, g.cast(g.is_true(x), DType.INT32), dims, keepdim)
    return g.cast(y, DType.UINT8 if x.type is DType.UINT8 else DType.BOOL)


def variance(g, x, dims, correction, keepdim):
    """The mean square of deviations, and the mean."""
    axes = axes_of(x, dims)
    mean = g.ReduceMean(x, axes, keepdims=1) if x.rank else g.Identity(x)
    deviation = g.Sub(x, mean)
    total = reduce(g, "Sum", g.Mul(deviation, deviation), dims, keepdim)
    sizes = [g.size_of(x, a) for a in axes]
    count = g.multiply_sizes(sizes)
    if isinstance(count, int):
        divisor = as_type(g, float(max(count - correction, 0)), x.type)
    else:
        rest = g.Sub(g.cast(count, x.type), as_type(g, float(correction), x.type))
        divisor = g.Squeeze(g.Max(rest, 0.0), [0])
    flat = mean if keepdim or not x.rank else g.Squeeze(mean, axes)
    return g.Div(total, divisor), flat


def finish(g, root, pair):
    """The deviation of a variance, where that is asked for."""
    value, mean = pair
    return (g.Sqrt(value) if root else value), mean


@reads.for_each({"var": False, "std": True})
def read_var(root, g, x, unbiased):
    return finish(g, root, variance(g, x, None, int(unbiased), False))[0]


@reads.for_each({"var.dim": False, "std.dim": True})
def read_var_dim(root, g, x, dims, unbiased, keepdim):
    return finish(g, root, variance(g, x, dims, int(unbiased), keepdim))[0]


@reads.for_each({"var.correction": False, "std.correction": True})
def read_var_correction(root, g, x, dims, *, correction, keepdim):
    correction = 1 if correction is None else correction
    return finish(g, root, variance(g, x, dims, correction, keepdim))[0]


@reads.for_each({"var_mean.correction": False, "std_mean.correction": True})
def read_var_mean(root, g, x, dims, *, correction, keepdim):
    return finish(g, root, variance(g, x, dims, 1 if correction is None else correction, keepdim))


@reads.for_each({"var_mean": False, "std_mean": True})
def read_var_mean_all(root, g, x, unbiased):
    return finish(g, root, variance(g, x, None, int(unbiased), False))


@reads.for_each({"var_mean.dim": False, "std_mean.dim": True})
def read_var_mean_dim(root, g, x, dims, unbiased, keepdim):
    return finish(g, root, variance(g, x, dims, int(unbiased), keepdim))


@reads.for_each({"logsumexp": "LogSumExp", "special_logsumexp": "LogSumExp"})
def read_logsumexp(op, g, x, dims, keepdim):
    (x,) = promote_to_float(g, x)
    return reduce(g, op, x, dims, keepdim)


@reads("linalg_vector_norm")
def read_vector_norm(g, x, order, dims, keepdim, *, dtype):
    x = x if dtype is None else g.cast(x, dtype)
    axes = axes_of(x, dims)
    if order == 2:
        return g.ReduceL2(x, axes, keepdims=int(keepdim))
    if order == 1:
        return g.ReduceL1(x, axes, keepdims=int(keepdim))
    if abs(order) == math.inf:
        return reduce(g, "Max" if order > 0 else "Min", g.Abs(x), axes, keepdim)
    require(order != 0, "the count of what is not zero: compare with zero and sum")
    total = g.ReduceSum(g.Pow(g.Abs(x), as_type(g, order, x.type)), axes, keepdims=int(keepdim))
    return g.Pow(total, as_type(g, 1 / order, x.type))


@reads("norm.ScalarOpt_dim")
def read_norm(g, x, p, dims, keepdim):
    return read_vector_norm(g, x, 2 if p is None else p, dims, keepdim, dtype=None)


@reads("linalg_norm")
def read_linalg_norm(g, x, order, dims, keepdim, *, dtype):
    """Of vectors, or of all elements; of matrices by their own operator."""
    is_vector = order is None or (dims is not None and len(dims) == 1) or x.rank == 1
    require(is_vector, f"the norm ord={order} of matrices: use torch.linalg.matrix_norm")
    return read_vector_norm(g, x, 2 if order is None else order, dims, keepdim, dtype=dtype)


@reads("linalg_matrix_norm.str_ord", "linalg_matrix_norm", "frobenius_norm.dim")
def read_matrix_norm(g, x, order="fro", dims=(-2, -1), keepdim=False, *, dtype=None):
    x = x if dtype is None else g.cast(x, dtype)
    if order == "fro":
        return g.ReduceL2(x, axes_of(x, dims), keepdims=int(keepdim))
    sums = {1: 0, -1: 0, math.inf: 1, -math.inf: 1}
    require(order in sums, f"the norm ord={order} of matrices: it takes singular values, which "
            "ONNX lacks")  # fmt: skip
    axes = axes_of(x, dims)
    total = g.ReduceSum(g.Abs(x), [axes[sums[order]]], keepdims=1)
    y = reduce(g, "Max" if order > 0 else "Min", total, [axes[1 - sums[order]]], True)
    return y if keepdim else g.Squeeze(y, axes)


@reads("dist")
def read_distance(g, x, y, p):
    return p_norm(g, g.Abs(g.Reshape(g.Sub(*promote(g, x, y)), [-1])), p, 0)


@reads("renorm")
def read_bounded_norms(g, x, p, dim, bound):
    """Slices along an axis, none longer than the bound."""
    axes = [a for a in range(x.rank) if a != axis_of(dim, x.rank)]
    length = read_vector_norm(g, x, p, tuple(axes), True, dtype=None)
    bound = as_type(g, float(bound), x.type)
    factor = g.Div(bound, g.Add(length, as_type(g, 1e-7, x.type)))
    return g.Mul(x, g.Where(g.Greater(length, bound), factor, as_type(g, 1.0, x.type)))


@reads("norm.Scalar")
def read_norm_all(g, x, p):
    return p_norm(g, g.Abs(g.Reshape(x, [-1])), p, 0)


@reads("cumsum")
def read_cumsum(g, x, dim, *, dtype):
    x = g.cast(x, summed_type(x, dtype))
    return x if x.rank == 0 else g.CumSum(x, g.const(axis_of(dim, x.rank), DType.INT64))


@reads("cumprod")
def read_cumprod(g, x, dim, *, dtype):
    x = g.cast(x, summed_type(x, dtype))
    return x if x.rank == 0 else g.CumProd(x, g.const(axis_of(dim, x.rank), DType.INT64))


@reads("sort", "sort.stable")
def read_sort(g, x, *, dim, descending):
    return sorted_pair(g, x, None, dim, descending)


@reads("argsort", "argsort.stable")
def read_argsort(g, x, *, dim, descending):
    return sorted_pair(g, x, None, dim, descending)[1]


def sorted_pair(g, x, count, dim, descending):
    """The first values in order, and where they are."""
    if x.rank == 0:
        return g.Identity(x), g.const(0, DType.INT64)
    axis = axis_of(dim, x.rank)
    size = g.size_of(x, axis) if count is None else count
    y = g.cast(x, DType.INT32) if x.type is DType.BOOL else x
    values, places = g.TopK(y, g.shape_from([size]), axis=axis, largest=int(descending), outputs=2)
    return g.cast_like(values, x), places


@reads("msort")
def read_sort_rows(g, x):
    return sorted_pair(g, x, None, 0, False)[0]


@reads("topk")
def read_topk(g, x, k, dim, largest):
    return sorted_pair(g, x, k, dim, largest)


@reads("bucketize.Tensor")
def read_buckets(g, x, bounds, *, out_int32, right):
    return count_before(g, bounds, x, right, out_int32)


@reads("searchsorted.Tensor")
def read_searches(g, bounds, x, *, out_int32, right, side):
    return count_before(g, bounds, x, right or side == "right", out_int32)


def count_before(g, bounds, x, is_behind, is_short):
    """Where numbers belong among sorted ones: behind equal ones or before."""
    bounds, x = promote(g, bounds, x)
    rows = bounds if bounds.rank == 1 else g.Unsqueeze(bounds, [bounds.rank - 1])
    is_after = g[("Greater" if is_behind else "GreaterOrEqual")](rows, g.Unsqueeze(x, [x.rank]))
    before = g.cast(g.Not(is_after), DType.INT64)  # NaN is behind all
    count = g.ReduceSum(before, [x.rank], keepdims=0)
    return g.cast(count, DType.INT32) if is_short else count
