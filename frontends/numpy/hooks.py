"""What lower modules call of higher ones, which are imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = {
    "as_array": "array", "apply_at": "assignment", "apply_complex": "complex",
    "apply_function": "core", "apply_ufunc": "ufuncs", "get_item": "indexing",
    "set_item": "assignment", "trace": "tracing", "METHODS": "methods", "PROPERTIES": "methods",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The member of a module above, or the module of NumPy's functions."""
    if name == "namespace":
        return import_module(f"{__package__}.namespace")
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__package__}.{MODULES[name]}"), name)
    globals()[name] = value
    return value
