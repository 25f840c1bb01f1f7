"""The program of a process that runs files of Relay in TVM on arrays, see ``worker_loop``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .tvm import import_relay, prepare_here
from .worker_loop import serve, time_calls

Run = Callable[[Mapping[str, Any]], list[Any]]


def run(model: Run, values: Sequence[Any], count: int) -> tuple[list[Any], list[float]]:
    """What a module computes of arrays by name, and the seconds of a run."""
    return time_calls(partial(model, values[0]), count)


def main() -> None:
    """Run a module for each request."""
    tvm, _ = import_relay()
    serve(tvm.__version__, prepare_here, run)
