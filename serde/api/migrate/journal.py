"""What was done before, kept in the folder of results, so that it is not done again."""

from __future__ import annotations

import json
import os
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from serde.api.migrate.job import FINAL, STATUSES, Job, Row, row_to_dict
from serde.api.migrate.sources import is_url, open_filesystem, stamp_entry
from serde.io.atomic_write import check_target, name_path_in_errors
from serde.io.command_files import stamp_file
from serde.io.sniff import open_regular

JOURNAL = "migration.jsonl"  # a row in each line
SAVED_EVERY = 16  # rows, where a journal cannot be appended to
MISSING = {"op": str, "count": int, "reason": str}  # the fields of an operator in the way


class Journal:
    """The rows of this run and of those before, in the folder of results."""

    def __init__(self, folder: str) -> None:
        self.folder, self.rows = folder, dict[str, Row]()
        self._system: Any = None
        self._unsaved = 0
        if is_url(folder):
            self._system, self._root = open_filesystem(folder)
            self._system.makedirs(self._root, exist_ok=True)
        else:
            os.makedirs(folder, exist_ok=True)
            check_target(os.path.join(folder, JOURNAL))
        text = self._read()
        self._is_cut_off = not text.endswith("\n") and text != ""
        for row in filter(None, map(parse_row, text.splitlines())):
            self.rows[row.key] = row
        self.written = {path for row in self.rows.values() for path in row.written}

    def find(self, job: Job) -> Row | None:
        """The row of a job that would come out the same again, and whose result is as it was."""
        row = self.rows.get(job.key)
        if row is None or row.status not in FINAL or (row.absent and not row.ok):
            return None
        if (row.source, row.target) != (job.source.path, job.target):
            return None
        return row if _has_same_sources(row, job) and self._has_results(row) else None

    def _has_results(self, row: Row) -> bool:
        """Whether all files that were written are as they were."""
        is_kept = all(self._stamp(path) == stamp for path, stamp in row.written.items())
        return is_kept and (bool(row.written) or not row.ok)

    def enter(self, row: Row) -> None:
        """Add a row."""
        self.rows[row.key] = row
        if self._system is None:
            begin = "\n" if self._is_cut_off else ""
            path = os.path.join(self.folder, JOURNAL)
            with name_path_in_errors(path), open(path, "a", encoding="utf-8") as file:
                file.write(f"{begin}{json.dumps(row_to_dict(row))}\n")
            self._is_cut_off = False
            return
        self._unsaved += 1
        if self._unsaved >= SAVED_EVERY:
            self.close()

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

            write_text(os.path.join(self.folder, name), text)
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


def _has_same_sources(row: Row, job: Job) -> bool:
    """Whether a model would be read from the same files, and they are as they were."""
    own = {os.path.basename(path) for path in row.written}
    return (
        set(row.beside) - own == job.source.beside - own
        and all(stamp_file(path) == stamp for path, stamp in row.read.items())
        and not any(map(os.path.exists, row.absent))
    )


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
