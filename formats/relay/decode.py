"""Reads a module, text or JSON, and its parameters as a graph of operators."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile, UsageError
from serde.io.arrays import to_tensors
from serde.io.gzip_stream import GzipStream
from serde.io.sniff import (
    GZIP_MAGIC,
    inflate_head,
    is_tar,
    open_regular,
    refuse_missing,
    refuse_other_file,
)
from serde.ir.graph import Graph

from . import ast
from .io.discover import find_params, note_missing_weights
from .io.magic import HEAD, LIBRARIES, VM_MAGIC, kind_of
from .io.params import read_params
from .json.reader import parse_json, read_json
from .text.parser import parse_text, read_text
from .to_ir import check_parameters, find_entry, module_graph
from .upgrade import parse_release

COMPILED = (
    "{}: compiled code, which no longer holds the model's operators: "
    "save the module before it is built (tvm.ir.save_json, or mod.astext with its metadata)"
)


def decode(
    path: str | Path, *, params: Any = None, entry: str | None = None,
    ignore_extra: bool = False, tvm: str | None = None,
) -> Graph:  # fmt: skip
    """Read a module, text or JSON, as the graph of operators its ``main`` computes.

    ``params`` are parameters of ``main`` by name: a file that ``relay.save_param_dict`` wrote, an
    ``.npz``, or a mapping of names to arrays; without it the file is searched beside the module.
    Parameters without an array are inputs. ``entry`` names another function than ``main``. ``tvm``
    is the release that wrote the module (``"0.7"``), for a module that does not name it.
    """
    path = Path(path)
    refuse_missing(path)
    module = read_module(path)
    if tvm is not None:
        if parse_release(tvm) is None:
            raise UsageError(f"tvm={tvm!r} is no release of TVM, as '0.7' is")
        module = replace(module, tvm=tvm)
    note = where = ""
    if params is None:
        main = module.functions[find_entry(module, entry, str(path))]
        file, note = find_params(path, lambda arrays: check_parameters(main, arrays, ignore_extra))
        arrays = None if file is None else read_params(file)
        where = "" if file is None else str(file)
    elif isinstance(params, (str, os.PathLike)):
        refuse_missing(Path(params))
        arrays, where = read_params(params), os.fspath(params)
    else:
        arrays, where = to_tensors(params), "params"
    graph = module_graph(module, arrays, str(path), where, entry, ignore_extra)
    notes = (note, note_missing_weights(graph))
    return replace(graph, notes=(*graph.notes, *filter(None, notes)))


def read_module(path: str | os.PathLike[str]) -> ast.Module:
    """Read the module at ``path``, text or JSON, packed with gzip or not.

    Raises:
        MalformedFile: also where the file holds anything else than a module.
    """
    kind = kind_of(path)
    with open_regular(path) as file:
        head = file.read(HEAD)
    if kind in ("text", "json") and head.startswith(GZIP_MAGIC):
        return (parse_text if kind == "text" else parse_json)(_unpack(path), os.fspath(path))
    if kind == "text":
        return read_text(path)
    if kind == "json":
        return read_json(path)
    if kind == "compiled":
        head = inflate_head(head, HEAD) if head.startswith(GZIP_MAGIC) else head
        raise MalformedFile(path, COMPILED.format(_name_compiled(head)))
    if kind == "params":
        raise MalformedFile(path, "parameters without a module: give the module's file as well")
    refuse_other_file(path, head)
    raise MalformedFile(path, "neither Relay's text nor its JSON")


def _name_compiled(head: bytes) -> str:
    """The kind of compiled file, for a message."""
    if head.startswith(LIBRARIES):
        return "a library"
    if is_tar(head):
        return "an archive of libraries"
    if head.startswith(struct.pack("<Q", VM_MAGIC)):
        return "a virtual machine's executable"
    if head.startswith(b"{"):
        return "a graph executor's JSON"
    return "a lowered module"


def _unpack(path: str | os.PathLike[str]) -> bytes:
    try:
        with open_regular(path) as packed:
            return GzipStream(packed, path, "the module, which is packed with gzip,").read()
    except (EOFError, zlib.error) as error:
        raise MalformedFile(path, f"packed with gzip and damaged: {error}") from None
