"""Operators of other domains: classical models, composites, and those of ONNX Runtime that stay."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.graph import Node
from serde.spec import composites

from . import elementwise, layers
from .table import (
    SHARED,
    SampleAxis,
    align_operands,
    first_operand,
    has_operand,
    integer,
    one_axis,
    operand,
    sample_axes,
)

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
sample_axes("AlphaDropout FeatureDropout StopGradient", composites.DOMAIN)(align_operands)
sample_axes("AdaptivePool", composites.DOMAIN)(layers.pool)
sample_axes("Binarizer CategoryMapper LabelEncoder OneHotEncoder", ML)(align_operands)
sample_axes("BiasGelu FastGelu Gelu QuickGelu", MICROSOFT)(align_operands)
sample_axes("FusedConv NhwcConv", MICROSOFT)(layers.layer)
sample_axes("FusedGemm", MICROSOFT)(layers.gemm)
sample_axes("QuantizeLinear DequantizeLinear", MICROSOFT)(elementwise.quantize_linear)


@sample_axes("ArrayFeatureExtractor Imputer Scaler", ML)
def features(node: Node) -> Iterator[SampleAxis]:
    """All axes but that of features; a single axis is that."""
    return first_operand(node, range(operand(node, 0).rank - 1))


@sample_axes(
    "LinearClassifier LinearRegressor Normalizer SVMClassifier SVMRegressor TreeEnsemble "
    "TreeEnsembleClassifier TreeEnsembleRegressor",
    ML,
)
def rows(node: Node) -> Iterator[SampleAxis]:
    """The rows of a table."""
    return first_operand(node, range(int(operand(node, 0).rank == 2)))


@sample_axes("FeatureVectorizer", ML)
def join_features(node: Node) -> Iterator[SampleAxis]:
    """The rows of several tables."""
    if all(operand(node, i).rank == 2 for i in range(len(node.inputs))):
        yield SampleAxis((0,) * len(node.inputs), (0,))


@sample_axes("ZipMap", ML)
def zip_map(node: Node) -> Iterator[SampleAxis]:
    """The sequence has a map for each row, and so no axis."""
    if operand(node, 0).rank == 2:
        yield SampleAxis((0,), (SHARED,))


@sample_axes("FusedMatMul", MICROSOFT)
def fused_matmul(node: Node) -> Iterator[SampleAxis]:
    """As of ``MatMul``, where matrices may be transposed."""
    if not integer(node, "transBatchA", 0) and not integer(node, "transBatchB", 0):
        swapped = bool(integer(node, "transA", 0)), bool(integer(node, "transB", 0))
        yield from layers.products(node, 0, 1, *swapped)


@sample_axes("SkipLayerNormalization SkipSimplifiedLayerNormalization", MICROSOFT)
def skip_layer_normalization(node: Node) -> Iterator[SampleAxis]:
    """All axes but the last."""
    rank = operand(node, 0).rank
    same = operand(node, 1).rank == rank
    for axis in range(rank - 1):
        yield one_axis(node, (axis, axis if same else None), axis)


@sample_axes("MultiHeadAttention", MICROSOFT)
def multi_head_attention(node: Node) -> Iterator[SampleAxis]:
    """Queries, keys and values, with a mask of two axes or more."""
    masks = [i for i in (4, 5) if has_operand(node, i)]
    if all(operand(node, i).rank in ((2, 3), (4,))[i - 4] for i in masks):
        yield one_axis(node, (0, 0, 0, None, 0, 0, 0, 0), 0)


@sample_axes("Attention", MICROSOFT)
def attention(node: Node) -> Iterator[SampleAxis]:
    """Sequences without masks and states, whose forms are many."""
    if len(node.inputs) <= 3 and len(node.outputs) == 1:
        yield one_axis(node, (0,), 0)
