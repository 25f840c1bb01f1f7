"""A process that runs models of a framework on arrays, for bridges that do not load it here."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.child_process import FORGET_FOLDER
from serde.ir.graph import DType

Array = np.ndarray[Any, Any]
HALF = "bfloat16:"  # begins the keys of arrays of bfloat16, as in the workers
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
        program = Path(__file__).with_name(script).read_text(encoding="utf-8")
        self._folder = tempfile.TemporaryDirectory(prefix="serde-run-")
        self._process = subprocess.Popen(
            [python, "-c", FORGET_FOLDER + program], text=True, encoding="utf-8", env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._end = finalize(self, _end, self._process, self._folder)
        self._read_answer()

    def run(self, path: str, operands: Sequence[Array], **options: Any) -> list[Array]:
        """What the model at ``path`` computes.

        Raises:
            SerdeError: where it fails.
        """
        inputs, outputs = (os.path.join(self._folder.name, n) for n in ("in.npz", "out.npz"))
        np.savez(inputs, **dict(_encode_array(at, a) for at, a in enumerate(operands)))  # type: ignore[arg-type]
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([path, inputs, outputs, *options.values()]) + "\n")
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
            if f"No module named '{self._module}'" in last:
                raise MissingDependency(self._install)
            raise SerdeError(f"{self._title} cannot run the model: {last}")
        if error := json.loads(line).get("error"):
            raise SerdeError(f"{self._title} cannot run the model: {error}")


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
