"""The report as a page: what it says, that nothing in a name is markup, and Chromium's own view."""

from __future__ import annotations

import io
import json
import os
import re
from html import unescape
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import onnx
import pytest
from PIL import Image

import serde
from serde.api.migrate.job import Row
from serde.api.migrate.table import as_html
from serde.api.report import Report
from serde.api.report.comparison import draw_histogram
from serde.api.report.comparison_report import ComparisonReport
from serde.errors import Problem, Unconvertible
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.picture.layout import GAP, HEIGHT, place_nodes
from serde.ir.picture.outline import make_outline
from serde.ir.picture.svg import MOST_DRAWN, draw
from serde.verification import OutputComparison, Verification, compare
from testing.onnx_live import ir_of, model_of
from tests.chromium import open_browser

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
SCHEMA = json.loads((ROOT / "docs/reference/report.schema.json").read_text())
EVIL = '<img src=x onerror=alert(1)></script><script>alert("1")</script>'

RESIDUAL = """g (float[N,4] x) => (float[N,4] y) {
  a = Relu(x)
  b = Sigmoid(a)
  c = Tanh(b)
  d = Neg(c)
  y = Add(d, a)
}"""


def layer_chain(count, name="layer"):
    """A graph of as many nodes, one behind another."""
    value = x = Value("x", DType.FLOAT32, (1,))
    nodes = []
    for at in range(count):
        value, before = Value(f"{name}{at}", DType.FLOAT32, (1,)), value
        nodes.append(Node("Neg", (before,), (value,), name=f"{name}{at}"))
    return Graph("g", (x,), (value,), tuple(nodes))


def make_report(graph, **fields):
    report = Report("a/model-symbol.json", "b/model.onnx", "mxnet", "onnx", **fields)
    report.describe_source(graph)
    report.describe(graph)
    return report


class TestLayout:
    def test_nodes_of_a_rank_do_not_overlap_and_edges_point_down(self):
        for graph in (ir_of(RESIDUAL), serde.load(DIGITS)):
            outline = make_outline(graph)
            layout = place_nodes(outline)
            for at, node in enumerate(outline.nodes):
                for read in node.reads:
                    assert layout.centers[read][1] + HEIGHT < layout.centers[at][1]
            rows = {}
            for (x, y), width in zip(layout.centers, layout.widths, strict=True):
                rows.setdefault(y, []).append((x - width / 2, x + width / 2))
            for row in rows.values():
                row.sort()
                assert all(b[0] - a[1] >= GAP - 1e-6 for a, b in pairwise(row))
            assert all(0 <= x <= layout.width for x, _ in layout.centers)

    def test_an_edge_goes_around_the_nodes_it_passes(self):
        outline = make_outline(ir_of(RESIDUAL))
        layout = place_nodes(outline)
        edges = [e for e in layout.edges if e.x1 == e.x2 and e.y2 - e.y1 == HEIGHT]
        assert len(edges) == 3  # of the ranks of b, c and d
        for edge in edges:
            for (x, y), width in zip(layout.centers, layout.widths, strict=True):
                if edge.y1 <= y <= edge.y2:
                    assert abs(edge.x1 - x) > width / 2

    def test_a_graph_of_one_edge_over_many_nodes_stays_linear(self):
        graph = layer_chain(3000)
        x = graph.inputs[0]
        ends = [Value(f"s{i}", DType.FLOAT32, (1,)) for i in range(3000)]
        more = [
            Node("Add", (n.outputs[0], x), (e,)) for n, e in zip(graph.nodes, ends, strict=True)
        ]
        outline = make_outline(Graph("g", (x,), tuple(ends), (*graph.nodes, *more)))
        layout = place_nodes(outline)
        assert len(layout.edges) < 8 * len(outline.nodes)

    def test_subgraphs_count_as_readers_of_what_is_around_them(self):
        graph = ir_of(
            "g (bool c, float[2] x, float[2] z) => (float[2] y) { a = Neg(x)\n"
            "  y = If(c) <then_branch = t () => (float[2] p) { p = Relu(a) },"
            "             else_branch = e () => (float[2] q) { q = Identity(z) }> }"
        )
        outline = make_outline(graph)
        branch = next(n for n in outline.nodes if n.op == "If")
        assert {outline.nodes[r].name for r in branch.reads} >= {"c", "z"}
        assert len(branch.reads) == 3


def test_a_picture_marks_refused_layers_and_escapes_names():
    graph = layer_chain(3, name=EVIL)
    picture = draw(make_outline(graph), {f"{EVIL}1"})
    assert picture.count('class="n other refused"') == 1 and "<img" not in picture
    assert unescape(re.search(r"<title>Neg (.*?)\n", picture)[1]) == f"{EVIL}0"


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


def test_markdown_is_no_markup_of_names():
    report = make_report(layer_chain(1, EVIL), notes=["a | b *c*"])
    text = report.to_markdown()
    assert not re.search(r"(?<!\\)<img", text) and r"a \| b \*c\*" in text
    rows = [r for r in text.splitlines() if r.startswith("|")]
    assert "| Neg | 1 | Neg | 1 |" in rows
    names = "\x1b[2J<img src=x>", "a\n# b`c`"
    text = ComparisonReport(*names, Verification(True, "onnx", "random", [])).to_markdown()
    assert text.splitlines()[1] == r"# \\x1b\[2J\<img src=x\> and a # b\`c\`"


class TestJson:
    def test_it_follows_its_schema(self, tmp_path):
        verified = serde.convert(DIGITS, tmp_path / "d.onnx", inputs={"data": (1, 1, 8, 8)})
        bad = compare("y", np.float32([1, 2]), np.float32([1, 3]))
        verified.verification = Verification(True, "mxnet", "random", [bad])
        refused = make_report(layer_chain(2), problems=[Problem("Neg", {"k": 1}, "why", ("a",))])
        for report in (verified, refused):
            read = json.loads(report.to_json())
            jsonschema.validate(read, SCHEMA)
        assert json.loads(verified.to_json())["verification"]["outputs"][0]["worst"] == {
            "index": [1], "value": 2.0, "expected": 3.0,
        }  # fmt: skip

    def test_the_schema_and_the_page_name_every_field(self):
        read = json.loads(make_report(layer_chain(1)).to_json())
        assert set(SCHEMA["required"]) == set(SCHEMA["properties"]) == set(read)
        page = (ROOT / "docs/reference/report.md").read_text()
        assert [name for name in read if f"`{name}`" not in page] == []
        own = SCHEMA["$defs"]["comparison"]["required"]
        assert set(own) == set(OutputComparison.__dataclass_fields__)
        assert [name for name in own if f"`{name}`" not in page] == []


def test_the_histogram_counts_by_share_of_the_tolerance():
    expected = np.float32([8, 8, 8, 8, 8])
    result = compare("y", expected + np.float32([0, 0, 1e-6, 5e-4, 1]), expected)
    assert sum(result.histogram) == 5 and result.histogram[0] == 2 and result.histogram[-1] == 1
    assert [at for at, n in enumerate(result.histogram) if n] == [0, 8, 17, 22]
    picture = draw_histogram(result.histogram)
    assert picture.count('class="over"') == 5 and "equal: 2 of 5" in picture


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
