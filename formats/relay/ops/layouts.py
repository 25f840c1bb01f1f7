"""Layouts: the letters that say which axis is which, packed ones (``NCHW4c``) included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from serde.errors import require
from serde.ir.geometry import Ints, invert_perm
from serde.ir.graph import Value
from serde.spec.expressions import Size

from ..rules import reads
from .shape import divide_size

AXIS = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True)
class Layout:
    """Axes by letter, each a whole one or a block of so many of its elements."""

    axes: tuple[tuple[str, int], ...]  # letter in capitals, and the block's size or 0

    @classmethod
    def of(cls, text: str) -> Layout:
        """Read ``NCHW`` or ``NCHW4c``."""
        require("".join(m[0] for m in AXIS.finditer(text)) == text, f"layout {text!r} is unknown")
        axes = []
        for number, letter in AXIS.findall(text):
            require(bool(number) == letter.islower(), f"layout {text!r} is unknown")
            axes.append((letter.upper(), int(number or 0)))
        primal = [a for a, block in axes if not block]
        require(
            len(set(primal)) == len(primal) and {a for a, _ in axes} == set(primal),
            f"layout {text!r} is unknown",
        )
        return cls(tuple(axes))

    @property
    def letters(self) -> str:
        """The whole axes in order."""
        return "".join(a for a, block in self.axes if not block)

    def places(self, letter: str) -> list[int]:
        """Where an axis and its blocks are."""
        return [i for i, (a, _) in enumerate(self.axes) if a == letter]

    def blocks(self, letter: str) -> Ints:
        """The sizes of the blocks of an axis, in order."""
        return tuple(block for a, block in self.axes if a == letter and block)


def require_static_sizes(x: Value, first: int = 2) -> Any:
    """The sizes of the axes from ``first`` on, which have to be known."""
    sizes = x.ranked_shape[first:]
    require(all(isinstance(d, int) for d in sizes), "an input of unknown size")
    return sizes


def unpack_layout(g, x: Value, layout: str, target: str):
    """``x`` with each axis whole, in the order of ``target``."""
    if layout == target:
        return x
    packing = Layout.of(layout)
    require(sorted(packing.letters) == sorted(target), f"layout {layout!r} where {target} belongs")
    require(len(packing.axes) == x.rank, f"a tensor of rank {x.rank} of layout {layout!r}")
    order = tuple(i for letter in target for i in packing.places(letter))
    y = g.Transpose(x, perm=order)
    if len(order) == len(target):
        return y
    sizes = [g.multiply_sizes([g.size_of(x, i) for i in packing.places(a)]) for a in target]
    return g.reshape(y, sizes)


def pack_layout(g, x: Value, source: str, layout: str):
    """``x``, whose whole axes are in the order of ``source``, in ``layout``."""
    if source == layout:
        return x
    packing = Layout.of(layout)
    require(sorted(packing.letters) == sorted(source), f"layout {layout!r} where {source} belongs")
    spread: list[Size] = []
    for at, letter in enumerate(source):
        blocks = packing.blocks(letter)
        size = g.size_of(x, at)
        spread += [divide_size(g, size, prod(blocks)) if blocks else size, *blocks]
    y = g.reshape(x, spread) if len(spread) != len(source) else x
    order = tuple(i for letter in source for i in packing.places(letter))
    return g.Transpose(y, perm=invert_perm(order))


@reads("layout_transform")
def read_layout_transform(g, x, *, src_layout: str, dst_layout: str):
    """From one layout to another; an axis the other lacks has to be one long."""
    source, target = Layout.of(src_layout), Layout.of(dst_layout)
    gone = [a for a in source.letters if a not in target.letters]
    new = [a for a in target.letters if a not in source.letters]
    x = unpack_layout(g, x, src_layout, source.letters)
    if gone:
        at = [source.letters.index(a) for a in gone]
        require(all(x.ranked_shape[i] == 1 for i in at), f"{dst_layout} has no {''.join(gone)}")
        x = g.Squeeze(x, at)
    x = g.Unsqueeze(x, list(range(len(new)))) if new else x
    letters = "".join(new) + "".join(a for a in source.letters if a not in gone)
    return pack_layout(g, x, letters, dst_layout)
