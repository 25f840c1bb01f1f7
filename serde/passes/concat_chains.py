"""A Concat of Concats along one axis, as one."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Node
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns

FEW = 4  # operands that any number of Concats take over
MOST = 128  # operands that the Concats reading one of more have in its place, together
patterns = Patterns()


@patterns("Concat")
def join_concats(near: Neighbours, node: Node) -> Node | None:
    """The operands of Concats that only Concats along the same axis read, in their place."""
    makers = {v: near.maker(v, "Concat") for v in node.inputs}
    parts = {v: maker for v, maker in makers.items() if maker is not None and _is_part(near, maker)}
    if not parts:
        return None
    operands = [w for v in node.inputs for w in (parts[v].inputs if v in parts else (v,))]
    return replace(node, inputs=tuple(operands))


def _is_part(near: Neighbours, concat: Node) -> bool:
    """Whether all that read a Concat are Concats along its axis, and may take its operands."""
    (result,), size = concat.outputs, len(concat.inputs)
    readers = [n for n in near.readers[result] if n.op == "Concat" and not n.domain]
    count = sum(n.inputs.count(result) for n in readers)
    if count > 1 and size > FEW and count * size > MOST:
        return False
    axis = concat.attrs["axis"]
    return count == near.uses[result] and all(n.attrs["axis"] == axis for n in readers)


flatten_concats = optional("flatten_concats")(patterns.apply)
