"""Quantized operators."""

from . import attention, fused, layers, matmul

__all__ = ["attention", "fused", "layers", "matmul"]
