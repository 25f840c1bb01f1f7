"""Where the nodes of a picture are placed: in ranks from the top down, in linear time.

A value that is read further down gets a slot in each rank between, so that its edge goes around
the nodes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import NamedTuple
from unicodedata import east_asian_width

from serde.ir.picture.outline import Outline, OutlineNode

HEIGHT, RANK_GAP, GAP = 38, 30, 18
LEAST_WIDTH, MOST_WIDTH, BESIDE = 86, 230, 10
TITLE_SIZE, LABEL_CHARACTER = 12, 6.6  # pixels: of bold letters, and of one of a fixed width
# Widths of bold letters in their size, those of the widest fonts; others take OTHER.
SHARES = dict.fromkeys("fijlrtIJ.,:;'|!()[]/ -", 0.5) | dict.fromkeys("mwMW@%", 1.11)
CAPITAL, OTHER, WIDE = 0.86, 0.73, 1.05
SLOT_WIDTH, SLOT_WEIGHT = 6, 0.1
SLOTS_PER_NODE = 4  # of all edges together; edges beyond them are drawn straight


class Edge(NamedTuple):
    """From the bottom of one node, or slot, to the top of another; ``far`` ones cross ranks."""

    x1: float
    y1: float
    x2: float
    y2: float
    far: bool = False


@dataclass
class Layout:
    """The middle of each node and its width, the edges, and the size of the picture."""

    centers: list[tuple[float, float]]
    widths: list[float]
    edges: list[Edge]
    width: float
    height: float


@dataclass(slots=True)
class _Cell:
    """A node, or a slot through which an edge passes a rank."""

    rank: int
    width: float
    weight: float = 1.0
    above: list[_Cell] = field(default_factory=list)
    x: float = 0.0


def place_nodes(outline: Outline) -> Layout:
    """Place every node of an outline."""
    ranks = _find_ranks(outline)
    cells = [
        _Cell(r, _node_width(*labels_of(n))) for n, r in zip(outline.nodes, ranks, strict=True)
    ]
    rows: list[list[_Cell]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for cell in cells:
        rows[cell.rank].append(cell)
    far = _connect(outline, cells, rows)
    for row in rows:
        _place_row(row)
    every = [c for row in rows for c in row]
    left = min((c.x - c.width / 2 for c in every), default=0.0) - GAP
    right = max((c.x + c.width / 2 for c in every), default=0.0) + GAP
    for cell in every:
        cell.x -= left
    edges = [*_draw_edges(every), *(_edge(a, b, far=True) for a, b in far)]
    height = 2 * GAP + len(rows) * (HEIGHT + RANK_GAP) - RANK_GAP
    centers = [(c.x, _middle(c.rank)) for c in cells]
    return Layout(centers, [c.width for c in cells], edges, right - left, height)


def _find_ranks(outline: Outline) -> list[int]:
    """The longest way from the top to each node; what reads nothing is right above its reader."""
    ranks = [0] * len(outline.nodes)
    for at, node in enumerate(outline.nodes):
        ranks[at] = 1 + max((ranks[r] for r in node.reads), default=-1)
    nearest: dict[int, int] = {}
    for at, node in enumerate(outline.nodes):
        for read in node.reads:
            nearest[read] = min(nearest.get(read, ranks[at]), ranks[at])
    for at, node in enumerate(outline.nodes):
        if not node.reads and at in nearest:
            ranks[at] = nearest[at] - 1
    return ranks


def labels_of(node: OutlineNode) -> tuple[str, str]:
    """The two lines in a node's box."""
    return (node.op, node.name) if node.kind == "node" else (node.name, node.type)


def measure_title(text: str) -> float:
    """The width of the first line in a box: bold letters."""
    return sum(TITLE_SIZE * _share_of(c) for c in text)


def measure_label(text: str) -> float:
    """The width of the second line: letters of a fixed width, those of East Asia two of it."""
    return sum(LABEL_CHARACTER * (1 + _is_wide(c)) for c in text)


def _share_of(character: str) -> float:
    if _is_wide(character):
        return WIDE
    return SHARES.get(character, CAPITAL if character.isupper() else OTHER)


def _is_wide(character: str) -> bool:
    return character > "\u02ff" and east_asian_width(character) in "WFA"


def shorten(text: str, room: float, measure: Callable[[str], float]) -> str:
    """A text that fits: the end of a name tells more than its beginning."""
    if measure(text) <= room:
        return text
    widths = accumulate(map(measure, reversed(text)), initial=measure("…"))
    end = sum(1 for _ in takewhile(lambda width: width <= room, widths)) - 1
    return f"…{text[len(text) - max(end, 0) :]}"


def _node_width(title: str, name: str) -> float:
    expected = max(measure_title(title), measure_label(name)) + 2 * BESIDE
    return float(min(max(expected, LEAST_WIDTH), MOST_WIDTH))


def _connect(
    outline: Outline, cells: Sequence[_Cell], rows: Sequence[list[_Cell]]
) -> list[tuple[_Cell, _Cell]]:
    """Lead each edge through a slot of each rank it passes; return those left without slots."""
    left = SLOTS_PER_NODE * len(cells)
    chains: dict[int, list[_Cell]] = {}  # by producer, a cell for each rank
    far = []
    for at, node in enumerate(outline.nodes):
        cell = cells[at]
        for read in node.reads:
            chain = chains.setdefault(read, [cells[read]])
            span = cell.rank - cells[read].rank
            if span > len(chain) + left:
                far.append((cells[read], cell))
                continue
            while len(chain) < span:
                slot = _Cell(chain[-1].rank + 1, SLOT_WIDTH, SLOT_WEIGHT, [chain[-1]])
                rows[slot.rank].append(slot)
                chain.append(slot)
                left -= 1
            cell.above.append(chain[span - 1])
    return far


def _place_row(row: list[_Cell]) -> None:
    """Place the cells of a rank below what they read, side by side, moving them least.

    Neighbours that would overlap form a block around the mean of their places.
    """
    for cell in row:
        if cell.above:
            cell.x = sum(c.x * c.weight for c in cell.above) / sum(c.weight for c in cell.above)
    row.sort(key=lambda c: c.x)
    blocks: list[list[float]] = []  # weight, weighted sum of left ends, width, count
    for cell in row:
        width = cell.width + GAP
        block = [cell.weight, cell.weight * (cell.x - width / 2), width, 1]
        while blocks and _end(blocks[-1]) > block[1] / block[0]:
            last = blocks.pop()
            block = [
                last[0] + block[0], last[1] + block[1] - block[0] * last[2], last[2] + block[2],
                last[3] + block[3],
            ]  # fmt: skip
        blocks.append(block)
    cells = iter(row)
    for weight, total, _, count in blocks:
        left = total / weight
        for _ in range(int(count)):
            cell = next(cells)
            cell.x = left + (cell.width + GAP) / 2
            left += cell.width + GAP


def _end(block: list[float]) -> float:
    return block[1] / block[0] + block[2]


def _draw_edges(cells: Sequence[_Cell]) -> Iterator[Edge]:
    for cell in cells:
        for above in cell.above:
            yield _edge(above, cell)
        if cell.width == SLOT_WIDTH:
            y = _middle(cell.rank)
            yield Edge(cell.x, y - HEIGHT / 2, cell.x, y + HEIGHT / 2)


def _edge(above: _Cell, below: _Cell, far: bool = False) -> Edge:
    top, bottom = _middle(above.rank) + HEIGHT / 2, _middle(below.rank) - HEIGHT / 2
    return Edge(above.x, top, below.x, bottom, far)


def _middle(rank: int) -> float:
    return GAP + HEIGHT / 2 + rank * (HEIGHT + RANK_GAP)
