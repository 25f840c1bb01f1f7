"""A picture of a graph: what is drawn, where it is placed, and the SVG.

Nothing here imports ``serde.ir.graph``, whose ``Graph`` draws itself with it.
"""

from __future__ import annotations

from html import escape
from typing import Any

from serde.ir.picture.outline import Outline, OutlineNode, make_outline, select_near
from serde.ir.picture.svg import MOST_DRAWN, draw

__all__ = [
    "MOST_DRAWN",
    "Outline",
    "OutlineNode",
    "draw",
    "make_outline",
    "select_near",
    "show_in_notebook",
]


def show_in_notebook(graph: Any) -> str:
    """A ``Graph`` as HTML without scripts: its picture, or what it holds where it is large."""
    outline = make_outline(graph)
    title = f"<p><b>{escape(graph.name)}</b>: {outline.node_count:,} nodes</p>"
    if len(outline.nodes) > MOST_DRAWN:
        return f"{title}<p>More than {MOST_DRAWN:,} are not drawn.</p>"
    return f'{title}<div style="max-height:36em;overflow:auto">{draw(outline)}</div>'
