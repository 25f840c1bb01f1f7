"""A process that runs models of a framework on arrays, for bridges that do not load it here."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.child_process import FORGET_FOLDER, child_environment, describe_crash
from serde.ir.graph import DType

Array = np.ndarray[Any, Any]
HALF = "bfloat16:"  # begins the keys of arrays of bfloat16, as in the workers
LOOP = "worker_loop.py"  # begins the program of each worker
PATIENCE = 10  # seconds a process has to end
VERSIONS: dict[str, str] = {}  # of the modules that processes of this one have loaded


class ArrayWorker:
    """A process that runs models, and keeps the last that it has loaded.

    ``program`` is what it runs, ``title`` what messages call the
    framework, ``module`` what has to be installed, which ``install`` tells how to do.
    """

    def __init__(
        self, python: str, program: str, title: str, module: str, install: str,
        environment: Mapping[str, str] | None = None, arguments: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._title, self._module, self._install = title, module, install
        self._folder = tempfile.TemporaryDirectory(prefix="serde-run-")
        self._errors = Path(self._folder.name, "errors.txt")  # a pipe might fill up
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-c", FORGET_FOLDER + program, *arguments], text=True, encoding="utf-8",
                env=child_environment(**(environment or {})),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        self._lock, self._is_ready = threading.Lock(), False
        self._end = finalize(self, _end, self._process, self._folder)

    def wait(self) -> None:
        """Wait until the framework is imported.

        Raises:
            MissingDependency: where it is not installed.
        """
        if not self._is_ready:
            VERSIONS[self._module] = self._read_answer()["version"]
            self._is_ready = True

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def prepare(self, path: str, names: Sequence[str], **options: Any) -> WorkerRun:
        """A function of feeds that runs the model at ``path``, whose inputs have these names.

        Raises:
            MissingDependency: where the framework is not installed.
        """
        self.wait()
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
        with self._lock:
            self.wait()
            return self._time_runs(path, operands, count, options)

    def _time_runs(
        self, path: str, operands: Sequence[Array], count: int, options: Mapping[str, Any]
    ) -> tuple[list[Array], tuple[float, float]]:
        inputs, outputs = (os.path.join(self._folder.name, n) for n in ("in.npz", "out.npz"))
        np.savez(inputs, **dict(_encode_array(at, a) for at, a in enumerate(operands)))  # type: ignore[arg-type]
        assert self._process.stdin is not None
        if self.is_running:  # what it said before it ended tells why
            with suppress(BrokenPipeError):
                request = json.dumps([path, inputs, outputs, count, *options.values()])
                self._process.stdin.write(f"{request}\n")
                self._process.stdin.flush()
        seconds = self._read_answer()["seconds"]
        with np.load(outputs, allow_pickle=False) as arrays:
            return [_decode_array(key, arrays[key]) for key in arrays.files], seconds

    def _read_answer(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._describe_end(self._process.wait())
        answer: Mapping[str, Any] = json.loads(line)
        if error := answer.get("error"):
            kind, _, message = error.partition(": ")
            if kind == SerdeError.__name__:  # which names the framework
                raise SerdeError(message)
            raise SerdeError(f"{self._title} cannot run the model: {error}")
        return answer

    def _describe_end(self, code: int) -> SerdeError:
        """The error for a process that has ended."""
        lines = self._errors.read_text("utf-8", "replace").strip().splitlines()
        last = lines[-1] if lines else f"exit code {code}"
        if f"No module named '{self._module}'" in last:
            return MissingDependency(self._install)
        if MissingDependency.__name__ in last:
            return MissingDependency(last.partition(": ")[2])
        if code < 0:
            last = f"it ended its process with {describe_crash(code)}"
        return SerdeError(f"{self._title} cannot run the model: {last}")


def read_program(script: str) -> str:
    """The program of a file beside this one, for a Python that may not have this package."""
    paths = (Path(__file__).with_name(name) for name in (LOOP, script))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


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
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
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
