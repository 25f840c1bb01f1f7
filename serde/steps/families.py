"""Every family of rules: importing this fills the tables."""

from . import (
    activations,
    bodies,
    casting,
    einsum,
    elementwise,
    gathering,
    normalization,
    ranges,
    recurrent,
    reductions,
    selection,
    shaping,
    slicing,
    softmax,
    windows,
)

__all__ = [name for name in dir() if not name.startswith("_")]
