"""The page of a model: its nodes with their operands, its weights with histograms."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
from onnx import numpy_helper

from serde.api.inspection import inspect
from serde.api.report.view import draw_text, render_view
from testing.onnx_live import DIGITS, model_of
from tests.chromium import open_browser

EVIL = '<img src=x onerror=alert(1)></script><script>alert("1")</script>'


def page_of(source):
    return render_view(inspect(source, all_values=True))


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_nodes_tell_their_operands_and_statistics():
    page = page_of(DIGITS)
    drawn = {name: rows for _, name, _, _, rows in data_of(page)["drawn"]}
    inputs = [text for label, text in drawn["conv1"] if label == "input"]
    assert inputs[0] == "data: float32[N,1,H,W]"
    assert re.fullmatch(
        r"conv1_weight: float32\[16,1,3,3\] · min -0\.\d+, max .* · [ ▁-█]{24}", inputs[1]
    )
    assert ["output", "conv1_output: float32[N,16,H,W]"] in drawn["conv1"]
    assert ["kernel", "(3,3)"] in [[n, v.replace(" ", "")] for n, v in drawn["conv1"]]
    section = page.partition('<section id="weights">')[2].partition("</section>")[0]
    assert section.count("<svg") == 15 and "<td>float32[32,512]</td>" in section


def test_names_are_no_markup(tmp_path):
    model = model_of("g (float[2] x) => (float[2] y) { y = Add(x, w) }", 13)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    model.graph.initializer[0].name = model.graph.node[0].input[1] = EVIL
    onnx.save(model, tmp_path / "m.onnx")
    page = page_of(tmp_path / "m.onnx")
    assert EVIL not in page and page.count("<script") == 2


def test_arrays_alone(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(6).reshape(2, 3), b=np.array([np.nan], np.float32))
    page = page_of(tmp_path / "a.npz")
    assert 'id="graph"' not in page and "<code>a</code>" in page and "int64[2,3]" in page


def test_histograms_in_text():
    assert draw_text([0, 1, 8, 4]) == " ▁█▄"


def test_the_browser_shows_a_node(tmp_path):
    (tmp_path / "page.html").write_text(page_of(DIGITS))
    with open_browser() as browser:
        browser.open(tmp_path / "page.html")
        browser.evaluate("document.getElementById('search').value = 'conv2'")
        browser.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
        browser.evaluate("document.querySelector('#found li').click()")
        shown = browser.evaluate("document.getElementById('detail').textContent")
        assert "conv2_weight: float32[32,16,3,3]" in shown and "max 0.5614" in shown
        assert browser.errors == [] and browser.requests == [(tmp_path / "page.html").as_uri()]
