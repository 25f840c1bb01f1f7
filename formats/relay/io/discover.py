"""Which parameter file belongs to a module: one named after it, or the only one that fits.

TVM has no rule of its own. Named after ``net.relay`` or ``net.json`` are ``net.params``, which is
what serde writes, then ``net.npz``, ``net.bin``, and ``net_param`` and ``net_params`` with the same
endings. Where there is none, the only parameter file in the folder is taken whose arrays are all
parameters of ``main``, unless it is named after another module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from serde.errors import MalformedFile, UsageError
from serde.ir.graph import Graph, Tensor

from .magic import kind_of
from .params import read_params

PACKED, MODULES = ".gz", (".json", ".txt", ".relay")
INFIXES, ENDINGS = ("", "_param", "_params"), (".params", ".npz", ".bin")
MOST_FILES = 10_000  # of a folder that are looked through
SHOWN = 8
PRODUCTS = frozenset({"nn.batch_matmul", "nn.matmul"})  # of data and data, often
Problems = Callable[[Mapping[str, Tensor]], list[str]]


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
    files: list[Path] = []
    others: list[Path] = []
    for file in _find_other_params(path):
        try:
            arrays = read_params(file)
        except MalformedFile:
            continue
        (files if arrays and not problems(arrays) else others).append(file)
    if len(files) > 1:
        raise UsageError(
            f"{path}: several files hold parameters of it, {_join_names(files)}: "
            "name one with --params"
        )
    if files:
        return files[0], f"parameters: {files[0]}, the only file beside the module that fits it"
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
    files = [p for n, p in enumerate(sorted(path.parent.iterdir())) if n < MOST_FILES]
    claimed = {
        named
        for other in files
        if other.name.removesuffix(PACKED).endswith(MODULES) and kind_of(other) in ("text", "json")
        for named in _find_named_after(stem_of(other), path.parent)
    }
    for file in files:
        if file.suffix in (".params", ".bin") and file not in claimed and kind_of(file) == "params":
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
