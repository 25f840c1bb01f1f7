"""Which files make one MXNet model: a symbol and its parameters, paired by content.

A source may be the ``-symbol.json``, the prefix before it, a folder or a ``.tar`` archive (as SageMaker
stores models) that holds one model. Archives are read where they are; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from serde.content import head_of, refuse_missing, refuse_mistaken
from serde.errors import MalformedFile, UsageError

from .params import Params, parse_params, read_params

EPOCH = re.compile(r"-(\d{4,})\.params$")
MOST_MEMBERS, MOST_BYTES = 10_000, 1 << 36  # of an archive
MOST_JSON = 1 << 30  # bytes of symbol JSON
PARAMS_MAGIC = b"\x12\x01\0\0\0\0\0\0"


@dataclass(frozen=True)
class Files:
    """A symbol's text, its parameters if any were found, and what to call them."""

    symbol_path: str
    symbol: bytes
    params: Params | None


def looks_like_symbol(head: bytes) -> bool:
    """Whether ``head`` begins symbol JSON."""
    text = head.lstrip()
    return text[:1] == b"{" and b'"nodes"' in head and b'"tvm_op"' not in head


def claims(path: Path) -> bool:
    """Whether ``path`` names an MXNet model."""
    if path.is_dir():
        return bool(_symbols(path.iterdir()))
    if path.is_file():
        head = head_of(path)
        archive = path.name.endswith((".tar", ".tar.gz", ".tgz"))
        return archive or path.name.endswith("-symbol.json") or looks_like_symbol(head)
    return Path(f"{path}-symbol.json").is_file()


def find(path: Path, params: str | Path | None, epoch: int | None) -> Files:
    """Find the symbol and the parameters a source names.

    Raises:
        MalformedFile, UsageError: when there is none, or more than one to choose from.
    """
    if path.is_file() and path.name.endswith((".tar", ".tar.gz", ".tgz")):
        found = _from_archive(path, epoch)
        return found if params is None else Files(found.symbol_path, found.symbol, _read(params))
    if path.is_dir():
        symbol = _only(_symbols(path.iterdir()), path, "symbol")
    elif path.is_file():
        symbol = path
    else:
        symbol = Path(f"{path}-symbol.json")
        if not symbol.is_file():
            refuse_missing(path)
    if symbol.stat().st_size > MOST_JSON:
        raise MalformedFile(symbol, "too large for symbol JSON")
    text = symbol.read_bytes()
    refuse_mistaken(symbol, text[:1024])
    if params is None:
        place = _params_beside(symbol, epoch, path.is_dir())
        return Files(str(symbol), text, None if place is None else read_params(place))
    return Files(str(symbol), text, _read(params))


def _read(params: str | Path) -> Params:
    refuse_missing(Path(params))
    if Path(params).is_dir():
        raise UsageError(f"{params} is a folder, not a parameter file")
    return read_params(params)


def _symbols(paths: Iterable[Path]) -> list[Path]:
    return sorted(
        p for p in paths if p.suffix == ".json" and p.is_file() and looks_like_symbol(head_of(p))
    )


def _only(found: list[Path], where: Path, what: str) -> Path:
    if not found:
        raise MalformedFile(where, f"holds no MXNet {what}")
    if len(found) > 1:
        names = ", ".join(p.name for p in found)
        raise UsageError(f"{where} holds several {what}s: {names}; name one of them")
    return found[0]


def _params_beside(symbol: Path, epoch: int | None, alone: bool) -> Path | None:
    """The parameters of ``symbol``: those of its prefix, the last epoch unless one is named."""
    prefix = symbol.name.removesuffix(".json").removesuffix("-symbol")
    files = [p for p in symbol.parent.iterdir() if p.is_file()]
    own = [p for p in files if p.name.startswith(f"{prefix}-") and EPOCH.search(p.name)
           and EPOCH.sub("", p.name) == prefix]  # fmt: skip
    own = own or [p for p in files if p.name == f"{prefix}.params"]
    if not own and alone:
        own = [p for p in files if p.suffix == ".params" or _is_params(p)]
        numbered = {EPOCH.sub("", p.name) for p in own}
        if len(own) > 1 and len(numbered) > 1:
            return _only(own, symbol.parent, "parameter file")
    return _epoch(own, epoch, symbol)


def _is_params(path: Path) -> bool:
    return head_of(path)[:8] == PARAMS_MAGIC


def _epoch(found: list[Path], epoch: int | None, symbol: Path) -> Path | None:
    numbers = {int(m[1]): p for p in found if (m := EPOCH.search(p.name))}
    if epoch is not None:
        if epoch not in numbers:
            known = ", ".join(map(str, sorted(numbers))) or "none"
            raise UsageError(f"{symbol} has no parameters of epoch {epoch}; there are: {known}")
        return numbers[epoch]
    return numbers[max(numbers)] if numbers else (found[0] if found else None)


def _from_archive(path: Path, epoch: int | None) -> Files:
    try:
        with tarfile.open(path, "r:*") as archive:
            members = _members(archive, path)
            symbols, params = [], []
            for member in members:
                file = archive.extractfile(member)
                head = file.read(1024) if file else b""
                if member.name.endswith(".json") and looks_like_symbol(head):
                    symbols.append(member)
                elif head[:8] == PARAMS_MAGIC:
                    params.append(member)
            symbol = _one_member(symbols, path, "symbol", None)
            chosen = _one_member(params, path, "parameter file", epoch) if params else None
            text = _bytes(archive, symbol, path)
            held = _bytes(archive, chosen, path) if chosen else None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise MalformedFile(path, f"an archive that cannot be read: {error}") from error
    name = f"{path}:{symbol.name}"
    return Files(name, text, None if held is None else parse_params(held, f"{path}:{chosen.name}"))


def _members(archive: tarfile.TarFile, path: Path) -> list[tarfile.TarInfo]:
    found, total = [], 0
    for number, member in enumerate(archive):
        total += member.size
        if number >= MOST_MEMBERS or total > MOST_BYTES:
            raise MalformedFile(path, "the archive holds more than a model can")
        if member.isfile():  # links and devices are left alone
            found.append(member)
    return found


def _one_member(
    members: list[tarfile.TarInfo], path: Path, what: str, epoch: int | None
) -> tarfile.TarInfo:
    numbered = {int(m[1]): f for f in members if (m := EPOCH.search(f.name))}
    if epoch is not None and epoch not in numbered:
        raise UsageError(f"{path} has no parameters of epoch {epoch}")
    if epoch is not None or (numbered and len(numbered) == len(members)):
        return numbered[max(numbered) if epoch is None else epoch]
    if len(members) != 1:
        names = ", ".join(m.name for m in members) or "none"
        raise UsageError(f"{path} should hold one {what}; it holds {names}")
    return members[0]


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bytes:
    file = archive.extractfile(member)
    if file is None:
        raise MalformedFile(path, f"{member.name!r} is no file")
    return file.read()
