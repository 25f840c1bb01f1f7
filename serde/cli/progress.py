"""What a command shows while it works, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serde.errors import escape_controls

LARGE = 1 << 26  # bytes; what is smaller is written before anyone reads a bar
INTERVAL = 0.2  # seconds


@contextmanager
def show_stages(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the stage at work; while much is written, its bytes and the time left."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bytes_ = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, ended = bar.add_task("starting", total=None), threading.Event()

        def show(stage: str) -> None:
            ended.set()
            total = getattr(stage, "total", 0)
            is_large = total >= LARGE
            bar.columns = (*columns, *bytes_) if is_large else columns
            shown = escape_controls(stage)
            bar.update(task, description=f"{shown} …", total=total or None, completed=0)
            if is_large:
                ended.clear()
                watch(Path(getattr(stage, "target", "")), ended,
                      lambda done: bar.update(task, completed=done))  # fmt: skip

        try:
            yield show
        finally:
            ended.set()


def watch(target: Path, ended: threading.Event, show: Callable[[int], Any]) -> threading.Thread:
    """Show how much of ``target`` is written until ``ended``, from a thread."""

    def look() -> None:
        while not ended.wait(INTERVAL):
            show(count_written(target))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def count_written(target: Path) -> int:
    """The bytes in the files that are being written for ``target``, under temporary names."""
    total = 0
    for path in target.absolute().parent.glob(".*.part"):
        try:
            total += path.stat().st_size
        except OSError:  # it has its own name by now
            continue
    return total
