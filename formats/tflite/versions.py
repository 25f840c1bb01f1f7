"""The least version of an operator whose kernels take a form of it."""

from __future__ import annotations

from serde.ir.graph import DType, Node

LEAST = {"BROADCAST_TO": 2, "BATCH_MATMUL": 1}
FLOATS = frozenset({DType.FLOAT32})


def find_version(node: Node) -> int:
    """The version that a file declares for an operator."""
    if node.op == "FULLY_CONNECTED":
        return 5 if node.attrs.get("keep_num_dims") else 1
    if node.op == "DEPTHWISE_CONV_2D":
        is_spread = {node.attrs["dilation_h_factor"], node.attrs["dilation_w_factor"]} != {1}
        return 2 if is_spread else 1
    if node.op == "CONV_2D":
        x, w = node.inputs[:2]
        is_grouped = x is not None and w is not None and x.ranked_shape[-1] != w.ranked_shape[-1]
        return 6 if is_grouped else 1
    return LEAST.get(node.op, 1)
