"""Inputs and outputs of a model with channels last."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from serde.errors import UsageError
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import exchange_values

from .place import to_first, to_last

ALL = "all"


def turn_ends(graph: Graph, names: Collection[str]) -> Graph:
    """Return an IR graph whose named inputs and outputs have channels last; ``all``: images.

    Images are those of four and of five axes.

    Raises:
        UsageError: for names of none, and of what has less than three axes.
    """
    ends = (*graph.inputs, *graph.outputs)
    if unknown := set(names) - {v.name for v in ends} - {ALL}:
        raise UsageError(f"no inputs or outputs are called {', '.join(sorted(unknown))}: give "
                         f"some of {', '.join(v.name for v in ends)}, or {ALL}")  # fmt: skip
    chosen = [v for v in dict.fromkeys(ends)
              if v.name in names or (ALL in names and len(v.shape or ()) in (4, 5))]  # fmt: skip
    for v in chosen:
        if v.shape is None or len(v.shape) < 3:
            raise UsageError(f"{v.name!r} has no channels and sizes behind them: leave it out")
    inner = {v: Value(f"{v.name}/channels_first", v.dtype, v.shape) for v in chosen}
    turned = {v: Value(v.name, v.dtype, tuple([v.ranked_shape[a] for a in to_last(v.rank)]))
              for v in chosen}  # fmt: skip
    before = [Node("Transpose", (turned[v],), (inner[v],), {"perm": to_first(v.rank)})
              for v in graph.inputs if v in inner]  # fmt: skip
    behind = [Node("Transpose", (inner[v],), (turned[v],), {"perm": to_last(v.rank)})
              for v in graph.outputs if v in inner and v not in graph.inputs]  # fmt: skip
    done = exchange_values(graph, inner)
    return replace(
        done, nodes=(*before, *done.nodes, *behind),
        inputs=tuple([turned.get(v, v) for v in graph.inputs]),
        outputs=tuple([turned.get(v, v) for v in graph.outputs]),
    )  # fmt: skip


def refuse_turned_twice(layouts: Mapping[str, str], names: Collection[str]) -> None:
    """Refuse to turn inputs, by their names, that have channels last as ``layouts`` say.

    Raises:
        UsageError: for the first of them.
    """
    for name, layout in layouts.items():
        letters = str(layout).partition(":")[0].upper()
        if letters.endswith("C") and not {name, ALL}.isdisjoint(names):
            raise UsageError(
                f"--channels-last would turn {name!r}, whose layout is {layout} already: name the "
                "other inputs and outputs, or leave one of the two out"
            )
