"""Undoes the weight transforms that TVM inserts for some of its kernels."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values

WINOGRAD = "nn.contrib_conv{}d_winograd{}_weight_transform"
# A transform, and the operator whose kernel is its result
PARTNERS = {
    WINOGRAD.format(2, ""): WINOGRAD.format(2, "_without"),
    WINOGRAD.format(3, ""): WINOGRAD.format(3, "_without"),
    WINOGRAD.format(2, "_nnpack"): WINOGRAD.format(2, "_nnpack_without"),
    "nn.contrib_conv2d_gemm_weight_transform": "nn.contrib_conv2d_gemm_without_weight_transform",
}


def undo_weight_transforms(graph: Graph) -> Graph:
    """``graph`` with plain weights where only such kernels read the transformed ones."""
    nodes = [n for n in graph.nodes if n.op in PARTNERS]
    if not nodes:
        return graph
    uses = graph.uses()
    replacements: dict[Value, Value] = {}
    for node in nodes:
        (weight,) = node.outputs
        readers = [n for n in graph.nodes if _is_kernel_of(weight, n, PARTNERS[node.op])]
        if len(readers) == uses.get(weight, 0) and node.inputs[0] is not None:
            replacements[weight] = node.inputs[0]
    kept = tuple(n for n in graph.nodes if n.outputs[0] not in replacements)
    return replace_values(replace(graph, nodes=kept), replacements)


def _is_kernel_of(value: Value, node: Node, op: str) -> bool:
    return node.op == op and len(node.inputs) == 2 and node.inputs[1] is value
