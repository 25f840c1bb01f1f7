"""Written PyTorch modules, run in a process of its own: they are code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.formats.torch.interface import read_interface
from serde.ir.graph import Graph
from serde.plugins import Bridge

from .array_worker import VERSIONS, ArrayWorker, WorkerRun, get_worker, read_program

Array = np.ndarray[Any, Any]
PYTHON = "SERDE_PYTORCH"  # names a Python with PyTorch, where the one that runs serde has none
INSTALL = (
    "PyTorch is needed to run its models: pip install torch, or name a Python that has it in "
    f"the environment variable {PYTHON}"
)


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Refuse: written modules are code, and live ones are of another format.

    Raises:
        SerdeError: always.
    """
    raise SerdeError("a written module is not read: load it, and convert what its load() returns")


def prepare(
    source: Any, *, outputs: Sequence[str] | None = None, **options: Any
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A function of the feeds that runs a written module, which is loaded once."""
    if outputs:
        raise SerdeError("a PyTorch module returns its own outputs only")
    names = [v.name for v in read_interface(Path(source)).inputs]
    return prepare_file(os.path.abspath(source), names)


def prepare_file(path: str, names: Sequence[str]) -> WorkerRun:
    """A function of the feeds, in the order of these names, that runs a file of PyTorch."""
    worker = get_worker(TorchWorker, find_python())
    return WorkerRun(worker, worker.load(path=path), names, {})


def find_python() -> str:
    """The Python that has PyTorch."""
    return os.environ.get(PYTHON) or sys.executable


class TorchWorker(ArrayWorker):
    """A process that runs written modules."""

    def __init__(self, python: str = "") -> None:
        program = read_program("torch_worker.py")
        super().__init__(program, "PyTorch", "torch", INSTALL, python=python or find_python())


BRIDGE = Bridge(
    "torch", (), "torch", decode, prepare=prepare, ends_anywhere=False, versions=VERSIONS
)
