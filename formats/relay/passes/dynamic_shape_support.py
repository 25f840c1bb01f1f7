"""Calls on tensors of dynamic size.

TVM runs an operator on such only where it has a function for the shape of the result. 0.17 has none
for a good part of its operators; a build would end in an internal error long after writing.
"""

from __future__ import annotations

from serde.errors import Problem
from serde.ir.graph import EMPTY, Graph, Node, Value

# Operators with a function for their result's shape, or laid out in such before they are compiled
DYNAMIC_OPERATORS = frozenset(
    """
    add all annotation.stop_fusion arange argmax argmin argsort argwhere bitwise_and bitwise_not
    bitwise_or bitwise_xor broadcast_to broadcast_to_like cast cast_like ceil clip concatenate copy
    cumprod cumsum divide dyn.broadcast_to dyn.expand_dims dyn.full dyn.image.resize2d dyn.nn.pad
    dyn.nn.upsampling dyn.one_hot dyn.ones dyn.reshape dyn.squeeze dyn.strided_slice dyn.tile
    dyn.topk dyn.zeros equal exp expand_dims fast_erf fast_exp fast_tanh floor floor_divide
    floor_mod full full_like gather gather_nd greater greater_equal if image.affine_grid
    image.crop_and_resize image.grid_sample image.resize1d image.resize2d invert_permutation
    layout_transform left_shift less less_equal log log2 logical_and logical_not logical_or
    logical_xor max maximum mean min minimum mod multiply ndarray_size negative nn.avg_pool2d
    nn.batch_flatten nn.batch_matmul nn.batch_norm nn.bias_add nn.conv1d_transpose nn.conv2d
    nn.conv2d_transpose nn.dense nn.dilate nn.fast_softmax nn.global_avg_pool2d nn.global_max_pool2d
    nn.group_norm nn.instance_norm nn.layer_norm nn.leaky_relu nn.matmul nn.max_pool2d nn.mirror_pad
    nn.pad nn.prelu nn.relu nn.softmax not_equal one_hot ones ones_like power prod qnn.dequantize
    repeat reshape reshape_like right_shift round rsqrt scatter_elements scatter_nd searchsorted
    shape_of sigmoid sort split sqrt squeeze stack stft strided_slice subtract sum take tan tanh
    tile topk transpose trunc_divide trunc_mod unique variance vision.all_class_non_max_suppression
    vision.get_valid_counts vision.non_max_suppression vision.roi_align where while zeros zeros_like
    """.split()
)
SIZE_QUERIES = frozenset({"shape_of", "ndarray_size"})  # whose results are of a known size


def find_unsupported(graph: Graph, stage: str) -> list[Problem]:
    """The calls of ``graph`` that TVM 0.17 cannot run, as sizes are dynamic."""
    return _find_unsupported(graph, stage, set())


def _find_unsupported(graph: Graph, stage: str, open_: set[Value]) -> list[Problem]:
    problems = []
    open_.update(v for v in graph.inputs if not v.is_static)
    for node in graph.nodes:
        if _is_dynamic(node, open_):
            open_.update(v for v in node.outputs if not v.is_static)
            if node.op not in DYNAMIC_OPERATORS:
                problems.append(_problem(node, stage))
        for body in node.graphs():
            problems += _find_unsupported(body, stage, open_)
    return problems


def _is_dynamic(node: Node, open_: set[Value]) -> bool:
    """Whether a size of an operand or a result is unknown, as far as can be told."""
    if node.op in SIZE_QUERIES:
        return False
    results = any(v.shape is not None and not v.is_static for v in node.outputs)
    return results or any(v in open_ for v in node.inputs if v is not None)


def _problem(node: Node, stage: str) -> Problem:
    reason = f"TVM has no {node.op} of a tensor of dynamic size: give static shapes (--input)"
    return Problem(node.sources[0].op if node.sources else node.op, EMPTY, reason, (node.name,),
                   stage)  # fmt: skip
