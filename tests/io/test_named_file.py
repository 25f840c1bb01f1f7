"""Errors of the system name the file that people know."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress

import pytest

from serde.formats.onnx.external_data_paths import resolver
from serde.io.file_bytes import FileBytes
from serde.io.named_file import NamedFile, name_path_in_errors, stat_open
from serde.io.sniff import file_id, open_regular, open_uncharged, read_regular
from serde.io.tensor_bytes import open_part
from serde.ir.graph import FileSlice

USES = {
    "read": lambda file: file.read(),
    "read some": lambda file: file.read(3),
    "readinto": lambda file: file.readinto(bytearray(1 << 16)),
    "seek": lambda file: file.seek(1 << 20),
    "close": lambda file: file.close(),
    "size": stat_open,
    "identity": file_id,
    "bytes": lambda file: FileBytes(file, file.name),
}


@pytest.mark.parametrize("use", USES)
def test_each_use_of_a_file_that_fails_names_it(tmp_path, use):
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(1 << 17))
    file = open_regular(path)
    number, other = file.fileno(), os.open(path, os.O_RDONLY)
    os.close(number)  # as a disk that is gone
    with pytest.raises(OSError) as error:
        USES[use](file)
    os.dup2(other, number)
    os.close(other)
    with suppress(OSError):
        file.close()
    assert os.fspath(error.value.filename) == str(path) and error.value.errno == errno.EBADF


READERS = {
    "open_regular": open_regular,
    "open_uncharged": open_uncharged,
    "read_regular": lambda path: read_regular(path, 10),
    "open_part": lambda path: open_part(FileSlice(str(path), 0, 1)),
    "external data": lambda path: resolver(path.parent / "m.onnx")(path.name),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_looked_up_of_an_open_file_names_it(tmp_path, monkeypatch, reader):
    path = tmp_path / "w.bin"
    path.write_bytes(b"1")
    with monkeypatch.context() as patch, pytest.raises(OSError) as error:
        patch.setattr(os, "fstat", fail)
        READERS[reader](path)
    assert error.value.errno == errno.EIO
    assert os.fspath(error.value.filename) == str(path)


def fail(number):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_the_names_of_a_renamed_file_become_the_one_that_people_know(tmp_path):
    with pytest.raises(OSError) as error, name_path_in_errors("known"):
        os.rename(tmp_path / "a", tmp_path / "b")
    assert error.value.filename == "known" and error.value.filename2 is None


def test_a_file_can_be_sought_in_and_reads_as_any(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    with io.BufferedReader(NamedFile(tmp_path / "a")) as file:
        assert (file.seekable(), file.seek(1), file.read(), file.tell()) == (True, 1, b"bc", 3)
