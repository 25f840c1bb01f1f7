"""MXNet in a process of its own: it ends at some models, and takes its time to import."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from .array_worker import ArrayWorker, WorkerRun, import_program
from .mxnet_run import Model
from .worker_loop import write_values

# MXNet 1.9.1 imports distutils, which Python has no more from 3.12 on; setuptools brings it back.
INSTALL = (
    "MXNet 1.9.1 is needed for this: pip install --no-deps mxnet==1.9.1 && "
    "pip install requests graphviz setuptools"
)
KERNELS = {  # the variables of a process with these kernels: MXNet chooses them once
    "onednn": {},
    "plain": {"MXNET_MKLDNN_ENABLED": "0", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"},
}


class MXNetWorker(ArrayWorker):
    """A process that runs symbols, all that are given to it."""

    def __init__(self, kernels: str) -> None:
        program = import_program("serde.bridges.mxnet_worker")
        super().__init__(program, "MXNet", "mxnet", INSTALL, environment=KERNELS[kernels])


class SymbolProcess(WorkerRun):
    """A symbol as a function of the feeds that runs in a process, as ``PreparedSymbol`` here."""

    def __init__(self, worker: MXNetWorker, model: Model) -> None:
        with worker.make_folder() as folder:
            path = os.path.join(folder, "model")
            write_values(path, [{**model._asdict(), "needed": sorted(model.needed)}])
            super().__init__(worker, worker.load(path=path), None, {})

    def infer_shape(
        self, value: str, shapes: Mapping[str, Sequence[int]]
    ) -> tuple[int, ...] | None:
        """The shape of a value inside, if MXNet tells it."""
        (shape,), _ = self.worker.time_runs(
            self.number, [{n: [*s] for n, s in shapes.items()}], value=value
        )
        return None if shape is None else tuple(shape)
