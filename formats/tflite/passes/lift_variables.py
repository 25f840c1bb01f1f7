"""Variables by name, as inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values

from ..quantization import FileInfo, Quantization

NOTE = (
    "variable {!r} is an input, and what it holds at the end is the output {!r}: feed {} at first, "
    "and then that output"
)
COUNTS = {  # of operands and of results
    "ASSIGN_VARIABLE": (2, 0), "READ_VARIABLE": (1, 1), "VAR_HANDLE": (0, 1),
}  # fmt: skip
END = "_next"  # behind the name of a variable, of what it holds at the end


def name_ends(graph: Graph, before: Graph) -> Graph:
    """Return the IR graph with outputs of their own for the variables that ``before`` lacks."""
    count = len(before.outputs)
    ends, nodes = [], list(graph.nodes)
    for value, variable in zip(
        graph.outputs[count:], graph.inputs[len(before.inputs) :], strict=True
    ):
        ends.append(Value(f"{variable.name}{END}", value.dtype, value.shape))
        nodes.append(Node("Identity", (value,), (ends[-1],)))
    return replace(graph, nodes=tuple(nodes), outputs=(*graph.outputs[:count], *ends))


def lift_variables(graph: Graph) -> Graph:
    """Return a graph without VAR_HANDLE, where a constant is assigned to each variable at first.

    Variables that nothing else is assigned to are these constants. Others become inputs and
    outputs. What subgraphs do with variables stays, and is refused.
    """
    if not all(map(_is_whole, graph.all_nodes())):
        return graph
    first = find_first_values(graph)
    handles = _find_handles(graph)
    named = {*handles.values()}
    is_plain = named <= first.keys() and not any(_uses_variables(n) for n in graph.nodes)
    scales = _find_scales(graph, handles, first)
    if not named or not is_plain or any(len(forms) > 1 for forms in scales.values()):
        return graph
    assigned = [name for name in first if any(
        n.op == "ASSIGN_VARIABLE" and handles.get(n.inputs[0]) == name for n in graph.nodes  # type: ignore[arg-type]
    )]  # fmt: skip
    names = Names()
    names.used.update(v.name for v in graph.all_values() if v not in handles)
    inputs = {n: Value(names.claim(n), first[n].dtype, first[n].shape) for n in assigned}
    names.used.update(f"{v.name}{END}" for v in inputs.values())
    now: dict[str, Value] = {**first, **inputs}
    nodes: list[Node] = []
    instead: dict[Value, Value] = {}
    for node in graph.nodes:
        name = handles.get(node.inputs[0]) if node.inputs else None  # type: ignore[arg-type]
        if node.op == "ASSIGN_VARIABLE" and name is not None and node.inputs[1] is not None:
            now[name] = instead.get(node.inputs[1], node.inputs[1])
        elif node.op == "READ_VARIABLE" and name is not None:
            instead[node.outputs[0]] = now[name]
        elif node.op not in ("CALL_ONCE", "VAR_HANDLE"):
            nodes.append(node)
    notes = [NOTE.format(v.name, f"{v.name}{END}", _describe(first[n])) for n, v in inputs.items()]
    lifted = replace(
        graph, inputs=(*graph.inputs, *inputs.values()), nodes=tuple(nodes),
        outputs=(*graph.outputs, *(now[n] for n in assigned)), notes=(*graph.notes, *notes),
        source_info=_add_scales(graph, {v.name: scales[n] for n, v in inputs.items()}),
    )  # fmt: skip
    return replace_values(lifted, instead) if instead else lifted


def find_first_values(graph: Graph) -> Mapping[str, Value]:
    """The constants that variables hold at first, by name: CALL_ONCE runs what assigns them."""
    first_values: dict[str, Value] = {}
    for node in graph.nodes:
        body = node.attrs.get("body") if node.op == "CALL_ONCE" else None
        if isinstance(body, Graph):
            handles = _find_handles(body)
            pairs = [n.inputs for n in body.nodes if n.op == "ASSIGN_VARIABLE"]
            first_values |= {handles[h]: v for h, v in pairs if h in handles and v and v.tensor}  # type: ignore[index]
    return first_values


def _is_whole(node: Node) -> bool:
    """Whether an operator of variables has as many operands and results as it needs."""
    operands, results = COUNTS.get(node.op, (len(node.inputs), 0))
    return len(node.inputs) == operands and len(node.outputs) >= results


def _find_handles(graph: Graph) -> dict[Value, str]:
    return {
        n.outputs[0]: str(n.attrs.get("container", "")) + str(n.attrs.get("shared_name", ""))
        for n in graph.nodes if n.op == "VAR_HANDLE"
    }  # fmt: skip


def _uses_variables(node: Node) -> bool:
    """Whether a subgraph, but that of CALL_ONCE, has variables."""
    return node.op != "CALL_ONCE" and any(
        body.operators() & {"ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE"}
        for body in node.attrs.values() if isinstance(body, Graph)
    )  # fmt: skip


def _find_scales(
    graph: Graph, handles: Mapping[Value, str], first: Mapping[str, Value]
) -> Mapping[str, set[Quantization | None]]:
    """What the integers stand for that are assigned to each variable and read from it."""
    known = graph.source_info.quantizations if isinstance(graph.source_info, FileInfo) else {}
    scales = {name: {known.get(value.name)} for name, value in first.items()}
    for node in graph.nodes:
        name = handles.get(node.inputs[0]) if node.inputs else None  # type: ignore[arg-type]
        if name in scales:
            values = (*node.inputs[1:], *node.outputs)
            scales[name] |= {known.get(v.name) for v in values if v is not None}
    return scales


def _add_scales(graph: Graph, scales: Mapping[str, set[Quantization | None]]) -> object:
    """What is known of a file, with the scales of new inputs."""
    info = graph.source_info
    if not isinstance(info, FileInfo):
        return info
    new = {name: form for name, (form,) in scales.items() if form is not None}
    return info._replace(quantizations={**info.quantizations, **new})


def _describe(value: Value) -> str:
    """What a constant holds: its number, or its name where there are several."""
    array = value.array()
    is_one = array.size and (array == array.flat[0]).all()
    return str(array.flat[0]) if is_one else f"what the file's constant {value.name!r} holds"
