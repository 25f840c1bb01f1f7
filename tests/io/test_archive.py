"""Archives: what is in them, where it lies, and how it is unpacked."""

from __future__ import annotations

from pathlib import Path

import pytest

from serde.errors import MalformedFile
from serde.io.archive import is_archive, is_companion, name_archive, open_archive
from serde.ir.budget import within_budget
from testing.archives import KINDS, pack

FILES = {"a/x.bin": bytes(range(256)) * 9, "y.txt": b"text", "z": b"", "a/._x.bin": b"\0\5"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def archive(kind, tmp_path):
    path = tmp_path / "held"
    path.write_bytes(pack(FILES, kind))
    with within_budget(), open_archive(str(path), path.read_bytes()[:1024]) as opened:
        yield opened


def test_members_are_read_by_their_names(archive):
    names = {archive.shorten(name): name for name in archive.names}
    assert names.keys() == FILES.keys()
    for short, name in names.items():
        assert name == f"{archive.path}:{short}"
        assert archive.read(name) == FILES[short] and FILES[short].startswith(archive.head(name))


def test_what_lies_in_it_as_it_is_is_found(archive, kind):
    data = Path(archive.path).read_bytes()
    for name in archive.names:
        span = archive.span(name)
        assert (span is not None) == (kind in ("stored", "tar"))
        if span is not None:
            assert data[span[0] : span[0] + span[1]] == FILES[archive.shorten(name)]


def test_members_are_written_below_a_folder(archive, tmp_path):
    folder = tmp_path / "out"
    for name in archive.names:
        archive.extract(name, str(folder))
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert {str(p.relative_to(folder)): p.read_bytes() for p in files} == FILES


def test_too_large_for_what_it_should_be(archive):
    with pytest.raises(MalformedFile, match="too large"):
        archive.read(f"{archive.path}:a/x.bin", 100)


def test_the_content_tells_an_archive(kind):
    assert is_archive("model_algo-1", pack(FILES, kind)[:1024])


def test_a_zip_of_arrays_is_none():
    assert not is_archive("a.npz", pack({"a.npy": b""}, "zip"))


def test_other_packers_are_named():
    assert "unpack it" in (name_archive("a.7z", b"7z\xbc\xaf\x27\x1c") or "")
    assert name_archive("a.onnx", b"\x08\x07") is None


def test_companions_of_macos():
    assert is_companion("a/._b") and not is_companion("a._b/c")
