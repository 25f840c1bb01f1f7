"""Constants that PyTorch's exporter has computed: nobody can tell whether of the checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from serde.ir.graph import Node, Value

from .folded import LOWERED, FoldedArrays
from .plan import Plan
from .scopes import Scope

# Calls that make arrays of numbers alone, and what has no numbers of its own.
MADE = re.compile(
    r"(arange|empty|eye|full|getitem|linspace|logspace|new_\w+|ones|scalar_tensor|sym_\w+|zeros|\w+_like|"
    r"\w+_window|tri[lu]_indices)(_\d+)?|[bcp]_\w+"
)
IN_ORDER = (
    "Tables whose rows are taken to be looked up in their order, all of them; export with "
    "optimize=False where that is not so"
)


def list_exported_constants(
    nodes: Iterable[Node], scopes: Mapping[Node, Scope], folded: FoldedArrays,
    inputs: Iterable[Value], keyed: set[Value],
) -> Iterator[tuple[Value, str]]:  # fmt: skip
    """The constants that are the results of other calls, with what the exporter calls those.

    ``keyed`` are arrays that have keys.
    """
    nodes = [*nodes]
    values = {v.name for node in nodes for v in node.outputs} | {v.name for v in inputs}
    listed: set[Value] = set()
    for node in nodes:
        scope = scopes.get(node)
        results = {name for name in scope.operands if not MADE.fullmatch(name)} if scope else set()
        for value in node.inputs if results else ():
            if value is None or value.tensor is None or value in keyed or value in listed:
                continue
            name = folded.name(value)
            unknown = {name} & results or ({*results} - values if LOWERED.fullmatch(name) else ())
            if len(unknown) == 1 and may_be_computed(value):
                listed.add(value)
                yield value, next(iter(unknown))


def may_be_computed(value: Value) -> bool:
    """Whether a constant may be computed of an array that is trained: no mask that places give."""
    array = value.array()
    if value.type.kind == "f":
        lowest = np.finfo(array.dtype).min if array.dtype.kind == "f" else -np.inf
        return array.size > 0 and bool(((array != 0) & (array > lowest)).any())
    if value.type.kind != "b" or array.ndim < 2:
        return False
    return not np.array_equal(array[..., 1:, 1:], array[..., :-1, :-1])


def list_remarks(plan: Plan) -> list[str]:
    """What a checkpoint that is loaded does not change, and what is known by custom alone."""
    remarks = []
    if plan.computed:
        names = ", ".join(dict.fromkeys(plan.computed.values()))
        remarks.append(
            "Computed when the model was exported, maybe of arrays of its checkpoint: another "
            "that is loaded does not change them. Export with optimize=False to compute them in "
            f"forward. Calls: {names}."
        )
    remarks += [f"{text}: {', '.join(names)}." for text, names in plan.assumed.items()]
    return remarks
