"""``serde inspect`` and ``serde verify-hash``: what a file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from serde.cli.show import show_notes
from serde.cli.streams import with_local_models
from serde.errors import UsageError
from serde.ir.weights import show_size

if TYPE_CHECKING:
    from serde.api.inspection import Inspection


@click.command(cls=DocumentedCommand)
@SOURCE
@click.argument("others", nargs=-1, metavar="[OTHERS]…")
@add_read_options()
@add_option("--values", is_flag=True,
            help="List every value, which --outputs takes, and every weight with statistics.",
            )  # fmt: skip
@add_option("--json", "as_json", is_flag=True, help="Print JSON.")
@add_isolation
@with_local_models("source", "others")
def inspect(
    source: str, others: tuple[str, ...], shown: Mapping[str, str], debug: bool, values: bool,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Show what SOURCE holds: inputs, outputs, operators, weights.

    A file of parameters alone is listed. With OTHERS, the models stand side by side in a table.
    """
    from serde.api.inspection import inspect as inspect_source

    if others and values and not as_json:
        raise UsageError("--values lists one model: name one, or add --json")
    inspections = []
    for path in (source, *others):
        inspections.append(inspect_source(path, all_values=values, **give(**options)))
        inspections[-1].source = shown[path]
    if as_json:
        fields = [each.to_json(values) for each in inspections]
        print_lines(json.dumps(fields if others else fields[0], indent=2))
    elif others:
        show_table(inspections)
    else:
        for line in inspections[0].describe(values):
            print_line(line)
        show_notes(inspections[0])


def show_table(inspections: Sequence[Inspection]) -> None:
    """Print several models side by side: a column each."""
    rows: dict[str, dict[int, str]] = {}
    for at, each in enumerate(inspections):
        cells = {"model": each.source, "format": f"{each.format} {each.version}".strip()}
        for kind, entries in (("input", each.inputs), ("output", each.outputs)):
            for number, entry in enumerate(entries, 1):
                shown = f"{entry['name']} {entry['dtype'] or '?'} {entry['shape']}"
                cells[f"{kind} {number}"] = shown
        cells["nodes"] = str(sum(each.operators.values()))
        cells |= {f"  {op}": str(count) for op, count in each.operators.items()}
        cells |= {"weights": f"{each.parameters:,}", "size": show_size(each.weight_bytes)}
        for title, cell in cells.items():
            rows.setdefault(title, {})[at] = cell
    order = ("model", "format", "input", "output", "nodes", "", "weights", "size")
    titles = sorted(rows, key=lambda title: order.index(title.partition(" ")[0]))
    table = [[t, *(rows[t].get(at, "–") for at in range(len(inspections)))] for t in titles]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print_line("  ".join(map(str.ljust, row, widths)).rstrip())


@click.command("verify-hash", cls=DocumentedCommand)
@SOURCE
@DEBUG
@with_local_models("source")
def verify_hash(source: str, shown: Mapping[str, str], debug: bool) -> None:
    """Tell whether the weights of SOURCE are those it was written with, by --hash."""
    from serde.verification.weights_hash import verify_hash as verified

    print_line(f"{shown[source]}: the weights have SHA-256 {verified(source)}, as written")
