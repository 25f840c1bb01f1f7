"""Which files hold a Relay module, and in which form, judged by content."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

from serde.content import head_of, refuse_mistaken
from serde.errors import MalformedFile

from . import ast
from .graph_json import parse_json, read_json
from .parser import parse_text, read_text

GZIP = b"\x1f\x8b"
MOST = 1 << 31  # bytes a packed module may unpack to
TEXT = re.compile(
    rb'\s*(?:(?://[^\n]*\n|/\*.*?\*/)\s*)*(?:#\[\s*version\s*=\s*"0\.0\.|v0\.0\.\d|def @|fn ?[\[(]|'
    rb"free_var %|type \w+(?:\[[^]]*\])? \{)",
    re.DOTALL,
)
RELAY = "compiled code, which holds no model: convert the Relay module it was built from"
# What TVM makes of a module, and what else it writes, by the first bytes of the file
COMPILED = {
    b"\x7fELF": "a shared library: " + RELAY,
    (0xD225DE2F4214151D).to_bytes(8, "little"): "a virtual machine's executable: " + RELAY,
    (0xF7E58D4F05049CB7).to_bytes(8, "little"): "parameters without a module: give the module, and "
    "this file as its params",
}


def compiled(head: bytes) -> str | None:
    """What a file TVM compiled, or a lone parameter file, is; None if it is nothing of the kind."""
    for magic, what in COMPILED.items():
        if head.startswith(magic):
            return what
    if head.lstrip()[:1] == b"{" and b'"tvm_op"' in head:
        return "a graph executor's JSON: " + RELAY
    return None


def is_json(head: bytes) -> bool:
    """Whether ``head`` begins what ``tvm.ir.save_json`` writes."""
    return head.lstrip()[:1] == b"{" and b'"nodes"' in head and b'"type_key"' in head


def claims(path: Path) -> bool:
    """Whether ``path`` holds a Relay module, or what TVM compiled one to."""
    if not path.is_file():
        return False
    head = _head(path)
    if is_json(head) or TEXT.match(head):
        return True
    known = compiled(head)
    return known is not None and (head[:1] != b"\x7f" or b".so" in os.fsencode(path.name))


def _head(path: Path) -> bytes:
    head = head_of(path)
    if head.startswith(GZIP):
        try:
            return zlib.decompressobj(31).decompress(head, 4096)
        except zlib.error:
            return head
    return head


def read_module(path: Path) -> ast.Module:
    """Read a module in either form, packed with gzip or not.

    Raises:
        MalformedFile: saying what the file is instead, or where it goes wrong.
    """
    head = _head(path)
    refuse_mistaken(path, head)
    reason = compiled(head)
    if reason is not None:
        raise MalformedFile(path, reason)
    json = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    if not head_of(path).startswith(GZIP):
        return read_json(path) if json else read_text(path)
    raw = _unpacked(path)
    return parse_json(raw, os.fspath(path)) if json else parse_text(raw.decode(), os.fspath(path))


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            raw = file.read(MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedFile(path, f"packed with gzip and damaged: {error}") from None
    if len(raw) > MOST:
        raise MalformedFile(path, "unpacks to more than a module can be")
    return raw
