"""A picture of a partition: a box for each part, in its colour, and the bytes between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from serde.io.atomic_write import Replacing, begins_with
from serde.ir.markup import escape

from .parts import ACCELERATOR, CONTROL, Part, Partitioned

WIDTH, HEIGHT, GAP, LEFT = 300, 64, 56, 150
COLOURS = {ACCELERATOR: "#9fd39b", CONTROL: "#f2cf7a"}
OTHERWISE = "#c9cfd6"
SHOWN = 4  # operators named in a box
START = "<svg xmlns='http://www.w3.org/2000/svg'"
is_picture = begins_with(START.encode())
STYLE = "font-family='sans-serif' font-size='12' fill='#1c1c1c'"


def draw_partition(partitioned: Partitioned) -> str:
    """The parts from first to last, with arrows for what goes between them, as SVG."""
    place = {p.name: n for n, p in enumerate(partitioned.parts)}
    moved: Counter[tuple[str, str]] = Counter()
    for edge in partitioned.edges():
        moved[edge.source, edge.target] += edge.bytes
    height = (len(place) + 2) * (HEIGHT + GAP)
    width = 2 * LEFT + WIDTH
    lines = [
        f"{START} viewBox='0 0 {width} {height}' width='{width}' height='{height}'>",
        "<defs><marker id='end' markerWidth='8' markerHeight='8' refX='7' refY='4' orient='auto'>"
        "<path d='M0 0 L8 4 L0 8 z' fill='#555'/></marker></defs>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        _text(width / 2, 24, f"{partitioned.graph.name} for {partitioned.backend.name}"),
    ]
    for (source, target), size in moved.items():
        start = place[source] if source else -1
        end = place[target] if target else len(place)
        lines += _arrow(start, end, size)
    for part in partitioned.parts:
        lines += _box(part, place[part.name])
    return "\n".join([*lines, "</svg>\n"])


def write_picture(partitioned: Partitioned, path: str) -> None:
    """Write the picture to a file."""
    with Replacing(path) as files, files.open(path) as out:
        out.write(draw_partition(partitioned).encode())


def _top(row: int) -> float:
    return (row + 1) * (HEIGHT + GAP) - GAP / 2


def _box(part: Part, row: int) -> Iterator[str]:
    top, graph = _top(row), part.legalized or part.graph
    counts = Counter(n.qualified_op for n in graph.nodes).most_common()
    shown = ", ".join(f"{op} ×{n}" for op, n in counts[:SHOWN])
    shown += f" and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    colour = COLOURS.get(part.kind, OTHERWISE)
    yield (
        f"<rect x='{LEFT}' y='{top}' width='{WIDTH}' height='{HEIGHT}' rx='8' fill='{colour}' "
        "stroke='#555'/>"
    )
    yield _text(LEFT + WIDTH / 2, top + 20, f"{part.name}: {len(graph.nodes)} nodes")
    yield _text(LEFT + WIDTH / 2, top + 37, shown[:52])
    yield _text(LEFT + WIDTH / 2, top + 54, f"{part.multiply_adds:,} multiply-adds")


def _arrow(start: int, end: int, size: int) -> Iterator[str]:
    """An arrow down, straight to the next part and around the others."""
    top, bottom = _top(start) + HEIGHT, _top(end) - 4
    middle = LEFT + WIDTH / 2
    if end == start + 1:
        path = f"M{middle} {top} L{middle} {bottom}"
        x = middle + 6
    else:
        bend = LEFT - 30 - 12 * min(end - start, 8)
        path = f"M{LEFT + 30} {top} C{bend} {top + 60} {bend} {bottom - 60} {LEFT + 30} {bottom}"
        x = LEFT + 34
    yield f"<path d='{path}' fill='none' stroke='#555' marker-end='url(#end)'/>"
    yield _text(x, top + 16, f"{size:,} bytes", "start")


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f"<text x='{x}' y='{y}' text-anchor='{anchor}' {STYLE}>{escape(text)}</text>"
