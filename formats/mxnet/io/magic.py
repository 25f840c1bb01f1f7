"""Identifies a file by its first bytes."""

from __future__ import annotations

import re

from serde.errors import MalformedFile
from serde.io.sniff import GZIP_MAGIC, ZIP_MAGICS, is_tar, refuse_other_file

PARAMS_MAGIC = 0x112.to_bytes(8, "little")
PARAMETERS, SYMBOL = "MXNet's parameters", "symbol JSON"  # what may be wanted
FIRST_KEY = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:')
SYMBOL_KEYS = frozenset(b"nodes arg_nodes heads node_row_ptr attrs".split())
BLANKS = b"\xef\xbb\xbf \t\r\n"


def looks_like_params(head: bytes) -> bool:
    """Whether ``head`` begins a parameter file as MXNet 1 and older write it."""
    return head.startswith(PARAMS_MAGIC)


def looks_like_symbol(head: bytes) -> bool:
    """Whether ``head`` begins symbol JSON: by its first key, and the keys of its nodes."""
    if (first := FIRST_KEY.match(head)) is None or first[1] not in SYMBOL_KEYS:
        return False
    wanted = [b'"op"', b'"name"'] if b'"nodes"' in head else [b'"arg_nodes"']
    if not head.rstrip(BLANKS).endswith(b"}"):
        wanted = wanted[:1]  # a part of a file
    of_others = (b'"tvm_op"', b'"type_key"')
    return all(key in head for key in wanted) and not any(key in head for key in of_others)


def looks_like_block(head: bytes) -> bool:
    """Whether ``head`` begins the JSON that Gluon's ``HybridBlock.save`` writes."""
    return head.lstrip(BLANKS).startswith(b"{") and b'"orig_name"' in head


def identify_beside_model(name: str, head: bytes) -> str | None:
    """What a file is that lies beside a model and is none, and what to do; None for others."""
    if head.startswith(b"DJL@"):
        return (
            "parameters as DJL writes them, which MXNet cannot read: save the arrays in DJL as an "
            ".npz under the names of the symbol's variables, and give that as --params"
        )
    if name.endswith(".states"):
        return (
            "states of an optimizer, which only training needs: name the symbol, and the .params "
            "file of the same epoch"
        )
    return None


def refuse_other(path: str, head: bytes, expected: str) -> None:
    """Raise MalformedFile if ``head`` begins a file of a known kind that is not ``expected``."""
    refuse_other_file(path, head)
    if reason := identify_beside_model(path, head):
        raise MalformedFile(path, reason)
    kinds = {
        PARAMETERS: looks_like_params(head),
        SYMBOL: looks_like_symbol(head),
        "a zip archive": head.startswith(ZIP_MAGICS),
        "a gzip archive": head.startswith(GZIP_MAGIC),
        "a tar archive": is_tar(head),
        "a NumPy array": head.startswith(b"\x93NUMPY"),
        "TVM's parameters": head.startswith(0xF7E58D4F05049CB7.to_bytes(8, "little")),
        "an ONNX model": head[:1] == b"\x08" and b"\0" < head[1:2] < b"\x20",
    }
    for kind, is_so in kinds.items():
        if is_so and kind != expected:
            raise MalformedFile(path, f"{kind}, not {expected}")
