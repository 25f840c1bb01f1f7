"""Makers of nodes, by operator family."""

from __future__ import annotations

from functools import cache

from ..generator import Maker


@cache
def tensor_makers() -> tuple[Maker, ...]:
    """Makers of nodes that compute tensors of tensors, in no integers of a quantized model."""
    from . import elementwise, images, layers, movement, reductions

    families = (elementwise, movement, reductions, layers, images)
    return tuple(m for f in families for m in f.makers())


@cache
def all_makers() -> tuple[Maker, ...]:
    """Every maker; common operators have several places."""
    from . import control_flow, quantized, sequences

    others = tuple(m for f in (quantized, sequences) for m in f.makers())
    return tensor_makers() + others + tuple(control_flow.makers()) * 4
