"""Branches and loops, as statements of Python around tensors or as calls (``higher_order.py``)."""

from __future__ import annotations

from serde.ir.graph import Graph, Value
from serde.rewrite.subgraphs import list_outer_values

from ..target import TorchBuilder, writes
from .elementwise import read_number
from .higher_order import is_read, without_aliases, write_cond, write_while_loop
from .shapes import number_of


@writes("If")
def write_if(t: TorchBuilder, condition: Value, *, then_branch: Graph, else_branch: Graph):
    if t.exportable:
        return write_cond(t, condition, then_branch, else_branch)
    outer = list_outer_values(then_branch, else_branch)
    bodies = {"then_branch": then_branch, "else_branch": else_branch}
    return t.emit("if", (condition, outer), bodies, len(then_branch.outputs))


@writes("Loop")
def write_loop(
    t: TorchBuilder, most: Value | None, going: Value | None, *states: Value, body: Graph
):
    """A loop over the numbers of its turns, or one that goes on while a condition holds."""
    is_begun = None if going is None or going.tensor is None else bool(going.array().any())
    condition = going if going is not None and is_begun is None else None
    is_endless = always_goes_on(without_aliases(body))
    is_fixed = most is not None and most.tensor is not None and condition is None and is_endless
    if t.exportable and is_begun is not False and not is_fixed:
        return write_while_loop(t, most, condition, states, body, is_endless)
    count = None if most is None else number_of(t, most)
    if is_begun is False:
        count = 0
    elif count is not None and condition is not None:
        count = t["*"](count, t.int(condition))
    if count is None:
        header = condition
    elif is_read(body.inputs[0], body):
        header = t.torch.arange(count, device=t.device())
    else:
        header = t.range(count)
    form = {"body": body, "kind": "while" if count is None else "for",
            "is_never_empty": int(isinstance(count, int) and count > 0)}  # fmt: skip
    return t.emit("loop", (header, states, list_outer_values(body)), form, len(body.outputs) - 1)


def always_goes_on(body: Graph) -> bool:
    """Whether a loop's body ends it never."""
    condition = body.outputs[0]
    if condition.tensor is not None:
        return bool(read_number(condition))
    return condition is body.inputs[1]
