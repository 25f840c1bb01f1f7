"""From the IR to a graph of PyTorch expressions."""

from __future__ import annotations

from dataclasses import replace

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, Graph
from serde.legalize.walk import group_problems, illegal_nodes
from serde.passes.dce import drop_dead
from serde.passes.integer_regions import compute_with_integers
from serde.passes.same_pads import settle_same_pads

from . import ops
from .legalize import legalize_for_torch, torch_target
from .modules.exported_constants import list_remarks
from .modules.placement import place
from .modules.plan import Placement
from .modules.scopes import find_scopes
from .passes.group_norm import join_group_norms
from .passes.stack_recurrent import drop_zero_states, stack_recurrent
from .target import STORED, TorchBuilder, writes

__all__ = ["from_ir", "ops"]


def from_ir(
    graph: Graph, exportable: bool = False, inference: bool = False, flat: bool = False,
    names: str | None = None,
) -> Graph:  # fmt: skip
    """Rewrite the IR into expressions of PyTorch.

    ``exportable`` makes branches and loops calls that ``torch.export`` takes, and packs no
    sequences. For ``inference`` every layer of constants is a module, also where the source does
    not train them. ``flat`` and ``names`` are those of ``encode``: notes tell of what a checkpoint
    that is loaded does not change.

    Raises:
        Unconvertible: for all inputs and nodes that PyTorch has no type or no way for, at once.
    """
    problems: list[Problem] = [
        Problem("input", EMPTY, _explain(value), (value.name,), writes.name)
        for value in graph.inputs
        if value.container or value.dtype not in STORED
    ]
    target = torch_target(exportable)
    settled = compute_with_integers(settle_same_pads(graph))
    legal = legalize_for_torch(settled, exportable)
    problems += legal.emulated_outputs(target)
    problems += group_problems(illegal_nodes(legal, target))
    if problems:
        raise Unconvertible(writes.name, problems)
    builder = TorchBuilder(graph.name)
    builder.exportable, builder.for_training = exportable, not inference
    done = writes.rewrite(legal.graph, builder)
    done = stack_recurrent(drop_dead(drop_zero_states(done)), builder)
    done = join_group_norms(done, builder)
    if flat or not find_scopes(done):
        return replace(done, source_info=Placement(builder.origins))
    runs = {value: value.origins for value in done.constants()}
    options = True, names != "source", inference
    plan = place(done, builder.origins, *options)
    info = Placement(builder.origins, plan, done.nodes, options, runs)
    return replace(done, source_info=info, notes=(*done.notes, *list_remarks(plan)))


def _explain(value) -> str:  # type: ignore[no-untyped-def]
    kind = " of ".join(value.container) if value.container else None
    described = kind or (value.dtype.value if value.dtype else "an unknown type")
    return f"{value.name!r} is of {described}, which PyTorch's modules do not compute with"
