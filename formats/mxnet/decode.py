"""Symbol JSON and parameters to a graph of MXNet's operators."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from serde.ir.graph import Graph
from serde.passes.cut_inputs import cut

from .bind.bind_params import bind_params
from .io.discover import Files, find
from .io.params import Params
from .io.symbol_json import Symbol, parse_symbol
from .rules import NEWEST

VERSION = "mxnet.version"  # metadata key of the version that wrote the symbol


def decode(
    path: str | os.PathLike[str], *, params: Any = None,
    epoch: int | None = None, ignore_extra: bool = False, match_params: bool = False,
    outputs: Sequence[str] | None = None, inputs: Mapping[str, Any] | None = None,
    set_inputs: Mapping[str, Any] | None = None, cut_inputs: Sequence[str] | None = None,
) -> Graph:  # fmt: skip
    """Read an MXNet model: variables with an array are constants, the others inputs.

    Variables that ``inputs``, ``set_inputs`` or ``cut_inputs`` name, labels, and what layers read
    as data are inputs all the same.

    ``path`` is a ``-symbol.json``, the prefix before it, a folder or an archive with one model;
    ``params`` a parameter file, or a mapping of names, with or without ``arg:`` and ``aux:``, to
    arrays; without it the file is found beside the symbol, of the last epoch or the one named.
    ``ignore_extra`` allows arrays that a variable without one may have meant. ``match_params``
    pairs arrays with variables of other names, by kind, shape and order. With ``outputs``, names
    of values or layers, arrays that these do not depend on are not looked at.
    """
    return decode_files(
        find(Path(path), params, epoch), ignore_extra, match_params, outputs, inputs, set_inputs,
        cut_inputs,
    )  # fmt: skip


def decode_files(
    files: Files, ignore_extra: bool = False, match_params: bool = False,
    outputs: Sequence[str] | None = None, inputs: Mapping[str, Any] | None = None,
    set_inputs: Mapping[str, Any] | None = None, cut_inputs: Sequence[str] | None = None,
) -> Graph:  # fmt: skip
    """The graph of a symbol's text and its parameters, see ``decode``."""
    graph = decode_symbol(
        parse_symbol(files.symbol, files.symbol_path), files.params, files.symbol_path,
        ignore_extra, files.searched, match_params or files.is_block, outputs,
        {*(inputs or ()), *(set_inputs or ()), *(cut_inputs or ())},
    )  # fmt: skip
    return replace(graph, notes=(*files.notes, *graph.notes))


def show_version(number: int) -> str:
    """A version of MXNet as people write it: 10901 is 1.9.1."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def parse_version(text: str | None) -> int:
    """The number of a version that ``show_version`` shows; the newest 1.x for None."""
    if text is None:
        return NEWEST
    major, minor, patch = map(int, text.split("."))
    return major * 10000 + minor * 100 + patch


def decode_symbol(
    symbol: Symbol, params: Params | None, path: str, ignore_extra: bool = False,
    searched: str = "", match_params: bool = False, outputs: Sequence[str] | None = None,
    named: Collection[str] | None = (),
) -> Graph:  # fmt: skip
    """The graph of a symbol and its parameters; ``path`` is what errors call it.

    ``searched`` tells what was looked for where there are no parameters. ``named`` are variables
    that are inputs whatever array there is; with None every array is a constant.
    """
    if outputs and params is not None and params.names and not match_params:
        symbol, params = _cut(symbol, params, outputs)
    graph = bind_params(symbol, params, path, ignore_extra, searched, match_params, named)
    name = Path(path).name.removesuffix(".json").removesuffix("-symbol") or "symbol"
    return replace(graph, name=name, metadata={VERSION: show_version(symbol.version)})


def _cut(symbol: Symbol, params: Params, outputs: Sequence[str]) -> tuple[Symbol, Params]:
    """The part of a symbol that ``outputs`` depend on, and the arrays but those of the rest.

    Inputs of the rest are still inputs: callers may tell their shapes.
    """
    graph = cut(symbol.graph, outputs)
    read = {v.name for v in graph.inputs}
    arrays = params.by_name()
    rest = {v.name for v in symbol.graph.inputs} - read
    graph = replace(graph, inputs=tuple(
        v for v in symbol.graph.inputs if v.name in read or v.name not in arrays
    ))  # fmt: skip
    variables = {n: about for n, about in symbol.variables.items() if n in read}
    kept = [at for at, name in enumerate(params.plain_names) if name not in rest]
    part = params._replace(
        names=tuple(params.names[at] for at in kept),
        tensors=tuple(params.tensors[at] for at in kept),
    )
    return symbol._replace(graph=graph, variables=variables), part
