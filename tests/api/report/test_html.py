"""The page of a report."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import onnx
import pytest

import serde
from serde.api.report.html import choose_drawn, judge
from serde.errors import Problem, Unconvertible
from serde.verification import Verification, compare
from testing.onnx_live import DIGITS, model_of
from tests.layer_chains import layer_chain, make_report

EQUAL, OTHER = (compare("y", np.float32([n]), np.float32([1])) for n in (1, 2))


def test_the_page_has_what_the_report_has():
    report = serde.check(DIGITS)
    page = report.to_html()
    for text in ("Convolution", "BatchNormalization", "softmax_output", "(N, 1, H, W)"):
        assert text in page
    assert 'class="badge good">convertible' in page
    assert re.findall(r'(?:src|href)="(?!#)', page) == []  # nothing is loaded
    assert "default-src 'none'" in page and "{{" not in page


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_a_failed_conversion_has_a_report_too(tmp_path, suffix):
    onnx.save(model_of("g (float[2] x) => (float[2] y) { a = Neg(x)\n y = Foo(a) }", 17, 8),
              tmp_path / "m.onnx")  # fmt: skip
    with pytest.raises(Unconvertible) as caught:
        serde.convert(tmp_path / "m.onnx", tmp_path / "m-symbol.json")
    report = caught.value.report
    assert not report.ok and report.source_operators == {"Neg": 1, "Foo": 1}
    report.save(tmp_path / f"r.{suffix}")
    text = (tmp_path / f"r.{suffix}").read_text()
    assert "Foo" in text and report.problems[0].reason[:20] in unescape(text)
    if suffix == "html":
        assert 'class="n other refused"' in text and "1 nodes refused" in text


@pytest.mark.parametrize(("fields", "badge"), [
    ({}, ("good", "converted")),
    ({"target": ""}, ("good", "convertible")),
    ({"problems": [Problem("A", {}, "no", ("a", "b")), Problem("B", {}, "no", ("c",))]},
     ("bad", "3 nodes refused")),
    ({"verification": Verification(True, "mxnet", "random", [EQUAL])}, ("good", "verified")),
    ({"verification": Verification(True, "mxnet", "random", [OTHER])}, ("bad", "outputs differ")),
    ({"verification": Verification(False, "", "", statement="no runtime")},
     ("warn", "converted, not verified")),
])  # fmt: skip
def test_the_badge(fields, badge):
    report = make_report(layer_chain(1))
    for name, value in fields.items():
        setattr(report, name, value)
    assert judge(report) == badge


def test_of_a_large_graph_the_refused_nodes_are_drawn(monkeypatch):
    monkeypatch.setattr("serde.api.report.html.MOST_DRAWN", 20)
    report = make_report(layer_chain(60))
    assert choose_drawn(report) is None and "60 nodes" in report.to_html()
    report.refuse([Problem("Neg", {}, "no rule", ("layer30",))])
    drawn = [n.name for n in choose_drawn(report).nodes]
    assert drawn == [f"layer{i}" for i in range(28, 33)]
