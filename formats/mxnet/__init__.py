"""MXNet models: symbol JSON and parameter files, read without MXNet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from serde.builder import OnnxBuilder
from serde.graph import Graph
from serde.plugins import Format
from serde.rules import RuleTable

from . import ops
from .binding import bind, refuse_missing_parameters
from .files import claims, find
from .params import Params
from .rules import reads
from .shapes import complete_inputs, refuse_unknown
from .symbol import Symbol, parse_symbol

__all__ = ["FORMAT", "decode", "decode_symbol", "ops", "to_ir"]
VARIABLE = "mxnet.variable."  # metadata keys: what a variable's node says of it


def decode(
    path: str | Path, *, params: Any = None, epoch: int | None = None, ignore_extra: bool = False
) -> Graph:
    """Read an MXNet model: variables with an array are constants, the others inputs.

    ``path`` is a ``-symbol.json``, the prefix before it, a folder or an archive with one model;
    ``params`` a parameter file, found beside the symbol where it is not given.
    """
    files = find(Path(path), params, epoch)
    symbol = parse_symbol(files.symbol, files.symbol_path)
    return decode_symbol(symbol, files.params, files.symbol_path, ignore_extra)


def decode_symbol(
    symbol: Symbol, params: Params | None, path: str, ignore_extra: bool = False
) -> Graph:
    """The graph of a symbol and its parameters; ``path`` is what errors call it."""
    graph = bind(symbol, params, path, ignore_extra)
    said = {
        f"{VARIABLE}{name}.{key}": text
        for name, attrs in symbol.variables.items()
        for key, text in attrs.items()
        if key in ("__shape__", "__dtype__")
    }
    name = Path(path).name.removesuffix(".json").removesuffix("-symbol") or "symbol"
    metadata = {**said, "mxnet.version": str(symbol.version), "mxnet.path": path}
    if params is not None:
        metadata["mxnet.params"] = params.path
    return replace(graph, name=name, metadata=metadata)


def to_ir(graph: Graph, *, rules: RuleTable | None = None) -> Graph:
    """Rewrite an MXNet graph into the IR; inputs nothing reads (labels) are left out.

    Raises:
        MalformedFile: for parameters without a value. UsageError: for inputs without a shape.
        Unconvertible: for every node no rule takes.
    """
    refuse_missing_parameters(graph, graph.metadata.get("mxnet.path", graph.name), None)
    variables: dict[str, dict[str, str]] = {}
    for key, text in graph.metadata.items():
        if key.startswith(VARIABLE):
            name, _, attr = key.removeprefix(VARIABLE).rpartition(".")
            variables.setdefault(name, {})[attr] = text
    complete = complete_inputs(graph, variables)
    done = (rules or reads).rewrite(complete, OnnxBuilder(graph.name))
    refuse_unknown(done)
    read = done.uses()
    kept = {k: v for k, v in graph.metadata.items() if k == "mxnet.version"}
    return replace(done, inputs=tuple(v for v in done.inputs if v in read), metadata=kept)


FORMAT = Format(
    name="mxnet",
    suffixes=("-symbol.json",),
    claims=claims,
    decode=decode,
    to_ir=to_ir,
    options={
        "decode": frozenset({"params", "epoch", "ignore_extra"}),
        "to_ir": frozenset({"rules"}),
    },
    tables=(reads,),
)
