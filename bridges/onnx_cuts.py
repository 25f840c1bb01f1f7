"""A ModelProto that begins in the middle of another: at values a caller feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from serde.verification.baked_batch import NotComparable

FREE_INITIALIZERS = 4  # the version of the IR since which initializers need not be inputs


def cut_model(
    source: Any, inputs: Sequence[str], feeds: Mapping[str, np.ndarray[Any, Any]],
    outputs: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """A copy of a ModelProto whose inputs are the values ``inputs``, typed as ``feeds`` are.

    What only the values themselves are computed from is left out.

    Raises:
        NotComparable: where the main graph has no such value, or an output needs another input.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(source)
    graph = model.graph
    names = {name for node in graph.node for name in node.output} | {i.name for i in graph.input}
    cuts = [_resolve_value(name, names) for name in inputs]
    ends = (
        [_resolve_value(name, names) for name in outputs]
        if outputs
        else [o.name for o in graph.output]
    )
    for node in graph.node:
        for at, name in enumerate(node.output):
            if name in cuts:
                node.output[at] = f"{name}/before_cut"
    needed = _find_needed(graph, ends)
    read = {name for at in needed for name in _names_read(graph.node[at])} | {*ends}
    if missing := sorted({i.name for i in graph.input} & read - {*cuts} - _constants(graph)):
        raise NotComparable(f"not compared: the outputs depend on {', '.join(missing)} as well")
    for at in reversed(range(len(graph.node))):
        if at not in needed:
            del graph.node[at]
    known = {o.name: onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in graph.output}
    del graph.input[:], graph.output[:], graph.value_info[:]
    for name in dict.fromkeys(cuts):
        code = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, code, None))
    model.ir_version = max(model.ir_version, FREE_INITIALIZERS)
    graph.output.extend(known.get(name, onnx.ValueInfoProto(name=name)) for name in ends)
    return model


def _resolve_value(name: str, names: set[str]) -> str:
    """The value that a caller means, as ``--inputs`` takes it."""
    value = next((n for n in (name, f"{name}_output") if n in names), None)
    if value is None:
        raise NotComparable(f"not compared: the source's main graph has no value {name!r}")
    return value


def _constants(graph: Any) -> set[str]:
    return {i.name for i in graph.initializer} | {i.values.name for i in graph.sparse_initializer}


def _find_needed(graph: Any, ends: Sequence[str]) -> set[int]:
    """The places of the nodes that ``ends`` are computed by."""
    maker = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    stack, indices = list(ends), set()
    while stack:
        at = maker.get(stack.pop())
        if at is not None and at not in indices:
            indices.add(at)
            stack.extend(_names_read(graph.node[at]))
    return indices


def _names_read(node: Any) -> Iterator[str]:
    """The values a node reads, those of the graphs around it by its subgraphs included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _names_read(inner)
            yield from (o.name for o in graph.output)
