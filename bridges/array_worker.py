"""A process that runs models of a framework on arrays, for bridges that do not load it here."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.child_process import FORGET_FOLDER, child_environment
from serde.ir.graph import DType

Array = np.ndarray[Any, Any]
HALF = "bfloat16:"  # begins the keys of arrays of bfloat16, as in the workers
LOOP = "worker_loop.py"  # begins the program of each worker
PATIENCE = 10  # seconds a process has to end


class ArrayWorker:
    """A process that runs models, and keeps the last that it has loaded.

    ``script`` is the name of its program beside this file, ``title`` what messages call the
    framework, ``module`` what has to be installed, which ``install`` tells how to do.
    """

    def __init__(
        self, python: str, script: str, title: str, module: str, install: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._title, self._module, self._install = title, module, install
        program = "".join(
            Path(__file__).with_name(name).read_text(encoding="utf-8") for name in (LOOP, script)
        )
        self._folder = tempfile.TemporaryDirectory(prefix="serde-run-")
        self._process = subprocess.Popen(
            [python, "-c", FORGET_FOLDER + program], text=True, encoding="utf-8",
            env=child_environment(**(environment or {})),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._end = finalize(self, _end, self._process, self._folder)
        self._read_answer()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def prepare(self, path: str, names: Sequence[str], **options: Any) -> WorkerRun:
        """A function of feeds that runs the model at ``path``, whose inputs have these names."""
        return WorkerRun(self, path, names, options)

    def run(self, path: str, operands: Sequence[Array], **options: Any) -> list[Array]:
        """What the model at ``path`` computes.

        Raises:
            SerdeError: where it fails.
        """
        return self.time_runs(path, operands, 1, options)[0]

    def time_runs(
        self, path: str, operands: Sequence[Array], count: int, options: Mapping[str, Any]
    ) -> tuple[list[Array], tuple[float, float]]:
        """What the model computes, and the seconds of one of so many runs.

        They are of the clock and of the processor, without the way of the arrays to the process.
        """
        inputs, outputs = (os.path.join(self._folder.name, n) for n in ("in.npz", "out.npz"))
        np.savez(inputs, **dict(_encode_array(at, a) for at, a in enumerate(operands)))  # type: ignore[arg-type]
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(
                json.dumps([path, inputs, outputs, count, *options.values()]) + "\n"
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said before it ended tells why
        seconds = self._read_answer()["seconds"]
        with np.load(outputs, allow_pickle=False) as arrays:
            return [_decode_array(key, arrays[key]) for key in arrays.files], seconds

    def _read_answer(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            errors = self._process.stderr.read().strip().splitlines()
            last = errors[-1] if errors else f"exit code {self._process.wait()}"
            if f"No module named '{self._module}'" in last:
                raise MissingDependency(self._install)
            raise SerdeError(f"{self._title} cannot run the model: {last}")
        answer: Mapping[str, Any] = json.loads(line)
        if error := answer.get("error"):
            raise SerdeError(f"{self._title} cannot run the model: {error}")
        return answer


@dataclass(frozen=True, eq=False)
class WorkerRun:
    """A model that a process runs, as a function of its inputs by name, in any order."""

    worker: ArrayWorker
    path: str
    names: Sequence[str]
    options: Mapping[str, Any]

    def __call__(self, feeds: Mapping[str, Array]) -> list[Array]:
        return self.worker.run(self.path, order_feeds(self.names, feeds), **self.options)

    def time_runs(self, feeds: Mapping[str, Array], count: int) -> tuple[float, float]:
        """The seconds of one of so many runs, see ``ArrayWorker.time_runs``."""
        operands = order_feeds(self.names, feeds)
        return self.worker.time_runs(self.path, operands, count, self.options)[1]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.worker.pid


def order_feeds(names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
    """The arrays of inputs in the order of a model, which may lack the last of its inputs.

    Raises:
        SerdeError: for names that the model does not have, and where one before others is missing.
    """
    known = set(names)
    if unknown := [n for n in feeds if n not in known]:
        raise SerdeError(f"the model has no input {unknown[0]!r}; it has {', '.join(names)}")
    for name in names[: len(feeds)]:
        if name not in feeds:
            raise SerdeError(f"the input {name!r} is missing")
    return [feeds[name] for name in names[: len(feeds)]]


def _end(process: subprocess.Popen[str], folder: tempfile.TemporaryDirectory[str]) -> None:
    """End the process, and remove its files."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    folder.cleanup()


def _encode_array(at: int, array: Array) -> tuple[str, Array]:
    """The key and the array of a file that stand for an input."""
    array = np.asarray(array)
    if array.dtype.name == DType.BFLOAT16.value:
        return f"{HALF}{at}", array.view(np.int16)
    return str(at), array


def _decode_array(key: str, array: Array) -> Array:
    return array.view(DType.BFLOAT16.numpy) if key.startswith(HALF) else array
