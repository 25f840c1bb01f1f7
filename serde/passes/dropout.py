"""Drop Dropout at inference whose mask nothing reads.

One without a mask goes while the graph is built (``simplify.py``).
"""

from __future__ import annotations

from serde.ir.graph import Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import Neighbours, Patterns

patterns = Patterns()


@patterns("Dropout")
def drop(near: Neighbours, node: Node) -> Value | None:
    """What a Dropout reads, unless it is for training."""
    training = node.inputs[2] if len(node.inputs) > 2 else None
    is_off = training is None or (training.tensor is not None and not training.array().any())
    return node.inputs[0] if is_off else None


def drop_dropout(graph: Graph) -> Graph:
    """Return ``graph`` without them; older masks are cast, also where nothing reads the result."""
    return patterns.apply(drop_dead(graph)) if "Dropout" in graph.operators() else graph
