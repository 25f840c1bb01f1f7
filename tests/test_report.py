"""What a conversion reports."""

from __future__ import annotations

import json

import pytest

import serde
from serde.api.report import Report
from serde.errors import Problem, UsageError
from serde.ir.graph import Tensor
from serde.verification import OutputComparison, Verification
from testing.onnx_live import DIGITS, ir_of


def report():
    entry = Report("a", "b.onnx", "mxnet", "onnx")
    entry.describe(ir_of(
        "g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}>"
        "{ a = Add(x, w)\n b = Neg(a)\n y = Neg(b) }"
    ))  # fmt: skip
    return entry


def test_a_report_describes_the_result():
    entry = report()
    assert entry.inputs == [{"name": "x", "dtype": "float32", "shape": "(N, 2)"}]
    assert entry.outputs == [{"name": "y", "dtype": "float32", "shape": "(N, 2)"}]
    assert entry.operators == {"Neg": 2, "Add": 1} and list(entry.operators) == ["Neg", "Add"]
    assert (entry.parameters, entry.weight_bytes, entry.ok) == (2, 8, True)


def test_a_report_is_not_ok_with_problems_or_wrong_numbers():
    entry = report()
    entry.problems = [Problem("Foo", {}, "no rule", ("a",))]
    assert not entry.ok
    entry = report()
    bad = OutputComparison("y", (1,), "float32", 1, 1, 1, 0, 0, False)
    entry.verification = Verification(True, "mxnet", "random", [bad])
    assert not entry.ok
    entry.verification = Verification(False, "", "random", statement="could not be run")
    assert entry.ok


def strict(text):
    """Read JSON as any other reader would: NaN is none."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_report_is_strict_json(tmp_path):
    import numpy as np

    entry = report()
    entry.problems = [Problem("Foo", {"k": (1, 2), "t": Tensor.of(np.zeros(2))}, "why", ("a", "b"))]
    nan = float("nan")
    bad = OutputComparison(
        "y", (1,), "float32", nan, nan, nan, nan, float("inf"), False, "NaN elsewhere"
    )
    entry.verification = Verification(True, "mxnet", "random", [bad])
    path = tmp_path / "report.json"
    entry.save(path)
    read = strict(path.read_text())
    assert read["ok"] is False and read["operators"] == {"Neg": 2, "Add": 1}
    assert read["problems"][0]["op"] == "Foo" and read["problems"][0]["names"] == ["a", "b"]
    assert read["problems"][0]["attrs"]["k"] == [1, 2]
    assert read["verification"]["outputs"][0]["max_abs"] is None
    assert read["verification"]["outputs"][0]["reason"] == "NaN elsewhere"


def test_a_report_cannot_be_written_over_a_folder(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        report().save(tmp_path)


def test_a_report_is_shown_in_a_line_and_as_text(tmp_path):
    report = serde.convert(DIGITS, tmp_path / "d.onnx", verify=True)
    line = repr(report)
    assert line.startswith("<Report ") and line.endswith(": ok, 12 nodes, 86.9 KB of weights>")
    text = str(report).splitlines()
    assert f"<Report {text[0]}>" == line and any("left out: input" in t for t in text)
    report.refuse([Problem("Foo", {}, "no rule", ("a\x1b", "b"))])
    assert "2 node(s) refused" in repr(report) and "Foo ×2" in str(report)
    assert "\x1b" not in str(report)
