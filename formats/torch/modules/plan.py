"""Where the members of a model are, and the expressions that read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from serde.ir.graph import Graph, Node, Origins, Value

from .scopes import Path, Scope


@dataclass
class Plan:
    """Where things are.

    ``members`` has the path of each node's module, ``arrays`` that of each array that is read as it
    is; ``buffers`` are those of them that are not trained, with whether a checkpoint has them.
    ``unread`` are the arrays of a checkpoint that nothing reads.
    ``homes`` tells the module whose ``forward`` has a node, ``called`` those that have one.
    ``computed`` are constants of which the exporter tells that it computed them, ``assumed`` what
    is usual and not told, with the arrays or modules that it is assumed of.
    ``origins`` are the arrays that constants were made of.
    ``is_checkpoint`` tells that the source names the keys of a ``state_dict``: what it does not
    name is none of it.
    """

    graph: Graph
    members: dict[Node, Path] = field(default_factory=dict)
    arrays: dict[Value, Path] = field(default_factory=dict)
    buffers: dict[Value, bool] = field(default_factory=dict)
    unread: dict[Path, Value] = field(default_factory=dict)
    homes: dict[Node, Path] = field(default_factory=dict)
    called: set[Path] = field(default_factory=set)
    scopes: Mapping[Node, Scope] = field(default_factory=dict)
    classes: dict[Path, str] = field(default_factory=dict)
    is_checkpoint: bool = False
    origins: Mapping[Value, Value] = field(default_factory=dict)
    computed: dict[Value, str] = field(default_factory=dict)
    assumed: dict[str, dict[str, None]] = field(default_factory=dict)

    def assume(self, text: str, name: str) -> None:
        """Let people know that something usual is taken to be so."""
        self.assumed.setdefault(text, {})[name] = None

    def find_module(self, token: str, parameter: str, path: Path) -> Path | None:
        """The module that an array is of, if that is another than ``path``."""
        if token == f"p_{flatten((*path, parameter))}" or not token.endswith(f"_{parameter}"):
            return None
        around = [p for p in self.called if token.startswith(f"p_{flatten(p)}_")]
        outer = max(around, key=len, default=())
        start = f"p_{flatten(outer)}_" if outer else "p_"
        if token == start + parameter:
            return outer
        return (*outer, token.removeprefix(start).removesuffix(f"_{parameter}"))


def flatten(path: Path) -> str:
    """A path as exporters write it into the names of parameters."""
    return re.sub(r"\W", "_", "_".join(path)).lower()


@dataclass(frozen=True)
class Placement:
    """What is known of a graph of PyTorch's expressions: what constants were made of, and a plan.

    ``plan`` is that of ``nodes`` by ``options``, if one was made. Placing enters what it has found
    out of constants; ``runs`` are the origins that they had before.
    """

    origins: Mapping[Value, Value] = field(default_factory=dict)
    plan: Plan | None = None
    nodes: Sequence[Node] = ()
    options: tuple[bool, ...] = ()
    runs: Mapping[Value, Origins] = field(default_factory=dict)

    def find_plan(self, nodes: Sequence[Node], *options: bool) -> Plan | None:
        """The plan, if it is of these nodes; else constants are as they were before it."""
        is_same = len(nodes) == len(self.nodes) and all(map(is_, nodes, self.nodes))
        if self.plan is not None and is_same and options == self.options:
            return self.plan
        for value, runs in self.runs.items():
            value.origins = runs
        return None
