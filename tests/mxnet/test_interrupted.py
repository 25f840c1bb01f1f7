"""A conversion that fails on the way leaves what was there before, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import serde
from serde.io import atomic_write
from testing.mxnet import written
from testing.mxnet.written import params_bytes

BEFORE = b"\x08\x08what was there before"  # as a model begins


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, and an older result with its weights beside it."""
    text, arrays = written.network()
    (tmp_path / "m-symbol.json").write_text(text)
    (tmp_path / "m-0001.params").write_bytes(params_bytes(arrays))
    (tmp_path / "out.onnx").write_bytes(BEFORE)
    (tmp_path / "out.onnx.data").write_bytes(BEFORE)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def failing(error: BaseException, after: int) -> Any:
    """A way of copying weights that raises ``error``, but for the first calls."""
    copy, calls = atomic_write.Sources.copy, iter(range(1000))

    def fail(*args: Any) -> None:
        if next(calls) >= after:
            raise error
        copy(*args)

    return fail


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, MemoryError])
def test_a_failure_while_weights_are_copied(kind, after, folder: Path, monkeypatch) -> None:
    before = contents(folder)
    monkeypatch.setattr(atomic_write.Sources, "copy", failing(kind("stop"), after))
    with pytest.raises(kind):
        serde.convert(folder / "m", folder / "out.onnx", external_data="never")
    assert contents(folder) == before


def test_a_disk_that_is_full_at_the_end(folder: Path, monkeypatch) -> None:
    before = contents(folder)
    opened = atomic_write.Replacing.open

    def open_failing(self: Any, path: str) -> Any:
        file = opened(self, path)
        close = file.close

        class Full:
            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def close(self) -> None:
                close()
                raise OSError(28, "No space left on device")

        self._open[-1] = self._open[-1]._replace(file=Full())
        return file

    monkeypatch.setattr(atomic_write.Replacing, "open", open_failing)
    with pytest.raises(OSError, match="No space left"):
        serde.convert(folder / "m", folder / "out.onnx")
    assert contents(folder) == before


def test_a_failure_while_files_are_put_in_place(folder: Path, monkeypatch) -> None:
    def refuse(*names: Any, **folders: Any) -> None:
        raise PermissionError(13, "Permission denied")

    before = contents(folder)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        serde.convert(folder / "m", folder / "out.onnx", external_data="always")
    assert contents(folder) == before


def test_damage_found_only_while_writing(folder: Path) -> None:
    """A deflated array is inflated, and its checksum compared, when it is written."""
    _, arrays = written.network()
    data = bytearray(written.npz_bytes(arrays))
    at = data.index(b"convolution0_weight.npy") + 23 + 60
    data[at] ^= 0x10
    (folder / "m-0001.params").write_bytes(data)
    before = contents(folder)
    with pytest.raises(serde.SerdeError, match=r"'convolution0_weight\.npy'"):
        serde.convert(folder / "m", folder / "out.onnx")
    assert contents(folder) == before


STOPPED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background process
from serde import convert
from serde.io import atomic_write
def slow(*args):
    print("writing", flush=True)
    time.sleep(30)
atomic_write.Sources.copy = slow
convert(sys.argv[1] + "/m", sys.argv[1] + "/out.onnx")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_an_interrupt_from_the_keyboard(folder: Path) -> None:
    before = contents(folder)
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"writing\n"
        assert len(contents(folder)) == len(before) + 1  # the part that is being written
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        process.wait(10)
    assert process.returncode != 0 and time.monotonic() - start < 10
    assert contents(folder) == before
