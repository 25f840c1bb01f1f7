"""What a backend takes: a ``Target``, declared in Python or read from a TOML file.

docs/how-to/partition-a-model.md describes the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from serde.errors import MalformedFile, UsageError, suggest
from serde.io.command_files import active_files
from serde.io.toml import read_toml
from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.forms.form import Form
from serde.legalize.target import LOWEST_WRITTEN, Target, TypeConstraints, opset_target
from serde.plugins import STANDARD, get_format, target_names
from serde.spec import schema

from .constraints import KEYS as OPERATOR_KEYS
from .constraints import InvalidKey, other_elements, parse_types, type_constraints
from .expressions import express_lacking
from .legalizations import EXPRESSIONS

DESCRIPTIONS = Path(__file__).with_name("descriptions")
KEYS = {  # of a file, and what their values are
    "name": str, "opset": int, "documentation": str, "version": str, "date": object,
    "element_types": list, "dynamic_shapes": bool, "operators": list,
}  # fmt: skip
KIND_NAMES = {str: "a string", int: "an integer", list: "a list", bool: "true or false"}
LONGEST = 500  # letters of a message
LOOPS = frozenset({"Loop", "Scan"})
OPSET = re.compile(r"opset[- :]?(\d{1,9})")


def keep_graph(graph: Graph) -> Graph:
    """The graph as it is."""
    return graph


@dataclass(frozen=True, eq=False)
class Backend:
    """What a backend takes, and where that was read: a document, its version and date.

    ``documented`` is what the document says where ``target`` is otherwise, as it was measured.
    ``prepare`` is what is done to a legal graph before it is written.
    """

    target: Target
    documentation: str = ""
    version: str = ""
    date: str = ""
    documented: Target | None = None
    prepare: Callable[[Graph], Graph] = keep_graph

    @property
    def name(self) -> str:
        """What users call it."""
        return self.target.name


def backend_names() -> list[str]:
    """The backends that come with serde, by name: documented, and measured consumers of ONNX."""
    consumers = get_format(STANDARD).consumers
    measured = (n for n in consumers if n not in target_names() and consumers[n].target is not None)
    return sorted({*documented_names(), *measured})


def documented_names() -> list[str]:
    """The backends that a file of serde's own documents."""
    return sorted(p.stem for p in DESCRIPTIONS.glob("*.toml"))


def list_names() -> list[str]:
    """The backends that come with serde, and the targets of plug-ins."""
    return [*backend_names(), *target_names()]


def get_backend(backend: Any) -> Backend:
    """The backend of a name, of ``opset N``, of a TOML file, or that a ``Target`` declares.

    Raises:
        UsageError: for a name that nothing bears. MalformedFile: for a file that is none.
    """
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, Target):
        return Backend(backend)
    if not isinstance(backend, (str, os.PathLike)):
        kind = type(backend).__name__
        raise UsageError(f"a backend is a name, a TOML file or a Target, and not a {kind}")
    text = os.fspath(backend)
    if (match := OPSET.fullmatch(text)) is not None:
        return opset_backend(int(match[1]))
    if text in documented_names() or text in get_format(STANDARD).consumers:
        return read_named_backend(text)
    if text.endswith(".toml") or os.path.exists(text):
        return read_backend(Path(text))
    known = [*list_names(), "opset N"]
    hint = suggest(text, known) or f"; there are {', '.join(known)}, or a file"
    raise UsageError(f"no backend is called {text!r}{hint}")


def read_named_backend(name: str) -> Backend:
    """A consumer as a backend; what was measured of it holds, where its document differs.

    Raises:
        UsageError: for a profile that is of no table of operators.
    """
    consumers = get_format(STANDARD).consumers
    document = read_description(name) if name in documented_names() else None
    if document is not None and name not in consumers:
        return document
    target, prepare = consumers[name].get_target(), consumers[name].prepare or keep_graph
    if target is None:
        raise UsageError(f"the profile {name} takes every operator of its opset: give opset N")
    if document is None:
        return Backend(target, prepare=prepare)
    differs = document.target.supports != target.supports
    documented = document.target if differs else None
    return replace(document, target=target, documented=documented, prepare=prepare)


def read_description(name: str) -> Backend:
    """The backend that a file of serde's own documents."""
    return read_backend(DESCRIPTIONS / f"{name}.toml")


def opset_backend(opset: int) -> Backend:
    """A backend that takes every operator of the standard at an opset."""
    if not LOWEST_WRITTEN <= opset <= IR_OPSET:
        raise UsageError(f"opset {opset} is not one of {LOWEST_WRITTEN} to {IR_OPSET}")
    where = "https://onnx.ai/onnx/operators/"
    return Backend(opset_target(opset), where, str(opset))


def read_backend(path: Path) -> Backend:
    """Read a description.

    Raises:
        MalformedFile: with the line of what is wrong, and what may have been meant.
    """
    backend, problems = check_description(path)
    if backend is None:
        more = len(problems) - 1
        also = f"; serde backend check lists {more} more" if more else ""
        raise MalformedFile(path, f"{problems[0].reason}{also}", problems[0].place)
    return backend


class FileProblem(NamedTuple):
    """What is wrong in a file, where, and what may have been meant."""

    reason: str
    place: str


def check_description(path: Path) -> tuple[Backend | None, list[FileProblem]]:
    """The backend of a description, or all that is wrong in it."""
    active_files().enter(path)
    text, tables = read_toml(path)
    reader = _Reader(tables)
    backend = reader.backend()
    lines = {error: _line_of(text, error.word, entry) for error, entry in reader.errors}
    in_order = sorted(lines, key=lambda error: lines[error] or len(text))
    return backend, [_describe(error, lines[error]) for error in in_order]


def _describe(error: InvalidKey, line: int | None) -> FileProblem:
    hint = suggest(error.word[:LONGEST], error.choices)
    return FileProblem(f"{str(error)[:LONGEST]}{hint}", f"line {line}" if line else "")


@dataclass
class _Reader:
    """The tables of a file, what becomes of them, and errors with the entry of ``operators``."""

    tables: Mapping[str, Any]
    supports: dict[str, TypeConstraints] = field(default_factory=dict)
    lacks: dict[str, list[Form]] = field(default_factory=dict)
    errors: list[tuple[InvalidKey, int | None]] = field(default_factory=list)

    def backend(self) -> Backend | None:
        """The backend, None where there are errors."""
        tables = self.tables
        self.errors.extend((error, None) for error in _find_wrong_keys(tables))
        wrong = {error.word for error, _ in self.errors}
        if wrong.isdisjoint({"opset", "operators"}):
            for number, table in enumerate(tables["operators"]):
                with self.collect(number):
                    self.read_entry(table, tables["opset"], number)
        shared: list[Form] = []
        with self.collect(None):
            shared = self.shared_forms()
        if self.errors:
            return None
        target = Target(
            tables["name"], tables["opset"], self.supports,
            {op: (*self.lacks.get(op, ()), *shared) for op in self.supports},
            express_lacking(self.supports, EXPRESSIONS),
            control_flow=bool(LOOPS & self.supports.keys()), sequences=False,
            dynamic_shapes=tables.get("dynamic_shapes", True),
        )  # fmt: skip
        document, version, date = (
            str(tables.get(key, "")) for key in ("documentation", "version", "date")
        )
        return Backend(target, document, version, date)

    @contextmanager
    def collect(self, entry: int | None) -> Iterator[None]:
        """Note what is wrong in an entry of ``operators``, or beside these."""
        try:
            yield
        except InvalidKey as error:
            if (str(error), entry) not in {(str(e), at) for e, at in self.errors}:
                self.errors.append((error, entry))

    def shared_forms(self) -> list[Form]:
        """The forms of all operators that it lacks."""
        if "element_types" not in self.tables:
            return []
        return [other_elements(parse_types(self.tables["element_types"], "element_types"))]

    def read_entry(self, table: Any, opset: int, number: int) -> None:
        """Enter the operators of one table, which share its constraints."""
        names = table.get("names") if isinstance(table, Mapping) else None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidKey("operators", "an entry of operators is a table with a list of names")
        if not names:
            raise InvalidKey("names", "names is empty")
        known = [*OPERATOR_KEYS, "types", "names"]
        for key in table:
            if key not in known:
                with self.collect(number):
                    raise InvalidKey(key, f"operators have no key {key!r}", known)
        for name in names:
            with self.collect(number):
                self.read_operator(table, name, opset, number)

    def read_operator(self, table: Mapping[str, Any], name: str, opset: int, number: int) -> None:
        """Enter an operator with the constraints of a table."""
        if name in self.supports:
            raise InvalidKey(name, f"{name} is listed twice")
        operator = schema.find(name, opset)
        if operator is None:
            reason = f"opset {opset} has no operator {name!r}"
            raise InvalidKey(name, reason, schema.names(opset))
        self.supports[name], self.lacks[name] = {}, []
        with self.collect(number):
            if "types" in table:
                self.supports[name] = type_constraints(table["types"], operator)
        for key, read in OPERATOR_KEYS.items():
            with self.collect(number):
                self.lacks[name] += read(table[key], operator) if key in table else ()


def _find_wrong_keys(tables: Mapping[str, Any]) -> Iterator[InvalidKey]:
    """What is wrong in the keys of a file, but for what is in its operators."""
    for key, value in tables.items():
        kind = KEYS.get(key)
        if kind is None:
            yield InvalidKey(key, f"there is no key {key!r}", KEYS)
        elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield InvalidKey(key, f"{key} is to be {KIND_NAMES[kind]}")
        elif key == "name" and not value:
            yield InvalidKey(key, "name is empty")
        elif kind is int and not LOWEST_WRITTEN <= tables[key] <= IR_OPSET:
            yield InvalidKey(key, f"opset is to be one of {LOWEST_WRITTEN} to {IR_OPSET}")
    for key in ("name", "opset", "operators"):
        if key not in tables:
            yield InvalidKey(key, f"the key {key!r} is missing")


def _line_of(text: str, word: str, entry: int | None) -> int | None:
    """The line that a word stands in, from an entry of ``operators`` on."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    heads = [at for at, line in enumerate(lines) if line.strip() == "[[operators]]"]
    start = heads[entry] if entry is not None and entry < len(heads) else 0
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    indices = (at for at in range(start, len(lines)) if pattern.search(lines[at]))
    return next((at + 1 for at in indices), start + 1 if entry is not None else None)
