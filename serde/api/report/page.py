"""A page of HTML that loads nothing: a template, its style and script, and parts to fill it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serde import __version__
from serde.ir.markup import escape

HERE = Path(__file__).parent
FRAME_HEIGHT = 640  # pixels, in a notebook


@dataclass(frozen=True)
class Section:
    """A part of the page; ``name`` is where links lead."""

    name: str
    title: str
    body: str


def render_page(
    title: str, subtitle: str, verdict: tuple[str, str], sections: Sequence[Section],
    data: Any = None,
) -> str:  # fmt: skip
    """A page of sections.

    Args:
        title, subtitle: what the page is about, as text.
        verdict: ``good``, ``bad`` or ``warn``, and what the badge says.
        sections: what the page holds; those without a body are left out.
        data: what the script searches: nodes that are ``drawn``, and ``others`` by operator.
    """
    script = (HERE / "page.js").read_text(encoding="utf-8")
    shown = [s for s in sections if s.body]
    graph_json = json.dumps(data or {"drawn": [], "others": {}}, separators=(",", ":"))
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(script)}'",
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "title": escape(title), "subtitle": escape(subtitle),
        "verdict": verdict[0], "verdict_text": escape(verdict[1]),
        "menu": "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in shown),
        "sections": "\n".join(
            f'<section id="{s.name}"><h2>{escape(s.title)}</h2>{s.body}</section>' for s in shown
        ),
        "version": escape(__version__),
        "data": graph_json.replace("<", "\\u003c"),  # so that no name ends the script
        "script": script,
    }  # fmt: skip
    page = (HERE / "page.html").read_text(encoding="utf-8")
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def render_frame(page: str) -> str:
    """A page in a frame, which keeps it and a notebook apart."""
    return (
        f'<iframe sandbox="allow-scripts" style="width:100%;height:{FRAME_HEIGHT}px;border:0" '
        f'srcdoc="{escape(page)}"></iframe>'
    )


def _hash(script: str) -> str:
    """What the page's policy knows its only script by."""
    from base64 import b64encode
    from hashlib import sha256

    return "sha256-" + b64encode(sha256(script.encode()).digest()).decode()


def make_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()
) -> str:
    """A table of cells that are HTML; ``numbers`` are the columns to align to the right."""

    def cell(tag: str, at: int, text: str) -> str:
        return (
            f'<{tag} class="number">{text}</{tag}>' if at in numbers else f"<{tag}>{text}</{tag}>"
        )

    def row(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(cell(tag, at, text) for at, text in enumerate(cells)) + "</tr>"

    body = "".join(row("td", cells) for cells in rows)
    head = row("th", [escape(t) for t in titles])
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def make_facts(facts: Iterable[tuple[str, str, str]]) -> str:
    """Small figures: label, value, and what stands behind it."""
    cells = (
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}"
        f"{f' <small>{escape(more)}</small>' if more else ''}</dd></div>"
        for label, value, more in facts
    )
    return f'<dl class="facts">{"".join(cells)}</dl>'


def make_list(lines: Iterable[str]) -> str:
    """A list of sentences; nothing where there are none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="notes">{items}</ul>' if items else ""


def show_number(number: float | int | None) -> str:
    """A measure, short, an integer whole; a dash for none."""
    if number is None or math.isnan(number):
        return "–"
    return f"{number:,}" if isinstance(number, int) else f"{number:.3g}"
