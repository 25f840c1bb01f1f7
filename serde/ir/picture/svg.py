"""A picture of a graph as SVG: boxes by kind of operator, refused ones marked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from serde.ir.markup import escape
from serde.ir.picture.layout import (
    BESIDE,
    HEIGHT,
    Layout,
    labels_of,
    measure_label,
    measure_title,
    place_nodes,
    shorten,
)
from serde.ir.picture.outline import Outline, OutlineNode, make_outline

MOST_DRAWN = 4000  # nodes; a browser takes seconds for more
MOST_FRAMED, MARGIN = 40, 7  # nodes of one layer; around them
# Words in the names of operators, lower case, and the class of their box; the first that fits.
FAMILIES = (
    ("quant", "convert"), ("cast", "convert"),
    ("norm", "norm"), ("lrn", "norm"),
    ("conv", "linear"), ("dense", "linear"), ("matmul", "linear"), ("gemm", "linear"),
    ("fullyconnected", "linear"), ("dot", "linear"), ("lstm", "linear"), ("gru", "linear"),
    ("rnn", "linear"), ("attention", "linear"),
    ("pool", "pool"),
    ("relu", "activation"), ("sigmoid", "activation"), ("tanh", "activation"),
    ("softmax", "activation"), ("activation", "activation"), ("gelu", "activation"),
    ("swish", "activation"), ("clip", "activation"), ("erf", "activation"),
    ("shape", "move"), ("transpose", "move"), ("concat", "move"), ("slice", "move"),
    ("split", "move"), ("squeeze", "move"), ("gather", "move"), ("flatten", "move"),
    ("pad", "move"), ("tile", "move"), ("expand", "move"), ("resize", "move"), ("take", "move"),
    ("suppression", "select"), ("topk", "select"), ("argm", "select"), ("sort", "select"),
    ("nms", "select"), ("multibox", "select"),
)  # fmt: skip
STYLE = """
.edge{fill:none;stroke:#9aa4b2;stroke-width:1.4}.far{stroke-dasharray:4 4;opacity:.5}
.layer{fill:#8fa3bd;fill-opacity:.1;stroke:#8fa3bd;stroke-dasharray:2 3}
.n rect{fill:#eef1f5;stroke:#aab4c2}.n text{font:600 12px system-ui,sans-serif;fill:#16202c;
text-anchor:middle}.n .name{font:400 10.5px ui-monospace,monospace;fill:#4a5666}
.linear rect{fill:#d9e8fd;stroke:#6f9fe0}.norm rect{fill:#e9e0fb;stroke:#a489dd}
.activation rect{fill:#fde3da;stroke:#e09a7f}.pool rect{fill:#dcf3e1;stroke:#77bd88}
.move rect{fill:#f5f0d8;stroke:#cdb964}.convert rect{fill:#e3f3f5;stroke:#73b4bd}
.select rect{fill:#fbdff0;stroke:#d886b6}.end rect{fill:#2f3b4c;stroke:#2f3b4c}
.end text,.end .name{fill:#fff}.refused rect{fill:#d92d20;stroke:#7a160d;stroke-width:2.5}
.refused text,.refused .name{fill:#fff}
"""


def draw(outline: Outline, refused: Collection[str] = ()) -> str:
    """The SVG of an outline; nodes of the ``refused`` layers are marked."""
    layout = place_nodes(outline)
    marked = frozenset(refused)
    width, height = round(layout.width), round(layout.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" '
        f'aria-label="the graph" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><style>{STYLE}</style>'
    ]
    parts += _draw_layers(outline, layout)
    parts += (_draw_edge(*edge) for edge in layout.edges)
    for at, node in enumerate(outline.nodes):
        x, y = layout.centers[at]
        parts += _draw_node(at, node, x, y, layout.widths[at], is_refused(node, marked))
    return "".join([*parts, "</svg>"])


def is_refused(node: OutlineNode, refused: Collection[str]) -> bool:
    """Whether a node is, or came from, one of the refused layers."""
    return node.kind == "node" and (node.name in refused or any(n in refused for n in node.layers))


def family_of(node: OutlineNode) -> str:
    """The kind of operator, which decides the colour of its box."""
    if node.kind != "node":
        return "end"
    op = node.op.lower()
    return next((family for word, family in FAMILIES if word in op), "other")


def _draw_layers(outline: Outline, layout: Layout) -> Iterator[str]:
    """A frame around the nodes that came from one layer of the source, where there are several."""
    members: dict[tuple[str, ...], list[int]] = {}
    for at, node in enumerate(outline.nodes):
        if node.layers:
            members.setdefault(node.layers, []).append(at)
    for places in members.values():
        if not 1 < len(places) <= MOST_FRAMED:
            continue
        left = min(layout.centers[i][0] - layout.widths[i] / 2 for i in places) - MARGIN
        right = max(layout.centers[i][0] + layout.widths[i] / 2 for i in places) + MARGIN
        top = min(layout.centers[i][1] for i in places) - HEIGHT / 2 - MARGIN
        bottom = max(layout.centers[i][1] for i in places) + HEIGHT / 2 + MARGIN
        yield (
            f'<rect class="layer" x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}" '
            f'height="{bottom - top:.0f}" rx="9"/>'
        )


def _draw_edge(x1: float, y1: float, x2: float, y2: float, far: bool) -> str:
    name = "edge far" if far else "edge"
    if x1 == x2 and not far:
        return f'<path class="{name}" d="M{x1:.0f} {y1:.0f}V{y2:.0f}"/>'
    middle = (y1 + y2) / 2
    return (
        f'<path class="{name}" d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} '
        f'{x2:.0f} {y2:.0f}"/>'
    )


def _draw_node(
    at: int, node: OutlineNode, x: float, y: float, width: float, marked: bool
) -> Iterator[str]:
    name = f"n {family_of(node)}" + (" refused" if marked else "")
    title, label = labels_of(node)
    title = shorten(title, width - BESIDE, measure_title)
    label = shorten(label, width - BESIDE, measure_label)
    yield (
        f'<g class="{name}" data-i="{at}"><title>{escape(_describe(node))}</title>'
        f'<rect x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width:.0f}" '
        f'height="{HEIGHT}" rx="7"/>'
    )
    yield f'<text x="{x:.0f}" y="{y - 3:.0f}">{escape(title)}</text>'
    yield f'<text class="name" x="{x:.0f}" y="{y + 12:.0f}">{escape(label)}</text></g>'


def _describe(node: OutlineNode) -> str:
    lines = [f"{node.op} {node.name}", node.type, f"from {node.source}" if node.source else ""]
    return "\n".join(filter(None, lines))


def show_in_notebook(graph: Any) -> str:
    """A ``Graph`` as HTML without scripts: its picture, or what it holds where it is large."""
    outline = make_outline(graph)
    title = f"<p><b>{escape(graph.name)}</b>: {outline.node_count:,} nodes</p>"
    if len(outline.nodes) > MOST_DRAWN:
        return f"{title}<p>More than {MOST_DRAWN:,} are not drawn.</p>"
    return f'{title}<div style="max-height:36em;overflow:auto">{draw(outline)}</div>'
