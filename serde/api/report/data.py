"""The record of a conversion, and its JSON."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from serde.errors import Problem, UsageError
from serde.io.atomic_write import Replacing, begins_with, refuse_other_file
from serde.io.command_files import CommandFiles, active_files, within_command
from serde.io.provenance import Provenance
from serde.ir.graph import DType, Graph, Tensor, Value, show_shape
from serde.ir.weights import find_weights, show_size
from serde.plugins import Deferred

if TYPE_CHECKING:
    from serde.ir.picture.outline import Outline

make_outline = Deferred("serde.ir.picture.outline:make_outline")
SCHEMA = 1  # version of the JSON; fields may be added to it
SHOWN_OPERATORS = 12  # in a line
SUFFIXES = ("html", "md", "json")
UNWRITTEN = frozenset({"drawn", "unconverted", "command"})  # fields that no JSON has
MARKDOWN_START = "<!-- by serde -->\n"
PAGE_START = '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta name="generator" content="serde">'
JSON_START = '{\n  "schema": '
is_report = begins_with(*(s.encode() for s in (PAGE_START, MARKDOWN_START, JSON_START)))
MOST_KEPT = 1 << 24  # bytes of weights in memory that a report may keep there


def describe_source(source: Any) -> str:
    """What reports call a source: its path, or the name or the class of an object."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Graph):
        return source.name or "graph"
    return f"{type(source).__module__}.{type(source).__qualname__}"


@dataclass
class ReportData:
    """The record of one conversion.

    ``files`` are those written, ``source_operators`` and ``operators`` count the nodes of source
    and result, ``seconds`` is wall time by stage, ``problems`` what cannot be converted,
    ``weights_sha256`` the hash of the result's weights where it was asked for, ``source_bytes`` and
    ``result_bytes`` what their files take, None where there are none. ``drawn`` is what pictures
    show: the result, or the source where it cannot be converted. ``unconverted`` is the source
    while there is no result. ``command`` are the files that were read, which no report replaces.
    """

    source: str
    target: str
    source_format: str
    target_format: str
    options: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    source_operators: dict[str, int] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    parameters: int = 0
    weight_bytes: int = 0
    weights_sha256: str | None = None
    source_bytes: int | None = None
    result_bytes: int | None = None
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    verification: Any = None
    drawn: Graph | Outline | None = field(default=None, repr=False, compare=False)
    provenance: Provenance | None = field(default=None, repr=False, compare=False)
    unconverted: Graph | None = field(default=None, repr=False, compare=False)
    command: CommandFiles = field(default_factory=active_files, repr=False, compare=False)

    @property
    def outline(self) -> Outline | None:
        """What pictures show, made when the first is drawn."""
        if isinstance(self.drawn, Graph):
            outline: Outline = make_outline(self.drawn)
            self.drawn = outline
            return outline
        return self.drawn

    @property
    def ok(self) -> bool:
        """Whether everything could be converted, and the numbers agree where they were compared."""
        return not self.problems and (self.verification is None or self.verification.ok)

    def describe_source(self, graph: Graph) -> None:
        """Enter what the source looks like, in its own operators."""
        self.source_operators = count_operators(graph)
        self.unconverted = graph

    def describe(self, graph: Graph) -> None:
        """Enter what the result looks like."""
        self.inputs = [describe_value(v) for v in graph.inputs]
        self.outputs = [describe_value(v) for v in graph.outputs]
        self.operators = count_operators(graph)
        self.drawn, self.unconverted = graph, None
        tensors = [v.tensor for v in find_weights(graph) if v.tensor is not None]
        self.parameters = sum(t.size for t in tensors)
        self.weight_bytes = sum(t.nbytes for t in tensors)
        if sum(t.nbytes for t in tensors if t.where is None) > MOST_KEPT:
            self.drawn = make_outline(graph)

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Enter what stands in the way of a conversion."""
        self.problems = list(problems)
        if self.unconverted is not None:
            self.drawn, self.unconverted = make_outline(self.unconverted), None

    def respell(self, change: Callable[[str], str]) -> None:
        """Change the texts that a reader is told."""
        self.notes = [*map(change, self.notes)]
        self.problems = [p.respell(change) for p in self.problems]
        if self.verification is not None:
            self.verification.respell(change)

    def refused_names(self) -> frozenset[str]:
        """The nodes, or layers of the source, that cannot be converted."""
        return frozenset(name for p in self.problems for name in p.names)

    def to_json(self) -> str:
        """The report as JSON text; docs/reference/report.md has its schema."""
        members = {n: v for n, v in _fields(self).items() if n not in UNWRITTEN}
        members["provenance"] = self.provenance and self.provenance.describe()
        return json.dumps(to_json({"schema": SCHEMA, **members, "ok": self.ok}), indent=2)


def report_suffix(path: str | os.PathLike[str], known: Sequence[str] = SUFFIXES) -> str:
    """The kind of report to write to ``path``: JSON where the path has no suffix.

    Raises:
        UsageError: where its suffix names none.
    """
    suffix = os.path.splitext(os.fspath(path))[1].lower().removeprefix(".")
    suffix = {"htm": "html", "markdown": "md", "": "json"}.get(suffix, suffix)
    if suffix not in known:
        endings = ", ".join(f".{s}" for s in known)
        raise UsageError(f"cannot tell a report from {os.fspath(path)!r}: end it with {endings}")
    return suffix


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole, or leave what is there; refuse one that the command has read."""
    path = os.fspath(path)
    with Replacing(path) as files, files.open(path) as out:
        out.write(text.encode("utf-8", "backslashreplace"))  # names of files may be no UTF-8


def save_report(
    path: str | os.PathLike[str], text: str, command: CommandFiles | None = None
) -> None:
    """Write a report or a page in the place of one, or of nothing."""
    with within_command(command) as files:
        files.refuse_target(path)
        refuse_other_file(path, is_report, "report of serde")
        write_text(path, text)


def count_operators(graph: Graph) -> dict[str, int]:
    """How many nodes of each operator a graph has, most first."""
    ops = (n.op if n.domain == graph.domain else n.qualified_op for n in graph.nodes)
    return dict(Counter(ops).most_common())


def describe_model(report: Any) -> Iterator[str]:
    """Lines of inputs, outputs, operators and weights, of a report or an inspection."""
    for title, entries in (("input", report.inputs), ("output", report.outputs)):
        for entry in entries:
            dtype = entry["dtype"] or "(unknown type)"
            yield f"  {title:7}{entry['name']}: {dtype} {entry['shape']}"
    counts = [f"{op} ×{n}" for op, n in report.operators.items()]
    more = f" and {len(counts) - SHOWN_OPERATORS} more" if len(counts) > SHOWN_OPERATORS else ""
    shown = ", ".join(counts[:SHOWN_OPERATORS])
    yield f"  nodes  {sum(report.operators.values())}: {shown}{more}"
    yield f"  {describe_weights(report)}"


def describe_weights(report: Any) -> str:
    """How many numbers a model has, and their size."""
    return f"weights {report.parameters:,} numbers, {show_size(report.weight_bytes)}"


def describe_value(value: Value) -> dict[str, Any]:
    """An input or an output as the report lists it."""
    dtype = value.dtype.title if value.dtype else None
    return {"name": value.name, "dtype": dtype, "shape": show_shape(value.shape)}


def _fields(thing: Any) -> dict[str, Any]:
    return {f.name: getattr(thing, f.name) for f in fields(thing)}


def to_json(thing: Any) -> Any:
    """A value as JSON has it.

    NaN and infinity are null; a tensor or an array is its type and shape, ``float32[2,3]``; an
    element type is its name; a set is a sorted list; bytes are text.

    Raises:
        TypeError: for anything a report is not documented to hold.
    """
    if thing is None or isinstance(thing, (str, bool, int)):
        return thing
    if isinstance(thing, (float, np.floating)):
        return float(thing) if math.isfinite(thing) else None
    if isinstance(thing, (np.bool_, np.integer)):
        return thing.item()
    if isinstance(thing, Mapping):
        return {str(k): to_json(v) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [to_json(v) for v in thing]
    if isinstance(thing, (set, frozenset)):
        return [to_json(v) for v in sorted(thing)]
    if isinstance(thing, bytes):
        return thing.decode("utf-8", "backslashreplace")
    if isinstance(thing, os.PathLike):
        return os.fspath(thing)
    if isinstance(thing, DType):
        return thing.value
    if isinstance(thing, (Tensor, np.ndarray)):
        return f"{DType.of(thing.dtype).value}[{','.join(map(str, thing.shape))}]"
    if is_dataclass(thing):
        return to_json(_fields(thing))
    if callable(thing):
        return getattr(thing, "__qualname__", type(thing).__qualname__)
    raise TypeError(f"a report holds no {type(thing).__qualname__}")
