"""Convolutions over every n-th element, which TensorFlow wrote over blocks, as dilated ones.

``SPACE_TO_BATCH_ND`` makes a batch of an image for each place in a block, ``BATCH_TO_SPACE_ND``
puts the results between each other again: the convolution reads elements a block apart.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources

from ..quantization import FileInfo
from ..target import DOMAIN

LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D")
VALID = 1
STEPS = ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")  # 1 within a batch
patterns = Patterns("SPACE_TO_BATCH_ND", domain=DOMAIN)


def merge_blocks(graph: Graph) -> Graph:
    """Return a graph whose convolutions over blocks are dilated ones."""
    return patterns.apply(graph)


@patterns("BATCH_TO_SPACE_ND")
def dilate(near: Neighbours, node: Node) -> list[Node] | None:
    """What pads an image to whole blocks is cropped at the end, unless it is read."""
    layer = near.sole_maker(node, node.inputs[0], *LAYERS)
    split = near.sole_maker(layer, layer.inputs[0], "SPACE_TO_BATCH_ND") if layer else None
    if layer is None or split is None or not _keeps_scales(near, (split, node)):
        return None
    if layer.attrs.get("padding") != VALID or any(layer.attrs.get(n, 1) != 1 for n in STEPS):
        return None
    constants = [*split.inputs[1:], *node.inputs[1:]]
    if any(v is None or v.tensor is None for v in constants):
        return None
    block, pads, joined, crops = (v.array() for v in constants if v is not None)
    net_pads = pads - crops
    if len(block) != 2 or (block != joined).any() or (net_pads < 0).any():
        return None
    x, image = split.inputs[0], split.outputs[0]
    nodes = []
    if net_pads.any():
        padded = Value(image.name, image.dtype)
        all_pads = np.asarray([(0, 0), *net_pads, (0, 0)], np.int32)
        sizes = Value(f"{image.name}_pads", DType.INT32, (4, 2), Tensor.of(all_pads))
        nodes.append(replace(split, op="PAD", inputs=(x, sizes), outputs=(padded,), attrs={}))
        x = padded
    rows, columns = block.tolist()
    dilations = {"dilation_h_factor": rows, "dilation_w_factor": columns}
    return [*nodes, replace(
        layer, inputs=(x, *layer.inputs[1:]), outputs=node.outputs, name=node.name,
        attrs=MappingProxyType({**layer.attrs, **dilations}),
        sources=join_sources(split, layer, node),
    )]  # fmt: skip


def _keeps_scales(near: Neighbours, moves: tuple[Node, ...]) -> bool:
    """Whether results stand for the same numbers as operands."""
    info = near.graph.source_info
    forms = info.quantizations if isinstance(info, FileInfo) else {}
    return all(
        v is not None and forms.get(v.name) == forms.get(n.outputs[0].name)
        for n in moves for v in n.inputs[:1]
    )  # fmt: skip
