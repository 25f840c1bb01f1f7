"""Processes that run models on arrays, so that one that takes too much ends alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary, finalize

import numpy as np

import serde
from serde.errors import MissingDependency, SerdeError
from serde.io.child_process import FORGET_FOLDER, child_environment, describe_crash, limit_child
from serde.io.memory import MOST, find_memory_limit
from serde.io.temporary_folder import TemporaryFolder
from serde.verification.baked_batch import TakesTooMuch

from .worker_loop import read_values, write_values

Array = np.ndarray[Any, Any]
Worker = TypeVar("Worker", bound="ArrayWorker")
IMPORT_THERE = "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
LOOP = "worker_loop.py"  # begins the program of each worker
PATIENCE = 10  # seconds a process has to end
VERSIONS: dict[str, str] = {}  # of the modules that processes of this one have loaded
NO_MEMORY = re.compile(
    r"(?i)bad[_ ]alloc|allocat\w* memory|unable to allocate|out of memory|BFCArena"
)
# Those that some model needs, by what they run, and the one that was asked for last.
_workers: WeakValueDictionary[Any, ArrayWorker] = WeakValueDictionary()
_last: deque[ArrayWorker] = deque(maxlen=1)


class ArrayWorker:
    """A process that loads models and runs them, within a limit of memory.

    ``program`` is what it runs, ``title`` what messages call the framework, ``module`` what has to
    be installed, which ``install`` tells how to do. ``python`` may be another than this one, which
    imports modules from where this process does, ``first`` before that.
    """

    def __init__(
        self, program: str, title: str, module: str, install: str, *, python: str = sys.executable,
        first: Sequence[str] = (), environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.title, self._module, self._install = title, module, install
        self._memory, self._parent = find_memory_limit(), os.getpid()
        self._folder = TemporaryFolder()
        self._errors = Path(self._folder.name, "errors.txt")  # a pipe might fill up
        command = [python, "-c", FORGET_FOLDER + program, self._folder.name]
        if python == sys.executable:
            paths = json.dumps(_list_paths(first))
            command[1:] = ["-I", "-c", IMPORT_THERE + program, paths, self._folder.name]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, text=True, encoding="utf-8", env=child_environment(**(environment or {})),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        self._end = finalize(self, _end, self._parent, self._process, self._folder)
        if self._memory is not None:
            self._memory = limit_child(self._process.pid, self._memory)
        self._lock, self._is_ready, self._is_full = threading.Lock(), False, False
        self._numbers, self._dropped = count(), deque[int]()

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
    def is_fresh(self) -> bool:
        """Whether it takes new models: it has not ended, nor run out of memory, which it keeps."""
        return self.is_running and not self._is_full

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def make_folder(self) -> TemporaryFolder:
        """A folder for files that the process reads; it goes with the process at the latest."""
        return TemporaryFolder(self._folder.name)

    def load(self, **options: Any) -> int:
        """Load a model by what its program takes; return the number to run it by.

        Raises:
            MissingDependency: where the framework is not installed. SerdeError: where it fails.
        """
        with self._take_turn():
            number = next(self._numbers)
            self._obey({"do": "load", "model": number, "options": options})
            return number

    def run(self, path: str, values: Sequence[Any], **options: Any) -> list[Any]:
        """What the model of a file computes, which is loaded for this run.

        Raises:
            SerdeError: where it fails.
        """
        number = self.load(path=path, **options)
        try:
            return self.time_runs(number, values)[0]
        finally:
            self.drop(number)

    def drop(self, number: int) -> None:
        """Forget a model, at the next order."""
        self._dropped.append(number)

    def time_runs(
        self, number: int, values: Sequence[Any], count: int = 1, **options: Any
    ) -> tuple[list[Any], tuple[float, float]]:
        """What the model of a number computes, and the seconds of one of so many runs.

        They are of the clock and of the processor, without the way of the arrays to the process.

        Raises:
            SerdeError: where it fails.
        """
        with self._take_turn():
            inputs, outputs = (os.path.join(self._folder.name, n) for n in ("inputs", "outputs"))
            try:
                write_values(inputs, values)
                order = {"do": "run", "model": number, "inputs": inputs, "outputs": outputs,
                         "count": count, "options": options}  # fmt: skip
                seconds = self._obey(order)["seconds"]
                return read_values(outputs), seconds
            finally:
                for path in (inputs, outputs):
                    with suppress(FileNotFoundError):
                        os.unlink(path)

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Give orders alone; those of a forked process, which has the same pipes, would mix in."""
        if os.getpid() != self._parent:
            raise SerdeError(
                f"{self.title} runs the model for the process that this one was forked from: "
                "prepare the model again in this one"
            )
        with self._lock:
            yield

    def _obey(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the process answers to an order; it ends where this one is interrupted meanwhile."""
        try:
            self.wait()
            is_loaded = order["do"] == "run"
            drops = [{"do": "drop", "model": self._dropped.popleft()} for _ in [*self._dropped]]
            assert self._process.stdin is not None
            if self.is_running:  # what it said before it ended tells why
                with suppress(BrokenPipeError):
                    self._process.stdin.writelines(f"{json.dumps(o)}\n" for o in (*drops, order))
                    self._process.stdin.flush()
            return self._read_answer(is_loaded)
        except (SerdeError, OSError):
            raise
        except BaseException:
            self._process.kill()
            raise

    def _read_answer(self, is_loaded: bool = False) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._describe_end(self._process.wait())
        answer: Mapping[str, Any] = json.loads(line)
        if "error" in answer:
            if answer["number"] and answer["kind"] == OSError.__name__:
                raise OSError(answer["number"], answer["error"])
            kind, message = answer["kind"], answer["error"]
            if kind == MemoryError.__name__ or NO_MEMORY.search(message):
                self._is_full = True
                raise self._describe_limit()
            raise self._make_error(kind, message, is_loaded)
        return answer

    def _make_error(self, kind: str, message: str, is_loaded: bool) -> SerdeError:
        """The error for one that the process raised, where the model ``is_loaded`` at a run."""
        if kind == SerdeError.__name__:  # which names the framework
            return SerdeError(message)
        return SerdeError(f"{self.title} cannot run the model: {kind}: {message}")

    def _describe_limit(self) -> TakesTooMuch:
        """The error for a model that takes too much memory."""
        limit = "there is" if self._memory is None else f"the {self._memory:,} MiB it may take"
        return TakesTooMuch(
            f"{self.title} cannot run the model: it takes more memory than {limit}. The variable "
            f"{MOST} of the environment allows more MiB; with --isolate, --max-memory too"
        )

    def _describe_end(self, code: int) -> SerdeError:
        """The error for a process that has ended."""
        said = self._errors.read_text("utf-8", "replace")
        lines = said.strip().splitlines()
        last = lines[-1] if lines else f"exit code {code}"
        if f"No module named '{self._module}'" in last:
            return MissingDependency(self._install)
        if MissingDependency.__name__ in last:
            return MissingDependency(last.partition(": ")[2])
        if NO_MEMORY.search(said):
            return self._describe_limit()
        if code < 0:
            last = f"it ended its process with {describe_crash(code)}"
        return SerdeError(f"{self.title} cannot run the model: {last}")


def get_worker(kind: type[Worker], *arguments: Any) -> Worker:
    """A process that runs already, or a new one; an idle one stays until another is asked for."""
    key = os.getpid(), os.environ.get(MOST), tuple(sys.path), kind, arguments
    worker = _workers.get(key)
    if not isinstance(worker, kind) or not worker.is_fresh:
        worker = _workers[key] = kind(*arguments)
    _last.append(worker)
    return worker


def read_program(script: str) -> str:
    """The program of a file beside this one, for a Python that may not have this package."""
    paths = (Path(__file__).with_name(name) for name in (LOOP, script))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def import_program(module: str) -> str:
    """A program that is the ``main`` of a module of this very package."""
    return f"from {module} import main; main()"


def _list_paths(first: Sequence[str]) -> list[str]:
    """Where this process imports modules from, but for its working folder."""
    here = str(Path(serde.__file__).resolve().parents[1])
    return [os.path.abspath(path) for path in (*first, *sys.path, here) if path]


@dataclass(frozen=True, eq=False)
class WorkerRun:
    """A model that a process has loaded, as a function of its inputs by name, in any order.

    ``names`` are those of its inputs in order, where its program takes them so.
    """

    worker: ArrayWorker
    number: int
    names: Sequence[str] | None
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        finalize(self, self.worker.drop, self.number).atexit = False

    def __call__(self, feeds: Mapping[str, Any]) -> list[Any]:
        return self._run(feeds, 1)[0]

    def time_runs(self, feeds: Mapping[str, Any], count: int) -> tuple[float, float]:
        """The seconds of one of so many runs, see ``ArrayWorker.time_runs``."""
        return self._run(feeds, count)[1]

    def _run(self, feeds: Mapping[str, Any], count: int) -> tuple[list[Any], tuple[float, float]]:
        values = [feeds] if self.names is None else order_feeds(self.names, feeds)
        return self.worker.time_runs(self.number, values, count, **self.options)

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


def _end(parent: int, process: subprocess.Popen[str], folder: TemporaryFolder) -> None:
    """End the process, and remove its files; a process that was forked off leaves both alone."""
    if os.getpid() != parent:
        return
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
