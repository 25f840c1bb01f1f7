"""Relay modules: TVM's text and JSON forms and parameter files, read and written without TVM."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from serde.errors import UsageError
from serde.io.sniff import refuse_missing
from serde.ir.graph import Graph
from serde.plugins import Format

from .decode import claims, read_module
from .discover import find_params, weights_note
from .encode import encode
from .from_ir import from_ir
from .params import read_params
from .rules import reads
from .target import writes
from .to_ir import entry_of, module_graph, parameter_problems, to_ir
from .upgrade import release

__all__ = ["FORMAT", "decode", "encode", "from_ir", "to_ir"]


def decode(
    path: str | Path, *, params: str | Path | None = None, entry: str | None = None,
    ignore_extra: bool = False, tvm: str | None = None,
) -> Graph:  # fmt: skip
    """Read a module, text or JSON, as the graph of operators its ``main`` computes.

    ``params`` is what ``relay.save_param_dict`` wrote, or an ``.npz``: parameters of ``main`` by
    name, found beside the module where it is not given. Those left over are inputs. ``entry`` names
    another function than ``main``. ``tvm`` is the release that wrote the module (``"0.7"``), where
    it does not tell and its forms changed meaning.
    """
    path = Path(path)
    refuse_missing(path)
    module = read_module(path)
    if tvm is not None:
        if release(tvm) is None:
            raise UsageError(f"tvm={tvm!r} is no release of TVM, as '0.7' is")
        module = replace(module, tvm=tvm)
    note = ""
    if params is None:
        main = module.functions[entry_of(module, entry, str(path))]
        found, note = find_params(path, lambda held: parameter_problems(main, held, ignore_extra))
    else:
        refuse_missing(Path(params))
        found = Path(params)
    held = None if found is None else read_params(found)
    where = "" if found is None else str(found if params is None else os.fspath(params))
    graph = module_graph(module, held, str(path), where, entry, ignore_extra)
    notes = (note, weights_note(graph))
    return replace(graph, notes=(*graph.notes, *filter(None, notes)))


FORMAT = Format(
    name="relay",
    suffixes=(".relay", ".json"),
    claims=claims,
    decode=decode,
    to_ir=to_ir,
    from_ir=from_ir,
    encode=encode,
    options={
        "decode": frozenset({"params", "entry", "ignore_extra", "tvm"}),
        "to_ir": frozenset({"rules", "random"}),
        "from_ir": frozenset({"functions"}),
    },
    tables=(reads, writes),
)
