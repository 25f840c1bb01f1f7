"""What callers say of a model's inputs: shapes, types, names, and which outputs they want."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from serde.errors import UsageError
from serde.graph import Dim, DType, Graph, Shape, Value
from serde.passes.dead import drop_dead
from serde.passes.replacing import replace_values

DIMENSION = re.compile(r"[A-Za-z_][A-Za-z0-9_.+*/ -]{0,63}")


def spec_of(name: str, given: Any) -> tuple[Shape | None, DType | None]:
    """Read what a caller gives for one input: a shape, ``(shape, dtype)``, or an array.

    Raises:
        UsageError: for anything else.
    """
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return tuple(int(d) for d in given.shape), DType.of(given.dtype)
    if isinstance(given, (tuple, list)):
        paired = len(given) == 2 and (given[0] is None or isinstance(given[0], (tuple, list)))
        shape, dtype = given if paired else (given, None)
        dims = None if shape is None else tuple(_dim(name, d) for d in shape)
        return dims, None if dtype is None else _dtype(name, dtype)
    raise UsageError(f"input {name!r}: {given!r} is no shape, (shape, dtype) pair or array")


def parse_spec(text: str) -> tuple[str, tuple[Shape | None, DType | None]]:
    """Read ``NAME=DIMS[:dtype]`` as on the command line: ``data=N,3,224,224:float16``."""
    name, found, rest = text.partition("=")
    if not found or not name:
        raise UsageError(f"{text!r} is not NAME=DIMS[:dtype], such as data=N,3,224,224")
    dims, _, dtype = rest.partition(":")
    parts = [d.strip() for d in dims.strip("()[] ").split(",") if d.strip()]
    shape = None if dims.strip() == "" else tuple(_dim(name, d) for d in parts)
    return name, (shape, _dtype(name, dtype) if dtype else None)


def _dim(name: str, dim: Any) -> Dim:
    if dim is None or dim == "?":
        return None
    if isinstance(dim, str) and not dim.lstrip("+-").isdigit():
        if not DIMENSION.fullmatch(dim):
            raise UsageError(f"input {name!r}: {dim!r} cannot name a dimension")
        return dim
    try:
        size = int(dim)
    except (TypeError, ValueError):
        raise UsageError(f"input {name!r}: {dim!r} is no size") from None
    if size == -1:
        return None
    if size < 0:
        raise UsageError(f"input {name!r}: {size} is no size")
    return size


def _dtype(name: str, dtype: Any) -> DType:
    try:
        return DType.of(dtype)
    except Exception as error:
        raise UsageError(f"input {name!r}: {dtype!r} is no element type") from error


def with_inputs(graph: Graph, inputs: Mapping[str, Any] | None) -> Graph:
    """Return ``graph`` with the shapes and types callers give for its inputs."""
    if not inputs:
        return graph
    known = {v.name: v for v in graph.inputs}
    if unknown := sorted(set(inputs) - set(known)):
        raise UsageError(
            f"the model has no input {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(map(repr, known))}"
        )
    instead = {}
    for name, given in inputs.items():
        shape, dtype = spec_of(name, given)
        old = known[name]
        if shape is not None and old.shape is not None and len(shape) != len(old.shape):
            raise UsageError(
                f"input {name!r} has {len(old.shape)} dimensions in the model, {len(shape)} here"
            )
        shape = old.shape if shape is None else shape
        instead[old] = Value(name, dtype or old.dtype, shape, wrap=old.wrap)
    renewed = replace_values(graph, instead)
    return replace(renewed, inputs=tuple(instead.get(v, v) for v in graph.inputs))


def cut(graph: Graph, outputs: Sequence[str] | None) -> Graph:
    """Return ``graph`` with ``outputs``, names of values or nodes in it, for its results."""
    if not outputs:
        return graph
    values = _by_name(graph)
    by_node: dict[str, list[Value]] = {}
    for node in graph.nodes:
        by_node.setdefault(node.name, []).extend(node.outputs[:1])
    chosen = []
    for name in outputs:
        chosen.append(
            _only(
                name, values, values.get(name) or values.get(f"{name}_output") or by_node.get(name)
            )
        )
    shorter = drop_dead(replace(graph, outputs=tuple(chosen)))
    read = shorter.uses()
    return replace(shorter, inputs=tuple(v for v in graph.inputs if v in read))


def _by_name(graph: Graph) -> dict[str, list[Value]]:
    """The values of each name: in some formats several may have one."""
    values: dict[str, list[Value]] = {}
    for value in (*graph.inputs, *(v for node in graph.nodes for v in node.outputs)):
        if value.name:
            values.setdefault(value.name, []).append(value)
    return values


def _only(name: str, known: Iterable[str], found: Sequence[Value] | None) -> Value:
    """The value that was meant by ``name``."""
    if not found:
        raise UsageError(f"the model computes no {name!r}{_similar(name, [*known])}")
    if len(found) > 1:
        raise UsageError(
            f"the model computes {len(found)} values called {name!r}: give the one you mean a name "
            "of its own in the file"
        )
    return found[0]


def cut_inputs(graph: Graph, inputs: Sequence[str] | None) -> Graph:
    """Return an IR graph that begins at ``inputs``, names of values in it or of its inputs."""
    if not inputs:
        return graph
    values = _by_name(graph)
    instead, begun = {}, []
    for name in inputs:
        value = _only(name, values, values.get(name) or values.get(f"{name}_output"))
        begun.append(Value(value.name, value.dtype, value.shape, wrap=value.wrap))
        instead[value] = begun[-1]
    shorter = drop_dead(replace_values(graph, instead))
    outputs = tuple(instead.get(v, v) for v in graph.outputs)
    if needed := [v.name for v in graph.inputs if v in shorter.uses()]:
        raise UsageError(
            f"the outputs also depend on input {', '.join(map(repr, needed))}: name it as well"
        )
    kept = tuple(n for n in shorter.nodes if not set(n.outputs) & set(instead))
    return replace(shorter, inputs=tuple(begun), nodes=kept, outputs=outputs)


def _similar(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 3)
    return f"; it has {', '.join(map(repr, close))}" if close else ""


def rename(graph: Graph, names: Mapping[str, str] | None) -> Graph:
    """Return ``graph`` with inputs and outputs called by their new names."""
    if not names:
        return graph
    ends = {v.name: v for v in (*graph.inputs, *graph.outputs)}
    if unknown := sorted(set(names) - set(ends)):
        raise UsageError(f"no input or output is called {', '.join(map(repr, unknown))}")
    taken = {v.name for v in _all_values(graph)} - set(names)
    new = list(names.values())
    clashing = sorted({n for n in new if not n or n in taken or new.count(n) > 1})
    if clashing:
        raise UsageError(f"the new name {', '.join(map(repr, clashing))} is empty or taken")
    instead = {}
    for old, name in names.items():
        v = ends[old]
        instead[v] = Value(name, v.dtype, v.shape, v.tensor, v.elements, v.wrap, v.given)
    renewed = replace_values(graph, instead)
    nodes = tuple(
        replace(n, outputs=tuple(instead.get(v, v) for v in n.outputs))
        if any(v in instead for v in n.outputs)
        else n
        for n in renewed.nodes
    )
    return replace(renewed, nodes=nodes, inputs=tuple(instead.get(v, v) for v in graph.inputs))


def _all_values(graph: Graph) -> Iterator[Value]:
    yield from graph.constants()
    stack = [graph]
    while stack:
        graph = stack.pop()
        yield from graph.inputs
        for node in graph.nodes:
            yield from node.outputs
            stack.extend(node.graphs())
