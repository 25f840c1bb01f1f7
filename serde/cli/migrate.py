"""``serde migrate``: many models at once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from serde.cli.context import DONE, FAILED, INTERRUPTED
from serde.cli.options import (
    PATH,
    DocumentedCommand,
    add_option,
    add_options,
    give,
    options_for_many,
)
from serde.cli.printing import join_parts, print_line, print_lines, style
from serde.io.gc_pause import resume_collector
from serde.plugins import STANDARD, written_formats
from serde.plugins.command_options import MigrateOptions, ToleranceOptions

if TYPE_CHECKING:
    from serde.api.migrate import Migration
    from serde.api.migrate.job import Row

SHOWN = 40  # models without a result, and operators


@click.command(cls=DocumentedCommand)
@click.argument("sources", nargs=-1, required=True, type=PATH)
@add_option("-o", "--output", "folder", required=True, metavar="DIR",
            help="The folder, or URL, that results are written to.")  # fmt: skip
@add_option("--to", default=STANDARD, choices=written_formats, metavar="FORMAT", show_default=True,
            help="The format to write.")  # fmt: skip
@add_option("--verify", is_flag=True, help="Run each source and result and compare them.")
@add_options(ToleranceOptions, MigrateOptions)
@add_option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@add_option("-q", "--quiet", is_flag=True, help="Print the table only.")
@options_for_many
@click.pass_context
@resume_collector()
def migrate(
    context: click.Context, /, sources: tuple[str, ...], folder: str, quiet: bool, as_json: bool,
    debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Convert all models in SOURCES: folders, globs, archives, files and URLs.

    Each is converted in a process of its own; whatever becomes of one, the others go on. Run the
    command again to go on where it was interrupted.
    """
    from serde.api.migrate import migrate as convert_all

    try:
        with _progress(quiet or as_json) as progress:
            migration = convert_all(sources, folder, progress=progress, **give(**options))
    except (OSError, KeyboardInterrupt, SystemExit) as error:
        so_far = getattr(error, "migration", None)
        if so_far is None:
            raise
        _show(so_far, as_json, has_tables=not isinstance(error, OSError))
        if isinstance(error, KeyboardInterrupt):
            context.exit(INTERRUPTED)
        raise
    _show(migration, as_json)
    context.exit(DONE if migration.ok else FAILED)


def _show(migration: Migration, as_json: bool, has_tables: bool = True) -> None:
    """Print what was done, and how the run goes on where it was stopped."""
    if as_json:
        print_lines(migration.to_json())
    else:
        show_migration(migration, has_tables)
    if migration.left:
        text = f"stopped before {migration.left} models: run the same command again to go on"
        print_line(text, err=True)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[Row, int, int], None]]:
    """Show a bar with the time left on a terminal, otherwise a line for each model."""
    if quiet:
        yield lambda row, done, total: None
        return
    if not sys.stderr.isatty():
        start = time.monotonic()

        def show(row: Row, done: int, total: int) -> None:
            left = (time.monotonic() - start) / max(done, 1) * (total - done)
            parts = (f"[{done}/{total}] ", *_describe(row), f"; {left:.0f} s left")
            print_line(*parts, err=True)

        yield show
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("converting", total=None)

        def advance(row: Row, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            if not row.ok:
                line = Text.from_ansi(join_parts(*_describe(row)))
                bar.console.print(line, markup=False, highlight=False)

        yield advance


def show_migration(migration: Migration, has_tables: bool = True) -> None:
    """Print what became of the models, and which operators were in the way."""
    wrong = [row for row in migration.rows if not row.ok]
    for row in wrong[:SHOWN]:
        print_line(*_describe(row))
    if len(wrong) > SHOWN:
        print_line(f"and {len(wrong) - SHOWN} more without a result")
    skipped = [*migration.skipped.items()]
    for path, reason in skipped[:SHOWN]:
        print_line(style("passed over", "yellow"), f" {_show_place(path)}: {reason}")
    if len(skipped) > SHOWN:
        print_line(f"and {len(skipped) - SHOWN} more passed over")
    if migration.missing_operators:
        print_line("operators in the way:")
    for op, models, nodes, reason in migration.missing_operators[:SHOWN]:
        print_line(f"  {op}: {models} model(s), {nodes} node(s): {reason}")
    if any("--" in row.reason for row in wrong):
        print_line("options of some models, such as --input, are given in a file: --config FILE")
    if not migration.rows and migration.left:  # stopped before the first
        return
    print_line(migration.summary)
    if has_tables:
        print_line(f"tables: {migration.folder.rstrip('/')}/migration.html, .json, .csv")


def _describe(row: Row) -> tuple[str, ...]:
    """The parts of the line of a model."""
    status = style(row.status, "green" if row.ok else "red")
    reason = f": {row.reason.splitlines()[0]}" if row.reason else ""
    return status, f" {_show_place(row.source)}{reason}"


def _show_place(path: str) -> str:
    """A path below the folder in which the command was called as it is from there."""
    return path.removeprefix(os.path.join(os.getcwd(), ""))
