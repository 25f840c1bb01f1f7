"""The two-way facade that MXNet announced: ``export`` a model, ``import_`` one as live objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from serde.api import convert
from serde.errors import UsageError
from serde.ir.graph import Graph
from serde.pipeline import load, save
from serde.plugins import STANDARD, Format, get_format, maker_of, read_classes, write_classes
from serde.plugins.keywords import with_options


@with_options(read_classes)
def import_(
    file: Any, other_format: str | None = None, *, to: str = "mxnet", **options: Any
) -> Any:
    """Read a model of another format into live objects; also ``getattr(serde, "import")``.

    Takes what ``load`` takes; ``other_format`` is the name of the source's format. ``to`` says
    what is made of it: by default MXNet's ``(sym, params)``; ``"graph"`` is what ``load`` returns,
    for which no framework is needed.

    Raises:
        SerdeError: one of its kinds; MissingDependency where the framework does not import.
    """
    make = None if to == "graph" else maker_of(to)
    graph = load(file, format=other_format, **options)
    return graph if make is None else make(graph)


@with_options(lambda: [*read_classes(), *write_classes()])
def export(
    model: Any,
    params: Any = None,
    other_format: str = STANDARD,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> str:
    """Write a model, given as paths or live objects, to a file of another format.

    Args:
        model: a symbol file, prefix, folder, archive, live object, or a Graph.
        params: its parameters, where the model does not hold them.
        other_format: the format to write.
        path: the file to write; beside the source, with the format's suffix, if left out.
        options: as for ``convert``.

    Returns:
        The path of the file written.
    """
    into = get_format(other_format)
    if path is None:
        path = _choose_path(model, into)
        if isinstance(model, (str, os.PathLike)) and os.path.abspath(path) == os.path.abspath(
            model
        ):
            raise UsageError(f"{path} is the source: name the file to write")
    if isinstance(model, Graph):
        save(model, path, format=other_format, **options)
    else:
        convert(model, path, params=params, to_format=other_format, **options)
    return os.fspath(path)


def _choose_path(model: Any, into: Format) -> str:
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        stem = path.name.removesuffix(".json").removesuffix("-symbol")
        for suffix in (".gz", ".tar", ".tgz", ".zip", ".mar", ".onnx"):
            stem = stem.removesuffix(suffix)
        return str(path.parent / (stem + into.suffixes[0]))
    return f"{getattr(model, 'name', None) or 'model'}{into.suffixes[0]}"
