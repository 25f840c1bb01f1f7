"""Which files make one MXNet model: a symbol and its parameters, paired by content.

A source may be the ``-symbol.json``, the prefix before it, a folder or an archive (``.tar`` as
SageMaker stores models, ``.zip`` and ``.mar`` as model servers) that holds one model, the parameter
file beside a symbol, or the ``-model.json`` of a Gluon block. Archives are read where they are;
nothing is unpacked to disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serde.errors import MalformedFile, TargetRefused, UsageError
from serde.io.archive import TARS, Archive, is_archive, is_companion, open_archive
from serde.io.atomic_write import is_leftover
from serde.io.command_files import active_files
from serde.io.sniff import read_head, refuse_missing
from serde.ir.budget import active_budget
from serde.ir.printer import list_first
from serde.plugins import installed_formats

from .candidates import ANY_EPOCH, SYMBOL, Candidate, base_name, open_file, open_member
from .magic import identify_beside_model, looks_like_block, looks_like_params, looks_like_symbol
from .params import Params, read_params

BLOCK = "-model.json"
PYTORCH = (".pt", ".pth")  # archives that hold no model of MXNet
MOST_NESTED = 3  # archives in an archive, one in the other
MOST_FILES = 10_000  # of a folder that are looked into
FEW = 3  # names in a note


class Files(NamedTuple):
    """A symbol's text, its parameters if any were found, and where they were looked for.

    ``is_block`` for what a Gluon block was saved as: its arrays may have names of their own.
    ``notes`` tell which files were chosen among several.
    """

    symbol_path: str
    symbol: bytes
    params: Params | None
    searched: str = ""
    is_block: bool = False
    notes: tuple[str, ...] = ()


UNSAVED = (
    "holds MXNet parameters, and no MXNet symbol: save the network as well, with export (with "
    "GluonTS by as_symbol_block_predictor), or name its symbol and these parameters"
)


def matches(path: Path) -> bool:
    """Whether ``path`` names an MXNet model."""
    if path.is_dir():
        files = _files(path)
        known = any(f.is_symbol or looks_like_params(f.head) for f in files)
        return known or _symbol_path(path).is_file()
    if not path.is_file():
        return _symbol_path(path).is_file()
    head = read_head(path)
    if is_archive(path.name, head):
        return _holds_model(open_archive(str(path), head))
    known = looks_like_symbol(head) or looks_like_params(head) or looks_like_block(head)
    known = known or path.name.endswith(SYMBOL)
    return known or identify_beside_model(path.name, head) is not None


def _holds_model(archive: Archive, depth: int = 0) -> bool:
    """Whether an archive has a symbol or parameters in it, or in the only archive in it.

    Others are not MXNet's. Of a damaged one, its name tells.
    """
    files = []
    try:
        for name in archive.walk():  # the first of a model tells, before the rest is inflated
            if not is_companion(name):
                files.append(open_member(archive, name))
                if name.endswith((SYMBOL, ".params")) or files[-1].is_symbol:
                    return True
        inner = _inner_archive(files)
        if inner is None or depth == MOST_NESTED:
            return False
        data = archive.read(inner.name, active_budget().most_bytes)
        return _holds_model(open_archive(inner.name, inner.head, data), depth + 1)
    except MalformedFile:
        return archive.path.endswith((*TARS, ".mar"))
    finally:
        archive.__exit__()


def find(path: Path, params: Any, epoch: int | None) -> Files:
    """Find the symbol and the parameters a source names.

    Raises:
        MalformedFile, UsageError: when there is none, or more than one to choose from.
    """
    if params is not None and epoch is not None:
        raise UsageError("name the parameter file or its epoch, not both")
    weights = None if params is None else _read_given_params(params)
    head = read_head(path) if path.is_file() else b""
    if reason := identify_beside_model(path.name, head):
        raise MalformedFile(path, reason)
    if is_archive(path.name, head):
        with open_archive(str(path), head) as archive:
            return _find_in_archive(archive, weights, epoch)
    if path.is_dir():
        files = _files(path)
        if any(f.is_symbol for f in files) or not _symbol_path(path).is_file():
            return _pair(_select_single(files, str(path)), files, weights, epoch, str(path))
    symbol = _symbol_named(path)
    if looks_like_params(symbol.head) or symbol.name.endswith(".params"):
        if weights is not None or epoch is not None:
            raise UsageError(f"{path} is a parameter file: name the symbol")
        symbol, weights = _symbol_of(symbol, path), symbol.params()
    folder = Path(symbol.name).parent
    return _pair(symbol, _files(folder, heads=False), weights, epoch, str(folder))


def _find_in_archive(
    archive: Archive, weights: Params | None, epoch: int | None, depth: int = 0
) -> Files:
    """The model in an archive; one that holds nothing but an archive is opened in its turn."""
    files = _members(archive)
    inner = _inner_archive(files)
    if inner is None or depth == MOST_NESTED:
        model = _pair(_select_single(files, archive.path), files, weights, epoch, archive.path)
        return model._replace(notes=(*model.notes, *_list_passed_over(files, archive.path)))
    data = archive.read(inner.name, active_budget().most_bytes)
    with open_archive(inner.name, inner.head, data) as nested:
        return _find_in_archive(nested, weights, epoch, depth + 1)


def _list_passed_over(files: Sequence[Candidate], where: str) -> Iterable[str]:
    """A note of the models of other formats beside MXNet's in an archive."""
    others = [f for f in installed_formats() if f.is_read and f.name != "mxnet"]
    suffixes = tuple(s for f in others for s in f.suffixes if s != ".json")
    names = [f.name.partition(f"{where}:")[2] or f.name for f in files]
    models = [name for name in names if name.lower().endswith(suffixes)]
    if models:
        shown = list_first(models, FEW)
        yield f"passed over: {shown}. To convert one, name it: {where}:{models[0]}"


def _members(archive: Archive) -> list[Candidate]:
    return [open_member(archive, name) for name in archive.names if not is_companion(name)]


def _inner_archive(files: Sequence[Candidate]) -> Candidate | None:
    """The archive among files without a symbol: SageMaker's ``model_algo-1`` is one in a tar."""
    if any(f.is_symbol or f.is_params for f in files):
        return None
    archives = [f for f in files if is_archive(f.name, f.head) and not f.name.endswith(PYTORCH)]
    return archives[0] if len(archives) == 1 else None


def params_path(symbol: str, epoch: int = 0) -> str:
    """The parameter file that is written beside a ``-symbol.json``."""
    return f"{symbol.removesuffix(SYMBOL)}-{epoch:04d}.params"


def refuse_later_epochs(path: str | os.PathLike[str], epoch: int = 0) -> None:
    """Raise TargetRefused where a later epoch would be loaded instead of what is to be written."""
    symbol = Path(path)
    folder = symbol.parent
    if not folder.is_dir():
        return
    prefix, written = open_file(symbol, b"").prefix, base_name(params_path(str(symbol), epoch))
    later = {
        number: base_name(f.name)
        for f in (open_file(p, b"") for p in sorted(folder.glob("*.params")) if p.is_file())
        if f.belongs_to(prefix) and base_name(f.name) != written
        if (number := f.epoch(prefix)) is not None and number >= epoch
    }
    if not later:
        return
    last = max(later)
    is_replaced = later[last] == base_name(params_path(str(symbol), last))
    raise TargetRefused(
        f"{folder / later[last]} lies beside {symbol.name}, and would be loaded instead of "
        f"{written}, as the last epoch counts. Write to another name, move it away, "
        + (f"replace it with --write-epoch {last}, " if is_replaced else "")
        + f"or keep it with --write-epoch {last + 1}"
    )


def _symbol_path(path: Path) -> Path:
    """The symbol that a prefix names, or the JSON that a block was saved as."""
    block = Path(f"{path}{BLOCK}")
    return block if block.is_file() else Path(f"{path}{SYMBOL}")


def _read_given_params(params: Any) -> Params:
    if not isinstance(params, (str, os.PathLike)):
        return Params.of(params)
    refuse_missing(Path(params))
    if Path(params).is_dir():
        raise UsageError(f"{params} is a folder, not a parameter file")
    return read_params(params)


def _symbol_named(path: Path) -> Candidate:
    sibling = _symbol_path(path)
    if path.is_file() or not sibling.is_file():
        refuse_missing(path)
        if not path.is_file():
            raise MalformedFile(path, "not a regular file")
        return open_file(path)
    return open_file(sibling)


def _symbol_of(params: Candidate, path: Path) -> Candidate:
    """The symbol beside a parameter file that was named alone."""
    prefixes = (params.prefix, ANY_EPOCH.sub("", params.name), params.name.removesuffix(".params"))
    sibling = Path(prefixes[0] + SYMBOL)
    others = (Path(n + suffix) for suffix in (SYMBOL, ".json") for n in prefixes)
    sibling = next((p for p in others if p.is_file()), sibling)
    if not sibling.is_file():
        raise MalformedFile(
            path, f"a parameter file, and its symbol is not at {sibling}: name the symbol, and "
            "this as its parameters"
        )  # fmt: skip
    return open_file(sibling)


def _files(folder: Path, heads: bool = True) -> list[Candidate]:
    """The files of a folder; without ``heads`` their names alone tell what they are."""
    names = (p for p in folder.iterdir() if not (is_leftover(p.name) or is_companion(p.name)))
    paths = sorted(filter(Path.is_file, names))
    if heads and len(paths) > MOST_FILES:
        raise UsageError(f"{folder} holds {len(paths)} files: name the symbol among them")
    return [open_file(p, None if heads else b"") for p in paths]


def _select_single(files: Sequence[Candidate], where: str) -> Candidate:
    syms = [f for f in files if f.is_symbol]
    if not syms and any(f.is_params for f in files):
        raise MalformedFile(where, UNSAVED)
    if not syms:
        raise MalformedFile(where, "holds no MXNet symbol")
    if len(syms) > 1:
        names = ", ".join(f.name for f in syms)
        raise UsageError(f"{where} holds several symbols: name one of them: {names}")
    return syms[0]


def _pair(
    symbol: Candidate,
    files: Sequence[Candidate],
    weights: Params | None,
    epoch: int | None,
    where: str,
) -> Files:
    """A symbol and its parameters: those of its prefix, else the only ones there are."""
    if weights is not None:
        return _read_symbol(symbol, weights)
    params = [f for f in files if f.is_params and f.name != symbol.name]
    matching = [f for f in params if f.belongs_to(symbol.prefix)]
    for name in _find_bucketing(symbol, files):
        matching = matching or [f for f in params if f.belongs_to(name)]
    if not matching and sum(f.is_symbol for f in files) <= 1:
        matching = params
        if len({f.prefix for f in matching}) > 1:
            raise _make_choice_error(matching, f"{where} holds several parameter files")
    numbered = _number_epochs(matching, symbol)
    chosen = _choose_epoch(matching, numbered, epoch, symbol)
    if chosen is not None:
        model = _read_symbol(symbol, chosen.params())
        if epoch is not None or len(numbered) < 2:
            return model
        epochs = f"epoch {max(numbered)}, the last of {len(numbered)}"
        note = f"parameters: {base_name(chosen.name)}, {epochs}; --epoch reads those of another"
        return model._replace(notes=(note,))
    active_files().absent.add(f"{symbol.prefix}-0000.params")
    searched = f"{base_name(symbol.prefix)}-0000.params or the like in {where}"
    return _read_symbol(symbol, None, searched)


def _find_bucketing(symbol: Candidate, files: Iterable[Candidate]) -> Iterable[str]:
    """What a BucketingModule is called: of ``net-7-symbol.json``, beside ``net.buckets``, net."""
    names = (f.name.removesuffix(".buckets") for f in files if f.name.endswith(".buckets"))
    return (name for name in names if symbol.prefix.startswith(f"{name}-"))


def _read_symbol(symbol: Candidate, params: Params | None, searched: str = "") -> Files:
    """The text of a symbol; of a block that Gluon saved, with its parameters named after it."""
    active_files().enter_main(symbol.name)
    text = symbol.text()
    if not looks_like_block(symbol.head) or looks_like_symbol(symbol.head):
        return Files(symbol.name, text, params, searched)
    from .block_json import name_parameters, parse_block

    block = parse_block(text, symbol.name)
    named = None if params is None or not params.names else name_parameters(params, block)
    return Files(symbol.name, block.symbol, named or params, searched, is_block=True)


def _number_epochs(files: Iterable[Candidate], symbol: Candidate) -> dict[int, list[Candidate]]:
    """The parameter files of a symbol by their epochs."""
    numbered: dict[int, list[Candidate]] = {}
    for f in files:
        if (number := f.epoch(symbol.prefix)) is not None:
            numbered.setdefault(number, []).append(f)
    return numbered


def _choose_epoch(
    files: Sequence[Candidate], numbered: Mapping[int, list[Candidate]], epoch: int | None,
    symbol: Candidate,
) -> Candidate | None:  # fmt: skip
    """The file of an epoch, by default of the last; where none has a number, the first."""
    if epoch is not None and epoch not in numbered:
        known = ", ".join(map(str, sorted(numbered))) or "none"
        raise UsageError(f"{symbol.name} has no parameters of epoch {epoch}; there are: {known}")
    if not numbered:
        return files[0] if files else None
    chosen = max(numbered) if epoch is None else epoch
    if len(numbered[chosen]) > 1:
        raise _make_choice_error(
            numbered[chosen], f"{symbol.name} has several files of epoch {chosen}"
        )
    return numbered[chosen][0]


def _make_choice_error(files: Sequence[Candidate], reason: str) -> UsageError:
    """The error about files of which one is to be chosen; once one is gone, it may be no more."""
    for file in files:
        active_files().enter(file.name)
    return UsageError(f"{reason}: {_format_names(files)}; name one")


def _format_names(files: Iterable[Candidate]) -> str:
    return ", ".join(base_name(f.name) for f in files)
