"""What the files of a model say beside its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from serde.ir.graph import EMPTY, Graph, Shape, Tensor

from .declared import Declared

NO_PARAMETERS = "no parameters were given"


class SymbolInfo(NamedTuple):
    """What the files of a decoded graph say beside it, for ``to_ir``.

    ``path`` is what errors call the symbol; ``variables`` is what each variable's node says. Where
    the symbol ``has_numpy_shapes``, a size may be 0. ``searched`` tells which parameter file was
    searched, or what was looked for; ``unused`` are the shapes of the file's arrays that belong to
    no variable, None without a file. ``input_arrays`` are those that the file has of inputs.
    """

    path: str
    variables: Mapping[str, Declared] = EMPTY
    has_numpy_shapes: bool = False
    searched: str = NO_PARAMETERS
    unused: Mapping[str, Shape] | None = None
    input_arrays: Mapping[str, Tensor] = EMPTY


def symbol_info(graph: Graph) -> SymbolInfo:
    """What the files of ``graph`` say beside it: nothing for a graph that was not read from one."""
    info = graph.source_info
    return info if isinstance(info, SymbolInfo) else SymbolInfo(graph.name)
