"""``serde inspect`` and ``serde verify-hash``: what a file holds."""

from __future__ import annotations

from typing import Any

import click

from serde.cli.options import (
    DEBUG,
    SOURCE,
    DocumentedCommand,
    add_isolation,
    add_option,
    add_read_options,
    give,
)
from serde.cli.printing import print_line, print_lines
from serde.cli.show import show_model


@click.command(cls=DocumentedCommand)
@SOURCE
@add_read_options()
@add_option("--values", is_flag=True, help="List every value: names --outputs takes.")
@add_option("--json", "as_json", is_flag=True, help="Print JSON.")
@add_isolation
def inspect(source: str, debug: bool, values: bool, as_json: bool, **options: Any) -> None:
    """Show what SOURCE holds: inputs, outputs, operators, weights."""
    from serde import api
    from serde.api.report import Report
    from serde.ir.printer import show_value

    kwargs = give(**options)
    graph, name = api.read(source, **kwargs)
    report = Report(source, "", name, "")
    report.describe(graph)
    if as_json:
        print_lines(report.to_json())
        return
    version = graph.metadata.get(f"{name}.version") or (
        "" if graph.domain else f"opset {graph.opset}"
    )
    print_line(f"{source}: {f'{name} {version}'.strip()}, {len(graph.nodes)} nodes")
    show_model(report)
    if values:
        for node in graph.nodes:
            print_line(f"  {node.op}: {', '.join(map(show_value, node.outputs))}")


@click.command("verify-hash", cls=DocumentedCommand)
@SOURCE
@DEBUG
def verify_hash(source: str, debug: bool) -> None:
    """Tell whether the weights of SOURCE are those it was written with, by --hash."""
    from serde.verification.weights_hash import verify_hash as verified

    print_line(f"{source}: the weights have SHA-256 {verified(source)}, as written")
