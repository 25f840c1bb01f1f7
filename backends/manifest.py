"""The manifest of a partitioned model: ``manifest.json``, version 1.

docs/reference/manifest.md describes its fields.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile, show_attribute
from serde.io.atomic_write import Replacing
from serde.io.command_files import active_files
from serde.io.sniff import open_regular, read_regular
from serde.ir.graph import DType, Value
from serde.spec.onnx_library import MOST_SIZE, RANK

NAME, KIND, VERSION = "manifest.json", "serde-partition", 1
KINDS = ("accelerator", "remainder", "control")
BODIES = {"If": {"then_branch", "else_branch"}, "Loop": {"body"}}  # of the operators of control
CHUNK = 1 << 20  # bytes hashed at a time
MOST_BYTES = 1 << 26  # of a manifest
ELEMENT_TYPES = {"", *(dtype.value for dtype in DType)}  # empty where it is not known


@dataclass(frozen=True)
class TensorInfo:
    """A value between parts. ``file_name`` is what a part's file calls it, where that differs."""

    name: str
    dtype: str
    shape: list[int | str | None] | None
    container: list[str] = field(default_factory=list)
    file_name: str = ""

    def to_value(self) -> Value:
        """It as an input or an output of a graph."""
        shape = None if self.shape is None else tuple(self.shape)
        dtype = DType(self.dtype) if self.dtype else None
        return Value(self.name, dtype, shape, container=tuple(self.container))


@dataclass(frozen=True, repr=False)
class PartInfo:
    """A part: its files by name with their SHA-256, the model's first, or an If or a Loop."""

    name: str
    kind: str
    format: str = ""
    files: dict[str, str] = field(default_factory=dict)
    inputs: list[TensorInfo] = field(default_factory=list)
    outputs: list[TensorInfo] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    multiply_adds: int = 0
    operator: str = ""
    operands: list[str] = field(default_factory=list)
    bodies: dict[str, Manifest] = field(default_factory=dict)

    def __str__(self) -> str:
        nodes = sum(self.operators.values())
        return f"{self.name}: {nodes} nodes, {self.multiply_adds:,} multiply-adds"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Manifest:
    """A model in parts. ``edges`` follow from what the parts read and compute."""

    name: str
    backend: dict[str, Any]
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    parts: list[PartInfo]
    edges: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n  ".join([f"{self.name}: {len(self.parts)} parts", *map(str, self.parts)])

    __repr__ = __str__

    def all_parts(self) -> Iterator[PartInfo]:
        """Every part with files, those of subgraphs included."""
        for part in self.parts:
            yield part
            for body in part.bodies.values():
                yield from body.all_parts()


def hash_file(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_manifest(manifest: Manifest, folder: Path) -> Path:
    """Write the manifest, after the files that it names."""
    path = folder / NAME
    document = {"kind": KIND, "version": VERSION, **_strip(asdict(manifest))}
    with Replacing(os.fspath(path)) as files, files.open(os.fspath(path)) as out:
        out.write((json.dumps(document, indent=1) + "\n").encode())
    return path


def _strip(value: Any) -> Any:
    """A JSON value without fields that are empty: they have that for a default."""
    if isinstance(value, dict):
        kept = {k: _strip(v) for k, v in value.items()}
        optional = {"container", "file_name", "operator", "operands", "bodies", "format", "files"}
        return {k: v for k, v in kept.items() if v or k not in optional}
    return [_strip(v) for v in value] if isinstance(value, list) else value


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest, check its files, and bring its parts into an order in which they can run.

    Raises:
        MalformedFile: for a manifest that is none, names files that are missing or others than they
            were, or whose parts wait for each other.
    """
    path = folder / NAME
    active_files().enter(path)
    try:
        document = json.loads(read_regular(path, MOST_BYTES))
    except FileNotFoundError:
        raise MalformedFile(folder, f"there is no {NAME}: serde partition writes one") from None
    except (ValueError, RecursionError) as error:
        raise MalformedFile(path, f"it is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise MalformedFile(path, f"its kind is not {KIND!r}", "kind")
    if document.get("version") != VERSION:
        reason = f"it is of version {document.get('version')!r}; this serde reads {VERSION}"
        raise MalformedFile(path, reason, "version")
    try:
        manifest = _Reader(path).manifest(document, "")
    except RecursionError as error:
        raise MalformedFile(path, "it nests too deep") from error
    names = set[str]()
    for part in manifest.all_parts():
        if part.name in names:
            raise MalformedFile(path, f"two parts are called {part.name!r}")
        names.add(part.name)
        _check_files(path, folder, part)
    return manifest


def list_files(folder: Path) -> dict[str, str] | None:
    """The files of a partition, its manifest among them, and their SHA-256.

    None where the folder has no manifest of a partition.
    """
    try:
        document = json.loads(read_regular(folder / NAME, MOST_BYTES))
        if document.get("kind") != KIND:
            return None
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError, AttributeError,
            MalformedFile):  # fmt: skip
        return None
    try:
        parts = [*_Reader(folder / NAME).manifest(document, "").all_parts()]
    except (MalformedFile, RecursionError):  # of another version
        parts = []
    files = {n: digest for part in parts for n, digest in part.files.items() if _is_of_part(n)}
    return {NAME: "", **files}


def _is_of_part(name: str) -> bool:
    """Whether a name is one that files of parts have: in the folder itself, by the kind of part."""
    return os.path.basename(name) == name and name.startswith(tuple(f"{k}_" for k in KINDS))


def _check_files(path: Path, folder: Path, part: PartInfo) -> None:
    for name, expected in part.files.items():
        if not _is_of_part(name):
            raise MalformedFile(path, f"{name!r} is no name of a part's file", part.name)
        if not (folder / name).is_file():
            raise MalformedFile(path, f"its file {name!r} is missing", part.name)
        active_files().enter(folder / name)
        if hash_file(folder / name) != expected:
            reason = f"{name!r} is another file than was written: its SHA-256 differs"
            raise MalformedFile(path, reason, part.name)


@dataclass(frozen=True)
class _Reader:
    """Turns JSON into a manifest; errors tell the place."""

    path: Path

    def manifest(self, table: Any, place: str) -> Manifest:
        table = self.table(table, place)
        parts = [self.part(p, f"{place}parts[{n}]") for n, p in
                 enumerate(self.get_list(table, "parts", place))]  # fmt: skip
        draft = Manifest(
            self.text(table, "name", place), self.table(table.get("backend", {}), place),
            self.tensors(table, "inputs", place), self.tensors(table, "outputs", place), parts,
            self.get_list(table, "edges", place),
        )  # fmt: skip
        return replace(draft, parts=sort_parts(self.path, draft))

    def part(self, table: Any, place: str) -> PartInfo:
        table = self.table(table, place)
        kind = self.text(table, "kind", place)
        if kind not in KINDS:
            raise MalformedFile(self.path, f"{kind!r} is not one of {', '.join(KINDS)}", place)
        bodies = {k: self.manifest(v, f"{place}.{k}.")
                  for k, v in self.table(table.get("bodies", {}), place).items()}  # fmt: skip
        files = {str(k): str(v) for k, v in self.table(table.get("files", {}), place).items()}
        if not files and kind != "control":
            raise MalformedFile(self.path, "it names no files", place)
        part = PartInfo(
            self.text(table, "name", place), kind, str(table.get("format", "")), files,
            self.tensors(table, "inputs", place), self.tensors(table, "outputs", place),
            dict(self.table(table.get("operators", {}), place)), table.get("multiply_adds", 0),
            str(table.get("operator", "")), self.get_list(table, "operands", place), bodies,
        )  # fmt: skip
        if kind == "control":
            self.check_control(part, place)
        return part

    def check_control(self, part: PartInfo, place: str) -> None:
        """Refuse a part that is no If or Loop with its operands and subgraphs."""
        expected = BODIES.get(part.operator)
        if expected is None:
            reason = f"its operator {part.operator!r} is not one of {', '.join(BODIES)}"
            raise MalformedFile(self.path, reason, place)
        if part.bodies.keys() != expected:
            reason = f"the subgraphs of its {part.operator} are to be {', '.join(sorted(expected))}"
            raise MalformedFile(self.path, reason, place)
        states = len(part.operands) - 2 if part.operator == "Loop" else 0
        has_fit = len(part.operands) == 1 if part.operator == "If" else states >= 0
        if not has_fit or not all(isinstance(n, str) for n in part.operands):
            raise MalformedFile(self.path, f"operands of its {part.operator} are missing", place)
        for name, body in part.bodies.items():
            nin, nout = len(body.inputs), len(body.outputs)
            fits = nout == len(part.outputs)
            if part.operator == "Loop":
                fits = nin >= 2 + states and nout >= 1 + states and nout > len(part.outputs)
            if not fits:
                reason = f"its {part.operator} does not fit the inputs and outputs of {name}"
                raise MalformedFile(self.path, reason, place)

    def table(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MalformedFile(self.path, "it is no table", place)
        return value

    def text(self, table: Mapping[str, Any], key: str, place: str) -> str:
        if not isinstance(table.get(key), str):
            raise MalformedFile(self.path, f"{key!r} is missing, or no text", place)
        return str(table[key])

    def get_list(self, table: Mapping[str, Any], key: str, place: str) -> list[Any]:
        items = table.get(key, [])
        if not isinstance(items, list):
            raise MalformedFile(self.path, f"{key!r} is no list", place)
        return items

    def tensors(self, table: Mapping[str, Any], key: str, place: str) -> list[TensorInfo]:
        infos = []
        for value in self.get_list(table, key, place):
            row = self.table(value, f"{place}.{key}")
            name, dtype = self.text(row, "name", place), self.text(row, "dtype", place)
            shape = self.get_list(row, "shape", place) if row.get("shape") is not None else None
            if dtype not in ELEMENT_TYPES:
                reason = f"{dtype[:80]!r} of {name!r} is no element type"
                raise MalformedFile(self.path, reason, f"{place}.{key}")
            if shape is not None and (len(shape) > RANK or not all(map(_is_size, shape))):
                reason = f"{show_attribute(shape)} of {name!r} is no shape"
                raise MalformedFile(self.path, reason, f"{place}.{key}")
            container = list(map(str, self.get_list(row, "container", place)))
            file_name = str(row.get("file_name", ""))
            infos.append(TensorInfo(name, dtype, shape, container, file_name))
        return infos


def _is_size(size: Any) -> bool:
    """Whether it is a number, a name, or not known."""
    return size is None or isinstance(size, str) or (type(size) is int and 0 <= size <= MOST_SIZE)


def sort_parts(path: Path, manifest: Manifest) -> list[PartInfo]:
    """The parts in an order in which each comes after those it reads from.

    Raises:
        MalformedFile: where there is none, or a part reads what nothing computes.
    """
    maker: dict[str, PartInfo] = {}
    known = {v.name for v in manifest.inputs}
    for part in manifest.parts:
        for value in part.outputs:
            if value.name and value.name in maker:
                reason = f"two parts compute {value.name!r}: {maker[value.name].name}, {part.name}"
                raise MalformedFile(path, reason)
            if value.name in known:
                raise MalformedFile(path, f"{value.name!r} is an input, and computed", part.name)
            maker[value.name] = part
    for part in manifest.parts:
        read = set[str]()
        for name in (v.name for v in part.inputs):
            if name not in known and name not in maker:
                raise MalformedFile(path, f"no part computes {name!r}")
            if name in read:
                raise MalformedFile(path, f"{name!r} is two of its inputs", part.name)
            read.add(name)
    if absent := [v.name for v in manifest.outputs if v.name not in known and v.name not in maker]:
        raise MalformedFile(path, f"no part computes the output {absent[0]!r}")
    return _order(path, manifest.parts, known)


def _order(path: Path, parts: Sequence[PartInfo], known: set[str]) -> list[PartInfo]:
    readers: dict[str, list[int]] = {}
    waits = []
    for number, part in enumerate(parts):
        names = {v.name for v in part.inputs} - known
        waits.append(len(names))
        for name in names:
            readers.setdefault(name, []).append(number)
    ready = [n for n, count in enumerate(waits) if not count]
    ordered: list[PartInfo] = []
    for number in ready:
        ordered.append(parts[number])
        for name in (v.name for v in parts[number].outputs):
            for reader in readers.pop(name, ()):
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
    if len(ordered) < len(parts):
        left = ", ".join(p.name for n, p in enumerate(parts) if waits[n])
        raise MalformedFile(path, f"its parts wait for each other: {left}")
    return ordered
