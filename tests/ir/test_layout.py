"""Where nodes of a picture are placed, and that their labels fit."""

from __future__ import annotations

import pytest

from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.picture.layout import (
    BESIDE,
    LEAST_WIDTH,
    MOST_WIDTH,
    measure_label,
    measure_title,
    place_nodes,
    shorten,
)
from serde.ir.picture.outline import make_outline
from serde.ir.picture.svg import draw
from tests.chromium import open_browser

NAMES = ("Conv", "BatchNormalization", "W" * 8, "MWMWMWMWMWMWMWMWMW", "i" * 60, "漢字" * 5, "漢" * 40,
         "NonMaxSuppression", "a/very/long/scope/" * 6 + "end", "X" * 30, "%@" * 12)  # fmt: skip


def graph_of(names):
    value = x = Value("x", DType.FLOAT32, (1,))
    nodes = []
    for at, name in enumerate(names):
        value, before = Value(f"v{at}", DType.FLOAT32, (1,)), value
        nodes.append(Node(name, (before,), (value,), name=name, domain="own"))
    return Graph("g", (x,), (value,), tuple(nodes), domain="own")


def test_boxes_are_as_wide_as_their_labels():
    outline = make_outline(graph_of(NAMES))
    for node, width in zip(outline.nodes, place_nodes(outline).widths, strict=True):
        assert LEAST_WIDTH <= width <= MOST_WIDTH
        if width < MOST_WIDTH and node.kind == "node":
            assert (
                max(measure_title(node.op), measure_label(node.name)) <= width - 2 * BESIDE + 1e-6
            )


@pytest.mark.parametrize("measure", [measure_title, measure_label])
@pytest.mark.parametrize("room", [20, 76, 220])
def test_what_is_shortened_fits_and_keeps_its_end(measure, room):
    for name in NAMES:
        short = shorten(name, room, measure)
        assert measure(short) <= room and name.endswith(short.removeprefix("…"))
        assert short == name or measure(name) > room


def test_long_names_are_shortened_in_steps_of_what_is_left():
    measured = []
    name = "n" * 60_000

    def measure(text: str) -> float:
        measured.append(len(text))
        return measure_label(text)

    assert shorten(name, 76, measure) == f"…{name[:9]}"
    assert sum(measured) <= 2 * len(name)


def test_labels_fit_in_the_browser(tmp_path):
    (tmp_path / "g.html").write_text(f"<meta charset=utf-8>{draw(make_outline(graph_of(NAMES)))}")
    with open_browser() as page:
        page.open(tmp_path / "g.html")
        widths = page.evaluate(
            "[...document.querySelectorAll('.n')].flatMap(n => [...n.querySelectorAll('text')]"
            ".map(t => [t.textContent, t.getComputedTextLength(), n.querySelector('rect').width.baseVal.value]))"
        )
    assert len(widths) == 2 * (len(NAMES) + 2)
    assert [(t, text, box) for t, text, box in widths if text > box - 4] == []
