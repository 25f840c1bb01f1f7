"""The report of ``serde compare``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from serde.api.report.comparison_report import ComparisonReport
from serde.errors import UsageError
from serde.verification import Verification, compare


def make_report(done=True, number=2.0):
    outputs = [compare("y", np.float32([number]), np.float32([1]))] if done else []
    statement = "" if done else "not compared: no runtime"
    verification = Verification(done, "mxnet", "random", outputs, statement=statement)
    return ComparisonReport("a<b>.onnx", "b.onnx", verification)


@pytest.mark.parametrize(("done", "number", "ok", "badge"), [
    (True, 1.0, True, 'good">same'), (True, 2.0, False, 'bad">different'),
    (False, 0, True, 'warn">not compared'),
])  # fmt: skip
def test_the_verdict(done, number, ok, badge):
    report = make_report(done, number)
    assert (report.ok, report.done, len(report.outputs)) == (ok, done, int(done))
    assert f'class="badge {badge}' in report.to_html()


@pytest.mark.parametrize(("suffix", "text"), [
    ("html", "a&lt;b&gt;.onnx and b.onnx"), ("md", r"# a\<b\>.onnx and b.onnx"),
    ("json", '"first": "a<b>.onnx"'),
])  # fmt: skip
def test_it_is_written_by_its_suffix(tmp_path, suffix, text):
    report = make_report()
    report.save(tmp_path / f"r.{suffix}")
    assert text in (tmp_path / f"r.{suffix}").read_text()
    report.save(tmp_path / f"r.{suffix}")  # in the place of one
    with pytest.raises(UsageError, match="cannot tell a report"):
        report.save(tmp_path / "r.txt")


def test_its_json():
    read = json.loads(make_report().to_json())
    assert read["ok"] is False and read["verification"]["outputs"][0]["reason"] == "off by 1"
    assert (read["first"], read["second"]) == ("a<b>.onnx", "b.onnx")


def test_a_notebook_shows_it_apart():
    frame = make_report()._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"') and frame.count("<") == 2
