"""A report as a page of HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from serde.api.report.comparison import show_layers, show_outputs
from serde.api.report.markdown import list_provenance
from serde.api.report.page import (
    Section,
    make_facts,
    make_list,
    make_table,
    render_frame,
    render_page,
)
from serde.errors import Problem, show_attribute
from serde.ir.graph import Graph
from serde.ir.markup import escape
from serde.ir.picture.outline import Outline, OutlineNode, select_near
from serde.ir.picture.svg import MOST_DRAWN, draw, is_refused
from serde.ir.weights import show_size, show_sizes

if TYPE_CHECKING:
    from serde.api.report.data import ReportData
    from serde.io.provenance import Provenance

MOST_NEAR = 400  # nodes around refused ones, of a graph too large to draw
MOST_SCOPES = 60  # rows of the summary of one
BAR = 160  # pixels, of the longest
TOOLS = (("zoom-in", "+", "Zoom in"), ("zoom-out", "−", "Zoom out"),
         ("zoom-fit", "Fit", "Show all"), ("zoom-start", "1:1", "Show the start"),
         ("save-svg", "SVG", "Save the whole picture"))  # fmt: skip


def render(report: ReportData) -> str:
    """The page of a report."""
    outline, drawn = report.outline, choose_drawn(report)
    verification = report.verification
    sections = [
        Section("summary", "Summary", _show_summary(report)),
        Section("refused", "What cannot be converted", _show_problems(report)),
        Section("verification", "Verification", show_outputs(verification) if verification else ""),
        Section("layers", "Layers", show_layers(getattr(verification, "layers", None))),
        Section("interface", "Inputs and outputs", show_interface(report)),
        Section("operators", "Operators", _show_operators(report)),
        Section("notes", "Decisions and notes", make_list(report.notes)),
        Section("graph", "Graph", show_graph(report, drawn)),
        Section("options", "Options and time", _show_options(report)),
        Section("provenance", "Provenance", _show_provenance(report.provenance)),
    ]
    data = {
        "drawn": [describe_node(n) for n in drawn.nodes] if drawn else [],
        "others": list_names(outline) if outline and drawn is not outline else {},
    }
    title = f"{last_part(report.source)} → {last_part(report.target) or report.target_format}"
    subtitle = f"{report.source_format} to {report.target_format}"
    return render_page(title, subtitle, judge(report), sections, data)


def render_in_frame(report: ReportData) -> str:
    """The page of a report in a frame."""
    return render_frame(render(report))


def last_part(path: str) -> str:
    """The name of a file or folder."""
    return path.rstrip("/").rpartition("/")[2] or path


def judge(report: ReportData) -> tuple[str, str]:
    """What the badge says."""
    verification = report.verification
    if report.problems:
        return "bad", f"{sum(p.count for p in report.problems)} nodes refused"
    if verification is None:
        return "good", "converted" if report.target else "convertible"
    if not verification.done:
        return "warn", "converted, not verified"
    return ("good", "verified") if verification.ok else ("bad", "outputs differ")


def _show_summary(report: ReportData) -> str:
    before, after = sum(report.source_operators.values()), sum(report.operators.values())
    seconds = sum(report.seconds.values())
    facts = [("Source", report.source_format, report.source)]
    if before:
        facts.append(("Nodes of the source", f"{before:,}", ""))
    if after and not report.problems:
        facts.append(("Nodes of the result", f"{after:,}", f"{len(report.operators)} operators"))
        facts.append(("Weights", show_size(report.weight_bytes), f"{report.parameters:,} numbers"))
    if report.source_bytes and report.result_bytes:
        sizes, _, ratio = show_sizes(report.source_bytes, report.result_bytes).partition(", ")
        facts.append(("Files", sizes, ratio))
    if seconds:
        facts.append(("Time", f"{seconds:.2f} s", ""))
    if report.files:
        facts.append(("Written", report.target_format, ", ".join(report.files)))
    if report.weights_sha256:
        facts.append(("SHA-256 of the weights", report.weights_sha256, ""))
    return make_facts(facts)


def _show_problems(report: ReportData) -> str:
    return make_table(
        ("Operator", "Nodes", "Layers", "Why", "Attributes"),
        (_show_problem(p) for p in report.problems), numbers=(1,),
    ) if report.problems else ""  # fmt: skip


def _show_problem(problem: Problem) -> list[str]:
    few = ", ".join(problem.names[:8]) + (", …" if problem.count > 8 else "")
    attrs = ", ".join(f"{k}={show_attribute(v)}" for k, v in problem.attrs.items())
    return [
        f'<b class="bad">{escape(problem.op)}</b>', str(problem.count),
        f"<code>{escape(few)}</code>", escape(problem.reason), f"<code>{escape(attrs)}</code>",
    ]  # fmt: skip


def show_interface(report: ReportData) -> str:
    """The table of inputs and outputs."""
    rows = [
        [kind, f"<code>{escape(e['name'])}</code>", e["dtype"] or "?", escape(e["shape"])]
        for kind, entries in (("input", report.inputs), ("output", report.outputs))
        for e in entries
    ]
    return make_table(("", "Name", "Type", "Shape"), rows) if rows else ""


def _show_operators(report: ReportData) -> str:
    after = {} if report.problems else report.operators
    most = max([*report.source_operators.values(), *after.values()], default=1)
    columns = [
        show_counts(f"Before: {report.source_format}", report.source_operators, most, "bar"),
        show_counts(f"After: {report.target_format}", after, most, "bar new"),
    ]
    return f'<div class="columns">{"".join(columns)}</div>' if any(columns) else ""


def show_counts(title: str, counts: Mapping[str, int], most: int, name: str) -> str:
    """A table of how many nodes each operator has, with bars; nothing where there are none."""
    rows = (
        [escape(op), f"{n:,}",
         f'<span class="{name}" style="width:{BAR * n / most:.0f}px"></span>']
        for op, n in counts.items()
    )  # fmt: skip
    return f"<div>{make_table((title, '', ''), rows, numbers=(1,))}</div>" if counts else ""


def _show_options(report: ReportData) -> str:
    options = [[escape(k), f"<code>{escape(str(v))}</code>"] for k, v in report.options.items()]
    seconds = [[escape(k), f"{s:.2f} s"] for k, s in report.seconds.items()]
    columns = [
        f"<div>{make_table((title, ''), rows)}</div>"
        for title, rows in (("Option", options), ("Stage", seconds))
        if rows
    ]
    return f'<div class="columns">{"".join(columns)}</div>' if columns else ""


def _show_provenance(provenance: Provenance | None) -> str:
    rows = ([escape(k), f"<code>{escape(text)}</code>"] for k, text in list_provenance(provenance))
    return make_table(("", ""), rows) if provenance is not None else ""


def choose_drawn(report: ReportData) -> Outline | None:
    """The part of the graph that is drawn: all of it, or what surrounds refused nodes."""
    outline = report.outline
    if outline is None or len(outline.nodes) <= MOST_DRAWN:
        return outline
    refused = report.refused_names()
    places = [at for at, n in enumerate(outline.nodes) if is_refused(n, refused)]
    return select_near(outline, places, MOST_NEAR) if places else None


def show_graph(report: ReportData, drawn: Outline | None) -> str:
    """The picture of the part that is ``drawn``, with its tools, and a summary of the rest."""
    outline = report.outline
    if outline is None:
        return ""
    summary = "" if drawn is outline else _summarize(outline, drawn)
    if drawn is None:
        return summary
    tools = "".join(
        f'<button id="{name}" type="button" title="{title}" aria-label="{title}">{text}</button>'
        for name, text, title in TOOLS
    )
    return (
        f'{summary}<div class="frame"><div class="tools">{tools}</div>'
        f'{draw(drawn, report.refused_names())}<div id="detail" hidden></div></div>'
        '<p class="soft">Drag to move, turn the wheel to zoom, click a node for its attributes. '
        "A dashed frame holds the nodes that came from one layer of the source.</p>"
    )


def _summarize(outline: Outline, drawn: Outline | None) -> str:
    """A graph too large to draw, by the first part of its nodes' names."""
    scopes: dict[str, int] = {}
    for node in outline.nodes:
        if node.kind == "node":
            name = node.layers[0] if node.layers else node.name
            scope = _scope_of(name)
            scopes[scope] = scopes.get(scope, 0) + 1
    ordered = sorted(scopes.items(), key=lambda each: -each[1])
    rows = [[f"<code>{escape(s)}</code>", f"{n:,}"] for s, n in ordered[:MOST_SCOPES]]
    if len(ordered) > MOST_SCOPES:
        rest = ordered[MOST_SCOPES:]
        rows.append([f"{len(rest):,} others", f"{sum(n for _, n in rest):,}"])
    note = "The nodes around the refused ones are drawn." if drawn else "The search finds all."
    return (
        f"<p>{outline.node_count:,} nodes are more than can be drawn ({MOST_DRAWN:,}). {note}</p>"
        + make_table(("Layers that begin with", "Nodes"), rows, numbers=(1,))
    )


def _scope_of(name: str) -> str:
    """What the names of a block's layers have in common: up to a separator, without numbers."""
    for separator in ("/", ".", "_"):
        head, sep, _ = name.strip("/").partition(separator)
        if sep and head:
            return head
    return name.rstrip("0123456789") or name


def describe_node(node: OutlineNode) -> list[Any]:
    """What the page's script knows of a node that is drawn."""
    return [node.op, node.name, node.type, node.source, [*_show_attributes(node)]]


def _show_attributes(node: OutlineNode) -> Iterator[list[str]]:
    for name, value in (node.attrs or {}).items():
        yield [name, "a subgraph" if isinstance(value, Graph) else show_attribute(value)]


def list_names(outline: Outline) -> dict[str, list[str]]:
    """The names of nodes by operator, for the search."""
    names: dict[str, list[str]] = {}
    for node in outline.nodes:
        if node.kind == "node":
            names.setdefault(node.op, []).append(node.name)
    return names
