"""The table of a migration: as HTML, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from serde.api.migrate.job import GOOD, STATE, Row, row_to_dict
from serde.api.report.data import JSON_START, PAGE_START, SCHEMA, to_json
from serde.errors import escape_controls
from serde.io.atomic_write import begins_with
from serde.io.filesystems import is_url
from serde.ir.markup import escape

COLUMNS = ("source", "status", "reason", "format", "target", "seconds", "nodes", "parameters",
           "max_rel")  # fmt: skip
is_table = begins_with(PAGE_START.encode(), JSON_START.encode(), ",".join(COLUMNS[:2]).encode())
PLAIN = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"-._~/")


def count_statuses(rows: Sequence[Row]) -> dict[str, int]:
    """How many models came out in each way, most first."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    order = sorted(counts, key=lambda s: (s not in GOOD, -counts[s]))
    return {status: counts[status] for status in order}


def group_missing(rows: Sequence[Row]) -> list[tuple[str, int, int, str]]:
    """The operators in the way, those of most models first: name, models, nodes, a reason."""
    models: dict[str, set[str]] = {}
    nodes: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for row in rows:
        for each in row.missing:
            op = each["op"]
            models.setdefault(op, set()).add(row.source)
            nodes[op] = nodes.get(op, 0) + each["count"]
            reasons.setdefault(op, each["reason"])
    order = sorted(models, key=lambda op: (-len(models[op]), op))
    return [(op, len(models[op]), nodes[op], reasons[op]) for op in order]


def as_json(rows: Sequence[Row], skipped: Mapping[str, str]) -> str:
    """The rows, the counts, the operators in the way, and the files that are no models."""
    missing = [
        {"op": op, "models": models, "nodes": nodes, "reason": reason}
        for op, models, nodes, reason in group_missing(rows)
    ]
    fields = {
        "schema": SCHEMA, "counts": count_statuses(rows), "missing": missing,
        "models": [_describe(row) for row in rows],
        "skipped": [{"path": path, "reason": reason} for path, reason in skipped.items()],
    }  # fmt: skip
    return json.dumps(to_json(fields), indent=2)


def _describe(row: Row) -> dict[str, Any]:
    fields = {name: value for name, value in row_to_dict(row).items() if name not in STATE}
    return {**fields, "ok": row.ok}


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each model."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_defuse(getattr(row, column)) for column in COLUMNS])
    return out.getvalue()


def _defuse(cell: object) -> object:
    """Text that a spreadsheet takes for no formula, nor a terminal for a command."""
    if not isinstance(cell, str):
        return cell
    return escape_controls(f"'{cell}" if cell[:1] in tuple("=+-@\t\r") else cell)


def as_html(rows: Sequence[Row], folder: str, skipped: Mapping[str, str]) -> str:
    """A page that is searched like a report."""
    from serde.api.report.page import Section, make_facts, make_table, render_page

    counts = count_statuses(rows)
    good = sum(counts.get(status, 0) for status in GOOD)
    facts = [("Models", str(len(rows)), "")] + [(s, str(n), "") for s, n in counts.items()]
    missing = [
        [f"<b>{escape(op)}</b>", f"{models}", f"{nodes}", escape(reason)]
        for op, models, nodes, reason in group_missing(rows)
    ]
    sections = [
        Section("summary", "Summary", make_facts(facts)),
        Section("missing", "Operators in the way", make_table(
            ("Operator", "Models", "Nodes", "Why"), missing, numbers=(1, 2)) if missing else ""),
        Section("models", "Models", make_table(
            ("Model", "Result", "Why", "Format", "Nodes", "Max rel", "Seconds"),
            _rows_of(rows, folder), numbers=(4, 5, 6))),
        Section("skipped", "Passed over", make_table(("File", "Why"), [
            [f"<code>{escape(show_path(path, folder))}</code>", escape(reason)]
            for path, reason in skipped.items()
        ]) if skipped else ""),
    ]  # fmt: skip
    verdict = ("good", "all converted") if good == len(rows) else ("warn", f"{good} of {len(rows)}")
    return render_page(f"Migration to {folder}", f"{len(rows)} models", verdict, sections)


def show_path(path: str, folder: str) -> str:
    """A path as seen from the folder of the page, which may be moved with the models."""
    if is_url(path) or is_url(folder):
        return path
    return os.path.relpath(path, folder)


def make_link(path: str, folder: str) -> str:
    """The URL by which a page in ``folder`` refers to a file; no name is taken for a scheme."""
    if is_url(folder):
        scheme, colons, rest = path.partition("://")
        return f"{scheme}{colons}{_encode_path(rest)}"
    return _encode_path(os.path.relpath(path, folder).replace(os.sep, "/"))


def _encode_path(path: str) -> str:
    """A path in the characters that a URL has for one, others as the percent code of each byte."""
    return "".join(chr(b) if b in PLAIN else f"%{b:02X}" for b in os.fsencode(path))


def _rows_of(rows: Sequence[Row], folder: str) -> Iterator[list[str]]:
    from serde.api.report.page import show_number

    for row in sorted(rows, key=lambda r: (r.ok, r.status, r.source)):
        name = f"<code>{escape(show_path(row.source, folder))}</code>"
        if row.report:
            name = f'<a href="{escape(make_link(row.report, folder))}">{name}</a>'
        yield [
            name, f'<b class="{"good" if row.ok else "bad"}">{row.status}</b>', escape(row.reason),
            escape(row.format), f"{row.nodes:,}", show_number(row.max_rel), f"{row.seconds:.1f}",
        ]  # fmt: skip
