"""Rules from the IR to TensorFlow Lite, by family."""

from . import elementwise, indexing, layers, quantization, reductions, shapes

__all__ = ["elementwise", "indexing", "layers", "quantization", "reductions", "shapes"]
