"""A graph of Relay calls to files: the module as text or JSON, and its parameters beside it."""

from __future__ import annotations

import os

from serde.graph import Graph
from serde.output import Replacing

from .json_writer import module_json
from .params import write_into
from .print_parts import Names
from .printer import module_text
from .to_ast import to_module

JSON, PARAMS = ".json", ".params"


def encode(graph: Graph, path: str | os.PathLike[str]) -> list[str]:
    """Write a module to ``path``, as JSON where it ends in ``.json``, otherwise as text.

    Weights are parameters of ``main``, and go to a file beside it that ends in ``.params``; a
    module without any has none. Both are what TVM 0.17 reads: ``tvm.relay.parse`` or
    ``tvm.ir.load_json``, and ``relay.load_param_dict``.
    """
    path = os.fspath(path)
    if path.endswith(JSON):
        module, weights = to_module(graph)
        pieces = module_json(module)
    else:
        names = Names(raw=False)
        module, weights = to_module(graph, lambda name: names.new(name, "v"))
        pieces = module_text(module)
    with Replacing(path) as files:
        with files.open(path) as out:
            for piece in pieces:
                out.write(piece.encode())
        if weights:
            with files.open(os.path.splitext(path)[0] + PARAMS) as out:
                write_into(weights, out)
    return files.written
