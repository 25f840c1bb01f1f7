"""Convolutions, pools, products, recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.graph import Node
from serde.spec.einsum_equation import parse_equation

from .table import (
    Axis,
    SampleAxis,
    first_operand,
    first_output,
    has_operand,
    integer,
    one_axis,
    operand,
    other_axes,
    sample_axes,
)


@sample_axes(
    "CausalConvWithState Col2Im Conv ConvInteger ConvTranspose DeformConv DepthToSpace "
    "GroupNormalization InstanceNormalization LinearAttention Multinomial QLinearConv STFT "
    "SpaceToDepth TensorScatter"
)
def layer(node: Node) -> Iterator[SampleAxis]:
    """The first axis of what is no weight."""
    yield one_axis(node, BESIDE.get(node.op, (0,)), 0)


# Operands beside the first that have the first axis too.
BESIDE: dict[str, tuple[Axis, ...]] = {
    "CausalConvWithState": (0, None, None, 0),
    "DeformConv": (0, None, 0, None, 0),
    "FusedConv": (0, None, None, 0),
    "LinearAttention": (0,) * 6,
    "TensorScatter": (0,) * 3,
}


@sample_axes("AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool")
def pool(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not pooled. Indices of a maximum count the elements of all samples."""
    return first_output(node, (0, 1))


@sample_axes("GridSample")
def grid_sample(node: Node) -> Iterator[SampleAxis]:
    """Images and grids, or the channels of images."""
    yield one_axis(node, (0, 0), 0)
    yield one_axis(node, (1, None), 1)


@sample_axes("AffineGrid")
def affine_grid(node: Node) -> Iterator[SampleAxis]:
    """A matrix for each grid."""
    yield one_axis(node, (0,), 0)


@sample_axes("RoiAlign MaxRoiPool")
def region_pool(node: Node) -> Iterator[SampleAxis]:
    """Regions of given images, or channels of these."""
    yield one_axis(node, (None, 0, 0), 0)
    yield one_axis(node, (1,), 1)


@sample_axes("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def loss(node: Node) -> Iterator[SampleAxis]:
    """Losses that are not reduced."""
    if node.attrs.get("reduction", "mean") == "none":
        yield one_axis(node, (0, 0), 0)


@sample_axes("TfIdfVectorizer")
def vectorize(node: Node) -> Iterator[SampleAxis]:
    """A row for each list of words."""
    if operand(node, 0).rank == 2:
        yield one_axis(node, (0,), 0)


@sample_axes("RNN GRU LSTM")
def recurrent(node: Node) -> Iterator[SampleAxis]:
    """Sequences, their lengths and their states."""
    if integer(node, "layout", 0):
        yield one_axis(node, (0, None, None, None, 0, 0, 0), 0)
    else:
        yield one_axis(node, (1, None, None, None, 0, 1, 1), 2, 1)


@sample_axes("Attention")
def attention(node: Node) -> Iterator[SampleAxis]:
    """Queries, keys and values; a mask of four axes."""
    mask = 0 if has_operand(node, 3) and operand(node, 3).rank == 4 else None
    yield one_axis(node, (0, 0, 0, mask, 0, 0, 0), 0)


@sample_axes("RotaryEmbedding")
def rotary_embedding(node: Node) -> Iterator[SampleAxis]:
    """Positions of each sample, or angles."""
    angles = None if has_operand(node, 3) else 0
    yield one_axis(node, (0, angles, angles, 0), 0)


@sample_axes("MatMul MatMulInteger")
def matmul(node: Node) -> Iterator[SampleAxis]:
    """Axes of matrices, rows of the first and columns of the second operand."""
    if all(_is_number(node, i) for i in (2, 3)):
        yield from products(node, 0, 1)


@sample_axes("QLinearMatMul")
def qlinear_matmul(node: Node) -> Iterator[SampleAxis]:
    """As of ``MatMul``, where numbers are scaled as a whole."""
    if all(_is_number(node, i) for i in (1, 2, 4, 5, 6, 7)):
        yield from products(node, 0, 3)


def _is_number(node: Node, index: int) -> bool:
    """Whether an operand is left out, or holds one element."""
    return not has_operand(node, index) or operand(node, index).shape in ((), (1,))


def products(node: Node, first: int, second: int, *swapped: bool) -> Iterator[SampleAxis]:
    """The axes of a product of two operands, matrices of which may be transposed."""
    a, b = operand(node, first).rank, operand(node, second).rank
    swap_a, swap_b = swapped or (False, False)
    rank = max(a, b, 2)
    count = len(node.inputs)

    def axis(at: Axis, of_b: Axis, result: int) -> SampleAxis:
        operand_axes: list[Axis] = [None] * count
        operand_axes[first], operand_axes[second] = at, of_b
        return SampleAxis(tuple(operand_axes), (result,), True)

    for result in range(rank - 2):
        at, of_b = result - (rank - a), result - (rank - b)
        yield axis(at if a > 2 and at >= 0 else None, of_b if b > 2 and of_b >= 0 else None, result)
    if a > 1:
        yield axis(a - 1 if swap_a else a - 2, None, rank - 2)
    if b > 1:
        yield axis(None, b - 2 if swap_b else b - 1, rank - 1 - (a < 2))


@sample_axes("Gemm")
def gemm(node: Node) -> Iterator[SampleAxis]:
    """Rows of the first and columns of the second operand, with what is added to them."""
    swapped = bool(integer(node, "transA", 0)), bool(integer(node, "transB", 0))
    rank = operand(node, 2).rank if has_operand(node, 2) else 0
    rows = 0 if rank == 2 else None
    columns = rank - 1 if rank else None
    yield SampleAxis((int(swapped[0]), None, rows)[: len(node.inputs)], (0,), True)
    yield SampleAxis((None, int(not swapped[1]), columns)[: len(node.inputs)], (1,), True)


@sample_axes("Einsum")
def einsum(node: Node) -> Iterator[SampleAxis]:
    """The labels of the output."""
    ranks = [operand(node, i).rank for i in range(len(node.inputs))]
    terms, output = parse_equation(str(node.attrs["equation"]), ranks)
    for at, label in enumerate(output):
        if all(term.count(label) < 2 for term in terms):
            operand_axes = tuple(term.index(label) if label in term else None for term in terms)
            yield SampleAxis(operand_axes, (at,), True)


@sample_axes("Resize")
def resize(node: Node) -> Iterator[SampleAxis]:
    """The axes whose sizes stay."""
    before, after = operand(node, 0).ranked_shape, node.outputs[0].shape
    axes = node.attrs.get("axes")
    if isinstance(axes, tuple) and axes:
        yield from first_operand(node, other_axes(node, axes))
        return
    is_cropped = node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if after is not None and not is_cropped:
        same = (i for i, d in enumerate(before) if d is not None and d == after[i])
        yield from first_operand(node, (i for i in same if _keeps_scale(node, i)))


def _keeps_scale(node: Node, axis: int) -> bool:
    """Whether sizes are given, or a scale of 1."""
    scales = node.inputs[2] if has_operand(node, 2) else None
    if scales is None or scales.shape == (0,):
        return has_operand(node, 3)
    return scales.tensor is not None and float(scales.array().ravel()[axis]) == 1.0
