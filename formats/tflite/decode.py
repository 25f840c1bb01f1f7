"""Reads a file as a graph of TensorFlow Lite's operators, with weights where they lie."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MalformedFile, UsageError
from serde.io.file_bytes import FileBytes
from serde.io.named_file import stat_open
from serde.io.sniff import HEAD, file_id, open_regular, refuse_other_file
from serde.io.tensor_bytes import is_possible_shape, read_part, read_slice
from serde.ir.budget import active_budget
from serde.ir.builder import Names
from serde.ir.graph import DType, FileSlice, Graph, Node, Shape, Source, Tensor, Value

from .io.read_flatbuffer import Span, read_model
from .io.schema import enum_names, enums, tables
from .io.sources import ORIGIN, parse_sources
from .io.sparse import make_dense
from .passes.lift_variables import NOTE
from .quantization import FileInfo, Quantization, declared_shape
from .target import BODIES, DOMAIN, STATES

VERSION = 3
CUSTOM, LAST_OLD_CODE = 32, 127
# Attributes that name a subgraph.
NUMBERED_BODIES = {field: name for name, field in BODIES.items()} | dict.fromkeys(
    ("subgraph", "init_subgraph_index", "decomposition_subgraph_index"), "body"
)
CUSTOM_MARK = "CUSTOM."  # before custom operators that are named as others are
NAMELESS = "tensor"  # begins the names of tensors that have none
DEPTH = 32  # subgraphs within subgraphs
OPTION_FIELDS = ("builtin_options", "builtin_options_2")


def decode(path: str | Path, *, signature: str | None = None) -> Graph:
    """Read the model at ``path``: its first subgraph, or that of a signature.

    Raises:
        MalformedFile: for what LiteRT would not load.
        UsageError: for a signature that it lacks.
    """
    path = os.fspath(path)
    with open_regular(path) as file:
        size = stat_open(file).st_size
        refuse_other_file(path, file.read(HEAD))
        if size < 8:
            raise MalformedFile(path, "no TensorFlow Lite model: it has less than 8 bytes")
        data = FileBytes(file, path, size=size)
        return ModelReader(path, read_model(data, path), data, file_id(file)).read(signature)


class ModelReader:
    """Makes graphs of a model's subgraphs."""

    def __init__(
        self, path: str, model: Mapping[str, Any], data: FileBytes, file: tuple[int, int]
    ) -> None:
        self.path, self.model, self.data, self.file = path, model, data, file
        if model["version"] != VERSION:
            raise self.fail(f"schema version {model['version']}, not {VERSION}")
        self.subgraphs: Sequence[Mapping[str, Any]] = model.get("subgraphs", ())
        self.buffers: Sequence[Mapping[str, Any]] = model.get("buffers", ())
        self.codes = [self.name_operator(c) for c in model.get("operator_codes", ())]
        self.names = Names()
        self.names.reserved.add(NAMELESS)
        self.quantizations: dict[str, Quantization] = {}
        self.shapes: dict[Value, Shape] = {}
        self.graphs: dict[int, Graph] = {}
        self.open: list[int] = []  # subgraphs that are being read
        self.notes: list[str] = []
        self.sources = self.read_sources()

    def fail(self, reason: str) -> MalformedFile:
        """The error that a file is no model."""
        return MalformedFile(self.path, reason)

    def read_sources(self) -> Mapping[str, Sequence[Source]]:
        """The layers that operators came from, by the name of what they compute."""
        entries = self.model.get("metadata", ())
        at = next((e["buffer"] for e in entries if e.get("name") == ORIGIN), None)
        place = None if at is None else self.place(at, ORIGIN)
        return {} if place is None else parse_sources(read_part(place))

    def name_operator(self, code: Mapping[str, Any]) -> str:
        """What an operator is called; custom ones as their authors do."""
        number = max(code["deprecated_builtin_code"], code["builtin_code"])
        if number == CUSTOM:
            custom = str(code.get("custom_code", ""))
            return CUSTOM_MARK + custom if custom in enums()["BuiltinOperator"] else custom
        return enum_names()["BuiltinOperator"].get(number, f"operator {number}")

    def read(self, signature: str | None) -> Graph:
        """The graph of the model, or of one of its signatures."""
        chosen = self.find_signature(signature)
        at = chosen["subgraph_index"] if chosen else 0
        return SubgraphReader(self, self.entry(self.subgraphs, at, "subgraph")).read_model(chosen)

    def find_signature(self, name: str | None) -> Mapping[str, Any]:
        """The signature of a name; else that of the first subgraph, if there is one."""
        known = {s.get("signature_key", ""): s for s in self.model.get("signature_defs", ())}
        if name is not None and name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise UsageError(f"{self.path} has no signature {name!r} (--signature); it has {has}")
        first = (s for s in known.values() if s["subgraph_index"] == 0)
        return known[name] if name is not None else next(first, {})

    def entry(self, entries: Sequence[Any], at: int, what: str) -> Any:
        """One of several, or the error that there is none."""
        if not 0 <= at < len(entries):
            raise self.fail(f"names {what} {at} of {len(entries)}")
        return entries[at]

    def body(self, at: int) -> Graph:
        """The graph of a subgraph that an operator runs."""
        if at not in self.graphs:
            if at in self.open or len(self.open) >= DEPTH:
                raise self.fail(f"subgraph {at} runs itself, or subgraphs nest too deep")
            self.open.append(at)
            reader = SubgraphReader(self, self.entry(self.subgraphs, at, "subgraph"))
            self.graphs[at] = reader.read_body()
            self.open.pop()
        return self.graphs[at]

    def claim(self, name: str) -> str:
        """A name that no other value has."""
        return self.names.claim(name) if name else self.names.fresh(NAMELESS)

    def place(self, at: int, name: str) -> FileSlice | None:
        """Where the bytes of a buffer are; None where it has none."""
        buffer = self.entry(self.buffers, at, "buffer")
        start, size = buffer.get("data", Span(0, 0))
        if not size and buffer["offset"] > 1:
            start, size = buffer["offset"], buffer["size"]
        if not size:
            return None
        if start + size > len(self.data):
            raise self.fail(f"the weight {name[:80]!r} is said to be where the file has ended")
        active_budget().charge_part(self.file, size, self.path, f"weight {name[:80]!r}")
        return FileSlice(self.path, start, size, self.file)


class SubgraphReader:
    """Makes the graph of one subgraph."""

    def __init__(self, model: ModelReader, table: Mapping[str, Any]) -> None:
        self.model, self.table = model, table
        self.tensors: Sequence[Mapping[str, Any]] = table.get("tensors", ())
        self.values: dict[int, Value] = {}
        self.states: dict[int, Value] = {}  # what variables hold at first
        self.nodes: list[Node] = []

    def read_model(self, signature: Mapping[str, Any]) -> Graph:
        """The model's graph, whose variables are inputs and outputs too."""
        inputs = self.enter_inputs(self.name_ends(signature, "inputs"))
        self.read_nodes()
        outputs = [self.value(at) for at in self.table.get("outputs", ())]
        if not outputs:
            raise self.model.fail("the model has no outputs")
        self.rename(outputs, self.name_ends(signature, "outputs"))
        ends = [(v, self.values[at]) for at, v in self.states.items()]
        notes = [NOTE.format(v.name, end.name, self.rest(v)) for v, end in ends]
        return Graph(
            self.table.get("name") or "main", (*inputs, *self.states.values()),
            (*outputs, *(end for _, end in ends)), tuple(self.nodes), DOMAIN,
            notes=(*self.model.notes, *notes),
            source_info=FileInfo(
                self.model.quantizations, {v.name: at for at, v in self.states.items()},
                {v.name: at for at, v in self.values.items()},
                self.model.shapes,
            ),
            files=frozenset({self.model.path}),
        )  # fmt: skip

    def rest(self, variable: Value) -> int:
        """What stands for 0 in a variable, which it holds at first."""
        form = self.model.quantizations.get(variable.name)
        return 0 if form is None or variable.dtype is not DType.INT8 else int(form.zero.flat[0])

    def read_body(self) -> Graph:
        """The graph of what an operator runs."""
        inputs = self.enter_inputs({}, is_body=True)
        self.read_nodes()
        outputs = tuple(self.value(at) for at in self.table.get("outputs", ()))
        if self.states:
            raise self.model.fail("a subgraph that an operator runs has variables of its own")
        return Graph(self.table.get("name") or "body", inputs, outputs, tuple(self.nodes), DOMAIN)

    def name_ends(self, signature: Mapping[str, Any], which: str) -> dict[int, str]:
        """What a signature calls inputs or outputs, by tensor."""
        pairs = [(e["tensor_index"], e.get("name", "")) for e in signature.get(which, ())]
        counts = Counter(name for _, name in pairs)
        return {at: n for at, n in pairs if n and counts[n] == 1}

    def enter_inputs(self, names: Mapping[int, str], is_body: bool = False) -> tuple[Value, ...]:
        places = self.table.get("inputs", ())
        if len(set(places)) != len(places):
            raise self.model.fail("an input is listed twice")
        for at in places:
            tensor = self.tensor(at)
            self.check_plain(tensor)
            name = self.model.claim(names.get(at) or tensor.get("name", ""))
            shape = None if is_body else self.shape(tensor, name)
            self.enter(at, Value(name, self.dtype(tensor), shape), tensor)
        values = tuple(self.values[at] for at in places)
        opened = [(v, k) for v in values for k, d in enumerate(v.shape or ()) if isinstance(d, str)]
        for value, axis in opened if len(opened) == 1 else ():
            if axis == 0 and value.shape:
                value.shape = ("N", *value.shape[1:])
        return values

    def rename(self, values: Sequence[Value], names: Mapping[int, str]) -> None:
        """Call outputs as the signature does, unless something else has the name."""
        wanted = {*names.values()}
        for at, value in zip(self.table.get("outputs", ()), values, strict=True):
            before = value.name
            if before in wanted:
                continue
            self.model.names.relabel(value, names.get(at, ""))
            if before != value.name and before in self.model.quantizations:
                self.model.quantizations[value.name] = self.model.quantizations.pop(before)

    def tensor(self, at: int) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self.model.entry(self.tensors, at, "tensor")
        return entry

    def dtype(self, tensor: Mapping[str, Any]) -> DType | None:
        """The element type; None for what the IR has no type for."""
        name = enum_names()["TensorType"].get(tensor["type"], "")
        name = {"FLOAT8_E4M3FN": "FLOAT8E4M3FN", "FLOAT8_E5M2": "FLOAT8E5M2"}.get(name, name)
        return DType.__members__.get(name)

    def shape(self, tensor: Mapping[str, Any], name: str) -> tuple[Any, ...]:
        """The sizes; those that are open have names."""
        sizes = self.sizes(tensor)
        signature = tensor.get("shape_signature", ())
        if not signature:
            return sizes
        if len(signature) != len(sizes) or min(signature) < -1:
            raise self.model.fail(f"the shape_signature of {name[:80]!r} does not fit its shape")
        stem = re.sub(r"\W", "_", name)
        opened = [k for k, d in enumerate(signature) if d == -1]
        return tuple([f"{stem}_{k}" if k in opened else d for k, d in enumerate(signature)])

    def sizes(self, tensor: Mapping[str, Any]) -> tuple[int, ...]:
        sizes: tuple[int, ...] = tensor.get("shape", ())
        if not is_possible_shape(sizes):
            raise self.model.fail(
                f"tensor {tensor.get('name', '')[:80]!r} claims the sizes {sizes[:20]}"
            )
        return sizes

    def check_plain(self, tensor: Mapping[str, Any]) -> None:
        if tensor["external_buffer"]:
            raise self.model.fail(f"the weight {tensor.get('name', '')[:80]!r} is in another file, "
                                  "which is not read: write the model as one file")  # fmt: skip

    def enter(self, at: int, value: Value, tensor: Mapping[str, Any]) -> Value:
        """Let a tensor be ``value`` from now on."""
        self.values[at] = value
        form = self.quantization(tensor, value.name)
        if form is not None:
            self.model.quantizations[value.name] = form
        if tensor.get("shape"):  # without sizes it may be of any
            self.model.shapes[value] = declared_shape(tensor)
        return value

    def quantization(self, tensor: Mapping[str, Any], name: str) -> Quantization | None:
        """How the integers of a tensor stand for real numbers, if they do."""
        table = tensor.get("quantization", {})
        scale = np.asarray(table.get("scale", ()), np.float32)
        if not scale.size:
            details = table.get("details")
            return self.blocks(details, self.sizes(tensor), name) if details else None
        zero = np.asarray(table.get("zero_point", ()) or (0,), np.int64)
        sizes = self.sizes(tensor)
        axis = table.get("quantized_dimension", 0) if len(sizes) > 1 else 0
        is_by_axis = scale.size > 1
        fits = not is_by_axis or (0 <= axis < len(sizes) and sizes[axis] == scale.size)
        if zero.size not in (1, scale.size) or not fits:
            raise self.model.fail(f"{scale.size} scales and {zero.size} zero points do not fit "
                                  f"the tensor {name[:80]!r} of {list(sizes)}")  # fmt: skip
        return Quantization.of(scale, zero, axis)

    def blocks(
        self, details: tuple[str, Mapping[str, Any]], sizes: Sequence[int], name: str
    ) -> Quantization:
        """A scale for each block of the last axis; another tensor holds them."""
        kind, table = details
        size = table.get("block_size", 0)
        if kind != "BlockwiseQuantization" or size <= 0 or not sizes or sizes[-1] % size:
            raise self.model.fail(f"{name[:80]!r} is quantized in blocks of a kind that is not "
                                  "read: quantize it by channel")  # fmt: skip
        scales = self.tensor(table["scales"])
        constant = self.constant(scales, name, self.dtype(scales))
        shape = (*sizes[:-1], sizes[-1] // size)
        if constant is None or constant.size != math.prod(shape) or table["zero_points"] > 0:
            raise self.model.fail(f"the scales of blocks of {name[:80]!r} do not fit it")
        scale = constant.load().astype(np.float32).reshape(shape)
        return Quantization(scale, np.zeros(shape, np.int64), len(sizes) - 1, size)

    def value(self, at: int) -> Value:
        """The value of a tensor that is read."""
        if at in self.values:
            return self.values[at]
        tensor = self.tensor(at)
        self.check_plain(tensor)
        name, dtype = self.model.claim(tensor.get("name", "")), self.dtype(tensor)
        value = Value(name, dtype)
        if tensor["is_variable"]:
            value.shape = self.sizes(tensor)
            self.states[at] = value
        elif (constant := self.constant(tensor, name, dtype)) is not None:
            value.shape, value.tensor, value.name_is_original = constant.shape, constant, True
        return self.enter(at, value, tensor)

    def constant(self, tensor: Mapping[str, Any], name: str, dtype: DType | None) -> Tensor | None:
        """The weight of a tensor, None for what is computed."""
        shape = self.sizes(tensor)
        place = self.model.place(tensor["buffer"], name) if tensor["buffer"] else None
        if dtype is not None and 0 in shape and place is None:
            return Tensor.of(np.zeros(shape, dtype.numpy))
        if place is None:
            return None
        if dtype is None or dtype is DType.STRING:
            raise self.model.fail(f"the constant {name[:80]!r} is of an element type that is not "
                                  "read, as strings are: compute with numbers")  # fmt: skip
        if "sparsity" in tensor:
            return self.dense_constant(tensor["sparsity"], place, name, dtype, shape)
        weight = Tensor(dtype, shape, partial(read_slice, place, dtype, shape), place)
        if weight.nbytes != place.nbytes:
            raise self.model.fail(
                f"the weight {name[:80]!r} of {list(shape)} takes {weight.nbytes} bytes, "
                f"and {place.nbytes} are there"
            )
        if dtype is DType.BOOL:
            weight.where = None  # any byte but 0 is true
        return weight

    def dense_constant(
        self, table: Mapping[str, Any], place: FileSlice, name: str, dtype: DType,
        shape: tuple[int, ...],
    ) -> Tensor:  # fmt: skip
        """A sparse weight with all its elements."""
        what, path = f"sparse weight {name[:80]!r}", self.model.path
        count = place.nbytes * 8 // dtype.bits
        active_budget().charge_file(math.prod(shape) * dtype.numpy.itemsize, path, what)
        try:
            values = read_slice(place, dtype, (count,))
            return Tensor.of(make_dense(table, values, shape, self.model.data))
        except ValueError as error:
            raise self.model.fail(f"the {what}: {error}") from None

    def read_nodes(self) -> None:
        for table in self.table.get("operators", ()):
            self.nodes.append(self.node(table))

    def node(self, table: Mapping[str, Any]) -> Node:
        op = self.model.entry(self.model.codes, table["opcode_index"], "operator code")
        places = table.get("inputs", ())
        inputs = tuple([None if at == -1 else self.value(at) for at in places])
        kept = {places[at] for at in STATES.get(op, ()) if at < len(places)} - {-1}
        changed = [at for at in places if at in self.states or at in kept]
        outputs = [self.result(at, table) for at in table.get("outputs", ())]
        outputs += [self.renew(at) for at in changed]
        name, attrs = outputs[0].name if outputs else op, dict(self.attributes(table))
        recorded = self.model.sources.get(name) or (Source(DOMAIN, op, name),)
        return Node(op, inputs, tuple(outputs), attrs, DOMAIN, name, tuple(recorded))

    def result(self, at: int, table: Mapping[str, Any]) -> Value:
        """The value of a tensor that is computed."""
        tensor = self.tensor(at)
        if at in self.values:
            raise self.model.fail(f"tensor {tensor.get('name', '')[:80]!r} is computed after it "
                                  "is read, or twice: sort the operators")  # fmt: skip
        name = self.model.claim(tensor.get("name", ""))
        return self.enter(at, Value(name, self.dtype(tensor)), tensor)

    def renew(self, at: int) -> Value:
        """What a variable holds after an operator."""
        before = self.values[at]
        value = Value(self.model.claim(f"{before.name}_next"), before.dtype, before.shape)
        return self.enter(at, value, self.tensor(at))

    def attributes(self, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The options that are not the defaults; subgraphs in place of their numbers."""
        for field in OPTION_FIELDS:
            kind, options = table.get(field, ("", {}))
            if not kind:
                continue
            defaults = {f.name: f.default for f in tables()[kind]}
            for name, value in options.items():
                if name in NUMBERED_BODIES:
                    yield NUMBERED_BODIES[name], self.model.body(value)
                elif isinstance(value, Span):
                    yield name, bytes(self.model.data[value.start : value.start + value.size])
                elif value != defaults.get(name):
                    yield name, value
        if options := table.get("custom_options"):
            start, size = options
            yield "custom_options", bytes(self.model.data[start : start + size])
