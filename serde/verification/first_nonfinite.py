"""The first layers of one model whose results have NaN or infinities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from serde.ir.graph import Graph, Node
from serde.verification.nan_paths import NAN, list_special, probe_each

PART = 64  # layers whose results are held at once


def describe_first(
    graph: Graph, feeds: dict[str, Any], probe: Callable[[Sequence[str]], Sequence[Any]]
) -> str:
    """Where NaN and infinities arise: in an input, or in a layer with what it computes.

    ``graph`` has the names that ``probe`` runs the model up to. Infinities may be meant, as those
    of a mask, and so both are told. Empty where no layer can be asked.
    """
    for name, array in feeds.items():
        if special := list_special(array):
            return f"the input {name!r} has {' and '.join(special)}"
    first = _find_first(graph, probe)
    layers = [f"the first layer with {what} is {node.name!r} ({node.op})"
              for what, node in first.items()]  # fmt: skip
    names = {v.name: None for node in first.values() for v in (*node.inputs, *node.outputs)
             if v is not None and v.name and v.tensor is None}  # fmt: skip
    advice = f". To see what goes in and comes out, end the model at {', '.join(names)} (outputs)"
    return "; ".join(layers) + (advice if first else "")


def _find_first(graph: Graph, probe: Callable[[Sequence[str]], Sequence[Any]]) -> dict[str, Node]:
    """The first node by what its results have, up to the first that makes NaN."""
    makers = {v.name: node for node in graph.ordered_nodes() for v in node.outputs if v.name}
    names, first = [*makers], dict[str, Node]()
    for start in range(0, len(names), PART):
        values = probe_each(names[start : start + PART], probe)
        for name in names[start : start + PART]:
            for what in list_special(values.get(name)):
                first.setdefault(what, makers[name])
            if NAN in first:
                return first
    return first
