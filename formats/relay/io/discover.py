"""What files hold, and which parameter file belongs to a module.

TVM has no rule of its own for that. Named after ``net.relay`` or ``net.json`` are ``net.params``,
which is what serde writes, then ``net.npz``, ``net.bin``, and ``net_param`` and ``net_params`` with
the same endings. Where there is none, the only parameter file in the folder is taken whose arrays
are all parameters of ``main``, unless it is named after another module.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from serde.errors import MalformedFile, UsageError
from serde.io.sniff import head_of, open_regular
from serde.ir.graph import Graph, Tensor

from ..text.parser import HEADER
from .params import EMPTY_ZIP, ZIP, read_params
from .params import MAGIC as PARAMS_MAGIC

Kind = Literal["text", "json", "params", "compiled"]

HEAD = 1 << 16  # bytes looked at
JSON_MOST = 1 << 26  # bytes searched for the keys that a kind of JSON has
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

PACKED, MODULES = ".gz", (".json", ".txt", ".relay")
INFIXES, ENDINGS = ("", "_param", "_params"), (".params", ".npz", ".bin")
MOST_FILES = 10_000  # of a folder that are looked through
SHOWN = 8
PRODUCTS = frozenset({"nn.batch_matmul", "nn.matmul"})  # of data and data, often
Problems = Callable[[Mapping[str, Tensor]], list[str]]


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What the file at ``path`` holds, packed with gzip or not; None for other files.

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
                return _detect_json(whole)
    return _detect_head(unpack_head(head) if head.startswith(GZIP) else head)


def claims(path: Path) -> bool:
    """Whether ``path`` holds a Relay module, or code compiled from one.

    Libraries need a library's file name. Archives do not match: other formats have archives too.
    """
    kind = kind_of(path)
    if kind not in ("params", "compiled"):
        return kind is not None
    head = head_of(path)
    if head.startswith(LIBRARIES):
        return path.name.endswith(LIBRARY_NAMES)
    return not head.startswith((ZIP, EMPTY_ZIP, GZIP)) and not is_tar(head)


def is_tar(head: bytes) -> bool:
    """Whether ``head`` begins a tar archive."""
    return head[TAR_AT : TAR_AT + len(TAR_MARK)] == TAR_MARK


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


def _detect_json(text: bytes | mmap.mmap) -> Kind | None:
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
        with zipfile.ZipFile(path) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return False


def unpack_head(head: bytes) -> bytes:
    """The beginning of what is packed with gzip; empty where it is damaged."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD)
    except zlib.error:
        return b""


def stem_of(path: Path) -> str:
    """The name of a module's file without its suffixes: ``net`` of ``net.json.gz``."""
    name = path.name.removesuffix(PACKED)
    return next((name.removesuffix(s) for s in MODULES if name.endswith(s)), name)


def find_params(path: Path, problems: Problems) -> tuple[Path | None, str]:
    """The parameter file that belongs to the module at ``path``, and a note that names it.

    ``problems`` lists why parameters do not fit the module. The note may say why none is taken.

    Raises:
        UsageError: where several fit and none is named after the module. MalformedFile: where the
            one named after it is damaged.
    """
    for named in _find_named_after(stem_of(path), path.parent):
        return named, f"parameters: {named}, found beside the module"
    found: list[Path] = []
    others: list[Path] = []
    for file in _find_other_params(path):
        try:
            held = read_params(file)
        except MalformedFile:
            continue
        (found if held and not problems(held) else others).append(file)
    if len(found) > 1:
        raise UsageError(
            f"{path}: several files hold parameters of it, {_join_names(found)}: "
            "name one with --params"
        )
    if found:
        return found[0], f"parameters: {found[0]}, the only file beside the module that fits it"
    if others:
        return (
            None,
            f"{_join_names(others)} beside the module: not used, as other parameters are in it",
        )
    return None, ""


def _find_named_after(stem: str, folder: Path) -> Iterator[Path]:
    for infix in INFIXES:
        for ending in ENDINGS:
            path = folder / f"{stem}{infix}{ending}"
            if kind_of(path) == "params":
                yield path


def _find_other_params(path: Path) -> Iterator[Path]:
    """Files of ``save_param_dict`` in the folder that are not named after another module."""
    beside = [p for n, p in enumerate(sorted(path.parent.iterdir())) if n < MOST_FILES]
    taken = {
        named
        for other in beside
        if other.name.removesuffix(PACKED).endswith(MODULES) and kind_of(other) in ("text", "json")
        for named in _find_named_after(stem_of(other), path.parent)
    }
    for file in beside:
        if file.suffix in (".params", ".bin") and file not in taken and kind_of(file) == "params":
            yield file


def find_modules_sharing(path: Path) -> list[Path]:
    """Other modules whose parameters are in the file that is named after the one at ``path``."""
    names = (f"{stem_of(path)}{suffix}{packed}" for suffix in MODULES for packed in ("", PACKED))
    others = (path.parent / name for name in names if name != path.name)
    return [p for p in others if kind_of(p) in ("text", "json")]


def note_missing_weights(graph: Graph) -> str:
    """A note on the inputs of a Relay graph that look like weights; empty where there is none."""
    inputs = set(graph.inputs)
    read = {
        value
        for node in graph.nodes
        if node.op.startswith(("nn.", "qnn.")) and node.op not in PRODUCTS
        for value in node.inputs[1:]
        if value in inputs
    }
    names = [v.name for v in graph.inputs if v in read]
    if not names or len(names) == len(inputs):
        return ""
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    count = "1 input looks like a weight" if len(names) == 1 else (
        f"{len(names)} inputs look like weights"
    )  # fmt: skip
    return f"{count}: {shown}. Where they are in a file, name it with --params"


def _join_names(files: Iterable[Path]) -> str:
    return ", ".join(f.name for f in files)
