"""Operators on elements, and those along some axes: all other axes are sample axes."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.graph import Node
from serde.spec.traits import BROADCASTS, ELEMENTWISE, REDUCES

from .table import (
    ANY,
    SHARED,
    SampleAxis,
    align_operands,
    attribute_axis,
    first_operand,
    has_operand,
    integer,
    known_integers,
    operand,
    other_axes,
    sample_axes,
)

sample_axes(
    " ".join(ELEMENTWISE | BROADCASTS) + " Bernoulli BitCast Dropout Identity PRelu "
    "RandomNormalLike RandomUniformLike RegexFullMatch StringConcat SwiGLU"
)(align_operands)


@sample_axes("CastLike")
def cast_like(node: Node) -> Iterator[SampleAxis]:
    """The second operand says only of what type the result is."""
    for axis in range(operand(node, 0).rank):
        yield SampleAxis((axis, ANY), (axis,))
    yield SampleAxis((None, ANY), (SHARED,))


@sample_axes("QuantizeLinear DequantizeLinear")
def quantize_linear(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one that scales are for; scales of blocks have all axes."""
    rank, scale = operand(node, 0).rank, operand(node, 1).rank
    along = attribute_axis(node, 1) if scale and rank else -1
    for axis in range(rank):
        if axis != along:
            parameter_axis = axis if scale > 1 else None
            rest = tuple(
                parameter_axis if has_operand(node, i) else None for i in range(1, len(node.inputs))
            )
            yield SampleAxis((axis, *rest), (axis,))


@sample_axes("ArgMax ArgMin")
def arg_reduce(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not reduced."""
    return _reduced_axes(node, (attribute_axis(node, 0),))


@sample_axes(" ".join(REDUCES))
def reduce(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not reduced."""
    axes = known_integers(node, 1)
    if has_operand(node, 1) and (axes is None or None in axes):
        return iter(())
    if not axes:
        is_kept = bool(integer(node, "noop_with_empty_axes", 0))
        axes = () if is_kept else tuple(range(operand(node, 0).rank))
    return _reduced_axes(node, tuple(int(a or 0) for a in axes))


def _reduced_axes(node: Node, axes: tuple[int, ...]) -> Iterator[SampleAxis]:
    kept = other_axes(node, axes)
    if integer(node, "keepdims", 1):
        return first_operand(node, kept)
    return first_operand(node, [(a, at) for at, a in enumerate(kept)])


@sample_axes("Softmax LogSoftmax Hardmax LpNormalization TopK")
def along_axis(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one it goes along."""
    return first_operand(node, other_axes(node, [integer(node, "axis", -1)]))


@sample_axes("CumSum CumProd")
def cumulate(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one it goes along, where that is known."""
    axes = known_integers(node, 1)
    known = axes is not None and None not in axes
    return first_operand(node, other_axes(node, axes) if known else ())  # type: ignore[arg-type]


@sample_axes("LayerNormalization RMSNormalization")
def layer_normalization(node: Node) -> Iterator[SampleAxis]:
    """The axes before those that are normalized."""
    return first_operand(node, range(attribute_axis(node, -1)))


@sample_axes("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not normalized."""
    axes = node.attrs.get("axes", (0, 2, 3))
    return first_operand(node, other_axes(node, axes))  # type: ignore[arg-type]


@sample_axes("LRN")
def lrn(node: Node) -> Iterator[SampleAxis]:
    """All axes but that of channels."""
    return first_operand(node, other_axes(node, [1]))


@sample_axes("BatchNormalization")
def batch_normalization(node: Node) -> Iterator[SampleAxis]:
    """All axes but that of channels; none where statistics are computed."""
    is_training = bool(integer(node, "training_mode", 0)) or len(node.outputs) > 1
    return first_operand(node, () if is_training else other_axes(node, [1]))


@sample_axes("DFT")
def dft(node: Node) -> Iterator[SampleAxis]:
    """All axes but the transformed one and that of real and imaginary parts."""
    axes = known_integers(node, 2) if has_operand(node, 2) else (-2,)
    if axes is None or None in axes:
        return iter(())
    return first_operand(node, other_axes(node, {int(axes[0] or 0) % operand(node, 0).rank,
                                                 operand(node, 0).rank - 1}))  # fmt: skip


@sample_axes("Det Trilu")
def matrices(node: Node) -> Iterator[SampleAxis]:
    """The axes before those of a matrix."""
    return first_operand(node, range(operand(node, 0).rank - 2))
