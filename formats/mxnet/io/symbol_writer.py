"""A graph in the ``mxnet`` domain to symbol JSON and parameters, for a release from 1.2 to 2.0.

Layouts as in ``symbol.py`` and ``params.py``; arrays are written as V2, or V3 for MXNet 2.0, whose
shapes are NumPy's, streamed from their files.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

from serde.errors import UsageError, require
from serde.io.atomic_write import Replacing, Sources
from serde.io.json_text import make_writable, quote
from serde.io.tensor_bytes import bytes_of
from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Tensor, Value

from ..operators import describe
from ..releases import Release, get_release
from .discover import params_path, refuse_later_epochs
from .magic import PARAMS_MAGIC
from .params import TYPES, V2, V3

CODES = {dtype: code for code, dtype in enumerate(TYPES)}
SUFFIX = "-symbol.json"


def encode(
    graph: Graph, path: str | os.PathLike[str], *, mxnet: str | None = None, write_epoch: int = 0
) -> list[str]:
    """Write ``graph`` to a ``-symbol.json`` and the ``-0000.params`` beside it; return both paths.

    ``mxnet`` is the release that the file says it was saved by, ``write_epoch`` the number of the
    parameter file.

    Raises:
        UsageError: as ``check_target`` does.
    """
    check_target(path, write_epoch=write_epoch)
    symbol = os.fspath(path)
    params = params_path(symbol, write_epoch)
    encoding = _Encoding(graph, get_release(mxnet))
    with Replacing(symbol) as files, Sources() as sources:
        with files.open(params) as out:
            write_params(encoding.arrays(), sources, out, encoding.version)
        with files.open(symbol) as out:
            out.write(dump_indented(encoding.symbol()).encode())
    return [symbol, params]


def dump_indented(value: Any, line: str = "\n") -> str:
    """JSON as ``json.dumps`` writes it with ``indent=2``, which takes Python's slow encoder."""
    if not value or not isinstance(value, (dict, list)):
        return "[]" if value == [] else quote(value) if type(value) is str else json.dumps(value)
    inner = line + "  "
    if isinstance(value, list):
        parts = [str(v) if type(v) is int else dump_indented(v, inner) for v in value]
        return f"[{inner}{f',{inner}'.join(parts)}{line}]"
    pairs = [
        f"{quote(k)}: {quote(v) if type(v) is str else dump_indented(v, inner)}"
        for k, v in value.items()
    ]
    return f"{{{inner}{f',{inner}'.join(pairs)}{line}}}"


def check_target(path: str | os.PathLike[str], *, write_epoch: int = 0, **options: Any) -> None:
    """Refuse a path that MXNet would not load, or load with other parameters.

    Raises:
        UsageError: where ``path`` does not end in ``-symbol.json``, or a later epoch lies beside.
    """
    if not os.fspath(path).endswith(SUFFIX):
        stem = os.path.splitext(os.fspath(path))[0]
        raise UsageError(
            f"{os.fspath(path)}: MXNet takes symbols by the ending {SUFFIX}: name {stem}{SUFFIX}"
        )
    refuse_later_epochs(path, write_epoch)


def encode_live(graph: Graph, mxnet: str | None = None) -> tuple[str, Mapping[str, Tensor]]:
    """The text of the symbol, and its parameters by the names a file has for them."""
    encoding = _Encoding(graph, get_release(mxnet))
    arrays = encoding.arrays()
    return dump_indented(encoding.symbol()), arrays


class _Encoding:
    """Numbers nodes and gives each a name; a value is the node and output it is."""

    def __init__(self, graph: Graph, release: Release) -> None:
        self.graph, self.release = graph, release
        self.version = V3 if release.has_np_shape else V2
        self.names = Names()
        self.names.reserved.update(v.name for v in (*graph.inputs, *graph.constants()))
        self.nodes: list[dict[str, Any]] = []
        self.rows = [0]
        self.place: dict[Value, tuple[int, int]] = {}
        self.parameters: list[tuple[str, Value]] = []
        self.states = {
            node.inputs[at]
            for node in graph.nodes
            for at in describe(node.op).states
            if at < len(node.inputs)
        }
        for value in graph.inputs:
            self.variable(value)
        for node in graph.nodes:
            self.node(node)

    def variable(self, value: Value) -> None:
        """Enter an input, or a constant with its array."""
        name = self.names.claim(make_writable(value.name))
        self.place[value] = (len(self.nodes), 0)
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        self.rows.append(self.rows[-1] + 1)
        if value.tensor is not None:
            self.parameters.append((("aux:" if value in self.states else "arg:") + name, value))

    def entry(self, value: Value) -> list[int]:
        if value not in self.place:
            require(value.tensor is not None, f"{value.name!r} is read before it is computed")
            self.variable(value)
        at, output = self.place[value]
        return [at, output, 0]

    def node(self, node: Node) -> None:
        inputs = [self.entry(v) for v in node.inputs if v is not None]
        first = node.outputs[0].name if node.outputs else node.name
        stem = make_writable(first).removesuffix("_output").removesuffix("_output0")
        name = self.names.claim(stem)
        op = self.release.renamed.get(node.op, node.op)
        entry: dict[str, Any] = {"op": op, "name": name, "inputs": inputs}
        attrs = {
            k: format_attribute(v)
            for k, v in sorted(node.attrs.items())
            if not isinstance(v, Graph)
        }
        if attrs:
            entry["attrs"] = attrs
        if bodies := list(node.graphs()):
            entry["subgraphs"] = [_Encoding(body, self.release).graph_of() for body in bodies]
        for number, value in enumerate(node.outputs):
            self.place[value] = (len(self.nodes), number)
        self.nodes.append(entry)
        self.rows.append(self.rows[-1] + len(node.outputs))

    def symbol(self) -> dict[str, Any]:
        """The symbol as JSON holds it."""
        attrs = {"mxnet_version": ["int", self.release.number]}
        if self.release.has_np_shape:
            attrs["is_np_shape"] = ["int", 1]
        return {**self.graph_of(), "attrs": attrs}

    def graph_of(self) -> dict[str, Any]:
        """Its nodes and outputs, which is all there is of a subgraph."""
        heads = [self.entry(v) for v in self.graph.outputs]
        return {
            "nodes": self.nodes,
            "arg_nodes": [i for i, n in enumerate(self.nodes) if n["op"] == "null"],
            "node_row_ptr": self.rows,
            "heads": heads,
        }

    def arrays(self) -> Mapping[str, Tensor]:
        """The parameters, by the names a file has for them."""
        for value in self.graph.outputs:
            self.entry(value)
        return {
            name: add_axis_to_scalar(v.tensor)
            for name, v in self.parameters
            if v.tensor is not None
        }


def add_axis_to_scalar(tensor: Tensor) -> Tensor:
    """MXNet has no tensors without axes: one element is one along an axis."""
    if tensor.shape:
        return tensor
    return Tensor(tensor.dtype, (1,), lambda: tensor.load().reshape(1), tensor.where)


def format_attribute(value: Any) -> str:
    """An attribute as MXNet spells it: ``(3, 3)``, ``True``, ``1e-05``, ``None``."""
    if isinstance(value, tuple):
        inner = ", ".join(map(format_attribute, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value)


def write_params(
    arrays: Mapping[str, Tensor], sources: Sources, out: BinaryIO, version: int = V2
) -> None:
    """Write a parameter file; arrays that lie in a file are copied from it."""
    out.write(PARAMS_MAGIC + struct.pack("<QQ", 0, len(arrays)))
    for tensor in arrays.values():
        out.write(header(tensor, version))
        if tensor.where is not None:
            sources.copy(tensor.where, out)
        else:
            out.write(bytes_of(tensor))
    out.write(struct.pack("<Q", len(arrays)))
    for name in arrays:
        raw = name.encode()
        out.write(struct.pack("<Q", len(raw)) + raw)


def header(tensor: Tensor, version: int = V2) -> bytes:
    """What stands in a file before the bytes of a dense array: shape, context, element type."""
    require(tensor.dtype in CODES, f"MXNet has no {tensor.dtype.value} arrays")
    require(tensor.size > 0, "MXNet has no arrays without elements")
    shape = tensor.shape
    return struct.pack(
        f"<Iii{len(shape)}qiii", version, 0, len(shape), *shape, 1, 0, CODES[tensor.dtype]
    )
