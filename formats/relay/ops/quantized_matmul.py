"""Products of quantised tensors, and the pooling of one: summed exactly, in integers."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import BYTES, DType, Value
from serde.rewrite.rules import Hint

from ..rules import reads
from ..target import legalizations, writes
from ..upgrade import kernel_layout_of
from .conv_transpose import read_conv_transpose
from .convolution import (
    FIXED_PADS,
    LAYOUTS,
    TUNING,
    convolve_as_image,
    explicit_pads,
    normalize_pads,
    read_conv,
)
from .fixed_point import require_scalars, saturate
from .integer_range import as_bytes
from .layouts import pack_layout, unpack_layout
from .linear import legalize_product, multiply_integers, swap_last_axes
from .pooling import pool
from .quantization import align_to_axis, is_one_number, unit_scale, upcast, zero_point

WHOLE = {"out_dtype": "int32"}


def subtract_zero_point(g, x: Value, zero: Value, axis: int):
    """``x`` less its zero point, as int16 where that holds it."""
    x_int32 = g.cast(x, DType.INT32)
    known = zero.tensor is not None
    if known and not zero.array().any():
        return x if x.type in BYTES else x_int32
    y = g.Sub(x_int32, align_to_axis(g, g.cast(zero, DType.INT32), axis, x.rank))
    return g.cast(y, DType.INT16) if x.type in BYTES else y


@reads("qnn.conv2d", ignore=TUNING)
def read_qnn_conv2d(
    g, x, w, x_zero, w_zero, x_scale, w_scale, *, strides: Ints = (1, 1), padding: Ints = (0, 0),
    dilation: Ints = (1, 1), groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="",
    out_dtype: DType | None = None,
):  # fmt: skip
    """Zero points are taken away first, so that padding is zero, not a zero point."""
    x = subtract_zero_point(g, x, x_zero, data_layout.index("C"))
    w = subtract_zero_point(g, w, w_zero, kernel_layout.index("O"))
    return read_conv(
        2, g, x, w, strides=strides, padding=padding, dilation=dilation, groups=groups,
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        out_dtype=out_dtype or DType.INT32,
    )  # fmt: skip


@reads("qnn.conv2d_transpose", ignore=TUNING)
def read_qnn_conv2d_transpose(
    g, x, w, x_zero, w_zero, x_scale, w_scale, *, strides: Ints = (1, 1), padding: Ints = (0, 0),
    output_padding: Ints = (0, 0), dilation: Ints = (1, 1), groups=1, data_layout="NCHW",
    kernel_layout="IOHW", out_layout="", out_dtype: DType | None = None,
    decide_by_shapes: Hint[bool] = False,
):  # fmt: skip
    if decide_by_shapes:
        kernel_layout = kernel_layout_of(x, w, kernel_layout, data_layout)
    x = subtract_zero_point(g, x, x_zero, data_layout.index("C"))
    w = subtract_zero_point(g, w, w_zero, kernel_layout.index("O"))
    return read_conv_transpose(
        2, g, x, w, strides=strides, padding=padding, output_padding=output_padding,
        dilation=dilation, groups=groups, data_layout=data_layout, kernel_layout=kernel_layout,
        out_layout=out_layout, out_dtype=out_dtype or DType.INT32,
    )  # fmt: skip


def multiply_with_zero_points(
    g, a: Value, b: Value, a_zero: Value, b_zero: Value, out_dtype: DType | None
):
    """``(a - a_zero) · (b - b_zero)`` as int32."""
    require(out_dtype in (None, DType.INT32), f"out_dtype={out_dtype}")
    pairs = ((a, a_zero), (b, b_zero))
    operands = [g.Sub(g.cast(x, DType.INT32), g.cast(z, DType.INT32)) for x, z in pairs]
    parts = as_bytes(g, *operands)
    return g.MatMulInteger(*parts) if parts is not None else multiply_integers(g, *operands)


@reads("qnn.dense", ignore=("units",))
def read_qnn_dense(g, x, w, x_zero, w_zero, x_scale, w_scale, *, out_dtype: DType | None = None):
    return multiply_with_zero_points(g, x, swap_last_axes(g, w), x_zero, w_zero, out_dtype)


@reads("qnn.contrib_dense_pack", ignore=("units",))
def read_qnn_dense_pack(
    g, x, w, x_zero, w_zero, x_scale, w_scale, *, out_dtype: DType | None = None,
    weight_layout="NC",
):  # fmt: skip
    w = unpack_layout(g, w, weight_layout, "NC")
    return read_qnn_dense(g, x, w, x_zero, w_zero, x_scale, w_scale, out_dtype=out_dtype)


@reads("qnn.batch_matmul")
def read_qnn_batch_matmul(
    g, x, y, x_zero, y_zero, x_scale, y_scale, *, out_dtype: DType | None = None,
    transpose_a=False, transpose_b=False,
):  # fmt: skip
    x = swap_last_axes(g, x) if transpose_a else x
    y = swap_last_axes(g, y) if transpose_b else y
    return multiply_with_zero_points(g, x, y, x_zero, y_zero, out_dtype)


@reads("qnn.avg_pool2d")
def read_qnn_avg_pool2d(
    g, x, *quantities, pool_size: Ints, strides: Ints = (1, 1), dilation: Ints = (1, 1),
    padding: Ints = (0, 0), layout="NCHW", out_layout="", ceil_mode=False,
    count_include_pad=False,
):  # fmt: skip
    """The mean at the scale of the result, cut off; padding is 0, whatever the zero point."""
    scale, zero, out_scale, out_zero = require_scalars(quantities)
    upcast_x = upcast(g, x, scale, zero, out_scale, out_zero)
    y = average(
        g, upcast_x, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )  # fmt: skip
    return saturate(g, y, x.type)


def average(
    g, x: Value, *, pool_size: Ints, strides: Ints, dilation: Ints, padding: Ints, layout: str,
    out_layout: str, ceil_mode: bool, count_include_pad: bool,
) -> Value:  # fmt: skip
    """The means of images in a layout."""
    frame = {
        "kernel_shape": pool_size, "strides": strides, "dilations": dilation[:2],
        "pads": normalize_pads(padding, 2),
    }  # fmt: skip

    x = unpack_layout(g, x, layout, "NCHW")
    y = pool(g, x, "avg", frame, ceil_mode, count_include_pad)
    return pack_layout(g, y, "NCHW", out_layout or layout)


@legalizations("ConvInteger", only=FIXED_PADS)
def legalize_conv_integer(g, x, w, x_zero=None, w_zero=None, *, group, **window):
    """Images of known sizes; a signal is an image of height 1, and others are decomposed."""
    is_native = x.is_static and w.is_static and min(window["pads"]) >= 0 and is_one_number(x_zero)
    if is_native and x.rank == 4:
        return None
    if is_native and x.rank == 3:
        return convolve_as_image("ConvInteger", g, x, w, x_zero, w_zero, group=group, **window)
    return g.decompose("ConvInteger", 10, x, w, x_zero, w_zero, group=group, **window)


@writes("ConvInteger", only=FIXED_PADS)
def write_conv_integer(
    r, x, w, x_zero=None, w_zero=None, *, kernel_shape, strides, dilations, pads, group
):
    zeros, (data, kernel, _) = (zero_point(r, x_zero), zero_point(r, w_zero)), LAYOUTS[2]
    return r.qnn.conv2d(
        x, w, *zeros, unit_scale(r), unit_scale(r), strides=strides, padding=explicit_pads(pads),
        dilation=dilations, groups=group, channels=w.ranked_shape[0], kernel_size=kernel_shape,
        data_layout=data, kernel_layout=kernel, **WHOLE,
    )  # fmt: skip


@legalizations("MatMulInteger")
def legalize_mat_mul_integer(g, a, b, a_zero=None, b_zero=None):
    """One zero point for each operand; those of rows and columns are taken away before."""
    known = a.is_static and b.is_static and is_one_number(a_zero) and is_one_number(b_zero)
    if not known:
        return g.decompose("MatMulInteger", 10, a, b, a_zero, b_zero)
    return legalize_product("MatMulInteger", g, a, b, a_zero, b_zero)


@writes("MatMulInteger")
def write_mat_mul_integer(r, a, b, a_zero=None, b_zero=None):
    quantities = zero_point(r, a_zero), zero_point(r, b_zero), unit_scale(r), unit_scale(r)
    if a.rank == 2:
        turned = r.transpose(b, axes=(1, 0))
        return r.qnn.dense(a, turned, *quantities, units=b.ranked_shape[1], **WHOLE)
    turned = r.transpose(b, axes=(0, 2, 1))
    return r.qnn.batch_matmul(a, turned, *quantities, transpose_b=True, **WHOLE)
