"""Live PyTorch modules and exported programs, read through a file of ``torch.export.save``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import SerdeError, UsageError
from serde.formats.pt2.decode import decode as decode_file
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import Graph, Tensor
from serde.plugins import Bridge

from .array_worker import VERSIONS, WorkerRun
from .torch import prepare_file

Array = np.ndarray[Any, Any]
SIZE = 3  # of an axis by name, in examples


def decode(
    model: Any, params: Any = None, *, inputs: Mapping[str, Any] | None = None, **options: Any
) -> Graph:
    """The graph of an exported program, or of a module with its ``inputs`` by parameter.

    An input is an array, a shape, or a pair of shape and type; sizes by name are dynamic.

    Raises:
        UsageError: for a module without inputs.
    """
    with TemporaryFolder() as folder:
        graph = decode_file(_save(model, inputs, folder))
        for value in {*graph.constants(), *graph.arrays}:
            assert value.tensor is not None
            value.tensor = Tensor.of(value.tensor.load().copy())  # the file goes
    return replace(graph, files=frozenset())


def _save(model: Any, inputs: Mapping[str, Any] | None, folder: str) -> str:
    """The file of a live model in a folder."""
    import torch

    program = _export(model, inputs) if isinstance(model, torch.nn.Module) else model
    if not isinstance(program, torch.export.ExportedProgram):
        raise SerdeError(f"a {type(model).__qualname__} is not read: give an nn.Module or what "
                         "torch.export.export makes of it")  # fmt: skip
    path = os.path.join(folder, "model.pt2")
    torch.export.save(program, path)
    return path


def _export(model: Any, inputs: Mapping[str, Any] | None) -> Any:
    """Export a module with examples of its inputs."""
    import torch

    if not inputs:
        raise UsageError("a live module is exported with its inputs: give inputs=, a mapping of "
                         "the names of forward's parameters to arrays or shapes")  # fmt: skip
    examples: dict[str, Any] = {}
    dynamic: dict[str, Any] = {}
    for name, value in inputs.items():
        if hasattr(value, "dtype"):
            examples[name], dynamic[name] = torch.as_tensor(value), {}
            continue
        shape, dtype = (
            value if len(value) == 2 and isinstance(value[1], str) else (value, "float32")
        )
        sizes = [d if isinstance(d, int) and d >= 0 else SIZE for d in shape]
        examples[name] = torch.zeros(sizes, dtype=getattr(torch, dtype))
        names = [k for k, d in enumerate(shape) if not isinstance(d, int) or d < 0]
        dynamic[name] = dict.fromkeys(names, torch.export.Dim.DYNAMIC)
    with torch.no_grad():
        return torch.export.export(model, (), examples, dynamic_shapes=dynamic)


def prepare(
    source: Any, *, outputs: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None, **options: Any,
) -> Callable[[Mapping[str, Array]], list[Array]]:  # fmt: skip
    """A function of the feeds that runs a program, which is loaded once.

    A live model is saved for it; a module is exported with ``inputs``, or with the first feeds.
    """
    if outputs:
        raise SerdeError("an exported program returns its own outputs only")
    if isinstance(source, (str, os.PathLike)):
        return _prepare_file(os.path.abspath(source))
    folder = TemporaryFolder()
    runs: list[WorkerRun] = []

    def run_live(feeds: Mapping[str, Array]) -> list[Array]:
        if not runs:
            runs.append(_prepare_file(_save(source, inputs or feeds, folder.name)))
        return runs[0](feeds)

    return run_live


def _prepare_file(path: str) -> WorkerRun:
    return prepare_file(path, [v.name for v in decode_file(path).inputs])


BRIDGE = Bridge("pt2", ("torch",), "pt2", decode, prepare=prepare, ends_anywhere=False,
                versions=VERSIONS)  # fmt: skip
