"""The operators, each both ways. Images are (batch, height, width, channels) in slate."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph

from .rules import reads, writes

SAME = {"relu": "Relu", "add": "Add", "mul": "Mul", "sub": "Sub", "div": "Div", "max": "Max",
        "min": "Min", "matmul": "MatMul", "erf": "Erf", "exp": "Exp", "copy": "Identity"}  # fmt: skip
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # axes: channels moved to the front, and to the end
FILTERS, OWN = (3, 2, 0, 1), (2, 3, 1, 0)  # of filters: slate has (height, width, in, out)

reads.rename(SAME)
writes.rename({ir: slate for slate, ir in SAME.items()})


@reads("conv")
def read_conv(g, x, w, b=None, *, strides: Ints = (1, 1), pads: Ints = (0, 0, 0, 0)):
    images, filters = g.Transpose(x, perm=FIRST), g.Transpose(w, perm=FILTERS)
    return g.Transpose(g.Conv(images, filters, b, strides=strides, pads=pads), perm=LAST)


@writes("Conv", ignore=("kernel_shape",), only={"auto_pad": ("NOTSET",), "group": (1,)})
def write_conv(s, x, w, b=None, *, strides: Ints = (), pads: Ints = (), dilations: Ints = ()):
    require(x.rank == 4 and set(dilations) <= {1}, "a convolution of volumes, or a dilated one")
    images, filters = s.permute(x, axes=LAST), s.permute(w, axes=OWN)
    form = {"strides": strides or (1, 1), "pads": pads or (0, 0, 0, 0)}
    return s.permute(s.conv(images, filters, b, **form), axes=FIRST)


@reads("permute")
def read_permute(g, x, *, axes: Ints):
    return g.Transpose(x, perm=axes)


@writes("Transpose")
def write_transpose(s, x, *, perm: Ints):
    return s.permute(x, axes=perm)


@reads("reshape")
def read_reshape(g, x, *, shape: Ints):
    return g.Reshape(x, shape)


@writes("Reshape")
def write_reshape(s, x, shape, *, allowzero: int):
    require(shape.tensor is not None, "a shape that is computed")
    return s.reshape(x, shape=tuple(shape.ints()))


@reads("quantize")
def read_quantize(g, x, *, scale: float, zero: int):
    return g.QuantizeLinear(x, scale, g.const(np.int8(zero)))


@reads("dequantize")
def read_dequantize(g, x, *, scale: float, zero: int):
    return g.DequantizeLinear(x, g.const(np.float32(scale)), g.const(np.int8(zero)))


def numbers_of(scale, zero):
    """The one scale and zero point that a tensor of slate has."""
    is_one = scale.tensor is not None and scale.tensor.size == 1
    require(is_one and (zero is None or zero.tensor is not None), "scales that are computed")
    require(zero is not None and zero.dtype is DType.INT8, "quantized as other than int8")
    return {"scale": float(scale.array().item()), "zero": int(zero.array().item())}


@writes("QuantizeLinear", ignore=("axis", "saturate", "block_size", "output_dtype", "precision"))
def write_quantize(s, x, scale, zero=None):
    return s.quantize(x, **numbers_of(scale, zero))


@writes("DequantizeLinear", ignore=("axis", "block_size", "output_dtype"))
def write_dequantize(s, x, scale, zero=None):
    return s.dequantize(x, **numbers_of(scale, zero))


@reads("if")
def read_if(g, condition, *, then: Graph, otherwise: Graph):
    count = len(then.outputs)
    return g.If(condition, then_branch=then, else_branch=otherwise, outputs=count)


@writes("If")
def write_if(s, condition, *, then_branch: Graph, else_branch: Graph):
    count = len(then_branch.outputs)
    return s["if"](condition, then=then_branch, otherwise=else_branch, outputs=count)
