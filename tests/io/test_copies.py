"""Streams that do not end fill no disk."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from serde.errors import MalformedFile
from serde.io.copies import copy_stream
from testing.onnx_live import model_of

MODEL = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8).SerializeToString()


class Endless(io.RawIOBase):
    """Zeros, as many as are asked for; it counts them."""

    count = 0

    def read(self, size=-1):
        self.count += size
        return bytes(size)


@pytest.fixture
def small(monkeypatch):
    """A disk that has ten million bytes."""
    usage = SimpleNamespace(total=10**7, used=0, free=10**7)
    monkeypatch.setattr("serde.io.copies.shutil", SimpleNamespace(disk_usage=lambda path: usage))
    assert shutil.disk_usage("/").free != 10**7


def test_a_stream_without_an_end_is_left(small, tmp_path):
    stream = Endless()
    with pytest.raises(MalformedFile, match="stdin: is longer than 5,000,000 bytes, half of"):
        copy_stream(stream, str(tmp_path / "stdin"), "stdin")
    assert stream.count < 10**7 and (tmp_path / "stdin").stat().st_size <= 5 * 10**6


def test_what_ends_is_copied(small, tmp_path):
    copy_stream(io.BytesIO(MODEL), str(tmp_path / "stdin"), "stdin")
    assert (tmp_path / "stdin").read_bytes() == MODEL


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_the_stream_is_named_where_a_disk_is_full(tmp_path):
    with pytest.raises(OSError, match="stdin"):
        copy_stream(io.BytesIO(MODEL), "/dev/full", "stdin")
