"""Move deep-learning models between MXNet, TVM Relay and ONNX through one graph.

Public names are loaded when they are first used; ``import serde`` imports no framework, nor onnx.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from itertools import chain
from os import PathLike
from os.path import isdir
from types import FunctionType
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "ConversionError": "serde.errors",
    "DType": "serde.ir.graph",
    "FileSlice": "serde.ir.graph",
    "Graph": "serde.ir.graph",
    "InvalidGraph": "serde.errors",
    "MalformedFile": "serde.errors",
    "MissingDependency": "serde.errors",
    "Node": "serde.ir.graph",
    "Problem": "serde.errors",
    "Report": "serde.api.report",
    "SerdeError": "serde.errors",
    "Source": "serde.ir.graph",
    "TargetRefused": "serde.errors",
    "Tensor": "serde.ir.graph",
    "TraceError": "serde.frontends.numpy",
    "Unconvertible": "serde.errors",
    "UnknownArgument": "serde.errors",
    "UnknownFormat": "serde.errors",
    "UnsupportedAttribute": "serde.errors",
    "UnsupportedOp": "serde.errors",
    "UsageError": "serde.errors",
    "Value": "serde.ir.graph",
    "append_argmax": "serde.api.composition",
    "append_nms": "serde.api.composition",
    "bench": "serde.api.bench",
    "check": "serde.api",
    "compare": "serde.api.model_comparison",
    "compose": "serde.api.composition",
    "cond": "serde.frontends.control_flow",
    "convert": "serde.api",
    "export": "serde.api.live_objects",
    "import_": "serde.api.live_objects",
    "inspect": "serde.api.inspection",
    "load": "serde.pipeline",
    "migrate": "serde.api.migrate",
    "partition": "serde.backends.partition",
    "prepare": "serde.backends.runner",
    "rename": "serde.api.composition",
    "run": "serde.backends.runner",
    "save": "serde.pipeline",
    "scan": "serde.frontends.control_flow",
    "select": "serde.api.composition",
    "trace": "serde.frontends.numpy",
    "verify": "serde.verification",
    "while_loop": "serde.frontends.control_flow",
    "wrap": "serde.frontends.wrap",
}
__all__ = ["__version__", *sorted(_PUBLIC)]
# The first parameters of functions, which may be at URLs; convert copies its own.
_PLACES = {
    "bench": ("models",),
    "check": ("source",),
    "compare": ("first", "second"),
    "compose": ("first", "second"),
    "import_": ("file",),
    "inspect": ("source",),
    "load": ("source",),
    "partition": ("source",),
    "prepare": ("model",),
    "run": ("model",),
    "save": ("graph", "path"),
    "verify": ("source", "target"),
    "wrap": ("model",),
}


def __getattr__(name: str) -> Any:
    """Load a public name; ``import``, a keyword, is ``import_``."""
    known = "import_" if name == "import" else name
    if known not in _PUBLIC:
        raise AttributeError(f"module 'serde' has no attribute {name!r}")
    if known not in globals():
        value = getattr(import_module(_PUBLIC[known]), known)
        if isinstance(value, FunctionType):
            from serde.errors import shorten_tracebacks

            places = _PLACES.get(known)
            value = shorten_tracebacks(_take_urls(value, places) if places else value)
        globals()[known] = value
    globals()[name] = globals()[known]
    return globals()[known]


def _take_urls(function: Callable[..., Any], places: tuple[str, ...]) -> Callable[..., Any]:
    """A function whose parameters ``places``, and options that are files, may be URLs too.

    The former may also be archives and folders in which there is a model.
    """

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        everything = [*arguments, *options.values()]
        everything += chain(*(x for x in everything if isinstance(x, (list, tuple))))
        if not any(map(_may_be_elsewhere, everything)):
            return function(*arguments, **options)
        remote_files = import_module("serde.api.remote_files")
        return remote_files.call_at_urls(function, places, arguments, options)

    return call


def _may_be_elsewhere(place: Any) -> bool:
    """Whether an argument is a URL, a folder or an archive."""
    from serde.io.sniff import may_be_archive

    if isinstance(place, str) and "://" in place:
        return True
    return may_be_archive(place) or (isinstance(place, (str, PathLike)) and isdir(place))


def __dir__() -> list[str]:
    return [*__all__]
