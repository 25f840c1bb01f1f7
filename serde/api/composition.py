"""Models of any formats as one: ``compose``, and what models are ended with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from serde.ir.graph import Graph
from serde.legalize.convert import without_functions
from serde.passes import cut_inputs, tidy
from serde.passes.join_graphs import Connections, append_argmax, append_nms, join_graphs
from serde.pipeline import load
from serde.plugins.keywords import with_options
from serde.spec.verify import check


@with_options()
def compose(
    first: Any, second: Any, connections: Connections | None = None, *,
    keep: Iterable[str] = (), name: str | None = None,
) -> Graph:  # fmt: skip
    """One graph of two models, each of them anything that ``load`` takes.

    Args:
        connections: ``{"a_out": "b_in"}``, an output of the first model to an input of the
            second, or such pairs, ``[("a_out", "b_in")]``, of which an output may have several;
            inputs of the names of outputs, or the only output and input, if left out.
        keep: connected outputs of the first model that stay outputs.
        name: what the graph is called.

    Returns:
        A graph of the IR. Its inputs and outputs keep their names; one of the second model that
        the first one's have too gets a number, and values inside make way. Sizes by name become
        those they are connected with. Outputs are those of the second model, then those of the
        first one that are not connected.

    Raises:
        UsageError: for names that are not there, and types and sizes that contradict each other.
    """
    a, b = (without_functions(m if isinstance(m, Graph) else load(m)) for m in (first, second))
    joined = join_graphs(a, b, connections, keep)
    check(joined)
    return joined if name is None else replace(joined, name=name)


@with_options()
def select(graph: Graph, outputs: Sequence[str]) -> Graph:
    """The part of a graph that the named outputs or values depend on."""
    result = tidy(cut_inputs.cut(graph, outputs))
    check(result)
    return result


@with_options()
def rename(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with inputs and outputs called by their new names: ``{"old": "new"}``."""
    result = cut_inputs.rename(graph, names)
    check(result)
    return result


__all__ = ["append_argmax", "append_nms", "compose", "rename", "select"]
