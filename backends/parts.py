"""A model in parts, and their files: ONNX for the backend; ONNX, MXNet or Relay for the rest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.io.atomic_write import Replacing
from serde.io.command_files import CommandFiles, active_files, within_command
from serde.io.filesystems import is_url, local_path
from serde.ir.graph import Graph, Node, Value
from serde.pipeline import encode, finish, lower
from serde.plugins import STANDARD, get_format, remainder_formats
from serde.plugins.keywords import with_options
from serde.plugins.options import check_word, list_words

from .costs import count_bytes, count_multiply_adds
from .description import Backend
from .folder import replace_parts
from .judge import BackendReport
from .manifest import Manifest, PartInfo, TensorInfo, hash_file, write_manifest

ACCELERATOR, REMAINDER, CONTROL = "accelerator", "remainder", "control"
OPSET = 21  # of a remainder in ONNX


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """A part of a model. ``graph`` is of the IR; ``legalized`` is what the backend gets.

    A part of kind ``control`` is one If or Loop whose subgraphs are partitioned: ``bodies``.
    """

    name: str
    kind: str
    graph: Graph
    legalized: Graph | None = None
    bodies: Mapping[str, Partitioned] = field(default_factory=dict)

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of its nodes."""
        return sum(map(count_multiply_adds, self.graph.nodes))

    def __str__(self) -> str:
        nodes = len((self.legalized or self.graph).nodes)
        return f"{self.name}: {nodes} nodes, {self.multiply_adds:,} multiply-adds"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Edge:
    """A value that a part computes, or the model is given, and another part or the caller reads.

    The name of a part is empty where it is the caller.
    """

    value: Value
    source: str
    target: str

    @property
    def bytes(self) -> int:
        """The bytes of the value; sizes that are no numbers count as 1."""
        return count_bytes(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Partitioned:
    """A model in parts, in an order in which they can run.

    ``command`` are the files that it was read from, which no part replaces.
    """

    graph: Graph
    backend: Backend
    parts: tuple[Part, ...]
    report: BackendReport
    command: CommandFiles = field(default_factory=active_files)

    @property
    def summary(self) -> str:
        """How many parts there are, and what is moved between them, in a line."""
        counts = f"{len(self.accelerator_parts)} for {self.backend.name} of {len(self.parts)} parts"
        return f"{counts}, {self.bytes_moved:,} bytes moved"

    def __str__(self) -> str:
        return "\n  ".join([f"{self.graph.name}: {self.summary}", *map(str, self.parts)])

    __repr__ = __str__

    @property
    def accelerator_parts(self) -> tuple[Part, ...]:
        """The parts that the backend takes."""
        return tuple(p for p in self.parts if p.kind == ACCELERATOR)

    def edges(self) -> Iterator[Edge]:
        """What goes from part to part, from the caller and to it."""
        maker = {v: p.name for p in self.parts for v in p.graph.outputs}
        for part in self.parts:
            for value in part.graph.inputs:
                yield Edge(value, maker.get(value, ""), part.name)
        for value in self.graph.outputs:
            if value in maker:
                yield Edge(value, maker[value], "")

    @property
    def bytes_moved(self) -> int:
        """The bytes that backend parts read from elsewhere and make for elsewhere."""
        return sum(
            count_bytes(v) for p in self.accelerator_parts
            for v in (*p.graph.inputs, *p.graph.outputs)
        )  # fmt: skip

    @with_options()
    def save(
        self, folder: str | os.PathLike[str], remainder: str = STANDARD,
        check: Callable[[Path], object] | None = None,
    ) -> Manifest:  # fmt: skip
        """Write the parts and their manifest to a folder, which is made if it is not there.

        A partition that is there is replaced whole, or, after a failure, not at all. ``check`` is
        called with a folder of the new one before; where it raises an error, nothing is written.

        Raises:
            UsageError: for a format that remainders are not written in, a URL, and a folder of
                other files. Unconvertible: for a remainder that its format cannot express.
        """
        folder = local_path(os.fspath(folder))
        if is_url(folder):
            reason = "a partition is a folder of this machine, not at a URL"
            raise UsageError(f"{folder}: {reason}: give its path, and copy it then")
        return _save_parts(self, Path(folder), remainder, check)


def _save_parts(
    partitioned: Partitioned, place: Path, remainder: str, check: Callable[[Path], object] | None
) -> Manifest:
    check_word("--remainder=", remainder, list_words(remainder_formats))
    with within_command(partitioned.command), replace_parts(place) as folder:
        manifest = _write_parts(partitioned, folder, remainder)
        write_manifest(manifest, folder)
        if check is not None:
            check(folder)
    return manifest


def _write_parts(partitioned: Partitioned, folder: Path, remainder: str) -> Manifest:
    backend = partitioned.backend
    about = {
        "name": backend.name, "opset": backend.target.opset, "version": backend.version,
        "documentation": backend.documentation,
    }  # fmt: skip
    edges = [
        {"value": e.value.name, "from": e.source, "to": e.target, "bytes": e.bytes}
        for e in partitioned.edges()
    ]
    graph = partitioned.graph
    return Manifest(
        graph.name, about, describe_values(graph.inputs), describe_values(graph.outputs),
        [_write_part(p, folder, remainder) for p in partitioned.parts], edges,
    )  # fmt: skip


def _write_part(part: Part, folder: Path, remainder: str) -> PartInfo:
    operators = dict(Counter(n.qualified_op for n in (part.legalized or part.graph).nodes))
    if part.kind == CONTROL:
        (node,) = part.graph.nodes
        bodies = {k: _write_parts(b, folder, remainder) for k, b in part.bodies.items()}
        return PartInfo(
            part.name, part.kind, files=_write_constants(part.name, node, folder),
            inputs=describe_values(part.graph.inputs), outputs=describe_values(node.outputs),
            operators=operators, multiply_adds=part.multiply_adds, operator=node.op,
            operands=[v.name if v is not None else "" for v in node.inputs], bodies=bodies,
        )  # fmt: skip
    format = get_format(STANDARD if part.kind == ACCELERATOR else remainder)
    path = folder / f"{part.name}{format.suffixes[0]}"
    options: dict[str, Any] = {"opset": OPSET} if format.name == STANDARD else {}
    lowered = part.legalized or lower(format, part.graph, options)
    files = encode(format, finish(lowered), path, options)
    names = sorted(files, key=lambda f: os.path.abspath(f) != os.path.abspath(path))
    return PartInfo(
        part.name, part.kind, format.name, {os.path.basename(f): hash_file(Path(f)) for f in names},
        describe_values(part.graph.inputs, lowered), describe_values(part.graph.outputs),
        operators, part.multiply_adds,
    )  # fmt: skip


def _write_constants(name: str, node: Node, folder: Path) -> dict[str, str]:
    """The operands of an If or a Loop that are constants, as a file, if there are any."""
    arrays = {v.name: v.array() for v in node.inputs if v is not None and v.tensor is not None}
    if not arrays:
        return {}
    path = folder / f"{name}.npz"
    with Replacing(os.fspath(path)) as files, files.open(os.fspath(path)) as out:
        np.savez(out, allow_pickle=False, **arrays)
    return {path.name: hash_file(path)}


def describe_values(values: Sequence[Value], written: Graph | None = None) -> list[TensorInfo]:
    """Names, types and shapes of values, and what the file of a part calls them as its inputs."""
    names = [v.name for v in values]
    if written is not None and len(written.inputs) == len(values):
        names = [v.name for v in written.inputs]
    return [
        TensorInfo(
            value.name, value.dtype.value if value.dtype else "",
            None if value.shape is None else list(value.shape), list(value.container),
            name if name != value.name else "",
        )
        for value, name in zip(values, names, strict=True)
    ]  # fmt: skip
