"""The tables of a migration."""

from __future__ import annotations

import csv
import io
import json
import os

import pytest

from serde.api.migrate.job import STATE, Row
from serde.api.migrate.table import as_csv, as_html, as_json, count_statuses, group_missing


def test_paths_of_a_migration_are_seen_from_its_folder(tmp_path):
    rows = [Row(str(tmp_path / "in" / "a b#1.onnx"), str(tmp_path / "out/a b#1.onnx"), "converted",
                report=str(tmp_path / "out/x/a b#1.html")),
            Row("s3://bucket/b.onnx", str(tmp_path / "out/b.onnx"), "converted")]  # fmt: skip
    page = as_html(rows, str(tmp_path / "out"), {})
    assert "<code>../in/a b#1.onnx</code>" in page and 'href="x/a%20b%231.html"' in page
    assert "<code>s3://bucket/b.onnx</code>" in page


@pytest.mark.parametrize(
    "name",
    [
        "javascript:alert(1)",
        "m#1",
        "m?2",
        "m%41",
        "a b",
        "é",
        "\udce9",
        "<b>",
        '"',
        "x:y//z",
        "data:,",
    ],
)
def test_links_of_a_migration_lead_to_the_file(tmp_path, name):
    from urllib.parse import unquote_to_bytes, urlsplit

    from serde.api.migrate.table import make_link

    path = os.path.join(tmp_path, "out", name)
    link = urlsplit(make_link(path, os.path.join(tmp_path, "out")))
    assert not (link.scheme or link.netloc or link.query or link.fragment)
    assert unquote_to_bytes(link.path) == os.fsencode(os.path.normpath(name))
    remote = urlsplit(make_link(f"s3://bucket/{name}", "s3://bucket"))
    assert (remote.scheme, remote.netloc, remote.query, remote.fragment) == ("s3", "bucket", "", "")


def make_row(name, status, *missing):
    counts = [{"op": op, "count": n, "reason": f"no {op}"} for op, n in missing]
    return Row(f"in/{name}.onnx", f"out/{name}.onnx", status, missing=counts, read={"a": "b"})


ROWS = [make_row("a", "refused", ("Foo", 2), ("Bar", 1)), make_row("b", "refused", ("Foo", 3)),
        make_row("c", "converted"), make_row("d", "verified"), make_row("e", "verified"),
        make_row("f", "crashed")]  # fmt: skip


def test_good_outcomes_are_counted_first_then_the_most():
    counts = count_statuses(ROWS)
    assert [*counts.items()] == [("verified", 2), ("converted", 1), ("refused", 2), ("crashed", 1)]


def test_operators_in_the_way_of_most_models_come_first():
    assert group_missing(ROWS) == [("Foo", 2, 5, "no Foo"), ("Bar", 1, 1, "no Bar")]
    assert group_missing([]) == []


def test_json_has_no_state_of_the_run():
    read = json.loads(as_json(ROWS, {"x.zip": "no model"}))
    assert read["skipped"] == [{"path": "x.zip", "reason": "no model"}]
    assert [m["source"] for m in read["models"]] == [r.source for r in ROWS]
    assert not {name for m in read["models"] for name in m} & {*STATE}


def test_csv_has_a_line_for_each_model_that_no_text_breaks():
    row = Row("a,b.onnx", "c.onnx", "refused", 'it says "no"\nand ends\x1b[2J')
    (read,) = csv.DictReader(io.StringIO(as_csv([row])))
    assert (
        read["source"] == "a,b.onnx" and '"no"' in read["reason"] and "\x1b" not in read["reason"]
    )


def test_the_page_has_what_went_wrong_first():
    page = as_html(ROWS, "out", {})
    places = [page.index(f"in/{name}.onnx") for name in "fabcde"]
    assert places == sorted(places) and "3 of 6" in page and 'id="skipped"' not in page
    assert "all converted" in as_html(ROWS[2:5], "out", {})
