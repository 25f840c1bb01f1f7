"""What a file holds, judged by its content."""

from __future__ import annotations

import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Literal

from serde.io.sniff import (
    GZIP_MAGIC,
    ZIP_MAGICS,
    inflate_head,
    is_tar,
    open_regular,
    open_uncharged,
    read_head,
)

Kind = Literal["text", "json", "params", "compiled"]

HEAD = 1 << 16  # bytes looked at
JSON_MOST = 1 << 26  # bytes searched for the keys that tell one JSON from another
VM_MAGIC = 0xD225DE2F4214151D  # of a Relay virtual machine's code, src/runtime/vm/executable.cc
LIBRARIES = (  # ELF, PE, an archive of objects, Mach-O
    b"\x7fELF", b"MZ", b"!<arch>\n", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe",
)  # fmt: skip
LIBRARY_NAMES = (".so", ".dll", ".dylib", ".o", ".a")
PARAMS_MAGIC = 0xF7E58D4F05049CB7  # of what relay.save_param_dict writes
GRAPH, GRAPH_EXECUTOR = (b'"nodes"', b'"node_row_ptr"'), (b'"tvm_op"', b'"storage_id"')
HEADER = re.compile(  # of a module's text
    r"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"  # blanks and comments
    r'(?:#\[\s*version\s*=\s*"([^"]*)"\s*\]|v(0\.0\.\d+)\b)?'
)
_TEXT = re.compile(
    r"def\s+@|extern\s+type\s|type\s+\w+\s*(?:\[[\w, ]*\]\s*)?\{|fn\s*[\[(]|free_var\s+%"
)
_LOWERED = re.compile(r"\s*@\S+\s*=\s*primfn\b")


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What the file at ``path`` holds, packed with gzip or not; None if nothing of Relay's.

    ``compiled`` is a library, an archive, a virtual machine's code or a graph executor's JSON.
    """
    if not os.path.isfile(path):
        return None
    with open_uncharged(path) as file:
        head = file.read(HEAD)
        if head.startswith(ZIP_MAGICS):
            return "params" if _holds_arrays(path) else None
        if head.startswith(b"{"):
            return _detect_json(head + file.read(JSON_MOST))
    return _detect_head(inflate_head(head, HEAD) if head.startswith(GZIP_MAGIC) else head)


def matches(path: Path) -> bool:
    """Whether ``path`` holds a Relay module, or what TVM made of one and of nothing else.

    Libraries count by their names, archives do not: those of other formats are archives too.
    """
    kind = kind_of(path)
    if kind not in ("params", "compiled"):
        return kind is not None
    head = read_head(path)
    if head.startswith(LIBRARIES):
        return path.name.endswith(LIBRARY_NAMES)
    return not head.startswith((*ZIP_MAGICS, GZIP_MAGIC)) and not is_tar(head)


def _detect_head(head: bytes) -> Kind | None:
    if head.startswith((*LIBRARIES, struct.pack("<Q", VM_MAGIC))):
        return "compiled"
    if is_tar(head):
        return "compiled"
    if head.startswith(struct.pack("<Q", PARAMS_MAGIC)):
        return "params"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _detect_json(head)
    return _detect_text(head)


def _detect_json(text: bytes) -> Kind | None:
    if text.find(b'"type_key"', 0, JSON_MOST) >= 0:
        return "json"
    graph = all(text.find(key, 0, JSON_MOST) >= 0 for key in GRAPH)
    if graph and any(text.find(key, 0, JSON_MOST) >= 0 for key in GRAPH_EXECUTOR):
        return "compiled"
    return None


def _detect_text(head: bytes) -> Kind | None:
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
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return False
