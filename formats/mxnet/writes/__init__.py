"""Rules from the IR to MXNet, by family; importing this package fills ``writes``, ``spells``."""

from . import (
    control,
    detection,
    elementwise,
    layers,
    moving,
    recurrent,
    reducing,
    resizing,
    sizes,
    spelled_layers,
    spelled_math,
    spelled_moving,
    spelled_recurrent,
)

__all__ = [
    "control", "detection", "elementwise", "layers", "moving", "recurrent", "reducing", "resizing",
    "sizes", "spelled_layers", "spelled_math", "spelled_moving", "spelled_recurrent",
]  # fmt: skip
