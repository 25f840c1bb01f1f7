"""Slate files ↔ graphs: a line of JSON, and the bytes of the weights behind it.

slate 1
{"inputs": […], "weights": [{"name", "type", "shape", "offset"}], "nodes": […], "outputs": […]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MalformedFile
from serde.io.atomic_write import Replacing
from serde.io.sniff import open_regular, read_head
from serde.io.tensor_bytes import bytes_of, read_slice
from serde.ir.graph import DType, FileSlice, Graph, Node, Source, Tensor, Value

FIRST_LINE = b"slate 1\n"
MOST_HEADER = 1 << 26  # bytes
TYPES = {dtype.value: dtype for dtype in (DType.FLOAT32, DType.INT8, DType.BOOL)}


def read_beginning(path: Path) -> bytes:
    """As much of a file as tells whether it is one."""
    return read_head(path)[: len(FIRST_LINE)]


def decode(path: Path) -> Graph:
    """Read the file at ``path``; its weights stay in it."""
    with open_regular(str(path)) as file:
        first, line = file.readline(len(FIRST_LINE)), file.readline(MOST_HEADER)
        start, size = file.tell(), file.seek(0, 2)
    if first != FIRST_LINE:
        raise MalformedFile(path, "not a slate model", "line 1")
    try:
        header = json.loads(line)
        values = {v["name"]: _value(v) for v in header["inputs"]}
        inputs = tuple(values.values())
        values |= {w["name"]: _weight(str(path), w, start, size) for w in header["weights"]}
        nodes, outputs = _body(header, values)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedFile(path, f"{type(error).__name__}: {error}", "line 2") from error
    return Graph(Path(path).stem, inputs, outputs, nodes, "slate")


def _value(table: Mapping[str, Any]) -> Value:
    return Value(table["name"], TYPES[table["type"]], tuple(table["shape"]))


def _weight(path: str, table: Mapping[str, Any], start: int, size: int) -> Value:
    value = _value(table)
    nbytes = prod(value.static_shape) * value.type.numpy.itemsize
    offset = int(table["offset"])
    if min(offset, nbytes) < 0 or start + offset + nbytes > size:
        raise ValueError(f"the weight {value.name!r} lies beyond the end of the file")
    where = FileSlice(path, start + offset, nbytes)
    load = partial(read_slice, where, value.type, value.static_shape)
    tensor = Tensor(value.type, value.static_shape, load, where)
    return Value(value.name, value.dtype, value.shape, tensor)


def _body(
    table: Mapping[str, Any], around: Mapping[str, Value]
) -> tuple[tuple[Node, ...], tuple[Value, ...]]:
    """The nodes and outputs of a graph, which reads the values around it."""
    values, nodes = dict(around), []
    for node in table["nodes"]:
        op, names = node["op"], node["outputs"]
        operands = tuple(values[n] for n in node["inputs"])
        attrs: dict[str, Any] = dict(node.get("attrs", {}))
        for name, inner in node.get("graphs", {}).items():
            inside, ends = _body(inner, values)
            attrs[name] = Graph(name, (), ends, inside, "slate")
        values |= {n: Value(n) for n in names}
        outputs = tuple(values[n] for n in names)
        nodes.append(
            Node(op, operands, outputs, attrs, "slate", names[0], (Source("slate", op, names[0]),))
        )
    return tuple(nodes), tuple(values[n] for n in table["outputs"])


def encode(graph: Graph, path: Path) -> list[str]:
    """Write ``graph``, whose operators are slate's, to ``path``."""
    constants, weights, offset = list(graph.constants()), [], 0
    for v in constants:
        weights.append({**_describe(v), "offset": offset})
        offset += v.tensor.nbytes if v.tensor is not None else 0
    header = {"inputs": [_describe(v) for v in graph.inputs], "weights": weights, **_show(graph)}
    with Replacing(str(path)) as files, files.open(str(path)) as out:
        out.write(FIRST_LINE + json.dumps(header).encode() + b"\n")
        for v in constants:
            assert v.tensor is not None
            out.write(bytes_of(v.tensor))
    return files.written


def _describe(v: Value) -> dict[str, Any]:
    return {"name": v.name, "type": v.type.value, "shape": list(v.ranked_shape)}


def _show(graph: Graph) -> dict[str, Any]:
    nodes = [
        {
            "op": n.op, "inputs": [v.name for v in n.inputs if v is not None],
            "outputs": [v.name for v in n.outputs],
            "attrs": {k: _plain(a) for k, a in n.attrs.items() if not isinstance(a, Graph)},
            "graphs": {k: _show(a) for k, a in n.attrs.items() if isinstance(a, Graph)},
        }
        for n in graph.nodes
    ]  # fmt: skip
    return {"nodes": nodes, "outputs": [v.name for v in graph.outputs]}


def _plain(attr: Any) -> Any:
    return attr.item() if isinstance(attr, np.generic) else attr
