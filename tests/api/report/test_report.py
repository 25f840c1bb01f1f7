"""How a report is shown in a line and as text."""

from __future__ import annotations

import serde
from serde.errors import Problem
from testing.onnx_live import DIGITS


def test_a_report_is_shown_in_a_line_and_as_text(tmp_path):
    report = serde.convert(DIGITS, tmp_path / "d.onnx", verify=True)
    line = repr(report)
    assert line.startswith("<Report ") and line.endswith(": ok, 12 nodes, 86.9 KB of weights>")
    text = str(report).splitlines()
    assert f"<Report {text[0]}>" == line and any("left out: input" in t for t in text)
    report.refuse([Problem("Foo", {}, "no rule", ("a\x1b", "b"))])
    assert "2 node(s) refused" in repr(report) and "Foo ×2" in str(report)
    assert "\x1b" not in str(report)
