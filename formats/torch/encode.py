"""Writes a graph of PyTorch expressions: the source of a module, and its weights beside it."""

from __future__ import annotations

import os
from json.encoder import encode_basestring_ascii as quote_json
from pathlib import Path
from textwrap import fill

from serde.errors import UsageError
from serde.io.atomic_write import Replacing, Sources
from serde.ir.graph import Graph, Tensor, Value

from . import WRITTEN
from .interface import WEIGHTS, to_metadata
from .io import safetensors
from .source.names import GLOBALS, to_class_name
from .source.printer import quote
from .source.write import Written, write_class

NAMES = ".names.json"
MOST = 2000  # letters of a remark
IMPORTS = """\
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
"""
CONSTANTS = """\
    for name in state.keys() - model.state_dict().keys():
        model.get_buffer(name).copy_(state.pop(name))
"""
LOAD = '''\
def load(path=None):
    """The model with the weights of a file, those beside this source by default."""
    path = Path(__file__).with_suffix(".safetensors") if path is None else Path(path)
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(start - 8))
    data = torch.from_file(str(path), size=path.stat().st_size, dtype=torch.uint8)
    shared = header.pop("__metadata__")
    state = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        array = data[begin:end].view(TYPES[entry["dtype"]])
        state[name] = array.reshape(entry["shape"])
    state.update({name: state[key] for name, key in shared.items() if key in state})
    model = CLASS()
    for name in state.keys() - model.state_dict().keys():
        model.get_buffer(name).copy_(state.pop(name))
    model.load_state_dict(state)
    return model.eval()
'''


def encode(
    graph: Graph, path: str | os.PathLike[str], class_name: str | None = None,
    names: str | None = None, inference: bool = False, flat: bool = False,
) -> list[str]:  # fmt: skip
    """Write ``path``, a module's source, and its weights and the names of arrays beside it.

    For ``inference`` batch norms that training needs are not put back.

    Raises:
        UsageError: where ``class_name`` is no identifier.
    """
    path = os.fspath(path)
    if class_name is not None and (not class_name.isidentifier() or class_name in GLOBALS):
        raise UsageError(f"class_name={class_name!r} cannot name a class")
    stem = os.path.splitext(path)[0]
    written = write_class(graph, class_name, to_class_name(graph.name or Path(stem).name),
                          names != "source", not flat, inference)  # fmt: skip
    arrays, shared = _share(written)
    source = format_source(written, graph)
    with Replacing(path) as files:
        with files.open(path) as out:
            out.write(source.encode())
        with files.open(stem + WEIGHTS) as out, Sources() as sources:
            safetensors.write(arrays, {**shared, **to_metadata(graph)}, sources, out)
        with files.open(stem + NAMES) as out:
            rows = (f"{quote_json(name)}: [{', '.join(map(quote_json, keys))}]"
                    for name, keys in _invert(written).items())  # fmt: skip
            out.write(("{\n" + ",\n".join(rows) + "\n}\n").encode())
    return files.written


def format_source(written: Written, graph: Graph) -> str:
    """The whole file."""
    remarks = "".join(f"\n\n{fill(_plain(r, MOST), 99)}" for r in written.remarks)
    end = '\n"""' if remarks else '"""'
    parts = [f'"""{_describe(written, graph)}{remarks}{end}', ""]
    body = "\n".join(written.lines)
    imports = IMPORTS
    if "F." not in body:
        imports = imports.replace("import torch.nn.functional as F\n", "")
    used = {t.tensor.dtype for t in written.state.values() if t.tensor is not None}
    pairs = [(safetensors.CODES[d], f"torch.{d.value}") for d in safetensors.CODES if d in used]
    types = "TYPES = {" + ", ".join(f"{quote(k)}: {v}" for k, v in pairs) + "}"
    if len(types) > 88:
        types = "\n".join(["TYPES = {", *(f"    {quote(k)}: {v}," for k, v in pairs), "}"])
    load = LOAD.replace("CLASS", written.class_name)
    if not written.constants:
        load = load.replace(CONSTANTS, "")
    return "\n".join([*parts, imports, types, "", "", body, "", "", load])


def _describe(written: Written, graph: Graph) -> str:
    return f"PyTorch source of {_plain(graph.name or written.class_name)}, {WRITTEN}"


def _plain(text: str, most: int = 50) -> str:
    """Text for a docstring: printable ASCII without quotes and backslashes."""
    kept = "".join(c if " " <= c <= "~" and c not in '"\\' else "_" for c in text)
    return kept[:most]


def _share(written: Written) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Arrays by key, each once, and the further keys of those that are shared."""
    first: dict[Value, str] = {}
    arrays: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    for key, value in written.state.items():
        assert value.tensor is not None
        if value in first:
            shared[key] = first[value]
        else:
            first[value], arrays[key] = key, value.tensor
    return arrays, shared


def _invert(written: Written) -> dict[str, list[str]]:
    """Keys of the ``state_dict`` by array of the source."""
    keys: dict[str, list[str]] = {}
    for key, names in written.origins.items():
        for name in names:
            keys.setdefault(name, []).append(key)
    return keys
