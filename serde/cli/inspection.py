"""``serde inspect`` and ``serde verify-hash``: what a file holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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
from serde.cli.show import describe_weights, show_model, show_notes
from serde.cli.streams import with_local_source

if TYPE_CHECKING:
    from serde.api.inspection import Inspection


@click.command(cls=DocumentedCommand)
@SOURCE
@add_read_options()
@add_option("--values", is_flag=True,
            help="List every value, which --outputs takes, and every weight with statistics.",
            )  # fmt: skip
@add_option("--json", "as_json", is_flag=True, help="Print JSON.")
@add_isolation
@with_local_source
def inspect(
    source: str, path: str, debug: bool, values: bool, as_json: bool, **options: Any
) -> None:
    """Show what SOURCE holds: inputs, outputs, operators, weights.

    A file of parameters alone is listed.
    """
    from serde.api.inspection import inspect_model

    found = inspect_model(path, all_values=values, **give(**options))
    found.source = source
    if as_json:
        print_lines(json.dumps(found.to_json(values), indent=2))
        return
    show_inspection(found, values)


@click.command("verify-hash", cls=DocumentedCommand)
@SOURCE
@DEBUG
def verify_hash(source: str, debug: bool) -> None:
    """Tell whether the weights of SOURCE are those it was written with, by --hash."""
    from serde.verification.weights_hash import verify_hash as verified

    print_line(f"{source}: the weights have SHA-256 {verified(source)}, as written")


def show_inspection(found: Inspection, has_values: bool) -> None:
    """Print what a source holds."""
    from serde.ir.printer import show_value

    graph, title = found.graph, f"{found.format} {found.version}".strip()
    if graph is None:
        print_line(f"{found.source}: parameters of {title}, {len(found.weights)} arrays")
        print_line(f"  {describe_weights(found)}")
    else:
        print_line(f"{found.source}: {title}, {len(graph.nodes)} nodes")
        show_model(found)
    for node in graph.ordered_nodes() if graph is not None and has_values else ():
        print_line(f"  {node.op}: {', '.join(map(show_value, node.outputs))}")
    if has_values:
        for weight, statistics in found.measure_weights():
            print_line(f"  weight {show_value(weight)}{f': {statistics}' if statistics else ''}")
    elif graph is None:
        for weight in found.weights:
            print_line(f"  {show_value(weight)}")
    show_notes(found)
