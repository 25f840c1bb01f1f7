"""Reversals of image axes, moved behind what computes element by element, where two may cancel.

Transposed convolutions of MXNet are read as convolutions of reversed images, whose results are
reversed again (``formats/mxnet/ops/deconvolution_phases.py``). A Slice that runs backwards copies
element by element. A result that is read more than once is reversed where it was.
"""

from __future__ import annotations

from dataclasses import replace

from serde.decompositions.transposed_convolution import FROM_THE_FRONT
from serde.ir.constants import is_constant
from serde.ir.graph import Node, Value
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns
from serde.spec.traits import BROADCASTS, ELEMENTWISE, QUANTIZES

patterns = Patterns("Slice")


@patterns("Slice")
def cancel_reversals(near: Neighbours, node: Node) -> Value | None:
    """What is reversed twice along the same axes."""
    before = near.sole_maker(node, node.inputs[0], "Slice")
    axes = _find_reversed_axes(before) if before is not None else frozenset()
    if before is None or not axes or axes != _find_reversed_axes(node):
        return None
    return before.inputs[0]


@patterns(*ELEMENTWISE, *BROADCASTS, *QUANTIZES, "Conv")
def sink_reversal(near: Neighbours, node: Node) -> list[Node] | None:
    """A reversal of the first operand, as one of the result."""
    before = near.sole_maker(node, node.inputs[0], "Slice")
    axes = _find_reversed_axes(before) if before is not None else frozenset()
    if before is None or not axes or not _commutes(node, axes):
        return None
    (result,) = node.outputs
    plain = replace(result, name=f"{result.name}/reversed")
    inputs = (plain, *before.inputs[1:])
    return [
        replace(node, inputs=(before.inputs[0], *node.inputs[1:]), outputs=(plain,)),
        replace(before, inputs=inputs, outputs=(result,), name=node.name, sources=node.sources),
    ]


def _find_reversed_axes(node: Node) -> frozenset[int]:
    """The axes along which a Slice runs backwards through everything; none are of other Slices.

    Nor are there any if some are those of the samples or channels.
    """
    if len(node.inputs) < 5 or not is_constant(node.inputs[1:]):
        return frozenset()
    starts, ends, axes, steps = (v.ints() for v in node.inputs[1:] if v is not None)
    is_reversal = {*starts, *steps} == {-1} and {*ends} == {FROM_THE_FRONT} and min(axes) >= 2
    return frozenset(axes) if is_reversal else frozenset()


def _commutes(node: Node, axes: frozenset[int]) -> bool:
    """Whether reversing the first operand reverses the result."""
    x, *others = node.inputs
    if x is None or x.shape is None:
        return False
    rank, last = len(x.shape), max(axes)
    if node.op in ELEMENTWISE:
        return True
    if node.op in QUANTIZES:
        scale, axis = others[0], node.attrs.get("axis", 1)
        is_one = scale is not None and scale.shape in ((), (1,))
        return is_one or (axis not in axes and not node.attrs.get("block_size"))
    if node.op in BROADCASTS:
        return all(_is_repeated(v, axes, rank) for v in others)
    if node.op == "Conv" and last < rank:
        windows = (node.attrs.get("kernel_shape"), node.attrs.get("strides"))
        points = all(isinstance(w, tuple) and {*w} == {1} for w in windows)
        pads = node.attrs.get("pads")
        is_same = node.attrs.get("auto_pad", "NOTSET") == "NOTSET"
        return points and is_same and isinstance(pads, tuple) and {*pads} == {0}
    return False


def _is_repeated(value: Value | None, axes: frozenset[int], rank: int) -> bool:
    """Whether an operand has one element along axes of a tensor of ``rank``, to be repeated."""
    if value is None or value.shape is None or len(value.shape) > rank:
        return False
    lead = rank - len(value.shape)
    return all(axis < lead or value.shape[axis - lead] == 1 for axis in axes)


sink_reversals = optional("sink_reversals")(patterns.apply)
