"""What is fetched from URLs, and stored there."""

from __future__ import annotations

import fsspec
import pytest

from serde.api.migrate.sources import find_models
from serde.api.migrate.transfers import fetch_model, stamp_entry, store_files


@pytest.mark.parametrize("entry", [
    {"size": 3, "mtime": 1.5}, {"size": 3, "ETag": "x"}, {"size": 3, "LastModified": "today"},
])  # fmt: skip
def test_a_change_at_a_url_changes_its_stamp(entry):
    stamp = stamp_entry(entry)
    assert stamp_entry({**entry, "name": "other", "etag": None}) == stamp
    assert all(stamp_entry({**entry, key: "new"}) != stamp for key in entry)


def test_a_model_is_fetched_with_the_files_beside_it(tmp_path):
    system = fsspec.filesystem("memory")
    for name in ("net.onnx", "net.onnx.data", "other.onnx", "two.zip"):
        system.pipe_file(f"/fetched/{name}", b"content")
    names = {"net.onnx": {"net.onnx", "net.onnx.data"}, "two.zip:net.onnx": {"two.zip"}}
    for name, copies in names.items():
        folder = tmp_path / name.partition(".")[0]
        model = find_models([f"memory://fetched/{name}"])[0]
        path = fetch_model(model.path, model.siblings, str(folder))
        assert path == str(folder / name)
        assert {p.name for p in folder.iterdir()} == copies
    system.rm("/fetched", recursive=True)


def test_results_are_stored_with_their_stamps(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"content")
    stamps = store_files(str(tmp_path), "memory://stored")
    system = fsspec.filesystem("memory")
    assert system.cat_file("/stored/net.onnx") == b"content"
    assert stamps == {"memory://stored/net.onnx": stamp_entry(system.info("/stored/net.onnx"))}
    system.rm("/stored", recursive=True)
