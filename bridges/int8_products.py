"""Whether frameworks add up products of int8 exactly on this processor."""

from __future__ import annotations

from functools import cache

import numpy as np

from serde.ir.graph import Graph
from serde.spec.traits import INTEGER_PRODUCTS, LAYERS, QUANTIZES

INEXACT = (
    "int8 products, which frameworks, the source's among them, compute inexactly on this processor "
    "(it has no VNNI instructions); compare on one that has"
)


@cache
def adds_int8_exactly() -> bool:
    """Whether ONNX Runtime multiplies uint8 by int8 exactly here.

    On x86 without VNNI its kernels, as those of oneDNN, add up pairs of products in int16, which
    saturate; oneDNN halves weights of int8 where the data are of int8 too.

    Raises:
        ImportError: without onnxruntime.
    """
    import onnxruntime
    from onnx import TensorProto, helper

    operands = {"a": (TensorProto.UINT8, (1, 64)), "b": (TensorProto.INT8, (64, 1))}
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "probe",
        [helper.make_tensor_value_info(n, *kind) for n, kind in operands.items()],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 1))],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = {"a": np.full((1, 64), 255, np.uint8), "b": np.full((64, 1), 127, np.int8)}
    return bool(session.run(None, feeds)[0].item() == 64 * 255 * 127)


def describe_inexactness(graph: Graph) -> str:
    """``INEXACT`` for a graph that multiplies integers, where the processor does so inexactly.

    Integers are multiplied as such, or as floats between dequantization and quantization.
    """
    operators = {n.op for n in graph.all_nodes() if not n.domain}
    pairs = operators >= QUANTIZES and not LAYERS.isdisjoint(operators)
    if INTEGER_PRODUCTS.isdisjoint(operators) and not pairs:
        return ""
    return "" if adds_int8_exactly() else INEXACT
