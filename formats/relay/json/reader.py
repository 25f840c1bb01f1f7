"""Relay modules in the JSON of ``tvm.ir.save_json``, of TVM 0.6 to 0.19.

What differs between releases: names of types (``node_table``), how attributes are held
(``legacy_attrs``), and fields added since, which are optional here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from serde.errors import MalformedFile
from serde.io.sniff import open_regular

from .. import ast
from ..ast_walk import to_function
from .decoder import Decoder
from .node_table import Table
from .objects import BUILDERS


def read_json(path: str | os.PathLike[str]) -> ast.Module:
    """Read the JSON file at ``path``.

    Raises:
        MalformedFile: naming the node that is damaged.
    """
    with open_regular(path) as file:
        return parse_json(file.read(), os.fspath(path))


def parse_json(text: str | bytes, path: str = "module") -> ast.Module:
    """Read a module, or a single function or expression, which becomes ``main``."""
    table = Table(text, path)
    root = Decoder(table, BUILDERS).decode(table.root)
    if isinstance(root, ast.Expr):
        return ast.Module({"main": to_function(root)}, tvm=table.tvm)
    if not isinstance(root, ast.Module):
        key = table.key(table.root) or "nothing"
        raise MalformedFile(path, f"not a Relay module: the root is {key}")
    return root


def parse_metadata(text: str, path: str) -> dict[str, tuple[Any, ...]]:
    """Read the metadata section of the text form: lists of objects by the name of their type."""
    table = Table(text, path)
    root = Decoder(table, BUILDERS).decode(table.root)
    if root is None:
        return {}
    if not isinstance(root, Mapping) or not all(isinstance(v, tuple) for v in root.values()):
        raise MalformedFile(path, "the metadata is not a map of lists")
    return dict(root)
