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
    """The operands of Concats that only Concats along the same axis read, in their place.

    The last of a chain takes them all: each one would copy those of all before it.
    """
    result = node.outputs[0]
    if near.uses[result] == 1 and _is_part(near, node):
        return None
    operands, ahead = [], [*reversed(node.inputs)]
    while ahead:
        value = ahead.pop()
        maker = near.maker(value, "Concat")
        if maker is not None and _is_part(near, maker):
            ahead += reversed(maker.inputs)
        else:
            operands.append(value)
    return None if operands == [*node.inputs] else replace(node, inputs=tuple(operands))


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
