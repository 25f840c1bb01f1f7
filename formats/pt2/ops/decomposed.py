"""Operators that PyTorch's own decompositions and private functions leave in a program."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import reads
from .activation import along, read_softmax
from .convolution import read_conv_padding, read_convolution
from .creation import fill
from .indexing import read_index, read_index_put
from .linear import read_cdist
from .losses import classify
from .normalization import keep_statistics, normalize_batch, read_no_training, read_weight_norm
from .shape import read_view

SUM = 2  # the reduction of losses


@reads("_unsafe_index.Tensor")
def read_unsafe_index(g, x, indices):
    return read_index(g, x, indices)


@reads("_unsafe_index_put")
def read_unsafe_put(g, x, indices, values, accumulate):
    return read_index_put(g, x, indices, values, accumulate)


@reads("_unsafe_masked_index")
def read_masked_index(g, x, mask, indices, fill):
    """Elements where a mask is, which alone has indices that the tensor has."""
    inside = []
    for axis, index in enumerate(indices):
        if index is not None:
            size = g.size_of(x, axis)
            last = as_type(g, size - 1, index.type) if isinstance(size, int) else g.cast_like(
                g.Sub(size, 1), index)  # fmt: skip
            index = g.Min(g.Max(index, as_type(g, 0, index.type)), last)
        inside.append(index)
    return g.Where(mask, read_index(g, x, inside), as_type(g, fill, x.type))


@reads("_reshape_alias", ignore=("stride",))
def read_reshape_alias(g, x, size):
    return read_view(g, x, size)


@reads("_safe_softmax")
def read_safe_softmax(g, x, dim, dtype):
    """A row without any finite element is zeros."""
    x = x if dtype is None else g.cast(x, dtype)
    y, lowest = along(g, "Softmax", x, dim), as_type(g, -math.inf, x.type)
    if x.rank == 0:
        return y
    most = g.ReduceMax(x, [axis_of(dim, x.rank)], keepdims=1)
    return g.Where(g.Equal(most, lowest), as_type(g, 0.0, x.type), y)


@reads.for_each({"special_softmax": "Softmax", "special_log_softmax": "LogSoftmax"})
def read_special_softmax(op, g, x, dim, dtype):
    return read_softmax(op, g, x, dim, dtype)


@reads("_convolution", ignore=("benchmark", "deterministic", "allow_tf32"))
def read_private_convolution(
    g, x, w, b, stride, padding, dilation, transposed, output_padding, groups
):  # fmt: skip
    return read_convolution(
        g, x, w, b, stride, padding, dilation, transposed, output_padding, groups
    )


@reads("_convolution_mode")
def read_convolution_mode(g, x, w, b, stride, padding, dilation, groups):
    return read_conv_padding(w.rank - 2, g, x, w, b, stride, padding, dilation, groups)


@reads("conv_tbc")
def read_time_convolution(g, x, w, b, pad):
    """Time, batch and channels of a tensor; of the weight time, and channels in and out."""
    images, weight = g.Transpose(x, perm=[1, 2, 0]), g.Transpose(w, perm=[2, 1, 0])
    y = g.Conv(images, weight, b, kernel_shape=[w.static_shape[0]], pads=[pad, pad])
    return g.Transpose(y, perm=[2, 0, 1])


@reads("native_batch_norm")
def read_native_batch_norm(g, x, w, b, mean, var, training, momentum, eps):
    require(not training, "batch normalization that changes its statistics unseen: export it with "
            "torch.export, which names them")  # fmt: skip
    return read_no_training(g, x, w, b, mean, var, momentum, eps)


@reads("_batch_norm_no_update")
def read_batch_norm_without_update(g, x, w, b, mean, var, momentum, eps):
    return (*read_no_training(g, x, w, b, mean, var, momentum, eps), g.const([], DType.UINT8))


@reads("_batch_norm_with_update_functional")
def read_batch_norm_with_update(g, x, w, b, mean, var, momentum, eps):
    y, now, biased, *moved = normalize_batch(g, x, w, b, mean, var, momentum, eps)
    return (y, *keep_statistics(g, x, now, biased, eps), g.const([], DType.UINT8), *moved)


@reads("_weight_norm_interface")
def read_weight_norm_pair(g, v, magnitude, dim):
    axes = [a for a in range(v.rank) if a != axis_of(dim, v.rank)]
    return read_weight_norm(g, v, magnitude, dim), g.ReduceL2(v, axes, keepdims=1)


@reads("_euclidean_dist")
def read_euclidean(g, a, b):
    return read_cdist(g, a, b, 2.0)


@reads("_int_mm")
def read_integer_product(g, a, b):
    return g.MatMulInteger(a, b)


@reads("nll_loss_forward", "nll_loss2d_forward")
def read_likelihood_and_weight(g, x, target, weight, reduction, ignored):
    """The loss, and the sum of the weights that it is the mean by."""
    loss = classify("NegativeLogLikelihoodLoss", g, x, target, weight, reduction, ignored)
    shares = g.full_like(x, 1) if weight is None else g.Expand(g.Reshape(
        weight, [-1, *[1] * max(x.rank - 2, 0)]), g.Shape(x))  # fmt: skip
    total = classify("NegativeLogLikelihoodLoss", g, g.Neg(shares), target, None, SUM, ignored)
    return loss, total if reduction else g.const(0.0, x.type)


@reads("_linalg_det")
def read_determinant_of_factors(g, x, outputs=1):
    require(outputs == 1, "factors of a determinant: take the determinant alone")
    return g.Det(x)


@reads("nonzero_static")
def read_nonzero_of_size(g, x, *, size, fill_value):
    """The places of so many elements that are not 0, filled up."""
    require(isinstance(size, int), "a computed size of nonzero_static: give a number")
    places = g.Transpose(g.NonZero(x), perm=[1, 0])
    rows = fill(g, [size, x.rank], fill_value, DType.INT64)
    return g.slice_axis(g.Concat(places, rows, axis=0), 0, 0, size)
