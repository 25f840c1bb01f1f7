"""A folder by its handle, and by its path where systems have no handles."""

from __future__ import annotations

import pytest

from serde.errors import TargetRefused
from serde.io import open_folder
from serde.io.open_folder import OpenFolder


@pytest.fixture(params=[True, False])
def folder(request, tmp_path, monkeypatch):
    if request.param and not open_folder.HAS_HANDLES:
        pytest.skip("the system has no handles of folders")
    monkeypatch.setattr(open_folder, "HAS_HANDLES", request.param)
    (tmp_path / "out").mkdir()
    folder = OpenFolder(str(tmp_path / "out"))
    yield folder
    folder.close()


def test_files_are_made_renamed_and_removed(folder, tmp_path):
    with folder.create("a") as file:
        file.write(b"a")
    with pytest.raises(FileExistsError):
        folder.create("a")
    folder.replace("a", "b")
    assert (tmp_path / "out" / "b").read_bytes() == b"a"
    assert folder.has("b") and not folder.has("a")
    folder.unlink("b")
    assert not folder.has("b")
    (tmp_path / "out" / "link").symlink_to("nowhere")
    assert folder.has("link")
    folder.refuse_other()


def test_files_go_to_the_folder_that_was_opened(tmp_path):
    if not open_folder.HAS_HANDLES:
        pytest.skip("the system has no handles of folders")
    (tmp_path / "out").mkdir()
    folder = OpenFolder(str(tmp_path / "out"))
    (tmp_path / "out").rename(tmp_path / "moved")
    folder.create("a").close()
    assert (tmp_path / "moved" / "a").exists()
    for _ in range(2):
        with pytest.raises(TargetRefused, match="out was moved or replaced"):
            folder.refuse_other()
        (tmp_path / "out").mkdir(exist_ok=True)
    folder.close()
    folder.close()
