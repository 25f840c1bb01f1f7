"""The casts that ``torch.autocast`` makes in its region, as nodes: a file does not have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serde.ir.graph import DType, Graph, Node, Value

from .io.weights import DTYPES
from .operands import Operand

FLOATS = frozenset((DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32))
REGION = "higher_order.wrap_with_autocast"
# What autocast computes in its own type; of other operators the results tell in which.
PRODUCTS = frozenset(
    "linear matmul mm bmm addmm addbmm baddbmm conv1d conv2d conv3d conv1d.padding conv2d.padding"
    " conv3d.padding conv_transpose1d conv_transpose2d.input conv_transpose3d.input einsum"
    " scaled_dot_product_attention".split()
)


def add_casts(graph: Graph, dtype: DType) -> Graph:
    """The graph of a region whose products are of ``dtype``, with its casts."""
    nodes: list[Node] = []

    def cast(value: Value, result: Value, node: Node) -> None:
        code = next(code for code, d in DTYPES.items() if d is result.dtype)
        attrs: dict[str, Any] = {"self": Operand(0, False), "dtype": f"dtype:{code}"}
        nodes.append(Node("to.dtype", (value,), (result,), attrs, "aten", sources=node.sources))

    for node in graph.nodes:
        inner = {k: add_casts(v, dtype) for k, v in node.attrs.items()
                 if isinstance(v, Graph) and node.op != REGION}  # fmt: skip
        result = node.outputs[0].dtype if node.outputs else None
        types = {v.dtype for v in node.inputs if v is not None and v.dtype in FLOATS}
        wanted = result if result in FLOATS and not node.op.startswith("higher_order") else None
        if len(types) > 1 and not (wanted is dtype and node.op in PRODUCTS):
            wanted = wanted and DType.FLOAT32  # as kernels compute of several types
        inputs = list(node.inputs)
        for at, value in enumerate(node.inputs):
            if wanted and value is not None and value.dtype in FLOATS - {wanted}:
                inputs[at] = Value(f"{value.name}.cast", wanted, value.shape)
                cast(value, inputs[at], node)  # type: ignore[arg-type]
        is_kept = inputs == [*node.inputs]
        outputs = tuple([
            v if is_kept or v.dtype is wanted or v.dtype not in FLOATS
            else Value(f"{v.name}.cast", wanted, v.shape) for v in node.outputs
        ])  # fmt: skip
        attrs = {**node.attrs, **inner}
        nodes.append(replace(node, inputs=tuple(inputs), outputs=outputs, attrs=attrs))
        for value, final in zip(outputs, node.outputs, strict=True):
            if value is not final:
                cast(value, final, node)
    return replace(graph, nodes=tuple(nodes))
