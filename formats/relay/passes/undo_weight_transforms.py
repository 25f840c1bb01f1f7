"""Undoes the weight transforms that TVM inserts for some of its kernels."""

from __future__ import annotations

from serde.ir.graph import Node, Value
from serde.rewrite.patterns import Neighbours, Patterns

WINOGRAD = "nn.contrib_conv{}d_winograd{}_weight_transform"
# A transform, and the operator whose kernel is its result
PARTNERS = {
    WINOGRAD.format(2, ""): WINOGRAD.format(2, "_without"),
    WINOGRAD.format(3, ""): WINOGRAD.format(3, "_without"),
    WINOGRAD.format(2, "_nnpack"): WINOGRAD.format(2, "_nnpack_without"),
    "nn.contrib_conv2d_gemm_weight_transform": "nn.contrib_conv2d_gemm_without_weight_transform",
}
patterns = Patterns(domain="relay")


@patterns(*PARTNERS)
def undo_weight_transform(near: Neighbours, node: Node) -> Value | None:
    """Plain weights where only such kernels read the transformed ones."""
    (weight,), partner = node.outputs, PARTNERS[node.op]
    readers = [n for n in near.readers[weight] if n.op == partner and len(n.inputs) == 2]
    is_kernel = len(readers) == near.uses[weight] and all(n.inputs[1] is weight for n in readers)
    return node.inputs[0] if is_kernel else None


undo_weight_transforms = patterns.apply
