"""For consumers whose every size is a number."""

from __future__ import annotations

from serde.errors import UsageError
from serde.ir.graph import Graph, show_shape
from serde.legalize.convert import without_functions


def require_static_shapes(graph: Graph) -> Graph:
    """The graph, without functions; its values have no dimension that is not a number.

    Raises:
        UsageError: naming a value that has one.
    """
    graph = without_functions(graph)
    for value in graph.inputs:
        if not value.is_static:
            raise UsageError(
                f"the profile takes static shapes only, and input {value.name!r} is "
                f"{show_shape(value.shape)}: give its sizes (--input, --static)"
            )
    for node in graph.all_nodes():
        for value in node.outputs:
            if value.name and not value.container and not value.is_static:
                raise UsageError(
                    f"the profile takes static shapes only, and {value.name!r} ({node.op}) is "
                    f"{show_shape(value.shape)}"
                )
    return graph
