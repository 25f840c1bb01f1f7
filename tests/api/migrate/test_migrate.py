"""Many models at once: what is found, what becomes of each, and what one can do to the others."""

from __future__ import annotations

import csv
import json
import os

import pytest

from serde.api.migrate import job, migrate
from tests.api.migrate.zoo import GOOD, UNKNOWN, write_model


def test_a_folder_gives_a_row_for_each_model(zoo, tmp_path):
    out = tmp_path / "out"
    seen = []
    report = migrate(zoo, out, to="mxnet", jobs=2, progress=lambda *a: seen.append(a))
    assert [(n, total) for _, n, total in seen] == [(n + 1, 5) for n in range(5)]
    assert {os.path.relpath(r.source, zoo): r.status for r in report.rows} == {
        "a.onnx": "converted", "sub/a.onnx": "converted", "mx/digits-symbol.json": "converted",
        "foo.onnx": "refused", "broken.onnx": "unreadable",
    }  # fmt: skip
    assert not report.ok and report.counts == {"converted": 3, "refused": 1, "unreadable": 1}
    assert [m[:3] for m in report.missing_operators] == [("Bar", 1, 1), ("Foo", 1, 2)]
    results = {str(p.relative_to(out)) for p in out.rglob("*-symbol.json")}
    assert results == {"a-symbol.json", "sub/a-symbol.json", "mx/digits-symbol.json"}
    read = json.loads((out / "migration.json").read_text())
    assert read["counts"] == report.counts and len(read["models"]) == 5
    assert read["missing"][0]["op"] == "Bar"
    rows = list(csv.DictReader((out / "migration.csv").read_text().splitlines()))
    assert sorted(r["status"] for r in rows) == sorted(r.status for r in report.rows)
    assert "Operators in the way" in (out / "migration.html").read_text()
    lines = str(report).splitlines()
    assert lines[0].startswith("5 models: 3 converted, 1 ") and len(lines) == 3
    assert "Operators in the way" in report._repr_html_()


class TestOneOfMany:
    def test_of_200_models_20_are_broken(self, tmp_path, in_this_process):
        for n in range(200):
            path = write_model(
                tmp_path / "in" / f"{n % 7}" / f"m{n}.onnx", UNKNOWN if n % 20 == 0 else GOOD
            )
            if n % 20 == 1:
                path.write_bytes(path.read_bytes()[:50])
        report = migrate([tmp_path / "in"], tmp_path / "out", to="relay", jobs=1)
        assert report.counts == {"converted": 180, "refused": 10, "unreadable": 10}
        assert [m[:3] for m in report.missing_operators] == [("Bar", 10, 10), ("Foo", 10, 20)]


@pytest.mark.usefixtures("in_this_process")
class TestResuming:
    def test_what_is_done_is_not_done_again(self, zoo, tmp_path, monkeypatch):
        out = tmp_path / "out"
        arguments = {"to": "mxnet", "jobs": 1}
        first = migrate([zoo], out, **arguments)
        again = migrate([zoo], out, **arguments)
        assert again.resumed == 5 and again.rows == first.rows
        (out / "a-symbol.json").unlink()
        write_model(zoo / "sub" / "a.onnx", GOOD.replace("Softmax", "Relu"))
        seen = []
        report = migrate(
            [zoo], out, **arguments, progress=lambda row, n, total: seen.append(row.target)
        )
        assert report.resumed == 3
        assert {os.path.relpath(t, out) for t in seen} == {"a-symbol.json", "sub/a-symbol.json"}
        assert migrate([zoo], out, **arguments, write_epoch=2).resumed == 0
        assert migrate([zoo], out, **arguments, again=True).resumed == 0

    def test_an_interrupted_run_keeps_its_rows(self, zoo, tmp_path):
        def interrupt(row, done, total):
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            migrate([zoo], tmp_path / "out", jobs=1, progress=interrupt)
        with (tmp_path / "out" / "migration.jsonl").open("a") as file:
            file.write('{"source": "cut off')
        assert migrate([zoo], tmp_path / "out", jobs=1).resumed == 2

    def test_a_crash_is_tried_again(self, tmp_path, monkeypatch):
        write_model(tmp_path / "in" / "crash.onnx")
        with monkeypatch.context() as patch:
            patch.setattr(job, "run_child", lambda *a, **k: (-6, ""))
            assert not migrate([tmp_path / "in"], tmp_path / "out", jobs=1).ok
        assert migrate([tmp_path / "in"], tmp_path / "out", jobs=1).ok
