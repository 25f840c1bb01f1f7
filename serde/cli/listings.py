"""``serde formats`` and ``serde ops``: what is installed, and what it converts."""

from __future__ import annotations

import click

from serde.cli.options import DocumentedCommand, add_option
from serde.cli.printing import print_line
from serde.plugins import format_names, get_format


@click.command(cls=DocumentedCommand)
@add_option(
    "--format", "name", choices=format_names, metavar="FORMAT", help="Only this format's operators."
)
@add_option("--markdown", is_flag=True, help="Print docs/reference/operators.md.")
def ops(name: str | None, markdown: bool) -> None:
    """List the operators each format converts."""
    from serde.cli.operator_table import as_lines, as_markdown

    for line in as_markdown(name) if markdown else as_lines(name):
        print_line(line)


@click.command(cls=DocumentedCommand)
def formats() -> None:
    """List the installed formats and bridges."""
    from serde import api

    for name in format_names():
        fmt = get_format(name)
        ways = " and ".join(["read"] * fmt.is_read + ["written"] * (fmt.encode is not None))
        print_line(f"{name}: {', '.join(fmt.suffixes)}; {ways}")
    for bridge, format_name in api.bridges().items():
        print_line(f"bridge {bridge}: live objects, read as {format_name}")
