"""Move deep-learning models between MXNet, TVM Relay and ONNX through one graph.

Public names are loaded when they are first used; ``import serde`` imports no framework, nor onnx.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "ConversionError": "serde.errors",
    "DType": "serde.graph",
    "FileSlice": "serde.graph",
    "Graph": "serde.graph",
    "InvalidGraph": "serde.errors",
    "MalformedFile": "serde.errors",
    "MissingDependency": "serde.errors",
    "Node": "serde.graph",
    "Problem": "serde.errors",
    "Report": "serde.report",
    "SerdeError": "serde.errors",
    "Source": "serde.graph",
    "Tensor": "serde.graph",
    "Unconvertible": "serde.errors",
    "UnknownFormat": "serde.errors",
    "UnsupportedAttribute": "serde.errors",
    "UnsupportedOp": "serde.errors",
    "UsageError": "serde.errors",
    "Value": "serde.graph",
    "check": "serde.api",
    "convert": "serde.api",
    "export": "serde.facade",
    "import_": "serde.facade",
    "load": "serde.api",
    "save": "serde.api",
    "verify": "serde.verification",
}
__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    """Load a public name; ``import``, a keyword, is ``import_``."""
    known = "import_" if name == "import" else name
    if known not in _PUBLIC:
        raise AttributeError(f"module 'serde' has no attribute {name!r}")
    found = getattr(import_module(_PUBLIC[known]), known)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
