"""Drop Dropout at inference whose mask nothing reads.

One without a mask goes while the graph is built (``simplify.py``).
"""

from __future__ import annotations

from serde.ir.graph import Node, Value
from serde.rewrite.patterns import Neighbours, Patterns

patterns = Patterns()


@patterns("Dropout")
def drop(near: Neighbours, node: Node) -> Value | None:
    """What a Dropout reads, unless it is for training."""
    training = node.inputs[2] if len(node.inputs) > 2 else None
    is_off = training is None or (training.tensor is not None and not training.array().any())
    return node.inputs[0] if is_off else None


drop_dropout = patterns.apply
