"""Pages of HTML: they load nothing, nothing in a name is markup, and Chromium shows them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import serde
from serde.api.migrate.job import Row
from serde.api.migrate.table import as_html
from serde.errors import Problem
from serde.ir.picture.svg import MOST_DRAWN
from serde.verification import Verification, compare
from testing.onnx_live import DIGITS
from tests.chromium import open_browser
from tests.layer_chains import EVIL, layer_chain, make_report

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/reference/report.schema.json").read_text())

RESIDUAL = """g (float[N,4] x) => (float[N,4] y) {
  a = Relu(x)
  b = Sigmoid(a)
  c = Tanh(b)
  d = Neg(c)
  y = Add(d, a)
}"""


def is_blank(png, box=None):
    image = Image.open(io.BytesIO(png)).convert("RGB")
    return len((image.crop(box) if box else image).getcolors(1 << 24)) < 20


@pytest.fixture(scope="module")
def page():
    with open_browser() as page:
        yield page


class TestInChromium:
    @pytest.fixture
    def written(self, tmp_path):
        report = make_report(serde.load(DIGITS), notes=[f"a note on {EVIL}"])
        bad = compare(
            "out", np.arange(64, dtype=np.float32), np.arange(64, dtype=np.float32) * 1.01
        )
        report.verification = Verification(True, "mxnet", "random inputs", [bad])
        report.save(tmp_path / "report.html")
        return tmp_path / "report.html"

    BROKEN_WORDS = """[...document.querySelectorAll('td, th')].flatMap(cell => {
      const found = [], walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        for (const match of node.data.matchAll(/[^\\s]{1,38}(?=\\s|$)/g)) {
          if (match.index && !/\\s/.test(node.data[match.index - 1])) continue;
          const range = document.createRange();
          range.setStart(node, match.index);
          range.setEnd(node, match.index + match[0].length);
          const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
          if (lines.size > 1) found.push(match[0]);
        }
      }
      return found;
    })"""

    @pytest.mark.parametrize("width", [360, 700])
    def test_tables_in_narrow_windows_break_no_words(self, page, written, tmp_path, width):
        table = as_html([Row("models/a-model-symbol.json", "out/a-model.onnx", "refused",
                             "deconvolution (Deconvolution): target_shape is not supported",
                             "mxnet", 1.5, 120, 25_000_000)], "out", {})  # fmt: skip
        (tmp_path / "migration.html").write_text(table)
        try:
            page.resize(width, 900)
            for path in (written, tmp_path / "migration.html"):
                page.open(path)
                assert page.evaluate("document.querySelectorAll('td').length") > 5
                assert page.evaluate(self.BROKEN_WORDS) == []
                assert page.evaluate("document.documentElement.scrollWidth") <= width
        finally:
            page.resize(1280, 900)

    def test_it_is_shown_without_an_error_or_a_request(self, page, written):
        page.requests.clear()
        page.open(written)
        assert page.errors == [] and page.requests == [written.as_uri()]
        assert not is_blank(page.take_screenshot())
        title = page.evaluate("document.querySelector('h1').textContent")
        assert title == "model-symbol.json → model.onnx"
        assert page.evaluate("document.querySelector('.badge').textContent") == "outputs differ"
        assert page.evaluate("document.querySelectorAll('svg.graph .n').length") == 14
        assert page.evaluate("document.querySelectorAll('img').length") == 0

    def test_the_graph_zooms_moves_and_tells_of_a_node(self, page, written):
        page.open(written)
        before = self.view(page)
        page.turn_wheel("svg.graph", -240)
        page.evaluate("new Promise(d => setTimeout(d, 100))")
        after = self.view(page)
        assert after[2] < before[2] and after[3] < before[3]
        page.click("#zoom-fit")
        x, y, _, height = self.view(page)
        assert x <= 0 and y <= 0 and height >= page.evaluate("14 * 60")
        page.click('svg.graph .n[data-i="1"] rect')
        assert "conv1" in page.evaluate("document.querySelector('#detail').textContent")
        assert "kernel_shape(3, 3)" in page.evaluate(
            "document.querySelector('#detail').textContent"
        )
        assert page.errors == []

    def test_the_picture_is_saved_whole(self, page, written):
        """Whatever part of it is shown."""
        page.open(written)
        whole = self.view(page)
        page.turn_wheel("svg.graph", -240)
        page.evaluate("new Promise(d => setTimeout(d, 100))")
        page.evaluate("URL.createObjectURL = blob => { window.saved = blob; return '#'; }")
        page.click("#save-svg")
        root = ElementTree.fromstring(page.evaluate("window.saved.text()"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and len(root) > 10
        size = [float(root.attrib[name]) for name in ("width", "height")]
        assert [float(n) for n in root.attrib["viewBox"].split()] == [0, 0, *size]
        assert whole[2:] != self.view(page)[2:] and page.errors == []

    def view(self, page):
        text = page.evaluate("document.querySelector('svg.graph').getAttribute('viewBox')")
        return [float(n) for n in text.split()]

    def test_the_search_finds_nodes_and_rows(self, page, written):
        page.open(written)
        before = self.view(page)
        page.type_text("#search", "relu3")
        assert page.evaluate("document.querySelector('#found').dataset.count") == "1"
        assert page.evaluate("document.querySelectorAll('svg.graph .n.hit').length") == 1
        page.click("#found li")
        assert self.view(page) != before
        page.evaluate("document.querySelector('#search').value = ''")
        page.type_text("#search", "a note on")
        assert page.evaluate("document.querySelector('#found li').textContent").endswith("notes")
        page.type_text("#search", " nowhere")
        assert page.evaluate("document.querySelector('#found').textContent") == "nothing found"
        assert page.errors == []

    def test_a_script_of_others_does_not_run(self, page, written):
        text = written.read_text().replace("</body>", "<script>window.evil = 1</script></body>")
        written.write_text(text)
        page.open(written)
        assert page.evaluate("window.evil === undefined")
        assert any("Content Security Policy" in e for e in page.errors)
        page.errors.clear()

    def test_a_graph_of_100000_nodes_opens(self, page, tmp_path):
        graph = layer_chain(100_000, "block/layer")
        refused = Problem("Neg", {}, "no rule", ("block/layer77777",))
        make_report(graph, problems=[refused]).save(tmp_path / "r.html")
        page.open(tmp_path / "r.html")  # under two seconds; 100,000 drawn nodes would take minutes
        assert page.errors == [] and not is_blank(page.take_screenshot())
        assert page.evaluate("document.querySelectorAll('svg.graph .n').length") < MOST_DRAWN
        assert page.evaluate("document.querySelectorAll('svg.graph .refused').length") == 1
        assert "100,000 nodes are more" in page.evaluate("document.body.textContent")
        page.type_text("#search", "layer99999")  # a node, and the output
        assert page.evaluate("document.querySelector('#found').dataset.count") == "2"

    def test_notebooks_show_reports_and_graphs(self, page, tmp_path):
        graph = serde.load(DIGITS)
        parts = make_report(graph)._repr_html_() + graph._repr_html_()
        (tmp_path / "n.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{parts}")
        page.open(tmp_path / "n.html")
        assert page.errors == []
        assert page.evaluate("document.querySelectorAll('svg.graph .n').length") == 14
        assert not is_blank(page.take_screenshot(), (0, 0, 1200, 600))  # the frame
