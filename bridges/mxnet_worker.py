"""The program of a process that runs symbols of MXNet on arrays, see ``worker_loop``.

A model is the file that ``SymbolProcess`` writes. A run on the shapes of arrays is answered with
that of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .mxnet import import_mxnet
from .mxnet_run import Model, PreparedSymbol
from .worker_loop import read_values, serve, time_calls


def main() -> None:
    """Run a model for each request."""
    mx = import_mxnet()

    def load_model(path: str) -> PreparedSymbol:
        return PreparedSymbol(mx, Model(**read_values(path)[0]))

    serve(mx.__version__, load_model, run)


def run(
    model: PreparedSymbol, values: Sequence[Any], count: int, value: str | None = None
) -> tuple[list[Any], list[float]]:
    """What the model computes of arrays by name, and the seconds of a run."""
    if value is not None:
        shapes = {n: tuple(s) for n, s in values[0].items()}
        return [model.infer_shape(value, shapes)], [0.0, 0.0]
    return time_calls(partial(model, values[0]), count)
