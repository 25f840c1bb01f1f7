"""Padding."""

from __future__ import annotations

from serde.errors import require

from ..promotion import as_type
from ..rules import reads

MODES = {
    **{f"reflection_pad{n}d": "reflect" for n in (1, 2, 3)},
    **{f"replication_pad{n}d": "edge" for n in (1, 2, 3)},
}  # fmt: skip


def pad(g, x, amounts, mode, value=None):
    """Pads that begin at the last axis, as PyTorch counts them."""
    count = len(amounts) // 2
    require(len(amounts) % 2 == 0 and count <= x.rank, f"{len(amounts)} pads of {x.rank} axes")
    begins = [0] * (x.rank - count) + list(amounts[::2])[::-1]
    ends = [0] * (x.rank - count) + list(amounts[1::2])[::-1]
    return g.Pad(x, g.shape_from([*begins, *ends]), value, mode=mode)


@reads("constant_pad_nd")
def read_constant_pad(g, x, amounts, value):
    return pad(g, x, amounts, "constant", as_type(g, value, x.type))


@reads.for_each(MODES)
def read_pad(mode, g, x, amounts):
    return pad(g, x, amounts, mode)


@reads("pad")
def read_any_pad(g, x, amounts, mode, value):
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    require(mode in modes, f"padding mode {mode!r}: use one of {', '.join(modes)}")
    fill = as_type(g, value or 0, x.type) if mode == "constant" else None
    return pad(g, x, amounts, modes[mode], fill)
