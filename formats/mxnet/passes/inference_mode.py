"""What becomes of operators that only train, in a graph that only infers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serde.ir.graph import Node

from ..operators import describe

KEPT = ("BlockGrad", "Dropout")  # in the training form
SHOWN = 5  # names of layers in one note


def collect_notes(nodes: Iterable[Node], training: bool = False) -> Iterator[str]:
    """What to say of the operators that became something else, but those kept for ``training``."""
    by_op: dict[str, list[str]] = {}
    for node in nodes:
        if describe(node.op).inference and not (training and node.op in KEPT):
            by_op.setdefault(node.op, []).append(node.name)
    for op, names in by_op.items():
        few = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
        yield f"{op} ×{len(names)} ({few}) {describe(op).inference}"
