"""Makers of nodes, by operator family."""

from __future__ import annotations

from functools import cache

from ..generator import Maker


@cache
def all_makers() -> tuple[Maker, ...]:
    """Every maker; common operators have several places."""
    from . import (
        control_flow,
        elementwise,
        images,
        layers,
        movement,
        quantized,
        reductions,
        sequences,
    )

    families = (elementwise, movement, reductions, layers, images, quantized, sequences)
    return tuple(m for f in families for m in f.makers()) + tuple(control_flow.makers()) * 4
