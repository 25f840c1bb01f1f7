"""Weights that are quantized in blocks and packed into bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Tensor, Value

from .table import reads

Array = np.ndarray[Any, Any]
TYPES = {2: DType.UINT2, 4: DType.UINT4, 8: DType.UINT8}
BYTE = 8


def unpack(data: Array, bits: int):
    """Elements of so many bits that lie in bytes along the last axis, the lowest bits first."""
    shifts = np.arange(0, BYTE, bits, dtype=np.uint8)
    parts = (data.view(np.uint8)[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*data.shape[:-1], -1)


def make_derived_constant(
    g, x: Value, dtype: DType, shape: tuple[int, ...], make: Callable[[Array], Array]
):
    """A constant that is made of the constant ``x`` when it is written."""
    require(x.tensor is not None, f"{x.name!r} is computed; packed weights have to be constants")
    tensor = Tensor(dtype, shape, lambda: make(x.array()).astype(dtype.numpy))
    return g.const(tensor, name=x.name)


@reads("MatMulNBits", ignore=("accuracy_level",), only={"weight_prepacked": (0,)})
def read_matmul_nbits(
    g, a, b, scales, zero_points=None, g_idx=None, bias=None, *, K: int, N: int, bits=4,
    block_size: int,
):  # fmt: skip
    require(bits in TYPES, f"no support for bits={bits}")
    require(g_idx is None, "no support for the input g_idx")
    require(0 not in b.ranked_shape, "a weight without elements, which stands for zeros")
    blocks = -(-K // block_size)
    dtype = TYPES[bits]
    w = make_derived_constant(g, b, dtype, (N, K), lambda v: unpack(v.reshape(N, -1), bits)[:, :K])
    by_block, size = g.Reshape(scales, [N, blocks]), (N, blocks)
    real = zero_points is not None and zero_points.dtype is not DType.UINT8
    require(not real, "no support for zero points that are no integers")
    zero = _unpack_zeros(
        g, zero_points, bits, size, lambda v: unpack(v.reshape(N, -1), bits)[:, :blocks]
    )
    weight = g.DequantizeLinear(w, by_block, zero, axis=1, block_size=block_size)
    product = g.MatMul(a, g.Transpose(weight, perm=(1, 0)))
    return product if bias is None else g.Add(product, bias)


@reads("GatherBlockQuantized")
def read_gather_block_quantized(
    g, data, indices, scales, zero_points=None, *, bits=4, block_size=128, gather_axis=0,
    quantize_axis=1,
):  # fmt: skip
    axis = quantize_axis % data.rank
    if data.dtype is DType.UINT8:
        require(bits in TYPES, f"no support for bits={bits}")
        data, zero_points = _unpack_table(g, data, zero_points, scales, bits)
    table = g.DequantizeLinear(data, scales, zero_points, axis=axis, block_size=block_size)
    return g.Gather(table, indices, axis=gather_axis % data.rank)


def _unpack_table(g, data: Value, zero_points: Value | None, scales: Value, bits: int):
    """The table and its zero points, whose elements lie in bytes, each element by itself."""
    dtype, shape = TYPES[bits], data.static_shape
    full = (*shape[:-1], shape[-1] * BYTE // bits)
    table = make_derived_constant(g, data, dtype, full, lambda v: unpack(v, bits))
    size = scales.static_shape
    return table, _unpack_zeros(
        g, zero_points, bits, size, lambda v: unpack(v, bits)[..., : size[-1]]
    )


def _unpack_zeros(
    g, packed: Value | None, bits: int, size: tuple[int, ...], make: Callable[[Array], Array]
):
    """The zero points, which are in the middle where they are left out."""
    dtype = TYPES[bits]
    if packed is not None:
        return make_derived_constant(g, packed, dtype, size, make)
    arrays.charge_elements(*size)
    return g.const(Tensor(dtype, size, lambda: np.full(size, 2 ** (bits - 1), dtype.numpy)))


NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
FP4 = (
    0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
    -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25,
)  # fmt: skip
CODEBOOKS = {0: FP4, 1: NF4}


@reads("MatMulBnb4")
def read_matmul_bnb4(
    g, a, b, absmax, *, K: int, N: int, block_size: int, quant_type: int, training_mode=0, transB=1
):
    require(transB, "no support for transB=0")
    require(quant_type in CODEBOOKS, f"no support for quant_type={quant_type}")
    count = K * N
    blocks = -(-count // block_size)
    padded = blocks * block_size - count

    def codes(packed: Array):
        halves = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[:count]
        return np.pad(halves, (0, padded)).reshape(blocks, block_size)

    index = make_derived_constant(g, b, DType.INT32, (blocks, block_size), codes)
    levels = g.const(np.array(CODEBOOKS[quant_type], a.type.numpy))
    real = g.Mul(g.Gather(levels, index), g.Reshape(absmax, [blocks, 1]))
    flat = g.Slice(g.Reshape(real, [-1]), [0], [count], [0], [1])
    return g.MatMul(a, g.Transpose(g.Reshape(flat, [N, K]), perm=(1, 0)))
