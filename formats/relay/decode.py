"""What a file holds, judged by its content, and the module in it."""

from __future__ import annotations

import gzip
import mmap
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Literal

from serde.errors import MalformedFile
from serde.io.sniff import head_of, open_regular, refuse_mistaken

from . import ast
from .json.reader import parse_json, read_json
from .params import EMPTY_ZIP, ZIP
from .params import MAGIC as PARAMS_MAGIC
from .text.parser import HEADER, parse_text, read_text

Kind = Literal["text", "json", "params", "compiled"]

HEAD = 1 << 16  # bytes looked at
JSON_MOST = 1 << 26  # bytes searched for the keys that tell one JSON from another
UNPACKED_MOST = 1 << 31  # bytes a module packed with gzip may have
VM_MAGIC = 0xD225DE2F4214151D  # of a Relay virtual machine's code, src/runtime/vm/executable.cc
LIBRARIES = (  # ELF, PE, an archive of objects, Mach-O
    b"\x7fELF", b"MZ", b"!<arch>\n", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe",
)  # fmt: skip
LIBRARY_NAMES = (".so", ".dll", ".dylib", ".o", ".a")
GZIP = b"\x1f\x8b"
TAR_MARK, TAR_AT = b"ustar", 257
GRAPH, GRAPH_EXECUTOR = (b'"nodes"', b'"node_row_ptr"'), (b'"tvm_op"', b'"storage_id"')
_TEXT = re.compile(
    r"def\s+@|extern\s+type\s|type\s+\w+\s*(?:\[[\w, ]*\]\s*)?\{|fn\s*[\[(]|free_var\s+%"
)
_LOWERED = re.compile(r"\s*@\S+\s*=\s*primfn\b")
COMPILED = (
    "{}: compiled code, which no longer holds the model's operators: "
    "save the module before it is built (tvm.ir.save_json, or mod.astext with its metadata)"
)


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What the file at ``path`` holds, packed with gzip or not; None if nothing of Relay's.

    ``compiled`` is a library, an archive, a virtual machine's code or a graph executor's JSON.
    """
    if not os.path.isfile(path):
        return None
    with open_regular(path) as file:
        head = file.read(HEAD)
        if head.startswith((ZIP, EMPTY_ZIP)):
            return "params" if _holds_arrays(path) else None
        if head.startswith(b"{"):
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                return _kind_of_json(whole)
    return _kind_of_head(_unpack_head(head) if head.startswith(GZIP) else head)


def claims(path: Path) -> bool:
    """Whether ``path`` holds a Relay module, or what TVM made of one and of nothing else.

    Libraries count by their names, archives do not: those of other formats are archives too.
    """
    kind = kind_of(path)
    if kind not in ("params", "compiled"):
        return kind is not None
    head = head_of(path)
    if head.startswith(LIBRARIES):
        return path.name.endswith(LIBRARY_NAMES)
    return not head.startswith((ZIP, EMPTY_ZIP, GZIP)) and not _is_tar(head)


def read_module(path: str | os.PathLike[str]) -> ast.Module:
    """Read the module at ``path``, text or JSON, packed with gzip or not.

    Raises:
        MalformedFile: also where the file holds something else of TVM's, or of anybody's.
    """
    kind = kind_of(path)
    with open_regular(path) as file:
        head = file.read(HEAD)
    if kind in ("text", "json") and head.startswith(GZIP):
        return (parse_text if kind == "text" else parse_json)(_unpack(path), os.fspath(path))
    if kind == "text":
        return read_text(path)
    if kind == "json":
        return read_json(path)
    if kind == "compiled":
        head = _unpack_head(head) if head.startswith(GZIP) else head
        raise MalformedFile(path, COMPILED.format(_what(head)))
    if kind == "params":
        raise MalformedFile(path, "parameters without a module: give the module's file as well")
    refuse_mistaken(path, head)
    raise MalformedFile(path, "neither Relay's text nor its JSON")


def _what(head: bytes) -> str:
    """What a compiled file is called."""
    if head.startswith(LIBRARIES):
        return "a library"
    if _is_tar(head):
        return "an archive of libraries"
    if head.startswith(struct.pack("<Q", VM_MAGIC)):
        return "a virtual machine's executable"
    if head.startswith(b"{"):
        return "a graph executor's JSON"
    return "a lowered module"


def _is_tar(head: bytes) -> bool:
    return head[TAR_AT : TAR_AT + len(TAR_MARK)] == TAR_MARK


def _kind_of_head(head: bytes) -> Kind | None:
    if head.startswith((*LIBRARIES, struct.pack("<Q", VM_MAGIC))):
        return "compiled"
    if _is_tar(head):
        return "compiled"
    if head.startswith(struct.pack("<Q", PARAMS_MAGIC)):
        return "params"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _kind_of_json(head)
    return _kind_of_text(head)


def _kind_of_json(text: bytes | mmap.mmap) -> Kind | None:
    if text.find(b'"type_key"', 0, JSON_MOST) >= 0:
        return "json"
    graph = all(text.find(key, 0, JSON_MOST) >= 0 for key in GRAPH)
    if graph and any(text.find(key, 0, JSON_MOST) >= 0 for key in GRAPH_EXECUTOR):
        return "compiled"
    return None


def _kind_of_text(head: bytes) -> Kind | None:
    text = head.decode("utf-8-sig", "replace")
    header = HEADER.match(text)
    start = header.end() if header else 0
    if _LOWERED.match(text, start):
        return "compiled"
    if header and (header[1] or header[2]):
        return "text"
    return "text" if _TEXT.match(text, start) else None


def _holds_arrays(path: str | os.PathLike[str]) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return False


def _unpack_head(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD)
    except zlib.error:
        return b""


def _unpack(path: str | os.PathLike[str]) -> bytes:
    try:
        with gzip.open(path) as file:
            raw = file.read(UNPACKED_MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedFile(path, f"packed with gzip and damaged: {error}") from None
    if len(raw) > UNPACKED_MOST:
        raise MalformedFile(path, f"it unpacks to more than {UNPACKED_MOST} bytes")
    return raw
