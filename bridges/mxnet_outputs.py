"""The outputs of a model as MXNet's own ONNX exporter has them: their names and their order."""

from __future__ import annotations

import re
from collections import Counter

from serde.ir.graph import Graph, Value

STATES = {"_state_output": "1", "_statecell_output": "2"}  # of an RNN


def exported_outputs(graph: Graph) -> tuple[list[str], dict[str, str]]:
    """The outputs of an MXNet graph in the exporter's order, and its names of them.

    It has them in the order of the graph's nodes, each once. A name that is not unique, or that
    something else has, stays as it is. An input that is an output comes last: the exporter leaves
    it out.
    """
    makers = {v: (at, i) for at, n in enumerate(graph.nodes) for i, v in enumerate(n.outputs)}
    last = (len(graph.nodes), 0)
    values = sorted(dict.fromkeys(graph.outputs), key=lambda v: makers.get(v, last))
    uses = Counter(v.name for v in (*graph.inputs, *graph.constants(), *makers))
    names = {
        v.name: _exported_name(graph.nodes[makers[v][0]].name, v)
        for v in values
        if v in makers and uses[v.name] == 1
    }
    new = Counter(names.values())
    names = {a: b for a, b in names.items() if a != b and b and not uses[b] and new[b] == 1}
    return [v.name for v in values], names


def _exported_name(layer: str, value: Value) -> str:
    """``fc`` of ``fc_output``, ``split1`` of ``split_output1``."""
    suffix = value.name[len(layer) :] if value.name.startswith(layer) else ""
    match = re.fullmatch(r"_output(\d*)", suffix)
    if match:
        return layer + match[1]
    return layer + STATES[suffix] if suffix in STATES else value.name
