"""ONNX models whose numbers are rounded to float16 after each node.

ONNX Runtime's CPU has no float16 kernels for most operators: it computes them in float32 and takes
out the casts between two of them, so that numbers are only rounded where float32 ones are made of
them. An ``Identity``, which has a float16 kernel, keeps both casts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLOAT16 = 10  # ONNX's code


def round_after_each_node(model: Any) -> Any:
    """The ModelProto with an Identity behind each result of float16."""
    from serde.spec.onnx_library import infer_model_types

    typed = infer_model_types(model)
    _round_results(typed.graph, {})
    return typed


def _round_results(graph: Any, outer: Mapping[str, int]) -> None:
    from onnx import helper

    values = (*graph.value_info, *graph.output)
    types = {**outer, **{v.name: v.type.tensor_type.elem_type for v in values}}
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _round_results(attribute.g, types)
        nodes.append(node)
        for at, name in enumerate(node.output):
            if types.get(name) == FLOAT16:
                node.output[at] = f"{name}/unrounded"
                nodes.append(helper.make_node("Identity", [node.output[at]], [name]))
    del graph.node[:]
    graph.node.extend(nodes)
