"""Files that a migration wrote, told by its journal."""

from __future__ import annotations

import json

import pytest

from serde.api.migrate.own_results import OwnResults

ROW = {"source": "/in/a-symbol.json", "target": "/in/out/sub/a.onnx",
       "written": {"/in/out/sub/a.onnx": "1", "/in/out/sub/a.onnx.data": "2"}}  # fmt: skip


@pytest.mark.parametrize(
    ("root", "folder", "path", "is_result"),
    [
        ("/in", "/in/out", "/in/out/sub/a.onnx", True),
        ("/in", "/in/out", "/in/out/sub/a.onnx.data", True),
        ("/in", "/in/out", "/in/out/a.onnx", False),
        ("/in", "/in/out", "/in/out/sub/b.onnx", False),
        ("/in", "/in/out", "/in/a.onnx", False),
        ("/in", "/in/moved", "/in/moved/sub/a.onnx", True),
        ("/in/out", "/in/out", "/in/out/sub/a.onnx", False),  # named itself: a source
        ("/in", "/in", "/in/out/sub/a.onnx", True),  # its source is in it
        ("/else", "/else/out", "/else/out/sub/a.onnx", True),
        ("/in", "/in/out", "/in/anywhere/migration.json", True),
        ("/in", "/in/out", "/in/anywhere/migration.jsonl", True),
        ("/in", "/in/out", "/in/anywhere/mine.json", False),
    ],
)
def test_what_is_a_result(root, folder, path, is_result):
    results = OwnResults(root)
    results.enter(folder, json.dumps(ROW))
    assert results.has(path) is is_result


@pytest.mark.parametrize("line", ["", "{", "[]", '{"written": 5}', "[" * 100_000, '{"target": 1}'])
def test_a_line_that_is_no_row_names_nothing(line):
    results = OwnResults("/in")
    results.enter("/in/out", f"{line}\n{json.dumps(ROW)}")
    assert results.has("/in/out/sub/a.onnx") and not results.has("/in/out/x.onnx")


@pytest.mark.parametrize("colons", ["://", ":///"])
def test_urls_are_told_as_paths(colons):
    """Those of a file system have one or two of its slashes."""
    results = OwnResults(f"memory{colons}bucket")
    row = {"source": "memory:///bucket/a.onnx", "written": {"memory://bucket/a.relay": "1"}}
    results.enter(f"memory{colons}bucket", json.dumps(row))
    assert results.has("memory:///bucket/a.relay") and not results.has("memory://bucket/a.onnx")


def test_results_in_a_folder_above_the_root():
    """They are results of models in the root, or models to migrate further."""
    results = OwnResults("/in/out/sub")
    results.enter("/in/out", json.dumps(ROW))
    assert not results.has("/in/out/sub/a.onnx")
    row = json.dumps(ROW | {"source": "/in/out/sub/a-symbol.json"})
    results.enter("/in/out", row)
    assert results.has("/in/out/sub/a.onnx")


@pytest.mark.parametrize(
    ("root", "replaced", "spared", "more", "is_result"),
    [
        ("/in", False, [], "", True),
        ("/in", False, ["a.onnx"], "", False),  # that of the user
        ("/in", False, [], '{"target": "/in/out/a.onnx", "written": {}}', False),
        ("/in/out", False, [], "", False),
        ("/in/out", True, [], "", True),
    ],
)
def test_what_a_run_left_that_was_stopped(root, replaced, spared, more, is_result):
    results = OwnResults(root, replaced)
    results.enter("/in/out", json.dumps({"begun": {"/in/out/a.onnx": spared}}) + "\n" + more)
    assert results.has("/in/out/a.onnx") is is_result


def test_ends_of_paths_are_no_shorter_than_what_a_run_wrote_into():
    results = OwnResults("/else")
    row = {"source": "/in/a", "written": {"/in/out/sub/a.onnx": "1", "/in/out/b.onnx": "2"}}
    results.enter("/else/out", json.dumps(row))
    assert results.has("/else/out/sub/a.onnx") and results.has("/else/out/b.onnx")
    assert not results.has("/else/out/a.onnx")
