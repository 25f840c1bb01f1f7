"""TensorFlow Lite's files, run by LiteRT in a process of its own: it ends at some files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.formats.tflite.decode import decode as read_file
from serde.formats.tflite.quantization import FileInfo
from serde.ir.graph import Graph
from serde.plugins import Bridge

from .array_worker import VERSIONS, ArrayWorker, WorkerRun, get_worker, read_program

Array = np.ndarray[Any, Any]
FOLDER = "SERDE_LITERT"  # names a folder that ai-edge-litert is installed in
INSTALL = (
    "LiteRT is needed to run files of TensorFlow Lite: pip install ai-edge-litert, or name a "
    f"folder that ai-edge-litert is installed in in the environment variable {FOLDER}"
)


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Refuse: interpreters are not read.

    Raises:
        SerdeError: always.
    """
    raise SerdeError("a LiteRT interpreter is not read: give the model that its file was made of")


def prepare(
    source: Any, *, outputs: Sequence[str] | None = None, delegates: bool = True, **options: Any
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A function of the feeds that runs a file, which is loaded once.

    With ``delegates`` XNNPACK's kernels run what they can, as LiteRT does by itself. Variables are
    the last inputs and outputs, as in the graph that is read of the file. ``outputs`` may be any
    values of it; inner integers with a scale are returned as the real numbers they stand for.
    """
    path = os.fspath(source)
    graph = read_file(path)
    info, names = graph.source_info, [v.name for v in graph.inputs]
    assert isinstance(info, FileInfo)
    states = [*info.variables.values()]
    worker = get_worker(LitertWorker, find_folder())
    if outputs is None:
        model = worker.load(path=path, delegates=delegates, variables=states)
        return WorkerRun(worker, model, names, {})
    if unknown := [name for name in outputs if name not in info.places]:
        raise SerdeError(f"the file computes no {unknown[0]!r}")
    places = [info.places[name] for name in outputs]
    model = worker.load(path=path, delegates=None, variables=states, places=places)
    run = WorkerRun(worker, model, names, {})
    ends = {v.name for v in graph.outputs}
    forms = [None if name in ends else info.quantizations.get(name) for name in outputs]

    def run_inside(feeds: Mapping[str, Array]) -> list[Array]:
        return [
            array if form is None or array.dtype.kind not in "iu" else form.read_real(array)
            for form, array in zip(forms, run(feeds), strict=True)
        ]

    return run_inside


def find_folder() -> str | None:
    """Where LiteRT is installed, if not with serde."""
    return os.environ.get(FOLDER)


class LitertWorker(ArrayWorker):
    """A process that runs files."""

    def __init__(self, folder: str | None = None) -> None:
        program, folder = read_program("litert_worker.py"), folder or find_folder()
        first = [folder] if folder else []
        super().__init__(program, "LiteRT", "ai_edge_litert", INSTALL, first=first)


BRIDGE = Bridge(
    "litert",
    ("ai_edge_litert",),
    "tflite",
    decode,
    prepare=prepare,
    settings={"without XNNPACK": {"delegates": False}},
    versions=VERSIONS,
)
