"""What becomes of operators that only train, in a graph that only infers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serde.ir.graph import Node

from ..operators import describe

STOPS = (
    "passes on its input, and in training gradients too, which MXNet stops there: stop them where "
    "you train, as by detach() in PyTorch"
)
SHOWN = 5  # names of layers in one note


def collect_notes(nodes: Iterable[Node], training: bool = False) -> Iterator[str]:
    """What to say of the operators that became something else; Dropout stays for ``training``."""
    by_op: dict[str, list[str]] = {}
    for node in nodes:
        if describe(node.op).inference and not (training and node.op == "Dropout"):
            by_op.setdefault(node.op, []).append(node.name)
    for op, names in by_op.items():
        few = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
        does = STOPS if training and op == "BlockGrad" else describe(op).inference
        yield f"{op} ×{len(names)} ({few}) {does}"
