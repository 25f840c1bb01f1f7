"""MXNet in a process of its own: it ends at some models, and takes its time to import."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

import serde

from .array_worker import ArrayWorker
from .mxnet_run import Model

Array = np.ndarray[Any, Any]
# MXNet 1.9.1 imports distutils, which Python has no more from 3.12 on; setuptools brings it back.
INSTALL = (
    "MXNet 1.9.1 is needed for this: pip install --no-deps mxnet==1.9.1 && "
    "pip install requests graphviz setuptools"
)
KERNELS = {  # the variables of a process with these kernels: MXNet chooses them once
    "onednn": {},
    "plain": {"MXNET_MKLDNN_ENABLED": "0", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"},
}
MODEL = "model.json"
START = "sys.path.insert(0, sys.argv[1]); from serde.bridges.mxnet_worker import main; main()"


class MXNetWorker(ArrayWorker):
    """A process that runs symbols, all that are given to it."""

    def __init__(self, kernels: str) -> None:
        folder = str(Path(serde.__file__).resolve().parents[1])  # where this very package is
        super().__init__(
            sys.executable, START, "MXNet", "mxnet", INSTALL, KERNELS[kernels], [folder]
        )


# Those of this process that some model needs, by the process and their kernels.
_workers: WeakValueDictionary[tuple[int, str], MXNetWorker] = WeakValueDictionary()


def get_worker(kernels: str) -> MXNetWorker:
    """A process that runs already, or a new one."""
    key = os.getpid(), kernels
    worker = _workers.get(key)
    if worker is None or not worker.is_running:
        worker = _workers[key] = MXNetWorker(kernels)
    return worker


class SymbolProcess:
    """A symbol as a function of the feeds that runs in a process, as ``PreparedSymbol`` here."""

    def __init__(self, worker: MXNetWorker, model: Model) -> None:
        self.worker = worker
        folder = tempfile.TemporaryDirectory(prefix="serde-mxnet-")
        self._end = finalize(self, folder.cleanup)
        self.folder = folder.name
        write_model(model, self.folder)
        self.worker.wait()

    def __call__(self, feeds: Mapping[str, Any]) -> list[Array]:
        return self.worker.run(self.folder, [*feeds.values()], names=list(feeds))

    def time_runs(self, feeds: Mapping[str, Any], count: int) -> tuple[float, float]:
        """The seconds of one of so many runs, see ``ArrayWorker.time_runs``."""
        names = {"names": list(feeds)}
        return self.worker.time_runs(self.folder, [*feeds.values()], count, names)[1]

    def infer_shape(
        self, value: str, shapes: Mapping[str, Sequence[int]]
    ) -> tuple[int, ...] | None:
        """The shape of a value inside, if MXNet tells it."""
        (shape,) = self.worker.run(
            self.folder, [], names=[], value=value, shapes={n: [*s] for n, s in shapes.items()}
        )
        return tuple(shape.tolist()) if shape.ndim == 1 else None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.worker.pid


def write_model(model: Model, folder: str) -> None:
    """Write a model into a folder: its text and names, and a file for each array."""
    fields = {**model._asdict(), "arrays": list(model.arrays), "needed": sorted(model.needed)}
    Path(folder, MODEL).write_text(json.dumps(fields), "utf-8")
    for at, name in enumerate(model.arrays):
        np.save(Path(folder, f"{at}.npy"), model.arrays[name])
