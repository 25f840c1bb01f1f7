"""What callers say of a model's inputs: shapes, types, names, and which outputs they want."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from serde.errors import ConversionError, UsageError
from serde.ir.graph import Dim, DType, Graph, Node, Shape, Value
from serde.ir.metadata import rename_values
from serde.ir.printer import list_first
from serde.ir.replace_uses import exchange_values, replace_values
from serde.ir.values_read import nodes_behind
from serde.passes.dce import drop_dead
from serde.passes.name_apart import name_apart
from serde.spec.schema import find

LABEL = "label"  # how names of labels end; a training script tells their shapes with all others
SHOWN = 8  # names of inputs in a note
DIMENSION = re.compile(r"[A-Za-z_][A-Za-z0-9_.+*/ -]{0,63}")
NOT_NAMES = frozenset({"none", "null", "nan", "inf"})  # what a program prints of no size at all
# Types as ONNX and PyTorch call them, where NumPy means another, or none.
SHORT = {"float": "float32", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
LARGEST_SIZE = 2**63 - 1  # dimensions are int64 in every format


class InputSpec(NamedTuple):
    """What a caller declares of one input; None where nothing is declared."""

    shape: Shape | None
    dtype: DType | None


def spec_of(name: str, spec: Any) -> InputSpec:
    """Read what a caller gives for one input: a shape, ``(shape, dtype)``, or an array.

    A pair is a shape and an element type only if it can be no shape: ``((1, 3), "float16")``,
    ``(None, "float16")``; ``(None, 4)`` and ``(None, None)`` are shapes of two dimensions.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(spec, InputSpec):
        return spec
    if hasattr(spec, "shape") and hasattr(spec, "dtype"):
        return InputSpec(tuple(int(d) for d in spec.shape), DType.of(spec.dtype))
    if isinstance(spec, (tuple, list)):
        shape, dtype = spec if _is_pair(spec) else (spec, None)
        dims = None if shape is None else tuple(_dim(name, d) for d in shape)
        return InputSpec(dims, None if dtype is None else _dtype(name, dtype))
    raise UsageError(
        f"input {name!r}: {spec!r} is no shape, (shape, dtype) pair or array: give one, as "
        f"(2, 3) or ((2, 3), 'uint8')"
    )


def _is_pair(spec: Sequence[Any]) -> bool:
    """Whether a sequence is a shape, or None, and an element type."""
    if len(spec) != 2:
        return False
    shape, dtype = spec
    if isinstance(shape, (tuple, list)):
        return True
    return shape is None and dtype is not None and _names_type(dtype)


def _names_type(thing: Any) -> bool:
    if isinstance(thing, (int, np.integer)) or (isinstance(thing, str) and len(thing) < 2):
        return False  # a size, or a name of one: NumPy's codes of one letter are no types here
    try:
        DType.of(thing)
    except (ConversionError, TypeError, ValueError):
        return False
    return True


def parse_spec(text: str) -> tuple[str, InputSpec]:
    """Read ``NAME=DIMS[:dtype]`` as on the command line: ``data=N,3,224,224:float16``."""
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise UsageError(f"{text!r} is not NAME=DIMS[:dtype], such as data=N,3,224,224")
    dims, _, dtype = rest.partition(":")
    parts = [d.strip() for d in dims.strip("()[] ").split(",") if d.strip()]
    shape = None if dims.strip() == "" else tuple(_dim(name, d) for d in parts)
    for size in shape or ():
        if isinstance(size, int):
            check_size(size, f"input {name!r}")
    return name, InputSpec(shape, _dtype(name, SHORT.get(dtype, dtype)) if dtype else None)


def _dim(name: str, dim: Any) -> Dim:
    if dim is None or dim == "?":
        return None
    if isinstance(dim, str) and not dim.lstrip("+-").isdigit():
        if dim.lower() in NOT_NAMES:
            raise UsageError(f"input {name!r}: {dim!r} is no size: write ? for an unknown size")
        if not DIMENSION.fullmatch(dim):
            advice = "sizes are separated by commas, as in 1,3,224,224"
            raise UsageError(f"input {name!r}: {dim!r} cannot name a dimension: {advice}")
        return dim
    try:
        size = operator.index(int(dim) if isinstance(dim, str) else dim)
    except (TypeError, ValueError):
        advice = "a shape, as (2, 3), or with its type, ((2, 3), 'uint8')"
        raise UsageError(f"input {name!r}: {dim!r} is no size: give {advice}") from None
    if size == -1:
        return None
    check_size(size, f"input {name!r}", 0)
    return size


def check_size(size: int, what: str, least: int = 1) -> None:
    """Refuse a dimension that callers give and that is below ``least`` or beyond 64 bits."""
    if size < least:
        raise UsageError(f"{what}: {size} is no size: give {least} or more, or a name")
    if size > LARGEST_SIZE:
        raise UsageError(f"{what}: a size of {size} does not fit in 64 bits")


def check_dim_name(name: str, what: str) -> None:
    """Refuse text that cannot name a dimension."""
    if name.lower() in NOT_NAMES or not DIMENSION.fullmatch(name):
        raise UsageError(f"{what}: {name!r} cannot name a dimension")


def _dtype(name: str, dtype: Any) -> DType:
    try:
        return DType.of(dtype)
    except Exception as error:
        advice = "such as float32, float16, int64, uint8 or bool"
        raise UsageError(f"input {name!r}: {dtype!r} is no element type, {advice}") from error


def check_names(names: Any, option: str) -> None:
    """Refuse what is no list of names: text, no names at all, or one of them twice.

    Raises:
        UsageError: naming ``option``.
    """
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise UsageError(f"{option}={names!r} is not a list of names, such as {option}=['fc1']")
    listed = list(names)
    if not listed or not all(isinstance(n, str) and n for n in listed):
        raise UsageError(f"{option}={listed!r} names nothing: give names of values or layers")
    if twice := sorted({n for n in listed if listed.count(n) > 1}):
        raise UsageError(f"{option}={listed!r} has {', '.join(map(repr, twice))} twice")


def check_mapping(value: Any, option: str, example: str) -> None:
    """Refuse what is no mapping by name.

    Raises:
        UsageError: naming ``option``, with an example.
    """
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{option}={value!r} is not a mapping, such as {option}={example}")


def check_integer(value: Any, option: str, least: int | None = None) -> None:
    """Refuse what is no integer, or one below ``least``.

    Raises:
        UsageError: naming ``option``.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise UsageError(f"{option}={value!r} is not an integer")
    if least is not None and value < least:
        raise UsageError(f"{option}={value}: the least is {least}")


def check_number(value: Any, option: str, least: float | None = None) -> None:
    """Refuse what is no finite number, or one below ``least``.

    Raises:
        UsageError: naming ``option``.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not is_number or not -np.inf < value < np.inf:
        raise UsageError(f"{option}={value!r} is not a number")
    if least is not None and value < least:
        raise UsageError(f"{option}={value}: the least is {least}")


def inputs_by_name(graph: Graph, named: Iterable[str]) -> dict[str, Value]:
    """The inputs by name; refuses names that no input has."""
    known = {v.name: v for v in graph.inputs}
    if unknown := sorted(set(named) - set(known)):
        there = f"it has {', '.join(map(repr, known))}" if known else "it has no inputs at all"
        raise UsageError(f"the model has no input {', '.join(map(repr, unknown))}; {there}")
    return known


def with_inputs(graph: Graph, inputs: Mapping[str, Any] | None) -> Graph:
    """Return ``graph`` with the shapes and types callers give for its inputs.

    Callers may tell shapes of labels that the model does not have; its notes name them.
    """
    if not inputs:
        return graph
    present = {v.name for v in graph.inputs}
    absent = sorted(n for n in set(inputs) - present if n.endswith(LABEL))
    known = inputs_by_name(graph, set(inputs).difference(absent))
    instead = {}
    for name, spec in inputs.items():
        shape, dtype = spec_of(name, spec)
        if name in absent:
            continue
        old = known[name]
        if shape is not None and old.shape is not None and len(shape) != len(old.shape):
            raise UsageError(
                f"input {name!r} has {len(old.shape)} dimensions in the model, {len(shape)} here"
            )
        shape = old.shape if shape is None else shape
        instead[old] = Value(name, dtype or old.dtype, shape, container=old.container)
    renewed = exchange_values(graph, {**instead, **_widen_foreign(graph, instead)})
    notes = (f"the model has no input {name!r}: its shape is not used" for name in absent)
    return replace(renewed, notes=(*graph.notes, *notes))


def _widen_foreign(graph: Graph, instead: Mapping[Value, Value]) -> dict[Value, Value]:
    """What other domains compute of inputs that change, without the sizes that a file declares.

    Sizes by name that are given a number get it too.
    """
    changed = {old: set(_changed_sizes(old, new)) for old, new in instead.items()}
    pairs = set().union(*changed.values())
    sizes = {before: after for before, after in pairs if isinstance(before, str)}
    is_known = len(sizes) == len(pairs)  # no number changes, and each name to one size
    behind = nodes_behind(graph, (value for value, pairs in changed.items() if pairs))
    wider = {}
    for v in (v for node in behind if node.domain for v in node.outputs):
        if v.shape is not None:
            shape = tuple(sizes.get(d, d) if is_known else None for d in v.shape)  # type: ignore
            wider[v] = Value(v.name, v.dtype, shape, container=v.container)
    return wider


def _changed_sizes(old: Value, new: Value) -> Iterator[tuple[Dim, Dim]]:
    for before, after in zip(old.shape or (), new.shape or (), strict=False):
        if before != after and before is not None:
            yield before, after


def cut(graph: Graph, outputs: Sequence[str] | None) -> Graph:
    """Return ``graph`` with ``outputs``, names of values or nodes in it, for its results.

    Its notes name the inputs that these do not depend on, which are left out.
    """
    if not outputs:
        return graph
    values = _by_name(graph)
    by_node: dict[str, list[Value]] = {}
    for node in graph.nodes:
        by_node.setdefault(node.name, []).extend(node.outputs[:1])
    chosen = []
    for name in outputs:
        chosen.append(
            _select_single(
                name, values, values.get(name) or values.get(f"{name}_output") or by_node.get(name)
            )
        )
    shorter = drop_dead(replace(graph, outputs=tuple(chosen)))
    read = shorter.uses()
    kept = tuple(v for v in graph.inputs if v in read)
    dropped = [v.name for v in graph.inputs if v not in read]
    return replace(shorter, inputs=kept, notes=(*graph.notes, *_list_omitted(dropped)))


def _list_omitted(names: Sequence[str]) -> Iterator[str]:
    if names:
        shown = list_first([*map(repr, names)], SHOWN)
        yield f"left out: input {shown}, on which no output that was named depends"


def _by_name(graph: Graph) -> dict[str, list[Value]]:
    """The values of each name: in some formats several may have one."""
    values: dict[str, list[Value]] = {}
    for value in (*graph.inputs, *(v for node in graph.nodes for v in node.outputs)):
        if value.name:
            values.setdefault(value.name, []).append(value)
    return values


def _select_single(name: str, known: Iterable[str], hits: Sequence[Value] | None) -> Value:
    """The value that was meant by ``name``."""
    if not hits:
        raise UsageError(
            f"no layer or value {name!r}{_suggest(name, [*known])}; `serde inspect --values` lists "
            "them"
        )
    if len(hits) > 1:
        raise UsageError(
            f"the model computes {len(hits)} values called {name!r}: give the one you mean a name "
            "of its own in the file"
        )
    return hits[0]


def cut_inputs(
    graph: Graph, inputs: Sequence[str] | None, types: Sequence[Value] | None = None
) -> Graph:
    """Return a graph that begins at ``inputs``, names of values in it or of its inputs.

    ``types`` are values of their types, where the graph does not have these.
    """
    if not inputs:
        return graph
    instead: dict[Value, Value] = {}
    cut_values = find_values(graph, inputs)
    for value, typed in zip(cut_values, types or cut_values, strict=True):
        instead[value] = Value(value.name, typed.dtype, typed.shape, container=typed.container)
    shorter = drop_dead(replace_values(graph, instead))
    if needed := [v.name for v in graph.inputs if v in shorter.uses()]:
        raise UsageError(
            f"the outputs also depend on input {', '.join(map(repr, needed))}: name it as well"
        )
    nodes = tuple([_without_outputs(n, instead, shorter) for n in shorter.nodes])
    return replace(shorter, inputs=tuple(instead.values()), nodes=nodes)


def _without_outputs(node: Node, cut_values: Mapping[Value, Value], graph: Graph) -> Node:
    """A node whose outputs are no longer read; those that an operator has to have keep a name."""
    if not any(v in cut_values for v in node.outputs):
        return node
    version = graph.imports.get(node.domain, 1) if node.domain else graph.opset
    schema = find(node.op, version, node.domain)
    formals = () if schema is None else schema.outputs
    outputs = list(node.outputs)
    for at, value in enumerate(outputs):
        if value in cut_values:
            is_required = bool(formals) and not formals[min(at, len(formals) - 1)].optional
            name = f"{value.name}/unread" if is_required else ""
            outputs[at] = Value(name, value.dtype, value.shape, container=value.container)
    return replace(node, outputs=tuple(outputs))


def find_values(graph: Graph, names: Sequence[str]) -> list[Value]:
    """The values of these names, or of the layers of these names.

    Raises:
        UsageError: for a name that no value has, or several.
    """
    values = _by_name(graph)
    return [_select_single(n, values, values.get(n) or values.get(f"{n}_output")) for n in names]


def _suggest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 3)
    return f" (did you mean {', '.join(map(repr, close))}?)" if close else ""


def rename(graph: Graph, names: Mapping[str, str] | None) -> Graph:
    """Return ``graph`` with inputs and outputs called by their new names.

    Values inside that have one of these names give way.
    """
    if not names:
        return graph
    ends = {v.name: v for v in (*graph.inputs, *graph.outputs)}
    if unknown := sorted(set(names) - set(ends)):
        raise UsageError(
            f"no input or output is called {', '.join(map(repr, unknown))}"
            f"{_suggest(unknown[0], [*ends])}; there are: {', '.join(map(repr, ends))}"
        )
    new = [names.get(old, old) for old in ends]
    if clashing := sorted({n for n in new if not n or new.count(n) > 1}):
        raise UsageError(
            f"the new name {', '.join(map(repr, clashing))} is empty, or that of another input or "
            "output: give each a name of its own"
        )
    instead = {ends[old]: replace(ends[old], name=name) for old, name in names.items()}
    graph = replace(graph, metadata=rename_values(graph.metadata, names))
    return name_apart(exchange_values(graph, instead))
