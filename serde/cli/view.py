"""``serde view``: a model as a page in the browser."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from serde.cli.context import LIMITED
from serde.cli.options import (
    DocumentedCommand,
    add_isolation,
    add_option,
    add_read_options,
    claim_output,
    give,
)
from serde.cli.printing import print_line
from serde.cli.streams import with_local_models
from serde.errors import UsageError


@click.command(cls=DocumentedCommand)
@click.argument("source")
@add_option("-o", "--output", "target", metavar="FILE",
            help="The page to write; one in a temporary folder if left out.")  # fmt: skip
@add_option("--no-browser", is_flag=True, help="Write the page and print its path only.")
@add_read_options()
@add_isolation
@with_local_models("source")
def view(
    source: str, shown: Mapping[str, str], target: str | None, no_browser: bool, debug: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Show SOURCE in the browser: its graph, types, shapes, and weights with histograms.

    The page is one file, which loads nothing and opens without a network. With --isolate it is
    written, and its path printed.
    """
    from serde.api.inspection import inspect
    from serde.api.report.data import is_report, save_report
    from serde.api.report.view import render_view

    if target is not None:
        if not target.endswith((".html", ".htm")):
            raise UsageError(f"the page is an .html file, and not {target!r}")
        claim_output(target, is_report, "page of serde")
    inspection = inspect(source, all_values=True, **give(**options))
    inspection.source = shown[source]
    page = Path(target or choose_path(source)).absolute()
    save_report(page, render_view(inspection))
    print_line(os.fspath(page))
    is_limited = click.get_current_context().find_root().obj == LIMITED  # as a browser would be
    if not no_browser and not is_limited:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            print_line("no browser was found: open this file in one", err=True)


def choose_path(source: str) -> str:
    """A file in a temporary folder of its own."""
    stem = Path(source).name.removesuffix(".json").removesuffix("-symbol") or "model"
    return os.path.join(tempfile.mkdtemp(prefix="serde-view-"), f"{stem}.html")
