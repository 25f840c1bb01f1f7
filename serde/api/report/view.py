"""A model as a page: its graph, its values, and its weights with their histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from serde.api.inspection import Inspection
from serde.api.report.data import ReportData
from serde.api.report.html import (
    choose_drawn,
    describe_node,
    last_part,
    list_names,
    show_counts,
    show_graph,
    show_interface,
)
from serde.api.report.page import Section, make_facts, make_list, make_table, render_page
from serde.ir.graph import Graph, Node, Value
from serde.ir.markup import escape
from serde.ir.printer import show_value
from serde.ir.weights import Statistics, show_size

MOST_WEIGHTS = 2000  # rows
BAR, BAR_HEIGHT = 5, 26  # of a histogram, in pixels
BLOCKS = " ▁▂▃▄▅▆▇█"  # of a histogram in text
COLUMNS = ("Name", "Type", "Numbers", "Size", "Min", "Max", "Mean", "Std", "Zeros", "Histogram")
Measured = Mapping[Value, Statistics | None]


def render_view(inspection: Inspection) -> str:
    """The page of what a file holds; it loads nothing."""
    report, graph = ReportData(inspection.source, "", inspection.format, ""), inspection.graph
    measured = dict(inspection.measure_weights())
    if graph is not None:
        report.describe(graph)
    outline, drawn = report.outline, choose_drawn(report)
    most = max(report.operators.values(), default=1)
    sections = [
        Section("summary", "Summary", _show_summary(inspection)),
        Section("graph", "Graph", show_graph(report, drawn)),
        Section("interface", "Inputs and outputs", show_interface(report)),
        Section("operators", "Operators", show_counts("Operator", report.operators, most, "bar")),
        Section("weights", "Weights", _show_weights(measured)),
        Section("notes", "Notes", make_list(inspection.notes)),
    ]
    data: dict[str, Any] = {"drawn": [], "others": {}}
    if graph is not None and outline is not None:
        if drawn is outline:
            data["drawn"] = [*_describe_nodes(graph, outline.nodes, measured)]
        elif drawn is not None:
            data["drawn"] = [describe_node(n) for n in drawn.nodes]
        data["others"] = {} if drawn is outline else list_names(outline)
    title = f"{inspection.format} {inspection.version}".strip()
    return render_page(
        last_part(inspection.source), inspection.source, ("good", title), sections, data
    )


def _show_summary(inspection: Inspection) -> str:
    facts = [("Format", inspection.format, inspection.version)]
    if inspection.graph is not None:
        count = len(inspection.graph.nodes)
        facts.append(("Nodes", f"{count:,}", f"{len(inspection.operators)} operators"))
    size = show_size(inspection.weight_bytes)
    facts.append(
        ("Weights", size, f"{inspection.parameters:,} numbers in {len(inspection.weights):,}")
    )
    return make_facts(facts)


def _describe_nodes(
    graph: Graph, outlined: Sequence[Any], measured: Measured
) -> Iterator[list[Any]]:
    """What the page's script knows of each node: also its operands, with their statistics."""
    nodes = iter(graph.nodes)
    for each in outlined:
        *known, attributes = describe_node(each)
        node = next(nodes) if each.kind == "node" else None
        yield [*known, [*(_describe_values(node, measured) if node else ()), *attributes]]


def _describe_values(node: Node, measured: Measured) -> Iterator[list[str]]:
    for value in node.inputs:
        if value is not None:
            statistics = measured.get(value)
            more = f" · {statistics} · {draw_text(statistics.histogram)}" if statistics else ""
            yield ["input", f"{show_value(value)[1:]}{more}"]
    for value in node.outputs:
        yield ["output", show_value(value)[1:]]


def _show_weights(measured: Measured) -> str:
    rows = [_show_weight(*each) for each in [*measured.items()][:MOST_WEIGHTS]]
    rest = f"<p>and {len(measured) - len(rows):,} more</p>" if len(measured) > len(rows) else ""
    numbers = (2, 3, 4, 5, 6, 7, 8)
    return make_table(COLUMNS, rows, numbers) + rest if rows else ""


def _show_weight(value: Value, statistics: Statistics | None) -> list[str]:
    tensor, (name, _, kind) = value.tensor, show_value(value)[1:].rpartition(": ")
    size, nbytes = (tensor.size, tensor.nbytes) if tensor is not None else (0, 0)
    cells = [f"<code>{escape(name)}</code>", escape(kind), f"{size:,}", show_size(nbytes)]
    if statistics is None:
        return [*cells, *["–"] * 5, ""]
    measures = statistics.least, statistics.largest, statistics.mean, statistics.deviation
    return [
        *cells, *(f"{number:.4g}" for number in measures), f"{statistics.zeros:,}",
        draw_histogram(statistics),
    ]  # fmt: skip


def draw_histogram(statistics: Statistics) -> str:
    """The numbers of a weight in bins of equal width, as SVG."""
    counts = statistics.histogram
    width, step = BAR * len(counts), (statistics.largest - statistics.least) / len(counts)
    bars = []
    for at, count in enumerate(counts):
        height = max(BAR_HEIGHT * count / max(counts), 1) if count else 0
        start = statistics.least + at * step
        bars.append(
            f'<rect x="{BAR * at}" y="{BAR_HEIGHT - height:.1f}" width="{BAR - 1}" '
            f'height="{height:.1f}"><title>{start:.4g} to {start + step:.4g}: {count:,}'
            "</title></rect>"
        )
    return (
        f'<svg class="histogram" width="{width}" height="{BAR_HEIGHT}" role="img" '
        f'aria-label="histogram">{"".join(bars)}</svg>'
    )


def draw_text(counts: Sequence[int]) -> str:
    """A histogram as a line of text."""
    most, levels = max(counts), len(BLOCKS) - 1
    return "".join(BLOCKS[-(-levels * count // most)] for count in counts)
