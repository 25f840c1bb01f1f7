"""Keeps TVM from fusing calls into one kernel, by ``annotation.stop_fusion``.

TVM computes what several calls of one kernel share once for each of them, so a chain in which every
value is read four times grows fourfold with each call, and its compilation does not end. Where it
fuses one of several results of dynamic shape with its consumer, it takes the shape of the first. It
has no shape function for a fused kernel that ends in a broadcast to a computed shape, and its shape
functions fail where a computed scalar is an operand. A static call that it fuses with one of
dynamic shape needs a shape function, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serde.ir.graph import EMPTY, Graph, Node, Value
from serde.ir.map_nodes import map_bodies

from .dynamic_shape_support import DYNAMIC_OPERATORS

LARGEST = 32  # calls in the code of a kernel
# Operators that TVM 0.17 declares elementwise, broadcast or injective (``TOpPattern`` 0 to 2).
FUSED = frozenset(
    """
    abs acos acosh add adv_index asin asinh atan atanh bitwise_and bitwise_not bitwise_or
    bitwise_xor broadcast_to broadcast_to_like cast cast_like ceil clip concatenate copy cos cosh
    divide dyn.broadcast_to dyn.expand_dims dyn.full dyn.nn.pad dyn.nn.upsampling dyn.ones
    dyn.reshape dyn.squeeze dyn.strided_slice dyn.tile dyn.zeros equal erf exp expand_dims fast_erf
    fast_exp fast_tanh floor floor_divide floor_mod full full_like gather gather_nd greater
    greater_equal image.affine_grid image.grid_sample image.resize1d image.resize2d image.resize3d
    isfinite isinf isnan layout_transform left_shift less less_equal log log10 log2 logical_and
    logical_not logical_or logical_xor matrix_set_diag maximum meshgrid minimum mod multiply
    negative nn.batch_flatten nn.batch_to_space_nd nn.bias_add nn.depth_to_space nn.dilate
    nn.leaky_relu nn.mirror_pad nn.pad nn.prelu nn.relu nn.space_to_batch_nd nn.space_to_depth
    nn.upsampling nn.upsampling3d not_equal ones ones_like power qnn.dequantize qnn.quantize
    qnn.requantize reinterpret repeat reshape reshape_like reverse reverse_sequence right_shift
    round rsqrt sequence_mask sigmoid sign sin sinh slice_like split sqrt squeeze stack
    strided_slice subtract take tan tanh tile transpose trilu trunc trunc_divide trunc_mod where
    zeros zeros_like
    """.split()
)


def add_fusion_barriers(graph: Graph) -> Graph:
    """Add a barrier after each call whose kernel would hold more than ``LARGEST`` calls, after each
    of several results of dynamic shape, and, where some shapes are dynamic, before ``broadcast_to``
    and between a kernel of static shape that reads a computed scalar, or has a call without a shape
    function, and a call of dynamic shape.
    """
    shaped = {v for n in graph.nodes if n.op == "broadcast_to" for v in n.inputs}
    is_dynamic = any(_is_dynamic(v) for n in graph.nodes for v in n.outputs)
    split = _find_kernels_apart(graph) if is_dynamic else frozenset()
    size: dict[Value | None, int] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = map_bodies(node, add_fusion_barriers)
        calls = 1 + sum(size.get(v, 0) for v in node.inputs) if node.op in FUSED else 0
        if len(node.outputs) > 1 and any(map(_is_dynamic, node.outputs)):
            nodes += _with_barriers(node)
        elif len(node.outputs) == 1 and (
            calls > LARGEST
            or (is_dynamic and calls and node.outputs[0] in shaped)
            or node.outputs[0] in split
        ):
            nodes += _with_barriers(node)
            calls = 0
        else:
            nodes.append(node)
        size.update(dict.fromkeys(node.outputs, calls))
    return replace(graph, nodes=tuple(nodes))


def _find_kernels_apart(graph: Graph) -> frozenset[Value]:
    """Static results that calls of dynamic shape read, of kernels that TVM finds no shape for.

    They read computed scalars, or have calls without a shape function.
    """
    apart: set[Value | None] = set()
    values: set[Value] = set()
    for node in graph.nodes:
        if node.op not in FUSED:
            continue
        if any(map(_is_dynamic, node.outputs)):
            values.update(v for v in node.inputs if v is not None and v in apart)
        elif node.op not in DYNAMIC_OPERATORS or any(
            v in apart or _is_computed_scalar(v) for v in node.inputs
        ):
            apart.update(v for v in node.outputs if v.shape != ())
    return frozenset(values)


def _is_computed_scalar(value: Value | None) -> bool:
    return value is not None and value.tensor is None and value.shape == () and not value.container


def _is_dynamic(value: Value) -> bool:
    if value.shape is None:
        return not value.container
    return not all(isinstance(d, int) for d in value.shape)


def _with_barriers(node: Node) -> Iterator[Node]:
    """The node, and a barrier after each of its tensors."""
    renamed = {
        v: Value(f"{v.name}/part", v.dtype, v.shape, container=v.container) for v in node.outputs
    }
    outputs = {v: v if v.container or not v.name else part for v, part in renamed.items()}
    yield replace(node, outputs=tuple(outputs.values()))
    for value, part in outputs.items():
        if part is not value:
            barrier = {"op": "annotation.stop_fusion", "inputs": (part,), "outputs": (value,)}
            yield replace(node, attrs=EMPTY, **barrier)  # type: ignore[arg-type]
