"""Options that were to change a result, and did not: they are told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextvars import Context
from typing import Any

from serde.errors import SerdeError
from serde.ir.budget import within_budget
from serde.ir.graph import Graph
from serde.ir.same_graph import is_same_graph
from serde.passes.cut_inputs import rename
from serde.passes.optional import skip_passes
from serde.pipeline import finish, lower, raise_to_ir
from serde.plugins import Format
from serde.plugins.options import merge_options

SMALL = 1 << 16  # bytes of a constant that is compared
MOST_NODES = 2_000  # of a source that is converted once more to tell


def note_idle_options(
    fmt: Format, source: Graph, into: Format, reading: Mapping[str, Any],
    writing: Mapping[str, Any], defaults: Collection[str], result: Graph,
) -> Iterator[str]:  # fmt: skip
    """A note for each option without which the result would be the same.

    Those that ask for a change (``Option.is_request``) are left out in turn, and ``source`` is
    converted again, unless it is large. What it says of an option by itself is enough.
    """
    declared = merge_options([fmt.read_options, into.write_options])
    values = {**reading, **writing}
    requests = [declared[n] for n in values if n in declared and n not in defaults]
    for option in (o for o in requests if o.is_request and len(source.nodes) <= MOST_NODES):
        left = [{n: v for n, v in kept.items() if n != option.name} for kept in (reading, writing)]
        is_named = any(option.all_flags[0] in note for note in result.notes)
        if not is_named and _stays_same(fmt, source, into, left[0], left[1], defaults, result):
            yield f"{option.all_flags[0]} had no effect: the model has nothing that it would change"


def _stays_same(
    fmt: Format, source: Graph, into: Format, reading: Mapping[str, Any],
    writing: Mapping[str, Any], defaults: Collection[str], result: Graph,
) -> bool:  # fmt: skip
    """Whether a source becomes the same with fewer options."""

    def convert() -> Graph:
        with within_budget(), skip_passes(reading.get("skip")):
            graph = rename(raise_to_ir(fmt, source, reading, defaults), writing.get("rename"))
            return finish(lower(into, graph, writing))

    try:
        other = Context().run(convert)  # without what is skipped here
    except SerdeError:
        return False
    return is_same_graph(other, result) and _list_small(other) == _list_small(result)


def _list_small(graph: Graph) -> list[bytes]:
    """The bytes of the constants that are no large weights."""
    tensors = (v.tensor for v in graph.constants() if v.tensor is not None)
    return [t.load().tobytes() for t in tensors if t.nbytes <= SMALL]
