"""Mend ONNX files that old exporters, MXNet's above all, left behind.

What can be wrong with the file itself is mended on the ModelProto; what needs shapes is a rule
table that runs at the file's own opset. Every change is listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs

from serde.errors import MalformedFile
from serde.io.command_files import active_files, within_command
from serde.io.sniff import HEAD, open_regular, refuse_other_file
from serde.ir.builder import Builder, Names
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Value
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import opset_target
from serde.rewrite.rules import RuleTable
from serde.spec.traits import BROADCASTS

from .external_data_paths import resolver
from .moved_attributes import move_attributes
from .parse import parse
from .reader import decode
from .writer import least_ir_version, write_model

LEAST_IR, INPUTS_OPTIONAL_IR = 3, 4
OPSET_FOR_IR = {1: 1, 2: 1, 3: 7, 4: 9, 5: 10, 6: 11, 7: 13, 8: 17, 9: 19, 10: 21}
ONE_TYPE = BROADCASTS | {"Clip", "Gemm", "MatMul", "PRelu"}


@within_command()
def repair(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[str]:
    """Write a mended copy of the model at ``source``; return what was changed, a line each.

    Raises:
        MalformedFile: where the file is no model at all.
    """
    path, files = os.fspath(source), active_files()
    with files.reading_model(path):
        model = _read(path)
        changes = list(mend(model))
        graph = move_attributes(decode(model, path, resolver(path)))
    files.allow_replacing(target)
    mended, more = mend_shapes(graph)
    changes += [*more, *graph.notes]
    version = min(max(model.ir_version, least_ir_version(graph.opset)), onnx.IR_VERSION)
    write_model(mended, target, ir_version=version)
    return changes


def _read(path: str) -> onnx.ModelProto:
    with open_regular(path) as file:
        data = file.read()
    refuse_other_file(path, data[:HEAD])
    model: onnx.ModelProto = parse(onnx.ModelProto, data, path)
    if not all(isinstance(t, str) for t in _texts(model)):
        raise MalformedFile(path, "a name or another text in it is not UTF-8")
    return model


def _texts(model: onnx.ModelProto) -> Iterator[str | bytes]:
    """Every name ``mend`` looks at."""
    yield from (o.domain for o in model.opset_import)
    yield from (v.name for v in (*model.graph.input, *model.graph.output, *model.graph.initializer))
    for node in model.graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (a.name for a in node.attribute)


def mend(model: onnx.ModelProto) -> Iterator[str]:
    """Mend what a file itself can have wrong; yield what was changed."""
    yield from _repair_spelling(model)
    yield from _versions(model)
    yield from _attributes(model)
    yield from _repair_repeated_initializers(model)
    yield from _repair_listed_initializers(model)
    yield from _duplicates(model)


@cache
def _operators() -> dict[str, str]:
    names = {s.name for s in defs.get_all_schemas_with_history() if s.domain == ""}
    return {n.lower(): n for n in names}


def _repair_spelling(model: onnx.ModelProto) -> Iterator[str]:
    """Operators written with other capitals than the standard's."""
    for node in _nodes(model.graph):
        right = _operators().get(node.op_type.lower())
        if node.domain in ("", "ai.onnx") and right is not None and right != node.op_type:
            yield f"node {_name(node)}: operator {node.op_type} is spelled {right}"
            node.op_type = right


def _versions(model: onnx.ModelProto) -> Iterator[str]:
    """A missing or misspelt opset import, a missing IR version."""
    entries = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    used = {n.domain for n in model.graph.node}
    for entry in list(model.opset_import):
        if entry.domain not in ("", "ai.onnx") and entry.domain not in used and not entries:
            yield f"opset import {entry.domain!r} is the default domain"
            entry.domain = ""
            entries = [entry]
    known = entries[0].version if entries else None
    if known is None or not 1 <= known <= IR_OPSET:
        version = _likely_opset(model)
        yield f"opset {'is missing' if known is None else known}: {version} fits the operators"
        if entries:
            entries[0].version = version
        else:
            model.opset_import.add(domain="", version=version)
    if model.ir_version < LEAST_IR:
        opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        yield f"IR version {model.ir_version} becomes {least_ir_version(opset)}"
        model.ir_version = least_ir_version(opset)


def _likely_opset(model: onnx.ModelProto) -> int:
    """The opset whose operators have the attributes and inputs the nodes have; the IR's first."""
    preferred = OPSET_FOR_IR.get(model.ir_version, 9)
    order = sorted(range(1, IR_OPSET + 1), key=lambda v: (abs(v - preferred), v))
    return max(order, key=lambda v: (sum(_fits(n, v) for n in model.graph.node), -order.index(v)))


def _fits(node: onnx.NodeProto, opset: int) -> bool:
    try:
        schema = defs.get_schema(node.op_type, max_inclusive_version=opset, domain="")
    except defs.SchemaError:
        return False
    if schema.deprecated or not schema.min_input <= len(node.input) <= schema.max_input:
        return False
    return all(a.name in schema.attributes for a in node.attribute)


def _attributes(model: onnx.ModelProto) -> Iterator[str]:
    """Attributes the operator does not have at the file's opset."""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    ranks = {t.name: len(t.dims) for t in model.graph.initializer}
    for node in _nodes(model.graph):
        try:
            schema = defs.get_schema(node.op_type, max_inclusive_version=opset, domain="")
        except defs.SchemaError:
            continue
        kept = []
        for attribute in node.attribute:
            gone = attribute.name in LEFTOVER and attribute.name not in schema.attributes
            if gone or (attribute.name == "spatial" and _is_per_channel(ranks, node)):
                yield f"node {_name(node)} ({node.op_type}): {attribute.name} is dropped"
            else:
                kept.append(attribute)
        _drop_node(node.attribute, kept)


def _is_per_channel(ranks: Mapping[str, int], node: onnx.NodeProto) -> bool:
    """Whether a BatchNormalization's scale is one number a channel, whatever it calls itself."""
    return len(node.input) > 1 and ranks.get(node.input[1]) == 1


# Attributes of opsets long gone, which cannot change what the operator computes at inference.
LEFTOVER = frozenset("spatial consumed_inputs is_test".split())


def _repair_listed_initializers(model: onnx.ModelProto) -> Iterator[str]:
    """Initializers that are inputs as well: since IR version 4 they need not be."""
    initialized = {t.name for t in model.graph.initializer}
    rest = [i for i in model.graph.input if i.name not in initialized]
    listed = len(model.graph.input) - len(rest)
    if not listed:
        return
    _drop_node(model.graph.input, rest)
    model.ir_version = max(model.ir_version, INPUTS_OPTIONAL_IR)
    yield f"{listed} initializer(s) listed as inputs are no longer inputs"


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Every node, those of bodies included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _repair_repeated_initializers(model: onnx.ModelProto) -> Iterator[str]:
    """Initializers that are there twice, byte for byte."""
    first: dict[str, onnx.TensorProto] = {}
    kept = []
    for tensor in model.graph.initializer:
        same = first.setdefault(tensor.name, tensor)
        if same is not tensor and same == tensor:
            yield f"initializer {tensor.name!r} is there twice"
        else:
            kept.append(tensor)
    _drop_node(model.graph.initializer, kept)


def _duplicates(model: onnx.ModelProto) -> Iterator[str]:
    """Nodes and values that bear one name: the later ones get names of their own."""
    seen, values = Names(), Names()
    current: dict[str, str] = {}
    values.used = {i.name for i in model.graph.input} | {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        if node.name and node.name in seen.used:
            fresh = seen.fresh(node.name)
            yield f"a second node called {node.name!r} is called {fresh!r}"
            node.name = fresh
        seen.used.add(node.name)
        _read_instead(node, current)
        for at, name in enumerate(node.output):
            if name and name in values.used:
                fresh = current[name] = values.fresh(name)
                yield f"a second value called {name!r} is called {fresh!r}"
                node.output[at] = fresh
            values.used.add(node.output[at])
    for info in model.graph.output:
        info.name = current.get(info.name, info.name)


def _read_instead(node: onnx.NodeProto, current: Mapping[str, str]) -> None:
    """Let a node and its bodies read values by new names; a body's own names are its own."""
    for at, name in enumerate(node.input):
        node.input[at] = current.get(name, name)
    for attribute in node.attribute if current else ():
        if not attribute.HasField("g"):
            continue
        body = attribute.g
        local_names = {i.name for i in (*body.input, *body.initializer)}
        local_names |= {name for inner in body.node for name in inner.output}
        outer = {k: v for k, v in current.items() if k not in local_names}
        for inner in body.node:
            _read_instead(inner, outer)
        for info in body.output:
            info.name = outer.get(info.name, info.name)


def _drop_node(field: Any, kept: list[Any]) -> None:
    """Let a repeated field hold what it is to keep."""
    if len(kept) < len(field):
        copies = [type(k).FromString(k.SerializeToString()) for k in kept]
        del field[:]
        field.extend(copies)


def _name(node: onnx.NodeProto) -> str:
    return repr(node.name or next(iter(node.output), node.op_type))


def mend_shapes(graph: Graph) -> tuple[Graph, list[str]]:
    """Mend what shows only with shapes: PRelu slopes, Gemm of images, mixed float types."""
    changes: list[str] = []

    def apply(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        if node.domain or node.op == "Constant":
            return _plain_shape(g, node, inputs)
        renewed = tuple(_mend_shape(g, node, inputs, changes))
        return g.emit(node.op, renewed, node.attrs, len(node.outputs))

    table = RuleTable("repair", fallback=apply)
    same = opset_target(graph.opset)
    done = table.rewrite(graph, Legalizer(graph.name, same, opset=graph.opset))
    return replace(done, opset=graph.opset), changes


def _plain_shape(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    from serde.rewrite.functions import constant

    return g.keep(node, inputs) if node.domain else constant(g, node)


def _mend_shape(
    g: Any, node: Node, inputs: tuple[Value | None, ...], changes: list[str]
) -> Iterator[Value | None]:
    where = f"node {node.name!r} ({node.op})"
    x = inputs[0] if inputs else None
    floats = {v.dtype for v in inputs if v is not None and v.tensor is None}
    for at, value in enumerate(inputs):
        if value is None or value.shape is None:
            yield value
            continue
        if node.op in ONE_TYPE and DType.FLOAT32 in floats and _is_double(value):
            changes.append(f"{where}: float64 constant {value.name!r} becomes float32")
            value = g.const(value.array().astype(np.float32), name=value.name)
        if node.op == "PRelu" and at == 1 and _is_bare_slope(x, value):
            changes.append(
                f"{where}: slope of {list(value.ranked_shape)} is shaped to the channels"
            )
            value = g.Reshape(value, [-1] + [1] * (x.rank - 2))  # type: ignore[union-attr]
        if node.op == "Gemm" and at == 0 and value.rank > 2:
            changes.append(f"{where}: an input of {value.rank} axes is flattened")
            value = g.Flatten(value, axis=1)
        yield value


def _is_double(value: Value) -> bool:
    return value.tensor is not None and value.dtype is DType.FLOAT64


def _is_bare_slope(x: Value | None, slope: Value) -> bool:
    """Whether a slope of one number a channel stands where it would meet the last axis."""
    if x is None or x.shape is None or len(x.shape) < 3 or len(slope.shape or ()) != 1:
        return False
    return slope.shape != (1,) and slope.shape is not None and slope.shape[0] == x.shape[1]
