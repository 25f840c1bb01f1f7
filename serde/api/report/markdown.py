"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from serde.api.report.data import MARKDOWN_START
from serde.api.report.page import show_number
from serde.errors import escape_controls
from serde.ir.weights import show_size, show_sizes

if TYPE_CHECKING:
    from serde.api.report.data import ReportData
    from serde.io.provenance import Provenance


def render(report: ReportData) -> str:
    """The Markdown of a report."""
    return MARKDOWN_START + "\n".join(_lines(report)) + "\n"


def _lines(report: ReportData) -> Iterator[str]:
    yield f"# {escape_marks(report.source)} → {escape_marks(report.target or report.target_format)}"
    yield ""
    seconds = sum(report.seconds.values())
    yield (
        f"{report.source_format} to {report.target_format}, {'ok' if report.ok else 'not ok'}, "
        f"{seconds:.2f} s; {sum(report.operators.values()):,} nodes, {report.parameters:,} "
        f"numbers, {show_size(report.weight_bytes)} of weights."
    )
    if report.source_bytes and report.result_bytes:
        yield ""
        yield f"Files: {show_sizes(report.source_bytes, report.result_bytes)}."
    if report.problems:
        yield from _section("What cannot be converted")
        yield from make_table(
            ("operator", "nodes", "layers", "why"),
            ([p.op, p.count, ", ".join(p.names[:8]), p.reason] for p in report.problems),
        )
    if report.verification is not None:
        yield from show_verification(report.verification)
    yield from _section("Inputs and outputs")
    yield from make_table(
        ("", "name", "type", "shape"),
        ([kind, e["name"], e["dtype"] or "?", e["shape"]]
         for kind, entries in (("input", report.inputs), ("output", report.outputs))
         for e in entries),
    )  # fmt: skip
    yield from _section("Operators")
    pairs = zip_longest(report.source_operators.items(), report.operators.items())
    yield from make_table(
        (f"before: {report.source_format}", "", f"after: {report.target_format}", ""),
        ([*(before or ("", "")), *(after or ("", ""))] for before, after in pairs),
    )
    if report.notes:
        yield from _section("Decisions and notes")
        yield from (f"* {escape_marks(note)}" for note in report.notes)
    if report.provenance is not None:
        yield from _section("Provenance")
        yield from make_table(("", ""), list_provenance(report.provenance))


def list_provenance(provenance: Provenance | None) -> Iterator[tuple[str, str]]:
    """The lines of the table of what a result was made of and by."""
    fields = {} if provenance is None else provenance.describe()
    for name in ("call", "opset", "date"):
        if fields.get(name):
            yield name, str(fields[name])
    for name, version in fields.get("versions", {}).items():
        yield f"version of {name}", version
    for role in ("source", "result"):
        for file in fields.get(role, ()):
            hashed = f"SHA-256 {file['sha256']}" if file["sha256"] else "replaced since"
            yield role, f"{file['path']}, {file['bytes']:,} bytes, {hashed}"


def show_verification(verification: Any) -> Iterator[str]:
    """The compared outputs, and layers where there are any."""
    yield from _section("Verification")
    if not verification.done:
        yield escape_marks(verification.statement)
        return
    yield f"Against {escape_marks(verification.source)}, {escape_marks(verification.inputs)}."
    yield ""
    yield from make_table(
        ("output", "result", "max abs", "max rel", "cosine", "tolerance"),
        ([o.name, _verdict(o), show_number(o.max_abs), show_number(o.max_rel), f"{o.cosine:.8f}",
          show_number(o.tolerance)] for o in verification.outputs),
    )  # fmt: skip
    if verification.not_compared:
        yield ""
        yield from (f"* not compared: {escape_marks(line)}" for line in verification.not_compared)
    if layers := getattr(verification, "layers", None):
        yield from _section("Layers")
        yield escape_marks(str(layers))
        yield ""
        yield from make_table(
            ("operator", "value", "result", "max abs", "max rel"),
            ([x.op, x.value, _verdict(x.outcome), show_number(x.outcome.max_abs),
              show_number(x.outcome.max_rel)] for x in layers.layers),
        )  # fmt: skip


def _verdict(o: Any) -> str:
    return ("pass" if o.passed else "FAIL") + (f" ({o.reason})" if o.reason else "")


def _section(title: str) -> list[str]:
    return ["", f"## {title}", ""]


def make_table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(escape_marks(cell) for cell in row)} |"


def escape_marks(cell: Any) -> str:
    """Text that ends no table and begins no markup."""
    text = escape_controls(" ".join(str(cell).split()))
    for mark in "\\`*_<>|[]":
        text = text.replace(mark, f"\\{mark}")
    return text
