"""Partitions: the parts in a row compute what the whole computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import serde
from serde.backends.description import documented_names, get_backend
from serde.backends.partition import partition
from serde.backends.runner import run as run_parts

from .cells import differ, run, write
from .models import Model


def split(backend: str, model: Model, folder: Path) -> str | None:
    """A model in the parts of a backend, written, read and run."""
    path, place = write(model, folder), folder / "parts"
    partition(serde.load(path), get_backend(backend)).save(place)
    outputs = run_parts(place, dict(model.feeds))
    if [*outputs] != model.outputs:
        return f"outputs {[*outputs]}, not {model.outputs}"
    return differ([*outputs.values()], run(model.proto, model.feeds), 1e-3)


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    name: partial(split, name) for name in documented_names()
}
