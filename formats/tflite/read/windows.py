"""Convolutions, pools and images of other sizes; images have channels last in the file."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import add, combine, shape_data_of
from serde.ir.geometry import invert_perm, same_pads
from serde.ir.graph import Dim, DType, Value
from serde.passes.layout.place import to_first, to_last
from serde.version_converter.adapters.resize_coordinates import coordinates, nearest

from ..resize_places import LONGEST, nearest_places
from ..rules import reads
from .shapes import swap_blocks

SAME, VALID = 0, 1
Array = np.ndarray[Any, Any]


def first(g, x: Value):
    """An image with channels first."""
    require(x.rank > 3, f"an image of {x.rank} axes. Reshape the tensor")
    return g.Transpose(x, perm=to_first(x.rank))


def last(g, x: Value):
    """An image with channels last."""
    return g.Transpose(x, perm=to_last(x.rank))


def arrange(g, w: Value, perm: tuple[int, ...]):
    """A weight with its axes in another order; quantized ones stay integers, halves stay halves."""
    node = g.maker(w, "DequantizeLinear", "Cast")
    if node is None or node.op == "Cast":
        stored = w if node is None else node.inputs[0]
        return g.cast(g.Transpose(stored, perm=perm), w.type)
    integers, scale, zero = node.inputs
    if scale.rank == w.rank > 1:  # blocks along an axis
        scale, zero = (g.Transpose(v, perm=perm) for v in (scale, zero))
        attrs = {**node.attrs, "axis": invert_perm(perm)[node.attrs["axis"]]}
        return g.DequantizeLinear(g.Transpose(integers, perm=perm), scale, zero, **attrs)
    axis = invert_perm(perm)[node.attrs.get("axis", 1) % w.rank] if scale.rank else 1
    return g.DequantizeLinear(g.Transpose(integers, perm=perm), scale, zero, axis=axis)


def place_window(x: Value, kernel, strides, dilations, padding: int):
    """The attributes of a window over an image with channels first."""
    require(
        x.rank == len(kernel) + 2,
        f"a window of {len(kernel)} axes over a tensor of {x.rank}. Reshape the tensor",
    )
    require(min(*strides, *dilations, *kernel) > 0, f"strides {strides} and dilations {dilations} "
            "of a window. Give numbers above 0")  # fmt: skip
    frame = {"strides": strides, "kernel_shape": kernel, "dilations": dilations}
    sizes = x.ranked_shape[2:]
    if padding == VALID:
        return frame
    if not all(isinstance(d, int) for d in sizes):
        return {**frame, "auto_pad": "SAME_UPPER"}
    each = [same_pads(*part, True) for part in zip(sizes, kernel, strides, dilations, strict=True)]
    return {**frame, "pads": (*(a for a, _ in each), *(b for _, b in each))}


def count_groups(channels, w: Value) -> int:
    """Weights are output, height, width, input; fewer of the last than channels make groups."""
    each = w.static_shape[3]
    return channels // each if isinstance(channels, int) and each else 1


def count_channels(channels, w: Value) -> int:
    """Weights are 1, height, width, output: each input channel has as many in a row."""
    require(isinstance(channels, int), "an unknown number of channels. Give it (--static, --input)")
    return channels  # type: ignore[no-any-return]


@reads.for_each(
    {"CONV_2D": (count_groups, (0, 3, 1, 2)), "DEPTHWISE_CONV_2D": (count_channels, (3, 0, 1, 2))},
    ignore=("depth_multiplier", "quantized_bias_type"),
)
def read_conv_2d(
    form, g, x, w, b=None, *, padding: int = 0, stride_w: int = 0, stride_h: int = 0,
    dilation_w_factor: int = 1, dilation_h_factor: int = 1,
):  # fmt: skip
    """A group for some channels, or for each."""
    count, order = form
    image = first(g, x)
    frame = place_window(image, w.static_shape[1:3], (stride_h, stride_w),
                         (dilation_h_factor, dilation_w_factor), padding)  # fmt: skip
    group = count(image.ranked_shape[1], w)
    return last(g, g.Conv(image, arrange(g, w, order), b, group=group, **frame))


@reads("CONV_3D")
def read_conv_3d(
    g, x, w, b=None, *, padding: int = 0, stride_d: int = 0, stride_w: int = 0, stride_h: int = 0,
    dilation_d_factor: int = 1, dilation_w_factor: int = 1, dilation_h_factor: int = 1,
):  # fmt: skip
    """Weights are depth, height, width, input, output."""
    image = first(g, x)
    frame = place_window(
        image, w.static_shape[:3], (stride_d, stride_h, stride_w),
        (dilation_d_factor, dilation_h_factor, dilation_w_factor), padding,
    )  # fmt: skip
    return last(g, g.Conv(image, arrange(g, w, (4, 3, 0, 1, 2)), b, **frame))


def read_area(shape: Value) -> tuple[Dim, ...]:
    """The sizes of an image that an operand tells."""
    sizes = shape_data_of(shape)
    require(sizes is not None, "a computed shape of a transposed convolution. Make it a constant")
    return tuple(sizes[1:-1])  # type: ignore[index]


def count_more(size: Dim, area: Dim, kernel: int, stride: int) -> int:
    """How many rows a transposed convolution makes beyond those of the image."""
    if isinstance(size, int) and isinstance(area, int):
        return (area - 1) * stride + kernel - size
    grown, rest = combine("*", area, stride), kernel - stride
    more = {grown: rest, add(grown, rest): 0}.get(size)
    require(grown is not None and more is not None, "a transposed convolution of an image whose "
            "size is no multiple of the one before. Give it (--static, --input)")  # fmt: skip
    return more  # type: ignore[return-value]


def convolve_backwards(g, sizes, w: Value, x: Value, b, kernel, strides, padding: int):
    """A transposed convolution to an image of these sizes."""
    require(min(strides) > 0, f"strides {strides}. Give numbers above 0")
    image = first(g, x)
    begins, ends, extra = [], [], []
    for size, area, k, s in zip(sizes, image.ranked_shape[2:], kernel, strides, strict=True):
        more = count_more(size, area, k, s)
        before = 0
        if padding == SAME:  # LiteRT looks at the result alone
            before = (
                same_pads(size, k, s, 1, True)[0] if isinstance(size, int) else max(more, 0) // 2
            )
        begins.append(before)
        ends.append(max(more - before, 0))
        extra.append(max(before - more, 0))
    attrs = {"pads": (*begins, *ends), "strides": strides, "kernel_shape": kernel}
    if not any(extra):
        return last(g, g.ConvTranspose(image, w, b, **attrs))
    y = last(g, g.Pad(g.ConvTranspose(image, w, **attrs), [*[0] * (image.rank + 2), *extra]))
    return y if b is None else g.Add(y, b)


@reads("TRANSPOSE_CONV", ignore=("quantized_bias_type",))
def read_transpose_conv(g, shape, w, x, b=None, *, padding: int = 0, stride_w: int = 0,
                        stride_h: int = 0):  # fmt: skip
    """Weights are output, height, width, input."""
    strides, kernel = (stride_h, stride_w), w.static_shape[1:3]
    w = arrange(g, w, (3, 0, 1, 2))
    return convolve_backwards(g, read_area(shape), w, x, b, kernel, strides, padding)


@reads("CONV_3D_TRANSPOSE", only={"dilation_d_factor": (1,), "dilation_w_factor": (1,),
                                  "dilation_h_factor": (1,)})  # fmt: skip
def read_conv_3d_transpose(g, shape, w, x, b=None, *, padding: int = 0, stride_d: int = 0,
                           stride_w: int = 0, stride_h: int = 0):  # fmt: skip
    """Weights are depth, height, width, output, input."""
    strides, kernel = (stride_d, stride_h, stride_w), w.static_shape[:3]
    w = arrange(g, w, (4, 3, 0, 1, 2))
    return convolve_backwards(g, read_area(shape), w, x, b, kernel, strides, padding)


@reads.for_each({"AVERAGE_POOL_2D": "Average", "L2_POOL_2D": "L2", "MAX_POOL_2D": "Max"})
def read_pool(kind, g, x, *, padding: int = 0, stride_w: int = 0, stride_h: int = 0,
              filter_width: int = 0, filter_height: int = 0):  # fmt: skip
    """Means leave pads out."""
    image = first(g, x)
    covers, strides = (filter_height, filter_width), (stride_h, stride_w)
    frame = place_window(image, covers, strides, (1, 1), padding)
    if kind == "Max":
        return last(g, g.MaxPool(image, **frame))
    if kind == "Average":
        return last(g, g.AveragePool(image, **frame))
    return last(g, g.Sqrt(g.AveragePool(g.Mul(image, image), **frame)))


@reads("DEPTH_TO_SPACE")
def read_depth_to_space(g, x, *, block_size: int = 0):
    require(x.rank == 4, f"an image of {x.rank} axes. Reshape the tensor")
    if x.type.kind == "f":
        return last(g, g.DepthToSpace(first(g, x), blocksize=block_size, mode="DCR"))
    batch, rows, columns, channels = g.sizes_of(x)
    b = block_size
    require(b > 0 and isinstance(channels, int), f"block_size={b}. Give a number above 0")
    sizes = [batch, rows, columns, b, b, channels // b**2]
    result = [batch, *(g.multiply_sizes([n, b]) for n in (rows, columns)), channels // b**2]
    return swap_blocks(g, x, sizes, (0, 1, 3, 2, 4, 5), result)


@reads("SPACE_TO_DEPTH")
def read_space_to_depth(g, x, *, block_size: int = 0):
    """Of integers, of which runtimes of ONNX have no kernel, as a Transpose."""
    require(x.rank == 4, f"an image of {x.rank} axes. Reshape the tensor")
    if x.type.kind == "f":
        return last(g, g.SpaceToDepth(first(g, x), blocksize=block_size))
    rows, columns, channels = x.ranked_shape[1:]
    b = block_size
    require(b > 0 and all(isinstance(n, int) for n in (rows, columns, channels)),
            f"block_size={b} of an image of unknown size. Give it (--static, --input)")  # fmt: skip
    result = [g.size_of(x, 0), rows // b, columns // b]
    sizes = [*result[:2], b, result[2], b, channels]
    return swap_blocks(g, x, sizes, (0, 1, 3, 2, 4, 5), [*result, channels * b**2])


def name_coordinates(align_corners: bool, half_pixel_centers: bool) -> str:
    """Where a pixel of a resized image comes from, as ONNX calls it."""
    require(not (align_corners and half_pixel_centers), "align_corners and half_pixel_centers. "
            "Leave one out")  # fmt: skip
    if align_corners:
        return "align_corners"
    return "half_pixel" if half_pixel_centers else "asymmetric"


def resized_shape(g, image: Value, size: Value):
    """The shape with channels first of an image that becomes of a size."""
    require(image.rank == 4, f"an image of {image.rank} axes. Reshape the tensor")
    require(size.tensor is None or min(size.ints(), default=0) > 0,
            "a size that is not positive. Give numbers above 0")  # fmt: skip
    if size.tensor is not None:
        return g.shape_from([*g.sizes_of(image)[:2], *size.ints()])
    return g.Concat(g.Shape(image, start=0, end=2), g.cast(size, DType.INT64), axis=0)


@reads("RESIZE_BILINEAR", ignore=("new_height", "new_width"))
def read_resize_bilinear(g, x, size, *, align_corners: bool = False,
                         half_pixel_centers: bool = False):  # fmt: skip
    image = first(g, x)
    mode = name_coordinates(align_corners, half_pixel_centers)
    y = g.Resize(image, None, None, resized_shape(g, image, size), mode="linear",
                 coordinate_transformation_mode=mode)  # fmt: skip
    return last(g, y)


@reads("RESIZE_NEAREST_NEIGHBOR")
def read_resize_nearest(g, x, size, *, align_corners: bool = False,
                        half_pixel_centers: bool = False):  # fmt: skip
    """Indices where a Resize may round otherwise: LiteRT multiplies by a quotient of float32."""
    mode = name_coordinates(align_corners, half_pixel_centers)
    rounding = "floor" if mode == "asymmetric" else "round_prefer_ceil"
    image = first(g, x)
    shape = resized_shape(g, image, size)
    if (
        size.tensor is not None
        and image.is_static
        and 0 not in image.static_shape
        and (max(size.ints()) <= LONGEST)
    ):
        axes = [*zip(image.static_shape[2:], size.ints(), strict=True)]
        places = [nearest_places(n, m, align_corners, half_pixel_centers) for n, m in axes]
        plain = [nearest(coordinates(n, m, 0.0, mode, (0.0, 1.0)), n, rounding) for n, m in axes]
        if not all(map(np.array_equal, places, plain)):
            for axis, chosen in enumerate(places, 2):
                image = g.Gather(image, chosen, axis=axis)
            return last(g, image)
    y = g.Resize(image, None, None, shape, mode="nearest",
                 nearest_mode=rounding, coordinate_transformation_mode=mode)  # fmt: skip
    return last(g, y)
