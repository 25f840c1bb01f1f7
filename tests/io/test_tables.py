"""Tables that users write, in three formats."""

from __future__ import annotations

import pytest

from serde.errors import SerdeError
from serde.io.tables import read_tables

TEXTS = {
    "a.toml": '["x/*"]\nopset = 12\n', "a.json": '{"x/*": {"opset": 12}}', "a.yaml": "x/*:\n  opset: 12\n",
    "a.YML": "x/*: {opset: 12}",
}  # fmt: skip
DAMAGED = {
    "a.toml": ("x = ", "not TOML"), "a.json": ("{", "not JSON"), "a.yml": ("a: [", "not YML"),
    "b.json": ("[1]", "give a table for each name"), "a.ini": ("x", "end it with .toml, .json, .yaml"),
    "c.yaml": ("a: " + "9" * 500, "more than 400 digits"), "d.json": (b"\xff\xfe", "not JSON"),
    "e.json": ('{"a": {"x": 1}, "a": {}}', "'a' is there twice"),
    "e.yaml": ("a: {x: 1, y: 2, x: 3}", "'x' is there twice"),
    "f.yaml": ("a: &a {x: *a}", "repeat too much, or without end"),
    "g.yaml": ("a: &a [0]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n"
                                        for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
               "repeat too much, or without end"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_all_formats_hold_the_same(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name])
    assert read_tables(str(tmp_path / name)) == {"x/*": {"opset": 12}}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_table_is_refused_with_the_file(tmp_path, name):
    text, reason = DAMAGED[name]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SerdeError, match=rf"{name}.*{reason}"):
        read_tables(str(tmp_path / name))


def test_aliases_and_merged_tables_are_taken(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, x: 4}\nd: [*a, *a]\n")
    a, b = {"x": 1, "y": 2}, {"x": 3, "y": 2}
    assert read_tables(str(path)) == {"a": a, "b": b, "c": {"x": 4, "y": 2}, "d": [a, a]}
