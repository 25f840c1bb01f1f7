"""Two graphs as one: outputs of the first become inputs of the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import UsageError, flags_are_known
from serde.ir.builder import Builder, Names
from serde.ir.dim_expr import combine, split_operands
from serde.ir.graph import Dim, DType, Graph, Node, Shape, Value
from serde.ir.metadata import without_values
from serde.ir.printer import show_value
from serde.ir.replace_uses import replace_values
from serde.passes import tidy
from serde.passes.name_apart import name_outputs
from serde.rewrite.clone import clone_graph
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder

Dims = dict[str, Dim]
Pairs = Sequence[tuple[Value, Value]]  # an output, and the input that takes it


Connections = Mapping[str, str] | Iterable[tuple[str, str]]


def join_graphs(
    first: Graph, second: Graph, connections: Connections | None = None, keep: Iterable[str] = ()
) -> Graph:
    """One graph of two IR graphs without functions.

    Args:
        connections: an output of the first graph to the input of the second that takes it, or
            pairs of these; inputs of the names of outputs, or the only output and input, if left
            out.
        keep: connected outputs of the first graph that stay outputs.

    Inputs and outputs of the result keep their names, but for those of the second graph that the
    first one has too, which get a number; so do other values whose names are not free. A size by
    name of the second graph becomes the size that is connected with it, and a number that one of
    them has holds for both. Outputs are those of the second graph, then those of the first one that
    are not connected.

    Raises:
        UsageError: for names that are not there, and types and sizes that contradict each other.
    """
    links = _find_links(first, second, connections)
    kept = set(keep)
    if unknown := sorted(kept - {v.name for v in first.outputs}):
        raise UsageError(f"no output of the first model is called {', '.join(unknown)}")
    hidden = {a for a, _ in links if first.outputs[a].name not in kept}
    connected = {second.inputs[b] for _, b in links}
    ends = [*first.inputs, *(v for i, v in enumerate(first.outputs) if i not in hidden)]
    second = _copy_passed_inputs(second, connected)
    ends += [v for v in (*second.inputs, *second.outputs) if v not in connected]
    names = Names()
    interface_names = {v: names.claim(v.name) for v in dict.fromkeys(ends)}
    files = first.files | second.files
    metadata_of_first = without_values(first.metadata, (first.outputs[a].name for a in hidden))
    metadata_of_second = without_values(second.metadata, (v.name for v in connected))
    known = [(first.outputs[a], second.inputs[b]) for a, b in links]
    first, second = (
        _clone(graph, names, interface_names, dims)
        for graph, dims in ((first, {}), (second, _separate_dims(first, second)))
    )
    pairs = [(first.outputs[a], second.inputs[b]) for a, b in links]
    of_first, of_second = _unify(pairs, first, known)
    instead = {v: _resize(v, of_first) for v in first.inputs}
    instead |= {v: _resize(v, of_second, of_first) for v in second.inputs}
    instead |= {b: instead.get(a, a) for a, b in pairs}
    left = [v for i, v in enumerate(first.outputs) if i not in hidden]
    fed_inputs = {b for _, b in pairs}
    joined = Graph(
        f"{first.name}_{second.name}",
        tuple(instead[v] for v in (*first.inputs, *second.inputs) if v not in fed_inputs),
        (*second.outputs, *left),
        (*first.nodes, *second.nodes),
        metadata={**metadata_of_second, **metadata_of_first},
        imports={**first.imports, **second.imports},
        notes=(*first.notes, *second.notes),
    )
    joined = replace_values(joined, instead)
    table = RuleTable("join", fallback=_emit_again({**of_first, **of_second}, of_first))
    return replace(tidy(table.rewrite(joined, OnnxBuilder(joined.name))), files=files)


def _copy_passed_inputs(graph: Graph, inputs: set[Value]) -> Graph:
    """The graph with outputs of their own in place of some inputs."""
    passed = {v: replace(v) for v in graph.outputs if v in inputs}
    copies = (Node("Identity", (v,), (copy,), name=v.name) for v, copy in passed.items())
    outputs = tuple(passed.get(v, v) for v in graph.outputs)
    return replace(graph, nodes=(*graph.nodes, *copies), outputs=outputs)


def _emit_again(*dims: Dims) -> Any:
    """Emit a node anew; sizes that inference cannot follow stay as they were."""

    def emit(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        result = again(g, node, inputs)
        results = result if isinstance(result, tuple) else (result,)
        for value, old in zip(results, node.outputs, strict=True):
            before = old.shape
            for each in dims:
                before = substitute_dims(before, each)
            if value.tensor is None and value.shape is not None and before is not None:
                value.shape = tuple(
                    b if a is None else a for a, b in zip(value.shape, before, strict=True)
                )
        return result

    return emit


def _show_link(outputs: Iterable[str], inputs: Iterable[str]) -> str:
    """How the first output and the first input are connected, in a command or a call."""
    output, first = next(iter(outputs)), next(iter(inputs))
    if flags_are_known.get():
        return f"--connect {output}={first}"
    return f"connections={{{output!r}: {first!r}}}"


def _find_links(
    first: Graph, second: Graph, connections: Connections | None
) -> list[tuple[int, int]]:
    """The places of the outputs and the inputs that are connected."""
    outputs = {v.name: i for i, v in enumerate(first.outputs)}
    inputs = {v.name: i for i, v in enumerate(second.inputs)}
    if not inputs:
        raise UsageError(
            "the second model has no inputs that outputs of the first could be connected with: "
            "exchange the two, or fix no input of it"
        )
    if connections is None:
        same = [(i, inputs[n]) for n, i in outputs.items() if n in inputs]
        if not same and len(outputs) == len(inputs) == 1:
            return [(0, 0)]
        if not same:
            raise UsageError(
                f"the first model's outputs are {', '.join(outputs)}, the second one's inputs "
                f"{', '.join(inputs)}: say which are connected, as {_show_link(outputs, inputs)}"
            )
        return same
    pairs = _list_pairs(connections)
    for source, target in pairs:
        _require_name(source, outputs, "output of the first")
        _require_name(target, inputs, "input of the second")
    targets = [target for _, target in pairs]
    if twice := sorted({t for t in targets if targets.count(t) > 1}):
        raise UsageError(
            f"input {', '.join(map(repr, twice))} of the second model is connected twice: connect "
            "it to one output"
        )
    return [(outputs[a], inputs[b]) for a, b in pairs]


def _list_pairs(connections: Any) -> list[tuple[str, str]]:
    """Pairs of an output and an input, as callers give them."""
    pairs = connections.items() if isinstance(connections, Mapping) else connections
    is_list = isinstance(pairs, Iterable) and not isinstance(pairs, str)
    listed = [tuple(p) if isinstance(p, (tuple, list)) else (p,) for p in pairs] if is_list else []
    if not is_list or any([*map(type, p)] != [str, str] for p in listed):
        raise UsageError(
            "connections is a mapping of outputs to inputs, such as connections={'boxes': 'x'}, or "
            f"a list of such pairs, such as [('boxes', 'x')]; got {connections!r}"
        )
    return listed  # type: ignore[return-value]


def _require_name(name: str, known: Mapping[str, int], what: str) -> None:
    if name not in known:
        raise UsageError(f"no {what} model is called {name!r}; there are: {', '.join(known)}")


def _clone(graph: Graph, names: Names, interface_names: Mapping[Value, str], dims: Dims) -> Graph:
    """The graph with new values, called by ``interface_names``, or by names that are free."""
    env: dict[Value, Value] = {}

    def clone_value(value: Value) -> Value:
        if value not in env:
            shape = substitute_dims(value.shape, dims)
            name = interface_names.get(value) or (names.claim(value.name) if value.name else "")
            env[value] = Value(
                name, value.dtype, shape, value.tensor, substitute_dims(value.shape_data, dims),
                value.container, value.name_is_original, value.origins,
            )  # fmt: skip
        return env[value]

    return clone_graph(graph, clone_value)


# Sizes


def substitute_dims(shape: Shape | None, dims: Mapping[str, Dim]) -> Shape | None:
    """A shape with other sizes for names, also inside of expressions."""
    return None if shape is None else tuple(substitute_dim(d, dims) for d in shape)


def substitute_dim(dim: Dim, dims: Mapping[str, Dim]) -> Dim:
    """A size with other sizes for the names in it."""
    if not isinstance(dim, str) or not dims:
        return dim
    if dim in dims:
        return dims[dim]
    parts = split_operands(dim)
    if parts is None:
        return dim
    sign, a, b = parts
    return combine(sign, substitute_dim(a, dims), substitute_dim(b, dims))


def _names_of(graph: Graph) -> set[str]:
    return {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)}


def _separate_dims(first: Graph, second: Graph) -> Dims:
    """New names for the sizes of the second graph that the first one means others by."""
    names_of_first, names_of_second = _names_of(first), _names_of(second)
    used = Names()
    used.used.update(names_of_first | names_of_second)
    return {n: used.fresh(n) for n in sorted(names_of_first & names_of_second)}


def _unify(pairs: Pairs, first: Graph, known_pairs: Pairs) -> tuple[Dims, Dims]:
    """Sizes for the names of the inputs of both graphs, by what is connected.

    ``known_pairs`` are the same as the user knows them.
    """
    of_first: Dims = {}
    of_second: Dims = {}
    plain = _names_of(first)
    for (a, b), shown in zip(pairs, known_pairs, strict=True):
        _require_types(*shown)
        for x, y in zip(a.shape or (), b.shape or (), strict=False):
            x = substitute_dim(x, of_first)
            known = substitute_dim(y, of_second)
            if isinstance(y, str) and known == y and split_operands(y) is None:
                of_second[y] = x
            elif isinstance(x, int) and isinstance(known, int) and x != known:
                raise UsageError(f"{_show_pair(*shown)}: {x} is not {known}")
            elif isinstance(x, str) and x in plain and known is not None and known != x:
                of_first[x] = known
            elif isinstance(y, str) and isinstance(x, int) and isinstance(known, str):
                of_first |= {known: x} if known in plain else {}
                of_second[y] = x
    return of_first, of_second


def _show_pair(a: Value, b: Value) -> str:
    first, second = show_value(a).lstrip("%"), show_value(b).lstrip("%")
    return f"the first model's {first} does not fit the second one's {second}"


def _require_types(a: Value, b: Value) -> None:
    if a.dtype is not b.dtype and None not in (a.dtype, b.dtype):
        raise UsageError(f"{_show_pair(a, b)}: cast one of them")
    if a.container != b.container:
        raise UsageError(f"{_show_pair(a, b)}: one of them is no tensor")
    if a.shape is not None and b.shape is not None and len(a.shape) != len(b.shape):
        raise UsageError(f"{_show_pair(a, b)}: their ranks differ")


def _resize(value: Value, *dims: Dims) -> Value:
    shape = value.shape
    for each in dims:
        shape = substitute_dims(shape, each)
    return Value(value.name, value.dtype, shape, container=value.container)


# What models end with


def append_argmax(graph: Graph, output: str, axis: int = -1, name: str = "argmax") -> Graph:
    """The graph with the place of the largest element of an output, in place of that output."""
    x = _output(graph, output)

    def emit(g: Any, values: Sequence[Value]) -> Value:
        return g.ArgMax(values[0], axis=axis, keepdims=0)  # type: ignore[no-any-return]

    return _append(graph, [x], emit, name)


def append_labels(graph: Graph, output: str, labels: Sequence[str], name: str = "label") -> Graph:
    """The graph with the label of the largest element along the last axis as one more output."""
    x = _output(graph, output)

    def emit(g: Any, values: Sequence[Value]) -> Value:
        texts = g.const(np.asarray(labels, object), DType.STRING)
        return g.Gather(texts, g.ArgMax(values[0], axis=-1, keepdims=0))  # type: ignore[no-any-return]

    joined = _append(graph, [x], emit, name, keep=(output,))
    by_name = {v.name: v for v in joined.outputs}
    ends = [by_name[v.name] for v in graph.outputs]
    return replace(joined, outputs=(*ends, *(v for v in joined.outputs if v not in ends)))


def append_nms(
    graph: Graph, boxes: str, scores: str, *, iou_threshold: float = 0.5,
    score_threshold: float = 0.0, max_output: int = 100, center_point_box: bool = False,
    name: str = "selected",
) -> Graph:  # fmt: skip
    """The graph with the boxes that suppression leaves: rows of batch, class and box.

    ``boxes`` is an output of shape (batch, boxes, 4), ``scores`` one of (batch, classes, boxes);
    both stay outputs.
    """
    both = [_output(graph, boxes), _output(graph, scores)]

    def emit(g: Any, values: Sequence[Value]) -> Value:
        limits = [g.const([v], DType.FLOAT32) for v in (iou_threshold, score_threshold)]
        return g.NonMaxSuppression(  # type: ignore[no-any-return]
            *values, [max_output], *limits, center_point_box=int(center_point_box)
        )

    return _append(graph, both, emit, name, keep=(boxes, scores))


def _output(graph: Graph, name: str) -> Value:
    output = next((v for v in graph.outputs if v.name == name), None)
    if output is None:
        listed = ", ".join(v.name for v in graph.outputs)
        raise UsageError(f"no output is called {name!r}; there are: {listed}")
    return output


def _append(
    graph: Graph, values: Sequence[Value], emit: Any, name: str, keep: Sequence[str] = ()
) -> Graph:
    g = OnnxBuilder(name)
    inputs = [g.input(f"{v.name}_in", v.dtype, v.shape) for v in values]
    output = emit(g, inputs)
    links = [(v.name, i.name) for v, i in zip(values, inputs, strict=True)]
    joined = join_graphs(graph, g.build([output]), links, keep)
    return replace(name_outputs(joined, joined.outputs[:1], [name]), name=graph.name)
