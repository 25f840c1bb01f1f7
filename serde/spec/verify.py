"""The IR's invariants (docs/reference/ir.md): a function each, which raises InvalidGraph."""

from __future__ import annotations

from serde.errors import InvalidGraph, SerdeError
from serde.ir.graph import IR_OPSET, Graph, Node, Value
from serde.spec import schema
from serde.spec.traits import AXIS


def check(graph: Graph) -> None:
    """Check every invariant of an IR graph.

    Raises:
        InvalidGraph: naming the first node that breaks one.
    """
    check_opset(graph)
    check_unique_names(graph)
    check_topological_order(graph, set())
    checked: set[tuple[str, ...]] = set()  # operators and the names of their attributes
    for node in graph.all_nodes():
        if not node.domain:
            key = (node.op, *node.attrs)
            if key not in checked:
                check_operator(node)
                check_defaults(node)
                checked.add(key)
            if "axis" in node.attrs:
                check_axes(node)


def check_opset(graph: Graph) -> None:
    """The graph's operators are those of ``IR_OPSET``, in the default domain."""
    if graph.domain or graph.opset != IR_OPSET:
        raise InvalidGraph(f"graph {graph.name!r} is of {graph.domain or 'opset'} {graph.opset}")


def check_unique_names(graph: Graph) -> None:
    """No two values bear one name, subgraphs included."""
    if value := find_namesake(graph):
        raise InvalidGraph(f"two values are called {value.name!r}")


def find_namesake(graph: Graph) -> Value | None:
    """A value that has the name of another one."""
    values = list(graph.all_values())
    if len({v.name for v in values}) == len(values):
        return None
    owner: dict[str, Value] = {}
    return next((v for v in values if v.name and owner.setdefault(v.name, v) is not v), None)


def check_topological_order(graph: Graph, known: set[Value]) -> None:
    """Every node reads constants, inputs, and what nodes before it compute.

    ``known`` holds what is computed around the graph, and again when it is done.
    """
    defined = set(graph.inputs) - known
    known |= defined
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.tensor is None and value not in known:
                raise InvalidGraph(f"node {node.name!r} reads {value.name!r} before it is computed")
        for body in node.graphs():
            check_topological_order(body, known)
        defined.update(node.outputs)
        known.update(node.outputs)
    for value in graph.outputs:
        if value.tensor is None and value not in known:
            raise InvalidGraph(f"output {value.name!r} is not computed")
    known -= defined


def check_operator(node: Node) -> None:
    """The standard has the operator, and no Constant is left: constants are Values."""
    try:
        schema.operator(node.op)
    except SerdeError as error:
        raise InvalidGraph(f"node {node.name!r}: {error}") from error
    if node.op == "Constant":
        raise InvalidGraph(f"node {node.name!r} is a Constant")


def check_defaults(node: Node) -> None:
    """Every attribute with a default is written out."""
    if missing := schema.operator(node.op).defaults.keys() - node.attrs.keys() - {"auto_pad"}:
        raise InvalidGraph(
            f"node {node.name!r} ({node.op}) leaves out {', '.join(sorted(missing))}"
        )


def check_axes(node: Node) -> None:
    """Axes count from the front wherever the rank is known."""
    axis, x = node.attrs.get("axis"), node.inputs[0] if node.inputs else None
    ranked = node.op in AXIS and x is not None and x.shape is not None
    if ranked and isinstance(axis, int) and axis < 0:
        raise InvalidGraph(f"node {node.name!r} ({node.op}) counts axis {axis} from the back")
