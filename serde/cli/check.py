"""``serde check``: whether a model converts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from serde.cli.context import FAILED
from serde.cli.options import (
    SOURCE,
    DocumentedCommand,
    add_isolation,
    add_option,
    add_read_options,
    add_write_options,
    give,
    list_backends,
    with_report,
)
from serde.cli.partition_commands import check_for_backend
from serde.cli.printing import print_line, print_lines
from serde.cli.show import save_report, show_model, show_notes
from serde.cli.streams import with_local_models
from serde.errors import show_problems
from serde.plugins import STANDARD, read_classes
from serde.plugins.options import names_of
from serde.plugins.targets import list_targets


@click.command(cls=DocumentedCommand)
@SOURCE
@add_read_options()
@add_option("--to", default=STANDARD, show_default=True, choices=list_targets, metavar="FORMAT",
            help="The target format, or a profile.")  # fmt: skip
@add_write_options(only_checked=True)
@add_option("--backend", metavar="NAME", choices=list_backends, is_open=True,
            help="Tell what a backend takes: a name, `opset N`, or a TOML file.",
            details="See [partition-a-model.md](../how-to/partition-a-model.md).")  # fmt: skip
@add_option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@with_report
@add_isolation
@click.pass_context
@with_local_models("source")
def check(
    context: click.Context, /, source: str, shown: Mapping[str, str], debug: bool,
    as_json: bool, report_path: str | None, backend: str | None, **options: Any,
) -> None:  # fmt: skip
    """Tell whether SOURCE converts, with the real converters, writing no model."""
    from serde import api
    from serde.api.source_names import name_source

    if backend is not None:
        reading = {k: v for k, v in options.items() if k in names_of(read_classes())}
        reading["format"] = options["from_format"]
        check_for_backend(source, shown[source], backend, as_json, give(**reading))
        return
    report = api.check(source, **give(**options))
    name_source(report, source, shown[source])
    saved = save_report(report, report_path, "the model is checked")
    if as_json:
        print_lines(report.to_json())
    elif report.problems:
        total = sum(p.count for p in report.problems)
        reason = f"{total} node(s) cannot be converted to {report.target_format}:"
        print_line(f"{report.source}: {reason}")
        for line in show_problems(report.problems):
            print_line(f"  {line}")
    else:
        print_line(f"{report.source}: everything converts to {report.target_format}")
        show_model(report)
        show_notes(report)
    context.exit(saved if report.ok else FAILED)
