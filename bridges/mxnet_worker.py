"""The program of a process that runs symbols of MXNet on arrays, see ``worker_loop``.

A model is the folder that ``mxnet_process.write_model`` makes. A request has the names of its
arrays too, or the name of a value and shapes by name: then it is answered with the value's shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from .mxnet import import_mxnet
from .mxnet_process import MODEL
from .mxnet_run import Model, PreparedSymbol
from .worker_loop import serve, time_calls


def main() -> None:
    """Run a model for each request."""
    mx = import_mxnet()
    models: dict[str, PreparedSymbol] = {}  # by their folders, as long as these are there

    def load_model(folder: str) -> PreparedSymbol:
        for other in [f for f in models if not Path(f).exists()]:
            del models[other]
        if folder not in models:
            models[folder] = PreparedSymbol(mx, read_model(folder))
        return models[folder]

    serve(mx.__version__, load_model, run, 0)


def read_model(folder: str) -> Model:
    """The model that ``write_model`` has written."""
    fields = json.loads(Path(folder, MODEL).read_text("utf-8"))
    paths = {name: Path(folder, f"{at}.npy") for at, name in enumerate(fields["arrays"])}
    arrays = {name: np.load(path, allow_pickle=False) for name, path in paths.items()}
    return Model(**{**fields, "arrays": arrays})


def run(
    model: PreparedSymbol, inputs: str, outputs: str, count: int, names: Sequence[str],
    value: str | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
) -> list[float]:  # fmt: skip
    """Write what the model computes of a file's arrays; return the seconds of a run."""
    if value is not None:
        shape = model.infer_shape(value, {n: tuple(s) for n, s in (shapes or {}).items()})
        np.savez(outputs, np.zeros((0, 0)) if shape is None else np.array(shape, np.int64))
        return [0.0, 0.0]
    with np.load(inputs, allow_pickle=False) as arrays:
        feeds = dict(zip(names, (arrays[key] for key in arrays.files), strict=True))
    results, seconds = time_calls(partial(model, feeds), count)
    np.savez(outputs, **{str(at): array for at, array in enumerate(results)})
    return seconds
