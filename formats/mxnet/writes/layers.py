"""Convolutions, pooling, normalization, products of matrices."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.geometry import window_output
from serde.ir.graph import DType, Value

from ..target import number, symmetric, writes

ONE = {"training_mode": (0,)}


@writes("Conv")
def write_conv(s, x, w, b=None, *, kernel_shape, strides, dilations, pads, group):
    half = len(kernel_shape)
    if pads[:half] != pads[half:]:
        x, pads = padded(s, x, pads, 0.0), (0,) * 2 * half
    frame = {"kernel": kernel_shape, "stride": strides, "dilate": dilations, "pad": symmetric(pads)}
    return s.Convolution(
        x, w, *operands(b), num_filter=w.dims[0], num_group=group, no_bias=b is None, **frame
    )


def operands(*values: Value | None) -> list[Value]:
    return [v for v in values if v is not None]


def padded(s, x: Value, pads, fill: float):
    """Pad the axes behind the channels; MXNet pads images and volumes only."""
    half = len(pads) // 2
    require(x.type.kind == "f", f"pads of {x.type.value} elements")
    require(x.rank in (4, 5), f"pads {pads} that differ at the two ends, of {x.rank} axes")
    width = (0, 0, 0, 0, *(p for ends in zip(pads[:half], pads[half:], strict=True) for p in ends))
    return s.Pad(x, mode="constant", pad_width=width, constant_value=fill)


@writes("ConvTranspose")
def write_conv_transpose(
    s, x, w, b=None, *, kernel_shape, strides, dilations, pads, output_padding, group
):
    frame = {"kernel": kernel_shape, "stride": strides, "dilate": dilations, "pad": symmetric(pads)}
    return s.Deconvolution(
        x, w, *operands(b), num_filter=w.dims[1] * group, num_group=group, adj=output_padding,
        no_bias=b is None, **frame,
    )  # fmt: skip


def write_pool(kind, s, x, *, kernel_shape, strides, dilations, pads, ceil_mode, include=1, p=None):
    require(set(dilations) == {1}, f"dilations={dilations}")
    require(x.type.kind == "f", f"pooling of {x.type.value} elements")
    require(not ceil_mode or not drops(x, kernel_shape, strides, pads), "a last window in the pads")
    frame = {"kernel": kernel_shape, "stride": strides, "pad": symmetric(pads), "p_value": p}
    convention = "full" if ceil_mode else "valid"
    return s.Pooling(
        x, pool_type=kind, pooling_convention=convention,
        count_include_pad=bool(include) if kind == "avg" else None, **frame,
    )  # fmt: skip


def drops(x: Value, kernel, strides, pads) -> bool:
    """Whether ONNX drops, or may drop, a last window that MXNet keeps."""
    half = len(kernel)
    sizes = x.known[2:]
    for size, k, s, begin, end in zip(
        sizes, kernel, strides, pads[:half], pads[half:], strict=True
    ):
        if not isinstance(size, int):
            if s + end > k:
                return True
        elif (window_output(size, k, s, 1, begin + end, True) - 1) * s >= size + begin:
            return True
    return False


@writes("MaxPool", only={"storage_order": (0,)})
def write_max_pool(s, x, *, kernel_shape, strides, dilations, pads, ceil_mode):
    frame = {"kernel_shape": kernel_shape, "strides": strides, "dilations": dilations}
    return write_pool("max", s, x, pads=pads, ceil_mode=ceil_mode, **frame)


@writes("AveragePool")
def write_average_pool(
    s, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad
):
    frame = {"kernel_shape": kernel_shape, "strides": strides, "dilations": dilations}
    return write_pool(
        "avg", s, x, pads=pads, ceil_mode=ceil_mode, include=count_include_pad, **frame
    )


def write_global_pool(kind, s, x):
    ones = (1,) * (x.rank - 2)
    return s.Pooling(x, pool_type=kind, global_pool=True, kernel=ones)


writes("GlobalMaxPool")(partial(write_global_pool, "max"))
writes("GlobalAveragePool")(partial(write_global_pool, "avg"))


@writes("BatchNormalization", ignore=("momentum",), only=ONE)
def write_batch_norm(s, x, scale, bias, mean, var, *, epsilon):
    return s.BatchNorm(x, scale, bias, mean, var, eps=epsilon, fix_gamma=False)


@writes("LayerNormalization", only={"stash_type": (1,)})
def write_layer_norm(s, x, scale, bias=None, *, axis, epsilon):
    require(axis == x.rank - 1, f"axis={axis}: MXNet normalises over one axis")
    require(bias is not None and scale.rank == 1, "a scale of one axis and a bias are wanted")
    return s.LayerNorm(x, scale, bias, axis=axis, eps=epsilon)


@writes("InstanceNormalization")
def write_instance_norm(s, x, scale, bias, *, epsilon):
    return s.InstanceNorm(x, scale, bias, eps=epsilon)


@writes("LRN")
def write_lrn(s, x, *, size, alpha, beta, bias):
    return s.LRN(x, nsize=size, alpha=alpha, beta=beta, knorm=bias)


@writes("Softmax")
def write_softmax(s, x, *, axis):
    return s.softmax(x, axis=axis)


@writes("LogSoftmax")
def write_log_softmax(s, x, *, axis):
    return s.log_softmax(x, axis=axis)


@writes("Gemm")
def write_gemm(s, a, b, c=None, *, alpha, beta, transA, transB):
    a = s.transpose(a, axes=(1, 0)) if transA else a
    plain = c is None or (c.rank == 1 and beta == 1.0)
    if transB and alpha == 1.0 and plain:
        count = b.known[0]
        return s.FullyConnected(
            a, b, *operands(c), num_hidden=count, no_bias=c is None, flatten=False
        )
    y = s.dot(a, b, transpose_b=bool(transB))
    y.dtype = a.dtype
    y = y if alpha == 1.0 else s["_mul_scalar"](y, scalar=alpha)
    if c is None or beta == 0.0:
        return y
    if (n := number(c)) is not None:
        return s["_plus_scalar"](y, scalar=n * beta)
    return s.broadcast_add(y, c if beta == 1.0 else s["_mul_scalar"](c, scalar=beta))


@writes("MatMul")
def write_mat_mul(s, a, b):
    require(min(a.rank, b.rank) >= 2, "a product with a vector")
    if b.rank == 2:
        return s.dot(a, b)
    require(a.rank == b.rank, "a product that broadcasts")
    require(a.known[:-2] == b.known[:-2], "a product that broadcasts")
    if a.rank == 3:
        return s.batch_dot(a, b)
    wide = a.type in (DType.FLOAT32, DType.FLOAT64)
    require(wide, f"a product of {a.rank} axes of {a.type.value} elements")
    return s["_linalg_gemm2"](a, b)


@writes("DeformConv")
def write_deform_conv(
    s, x, w, offset, b=None, mask=None, *, kernel_shape, strides, dilations, pads, group,
    offset_group,
):  # fmt: skip
    """A number of images at once (``im2col_step``) would have to divide that of all."""
    half = len(kernel_shape)
    require(half == 2, f"a deformed window of {half} axes")
    if pads[:half] != pads[half:]:
        x, pads = padded(s, x, pads, 0.0), (0,) * 2 * half
    if mask is None:
        parts = offset_group * kernel_shape[0] * kernel_shape[1]
        mask = s.ones_like(s.slice_axis(offset, axis=1, begin=0, end=parts))
    return s["_contrib_ModulatedDeformableConvolution"](
        x, offset, mask, w, *operands(b), kernel=kernel_shape, stride=strides, dilate=dilations,
        pad=symmetric(pads), num_filter=w.dims[0], num_group=group,
        num_deformable_group=offset_group, no_bias=b is None, im2col_step=1,
    )  # fmt: skip


@writes("RoiAlign")
def write_roi_align(
    s, x, rois, image, *, mode, output_height, output_width, sampling_ratio, spatial_scale,
    coordinate_transformation_mode,
):  # fmt: skip
    require(mode == "avg", f"regions pooled by {mode!r}")
    rows = s.Concat(
        s.expand_dims(s.Cast(image, dtype=x.type.value), axis=1), rois, dim=1, num_args=2
    )
    return s["_contrib_ROIAlign"](
        x, rows, pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
        sample_ratio=sampling_ratio or -1, aligned=coordinate_transformation_mode == "half_pixel",
    )  # fmt: skip


@writes("MaxRoiPool")
def write_max_roi_pool(s, x, rois, *, pooled_shape, spatial_scale):
    return s.ROIPooling(x, rois, pooled_size=pooled_shape, spatial_scale=spatial_scale)
