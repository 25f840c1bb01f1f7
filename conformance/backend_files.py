"""Check a part's ONNX file against the TOML file of its backend, by onnx alone.

This reads neither serde's graph nor its descriptions of backends, so that a mistake there is found.
docs/how-to/partition-a-model.md describes the keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import onnx
from onnx import defs, helper, numpy_helper

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = Mapping[str, Any]
LARGE = 1 << 16  # bytes
Graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


@dataclass
class Values:
    """What onnx's shape inference tells of the values of a graph: type and shape, by name.

    A name of a subgraph hides that of the graph around it. Constants are by name too.
    """

    types: dict[str, tuple[str, list[Any] | None]] = field(default_factory=dict)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def enter(self, graph: onnx.GraphProto) -> Values:
        """These and the values of a graph."""
        values = Values(dict(self.types), dict(self.constants))
        for info in (*graph.input, *graph.value_info, *graph.output):
            if info.type.HasField("tensor_type"):
                values.types[info.name] = describe(info.type.tensor_type)
        for tensor in graph.initializer:
            values.constants[tensor.name] = tensor
            values.types[tensor.name] = name_type(tensor.data_type), [*tensor.dims]
        return values


def describe(tensor: Any) -> tuple[str, list[Any] | None]:
    """The element type and the shape of a tensor type; unknown sizes are None."""
    if not tensor.HasField("shape"):
        return name_type(tensor.elem_type), None
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None
            for d in tensor.shape.dim]  # fmt: skip
    return name_type(tensor.elem_type), dims


def name_type(number: int) -> str:
    """An element type as a backend's file calls it."""
    name = onnx.TensorProto.DataType.Name(number).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def find_violations(path: Path, description: Path) -> Iterator[str]:
    """What in a part's file its backend does not take; nothing if all is taken."""
    tables = tomllib.loads(description.read_text(encoding="utf-8"))
    model = load_skeleton(path)
    opsets = {o.domain: o.version for o in model.opset_import}
    if opsets.get("", opsets.get("ai.onnx")) != tables["opset"]:
        yield f"opset {opsets} for {tables['opset']}"
    entries = {name: entry for entry in tables["operators"] for name in entry["names"]}
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    yield from _check_graph(inferred.graph, Values(), entries, tables)


def load_skeleton(path: Path) -> onnx.ModelProto:
    """A model without the contents of large weights, which onnx is slow to look through."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > LARGE:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights")
    return model


def _check_graph(
    graph: onnx.GraphProto, around: Values, entries: Mapping[str, Table], tables: Table
) -> Iterator[str]:  # fmt: skip
    values = around.enter(graph)
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type not in entries:
            yield f"{node.op_type} is not listed"
            continue
        schema = defs.get_schema(node.op_type, tables["opset"])
        for reason in _check_node(node, schema, values, entries[node.op_type], tables):
            yield f"{node.op_type} {node.name}: {reason}"
        for attribute in node.attribute:
            if attribute.type in Graphs:
                for body in (attribute.g, *attribute.graphs):
                    yield from _check_graph(body, values, entries, tables)


def _check_node(
    node: onnx.NodeProto, schema: defs.OpSchema, values: Values, entry: Table, tables: Table
) -> Iterator[str]:
    named = list(_name_values(node, schema))
    for _, tie, name in named:
        dtype, shape = values.types.get(name, (None, None))
        listed = tables.get("element_types")
        if listed and dtype and dtype not in listed and name not in values.constants:
            yield f"{name} is of {dtype}"
        allowed = _types_of(entry.get("types", {}), schema).get(tie)
        if allowed and dtype and dtype not in allowed:
            yield f"{name} is of {dtype}, {tie} has {allowed}"
        is_static = tables.get("dynamic_shapes", True) and entry.get("dynamic_shapes", True)
        if not is_static and shape and any(isinstance(d, str) for d in shape):
            yield f"{name} has the shape {shape}"
    yield from _check_operands(named, schema, values, entry)
    yield from _check_attributes(node, schema, entry.get("attributes", {}))


def _name_values(
    node: onnx.NodeProto, schema: defs.OpSchema
) -> Iterator[tuple[str, str, str]]:  # fmt: skip
    """Each operand and result that is there: its name and type variable in the schema, its own."""
    for formals, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for at, name in enumerate(names):
            formal = formals[min(at, len(formals) - 1)]
            if name:
                yield formal.name, formal.type_str, name


def _types_of(listed: Any, schema: defs.OpSchema) -> Table:
    """The key ``types`` by type variable."""
    if isinstance(listed, Mapping):
        return listed
    known = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    tensors = {"float32": "float", "float64": "double"}
    names = {f"tensor({tensors.get(t, t)})" for t in listed}
    ties = dict.fromkeys(f.type_str for f in (*schema.inputs, *schema.outputs))
    best = max(ties, key=lambda t: len(known.get(t, {t}) & names))
    return {best: listed}


def _check_operands(
    named: Sequence[tuple[str, str, str]], schema: defs.OpSchema, values: Values, entry: Table
) -> Iterator[str]:
    first = schema.inputs[0].name if schema.inputs else ""
    ranks = entry.get("ranks", {})
    ranks = ranks if isinstance(ranks, Mapping) else {first: ranks}
    for formal, _, name in named:
        _, shape = values.types.get(name, ("", None))
        allowed = ranks.get(formal)
        if allowed is not None and shape is not None and len(shape) not in _as_list(allowed):
            yield f"{formal} has rank {len(shape)} for {allowed}"
        if formal in entry.get("absent", ()):
            yield f"{formal} is there"
        constant = values.constants.get(name)
        if formal in (*entry.get("constant", ()), *entry.get("zero", ())) and constant is None:
            yield f"{formal} is not constant"
        if (
            formal in entry.get("zero", ())
            and constant is not None
            and numpy_helper.to_array(constant).any()
        ):
            yield f"{formal} is not zero"
        for axis, limits in entry.get("sizes", {}).get(formal, {}).items():
            yield from _check_size(formal, axis, limits, shape)


def _check_size(name: str, axis: str, limits: Table, shape: list[Any] | None) -> Iterator[str]:
    if shape is None:
        return
    if axis == "elements":
        sizes = [prod(shape)] if all(isinstance(d, int) for d in shape) else [None]
    else:
        sizes = [shape[int(axis)]] if -len(shape) <= int(axis) < len(shape) else []
    for size in sizes:
        if not isinstance(size, int) or not _is_within(size, limits):
            yield f"{name} has the shape {shape}: axis {axis} is to have {limits}"


def _check_attributes(
    node: onnx.NodeProto, schema: defs.OpSchema, listed: Table
) -> Iterator[str]:  # fmt: skip
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    for name, allowed in listed.items():
        default = schema.attributes[name].default_value
        value = attrs.get(name)
        if value is None and default.name:
            value = helper.get_attribute_value(default)
        if value is None:
            continue
        items = [v.decode() if isinstance(v, bytes) else v for v in _as_list(value)]
        if isinstance(allowed, Mapping):
            half = len(items) // 2
            is_even = not allowed.get("symmetric") or items[:half] == items[half:]
            fits = is_even and all(_is_within(v, allowed) for v in items)
        else:
            choices = _as_list(allowed)
            fits = items in choices or all(v in choices for v in items)
        if not fits:
            yield f"{name}={items} for {allowed}"


def _is_within(size: Any, limits: Table) -> bool:
    least, most = limits.get("least", size), limits.get("most", size)
    return bool(least <= size <= most and size % limits.get("multiple_of", 1) == 0)


def _as_list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]
