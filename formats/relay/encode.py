"""Writes a graph of Relay calls: the module as text or JSON, and its parameters beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path

from serde.errors import MalformedFile, TargetRefused
from serde.io.atomic_write import Replacing
from serde.io.tensor_bytes import pack
from serde.ir.graph import Graph, Tensor

from .io.discover import find_modules_sharing, find_params
from .io.params import read_params, write_into
from .json.writer import stream_json
from .text.print_parts import Names
from .text.printer import stream_text
from .to_module import to_module

JSON, PARAMS = ".json", ".params"


def encode(graph: Graph, path: str | os.PathLike[str]) -> list[str]:
    """Write a module to ``path``, as JSON where it ends in ``.json``, otherwise as text.

    Weights are parameters of ``main``, and go to a file beside it that ends in ``.params``; a
    module without any has none, or an empty one where another file would be taken for it. Both
    are what TVM 0.17 reads: ``tvm.relay.parse`` or ``tvm.ir.load_json``, and
    ``relay.load_param_dict``.
    """
    path = os.fspath(path)
    if path.endswith(JSON):
        module, weights = to_module(graph)
        pieces = stream_json(module)
    else:
        names = Names(raw=False)
        module, weights = to_module(graph, lambda name: names.claim(name, "v"))
        pieces = stream_text(module)
    params = os.path.splitext(path)[0] + PARAMS
    _refuse_shared(path, params, weights)
    with Replacing(path) as files:
        with files.open(path) as out:
            text = TextIOWrapper(out, "utf-8", newline="")
            text.writelines(pieces)
            text.detach()
        if weights or _has_others(path, graph):
            with files.open(params) as out:
                write_into(weights, out)
    return files.written


def _refuse_shared(path: str, params: str, weights: Mapping[str, Tensor]) -> None:
    """Refuse to replace the parameters of the module that is converted, while it stays."""
    others = find_modules_sharing(Path(path))
    files = {os.path.realpath(t.where.path) for t in weights.values() if t.where is not None}
    if others and os.path.realpath(params) in files and not _has_same_tensors(params, weights):
        raise TargetRefused(
            f"{params} holds the parameters of {others[0].name}, which would be damaged: write to "
            "another name"
        )


def _has_same_tensors(params: str, weights: Mapping[str, Tensor]) -> bool:
    """Whether a parameter file holds these arrays."""
    try:
        stored = read_params(params)
    except MalformedFile:
        return False
    return stored.keys() == weights.keys() and all(
        (t.dtype, t.shape) == (weights[n].dtype, weights[n].shape)
        and pack(t.load(), t.dtype).tobytes() == pack(weights[n].load(), t.dtype).tobytes()
        for n, t in stored.items()
    )


def _has_others(path: str, graph: Graph) -> bool:
    """Whether parameters lie beside a module without any, and would be taken for its own."""
    folder = Path(path).parent
    if not folder.is_dir():
        return False
    names = {v.name for v in graph.inputs}
    file, _ = find_params(Path(path), lambda arrays: [n for n in arrays if n not in names])
    return file is not None
