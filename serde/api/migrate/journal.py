"""What was done before, kept in the folder of results, so that it is not done again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from serde.api.contained_models import list_contained
from serde.api.migrate.job import FINAL, STATUSES, Job, Row, row_to_dict
from serde.api.migrate.own_results import BEGUN, JOURNAL, TABLES
from serde.api.migrate.sources import list_beginning, stem_of
from serde.api.migrate.table import is_table
from serde.api.migrate.transfers import stamp_entry
from serde.errors import TargetRefused
from serde.io.atomic_write import check_target, refuse_other_file
from serde.io.command_files import stamp_file
from serde.io.filesystems import is_url, open_filesystem
from serde.io.named_file import name_path_in_errors
from serde.io.sniff import ARCHIVES, open_regular

BEGINNINGS = tuple(f'{{"{field}":' for field in ("source", BEGUN))  # of the lines of all versions
CONTAINED = "contained"  # the field of archives that are listed
SAVED_EVERY = 16  # rows, where a journal cannot be appended to
TABLE = "table of a migration"
CURE = "move it away, or name another folder"
MISSING = {"op": str, "count": int, "reason": str}  # the fields of an operator in the way


class Journal:
    """The rows of this run and of those before, in the folder of results.

    ``written`` are its files, the tables, and the results that runs before have written. ``begun``
    are targets of a run that was killed, with the names that were in the way then: others are its
    leftovers.

    Raises:
        TargetRefused: for a folder where other files have the names of the journal or the tables.
    """

    def __init__(self, folder: str) -> None:
        self.folder, self.rows = folder, dict[str, Row]()
        names = () if is_url(folder) else (JOURNAL, *TABLES)
        self.written = {os.path.abspath(os.path.join(folder, name)) for name in names}
        self.begun: dict[str, list[str]] = {}
        self._contained: dict[str, list[str]] = {}
        self._system: Any = None
        self._unsaved = 0
        if os.path.isfile(folder):
            raise TargetRefused(f"{folder} is a file: name the folder for all results")
        if is_url(folder):
            self._system, self._root = open_filesystem(folder)
        elif os.path.isdir(folder):
            check_target(os.path.join(folder, JOURNAL))
        text = self._read()
        self._refuse_others(text)
        self._is_cut_off = not text.endswith("\n") and text != ""
        for line in text.splitlines():
            self._enter_line(line)

    def _refuse_others(self, text: str) -> None:
        """Refuse a folder whose files of these names are those of somebody else."""
        is_link = self._system is None and os.path.islink(os.path.join(self.folder, JOURNAL))
        # A journal that was cut off with its first line; through a link it would be another's file.
        is_cut_off = any(b.startswith(text) for b in BEGINNINGS) and not is_link
        if not (is_cut_off or text.startswith(BEGINNINGS)):
            raise TargetRefused(f"{JOURNAL} in {self.folder} is no journal of a migration: {CURE}")
        for name in () if self._system is not None else TABLES:
            path = os.path.join(self.folder, name)
            if not text and os.path.lexists(path):
                reason = f"{name} in {self.folder} is there without the journal of a migration"
                raise TargetRefused(f"{reason}: {CURE}")
            refuse_other_file(path, is_table, TABLE)

    def _enter_line(self, line: str) -> None:
        row = parse_row(line)
        if row is not None:
            self.rows[row.key] = row
            self.written |= row.written.keys()
            self.begun.pop(row.target, None)
        elif line.startswith(BEGINNINGS[1]):
            self.begun |= parse_begun(line)
            self._contained |= parse_begun(line, CONTAINED)

    def begin(self, jobs: Sequence[Job]) -> None:
        """Make the folder, and enter what is in the way of the results of ``jobs``."""
        if self._system is not None:
            self._system.makedirs(self._root, exist_ok=True)
            return
        os.makedirs(self.folder, exist_ok=True)
        if jobs:
            spared = {j.target: [*map(os.path.basename, j.spared)] for j in jobs}
            self._append({BEGUN: spared, CONTAINED: self._contained})

    def list_contained(self, path: str) -> list[str]:
        """The models of an archive, or a file itself.

        What a run before has listed, and has not changed, is not unpacked again.
        """
        if not path.lower().endswith(ARCHIVES):
            return [path]
        stamp, *models = self._contained.get(path) or [""]
        if not models or stamp != stamp_file(path):
            models = list_contained(path)
            self._contained[path] = [stamp_file(path), *models]
        return models

    def list_spared(self, target: str) -> Iterator[str]:
        """The files that a result and its weights may not replace: no run has written them."""
        if is_url(target):
            return
        folder, name = os.path.split(os.path.abspath(target))
        spared = self.begun.get(target)
        for other in list_beginning(folder, stem_of(name)):
            path = os.path.join(folder, other)
            if path not in self.written and (spared is None or other in spared):
                yield path

    def find(self, job: Job) -> Row | None:
        """The row of a job that would come out the same again, and whose result is as it was."""
        row = self.rows.get(job.key)
        if row is None or row.status not in FINAL or (row.absent and not row.ok):
            return None
        if (row.source, row.target) != (job.source.path, job.target):
            return None
        return row if self._has_same_sources(row, job) and self._has_results(row) else None

    def _has_same_sources(self, row: Row, job: Job) -> bool:
        """Whether a model would be read from the same files, and they are as they were."""
        folder, names = os.path.dirname(job.source.path), {*row.beside, *job.source.beside}
        written = {os.path.basename(path) for path in row.written}
        written |= {name for name in names if os.path.join(folder, name) in self.written}
        return (
            set(row.beside) - written == job.source.beside - written
            and all(stamp_file(path) == stamp for path, stamp in row.read.items())
            and not any(map(os.path.exists, row.absent))
        )

    def _has_results(self, row: Row) -> bool:
        """Whether all files that were written are as they were."""
        is_kept = all(self._stamp(path) == stamp for path, stamp in row.written.items())
        return is_kept and (bool(row.written) or not row.ok)

    def enter(self, row: Row) -> None:
        """Add a row."""
        self.rows[row.key] = row
        if self._system is None:
            self._append(row_to_dict(row))
            return
        self._unsaved += 1
        if self._unsaved >= SAVED_EVERY:
            self.close()

    def _append(self, fields: dict[str, Any]) -> None:
        begin = "\n" if self._is_cut_off else ""
        path = os.path.join(self.folder, JOURNAL)
        self._is_cut_off = True  # unless the whole line is written
        with name_path_in_errors(path), open(path, "a", encoding="utf-8") as file:
            file.write(f"{begin}{json.dumps(fields)}\n")
        self._is_cut_off = False

    def close(self) -> None:
        """Save what is not saved yet."""
        if self._unsaved:
            lines = [json.dumps(row_to_dict(row)) + "\n" for row in self.rows.values()]
            self.write(JOURNAL, "".join(lines))
            self._unsaved = 0

    def write(self, name: str, text: str) -> None:
        """Write a file into the folder."""
        if self._system is None:
            from serde.api.report.data import write_text

            path = os.path.join(self.folder, name)
            refuse_other_file(path, is_table, TABLE)
            write_text(path, text)
        else:
            data = text.encode(errors="backslashreplace")
            self._system.pipe_file(f"{self._root.rstrip('/')}/{name}", data)

    def _read(self) -> str:
        if self._system is None:
            path = os.path.join(self.folder, JOURNAL)
            if not os.path.exists(path):
                return ""
            with open_regular(path) as file:
                return file.read().decode("utf-8", "replace")
        path = f"{self._root.rstrip('/')}/{JOURNAL}"
        if not self._system.exists(path):
            return ""
        return str(self._system.cat_file(path).decode("utf-8", "replace"))

    def _stamp(self, path: str) -> str:
        if self._system is None:
            return stamp_file(path)
        name = self._system._strip_protocol(path)
        return stamp_entry(self._system.info(name)) if self._system.exists(name) else ""


def parse_row(line: str) -> Row | None:
    """A row of the journal; None for a line that is cut off, of another version, or no row."""
    try:
        fields = json.loads(line)
        row = Row(**fields)
    except (ValueError, TypeError, RecursionError):
        return None
    types = get_type_hints(Row)
    is_whole = all(_has_type(value, types[name]) for name, value in fields.items())
    is_known = is_whole and row.status in STATUSES and all(map(_is_missing, row.missing))
    return row if is_known else None


def parse_begun(line: str, field: str = BEGUN) -> dict[str, list[str]]:
    """The results that a run began, with the names in their way; none of a line that is cut off.

    Of the field ``CONTAINED`` the archives, with their stamps and the models in them.
    """
    try:
        names = json.loads(line)[field]
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    return names if _has_type(names, dict[str, list[str]]) else {}


def _is_missing(entry: dict[str, Any]) -> bool:
    return entry.keys() == MISSING.keys() and all(
        _has_type(entry[name], kind) for name, kind in MISSING.items()
    )


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a type as fields of a Row declare them."""
    arguments = get_args(kind)
    if kind is Any:
        return True
    if isinstance(kind, UnionType):
        return any(_has_type(value, each) for each in arguments)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_has_type(v, arguments[0]) for v in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(_has_type(v, arguments[1]) for v in value.values())
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (NoneType if kind is None else kind)
