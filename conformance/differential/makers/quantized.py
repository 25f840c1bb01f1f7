"""Quantized operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serde.ir.graph import DType

from ..generator import Generator, Maker
from .layers import window

BYTES = (DType.UINT8, DType.INT8)


def scale(g: Generator, dtype: DType, shape: tuple[int, ...]) -> str:
    """Positive scales."""
    array = g.numbers.choice([0.0125, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0], shape)
    return g.hold(np.asarray(array).astype(dtype.numpy), True if g.chance(0.8) else None)


def layout(g: Generator, name: str) -> tuple[tuple[int, ...], dict[str, int | None]]:
    """The shape of scales: one, one for each channel, or blocks."""
    shape = g.of(name).shape
    kind = g.rng.random()
    if kind < 0.5 or not shape:
        return (), {}
    axis = g.rng.randrange(len(shape))
    if kind < 0.85 or g.opset < 21 or not shape[axis]:
        return (shape[axis],), {"axis": axis}
    blocks = -(-shape[axis] // 2)
    return (*shape[:axis], blocks, *shape[axis + 1 :]), {"axis": axis, "block_size": 2}


def make_quantize(g: Generator) -> None:
    x = g.operand(g.types("QuantizeLinear"))
    shape, attrs = layout(g, x)
    kind = g.dtype(x) if g.dtype(x).kind == "f" else DType.FLOAT32
    operands = [x, scale(g, kind, shape)]
    if g.chance(0.7):
        to = g.pick_type(g.types("QuantizeLinear", 2))
        zero = np.zeros(shape) if to.kind == "f" else g.numbers.integers(0, 3, shape)
        operands.append(g.hold(np.asarray(zero).astype(to.numpy), True))
    g.emit("QuantizeLinear", operands, **attrs)


def make_dequantize(g: Generator) -> None:
    x = g.operand(g.types("DequantizeLinear"))
    shape, attrs = layout(g, x)
    kind = g.pick_type(g.types("DequantizeLinear", 1))
    operands = [x, scale(g, kind, shape)]
    if g.chance(0.6):
        zero = (
            np.zeros(shape)
            if g.dtype(x).kind == "f" or g.dtype(x) is DType.INT32
            else (g.numbers.integers(0, 3, shape))
        )
        operands.append(g.hold(np.asarray(zero).astype(g.dtype(x).numpy), True))
    g.emit("DequantizeLinear", operands, **attrs)


def make_dynamic_quantize(g: Generator) -> None:
    g.emit("DynamicQuantizeLinear", [g.operand({DType.FLOAT32})], outputs=3)


def zero(g: Generator, dtype: DType, shape: tuple[int, ...] = ()) -> str:
    """A zero point."""
    return g.hold(np.asarray(g.numbers.integers(0, 4, shape)).astype(dtype.numpy), True)


def make_matmul_integer(g: Generator) -> None:
    kinds = g.choice(BYTES), g.choice(BYTES)
    a = g.operand({kinds[0]}, 2, 3)
    shape = g.of(a).shape
    b = g.like(kinds[1], (shape[-1], g.size()))
    operands = [a, b]
    if g.chance(0.6):
        operands.append(zero(g, kinds[0]))
        if g.chance(0.6):
            operands.append(zero(g, kinds[1]))
    g.emit("MatMulInteger", operands)


def make_qlinear_matmul(g: Generator) -> None:
    kinds = [g.choice(BYTES) for _ in range(2)]
    a = g.operand({kinds[0]}, 2, 3)
    b = g.like(kinds[1], (g.of(a).shape[-1], g.size()))
    f = DType.FLOAT32
    to = kinds[0]
    operands = [a, scale(g, f, ()), zero(g, kinds[0]), b, scale(g, f, ()), zero(g, kinds[1]),
                scale(g, f, ()), zero(g, to)]  # fmt: skip
    g.emit("QLinearMatMul", operands)


def make_qlinear_conv(g: Generator) -> None:
    kinds = [g.choice(BYTES) for _ in range(2)]
    x = g.like(kinds[0], (g.size(), 2, 5, 4))
    w = g.leaf(kinds[1], (3, 2, 2, 2), True)
    f = DType.FLOAT32
    each = (3,) if g.chance(0.4) else ()
    operands = [x, scale(g, f, ()), zero(g, kinds[0]), w, scale(g, f, each),
                g.hold(np.zeros(each).astype(kinds[1].numpy), True), scale(g, f, ()),
                zero(g, kinds[0])]  # fmt: skip
    if g.chance(0.5):
        operands.append(g.leaf(DType.INT32, (3,), True))
    g.emit("QLinearConv", operands, **window(g, 2))


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    yield from (make_quantize, make_dequantize, make_dynamic_quantize, make_matmul_integer)
    yield from (make_qlinear_matmul, make_qlinear_conv)
