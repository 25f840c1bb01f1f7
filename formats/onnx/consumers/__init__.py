"""Rules for the consumers of ONNX files, one a folder, and the targets they declare."""

from __future__ import annotations

from importlib import import_module

from serde.ir.graph import Graph
from serde.legalize.target import Target

CONSUMERS = frozenset({"mnn", "ncnn", "onnx2torch", "onnxruntime", "openvino", "tensorrt", "tract"})
DESCRIBED = frozenset({"coreml", "qnn"})  # in files of serde.backends, by documentation


def get_consumer(name: str) -> Target | None:
    """The target of a consumer, None where none has this name."""
    if name in DESCRIBED:
        from serde.backends.description import get_backend

        return get_backend(name).target
    if name not in CONSUMERS:
        return None
    module = import_module(f"{__name__}.{name}.target")
    return getattr(module, name.upper())  # type: ignore[no-any-return]


def prepare(name: str, graph: Graph) -> Graph:
    """A graph that is legal for a consumer, with the names and outputs that it needs."""
    if name == "mnn":
        from .mnn.whole_graph import prepare as prepare_for_mnn

        return prepare_for_mnn(graph)
    if name == "ncnn":
        from .ncnn.whole_graph import prepare as prepare_for_ncnn

        return prepare_for_ncnn(graph)
    if name == "onnx2torch":
        from .onnx2torch.names import prepare as prepare_for_onnx2torch

        return prepare_for_onnx2torch(graph)
    if name == "onnxruntime":
        from .onnxruntime.whole_graph import prepare as prepare_for_onnxruntime

        return prepare_for_onnxruntime(graph)
    if name == "openvino":
        from .openvino.whole_graph import prepare as prepare_for_openvino

        return prepare_for_openvino(graph)
    if name == "tract":
        from .tract.whole_graph import prepare as prepare_for_tract

        return prepare_for_tract(graph)
    return graph
