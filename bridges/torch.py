"""Written PyTorch modules, run in a process of its own: they are code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.child_process import FORGET_FOLDER
from serde.ir.graph import DType, Graph
from serde.plugins import Bridge

Array = np.ndarray[Any, Any]
PYTHON = "SERDE_PYTORCH"  # names a Python with PyTorch, where the one that runs serde has none
INSTALL = (
    "PyTorch is needed to run written modules: pip install torch, or name a Python that has it in "
    f"the environment variable {PYTHON}"
)
HALF = "bfloat16:"  # begins the keys of arrays of bfloat16, as in the worker
PATIENCE = 10  # seconds a process has to end


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Refuse: modules are read through a file of ``torch.export``.

    Raises:
        SerdeError: always.
    """
    raise SerdeError(
        "a live PyTorch module is not read: export it with torch.onnx.export, and convert that file"
    )


def run(source: Any, feeds: Mapping[str, Array], **options: Any) -> list[Array]:
    """What a written module computes; ``feeds`` are in the order of its inputs.

    Raises:
        MissingDependency: without PyTorch. SerdeError: where the module fails.
    """
    return prepare(source, **options)(feeds)


def prepare(
    source: Any, *, outputs: Sequence[str] | None = None, **options: Any
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A function of the feeds that runs a written module, which is loaded once."""
    if outputs:
        raise SerdeError("a PyTorch module returns its own outputs only")
    worker, path = TorchWorker(), os.fspath(source)
    return lambda feeds: worker.run(path, list(feeds.values()))


class TorchWorker:
    """A process that runs written modules, and keeps the last that it has loaded."""

    def __init__(self) -> None:
        python = os.environ.get(PYTHON) or sys.executable
        script = Path(__file__).with_name("torch_worker.py").read_text(encoding="utf-8")
        self._folder = tempfile.TemporaryDirectory(prefix="serde-torch-")
        self._process = subprocess.Popen(
            [python, "-c", FORGET_FOLDER + script], text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._end = finalize(self, _end, self._process, self._folder)
        self._read_answer()

    def run(self, path: str, operands: Sequence[Array]) -> list[Array]:
        """What the module whose source is at ``path`` computes.

        Raises:
            SerdeError: where it fails.
        """
        inputs, outputs = (os.path.join(self._folder.name, n) for n in ("in.npz", "out.npz"))
        np.savez(inputs, **dict(_encode_array(at, a) for at, a in enumerate(operands)))  # type: ignore[arg-type]
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([path, inputs, outputs]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said before it ended tells why
        self._read_answer()
        with np.load(outputs, allow_pickle=False) as arrays:
            return [_decode_array(key, arrays[key]) for key in arrays.files]

    def _read_answer(self) -> None:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            errors = self._process.stderr.read().strip().splitlines()
            last = errors[-1] if errors else f"exit code {self._process.wait()}"
            if "No module named 'torch'" in last:
                raise MissingDependency(INSTALL)
            raise SerdeError(f"PyTorch cannot run the module: {last}")
        if error := json.loads(line).get("error"):
            raise SerdeError(f"PyTorch cannot run the module: {error}")


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


BRIDGE = Bridge("torch", ("torch",), "torch", decode, run, prepare=prepare, ends_anywhere=False)
