"""The picture of a graph."""

from __future__ import annotations

import re
from html import unescape
from xml.etree import ElementTree

import pytest

from serde.ir.picture.layout import measure_label
from serde.ir.picture.outline import OutlineNode, make_outline
from serde.ir.picture.svg import STYLE, draw, family_of, show_in_notebook
from tests.layer_chains import EVIL, layer_chain


def test_a_picture_marks_refused_layers_and_escapes_names():
    graph = layer_chain(3, name=EVIL)
    picture = draw(make_outline(graph), {f"{EVIL}1"})
    assert picture.count('class="n other refused"') == 1 and "<img" not in picture
    assert unescape(re.search(r"<title>Neg (.*?)\n", picture)[1]) == f"{EVIL}0"


@pytest.mark.parametrize(("op", "family"), [
    ("Conv", "linear"), ("ConvTranspose", "linear"), ("QLinearConv", "linear"), ("Cast", "convert"),
    ("DequantizeLinear", "convert"), ("BatchNormalization", "norm"), ("LayerNorm", "norm"),
    ("Gelu", "activation"), ("MaxPool", "pool"), ("Transpose", "move"), ("TopK", "select"), ("Foo", "other"),
])  # fmt: skip
def test_a_box_is_coloured_by_the_family_of_its_operator(op, family):
    assert family_of(OutlineNode("node", op, "n", "", ())) == family
    assert family_of(OutlineNode("input", op, "n", "", ())) == "end"
    assert family == "other" or f".{family} rect" in STYLE


def test_it_is_xml_whose_labels_fit_their_boxes():
    long = "a_very_long_name_of_a_layer_" * 8
    svg = ElementTree.fromstring(draw(make_outline(layer_chain(3, f"{long}&<"))))
    groups = [*svg.iter("{http://www.w3.org/2000/svg}g")]
    assert [g.get("data-i") for g in groups] == [str(i) for i in range(5)]
    for group in groups[1:4]:
        rect, title, label = (group.find(f"{{*}}{tag}") for tag in ("rect", "text", "text[2]"))
        assert title.text == "Neg" and long not in label.text and "…" in label.text
        assert measure_label(label.text) <= float(rect.get("width"))
    assert long in groups[1].find("{*}title").text


def test_a_notebook_is_shown_a_picture_of_what_can_be_drawn(monkeypatch):
    graph = layer_chain(5)
    assert "<b>g</b>: 5 nodes" in show_in_notebook(graph) and "<svg" in show_in_notebook(graph)
    monkeypatch.setattr("serde.ir.picture.svg.MOST_DRAWN", 6)
    assert "More than 6 are not drawn." in show_in_notebook(graph)
