"""NumPy code as a source of graphs: ``trace`` runs a function on arrays that record."""

from __future__ import annotations

from . import (
    assignment,
    complex,
    creation,
    cumulative,
    fft,
    indexing,
    joining,
    linalg,
    manipulation,
    methods,
    namespace,
    padding,
    reductions,
    searching,
    statistics,
)  # fmt: skip
from .array import TracedArray
from .recorder import TraceError
from .tracing import trace

__all__ = ["TraceError", "TracedArray", "trace"]
FAMILIES = (
    assignment, complex, creation, cumulative, fft, indexing, joining, linalg, manipulation,
    methods, namespace, padding, reductions, searching, statistics,
)  # fmt: skip
