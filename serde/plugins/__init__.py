"""Formats, bridges and targets, found by entry point, the built-in formats like others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from glob import escape as glob_escape
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile, UnknownFormat, UsageError, suggest
from serde.io.archive import name_archive
from serde.io.sniff import read_head, refuse_other_file
from serde.io.user_code import refuse_exits
from serde.ir.graph import Graph
from serde.plugins.declarations import STAGES as STAGES
from serde.plugins.declarations import Bridge as Bridge
from serde.plugins.declarations import Completion as Completion
from serde.plugins.declarations import Format as Format
from serde.plugins.deferred import Deferred as Deferred
from serde.plugins.options import ReadOptions, WriteOptions
from serde.rewrite.rules import RuleTable

STANDARD = "onnx"  # the format of the IR's own operators, at any opset
STREAM = re.compile(r"-$|[a-z][a-z0-9+]*:/")  # the standard input, or a URL
STREAMS = "; commands read - and URLs as models only: copy it to this machine, or pipe it"
MOST_FILES, MOST_MODELS = 100, 3  # of a folder that are looked at, that a message names


@cache
def list_parameters(fmt: Format, stage: str) -> frozenset[str]:
    """The names that one of a format's functions has for its parameters, or may get as any."""
    function = getattr(fmt, stage)
    callee = function.value if isinstance(function, Deferred) else function
    parameters = signature(callee).parameters.values()
    names = frozenset(p.name for p in parameters)
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    return names | fmt.own_options() if takes_any else names


def select_options(fmt: Format, stage: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given options that one of a format's functions takes."""
    return {k: v for k, v in options.items() if k in list_parameters(fmt, stage)}


@cache
def _load_entry_points() -> Any:
    """The entry points of all packages, looked through once."""
    return entry_points()


@cache
def list_packages() -> list[str]:
    """The packages that formats, bridges, rules and targets are of, and their versions."""
    points = _load_entry_points()
    groups = [points.select(group=name) for name in points.groups if name.startswith("serde.")]
    packages = {e.dist for entries in groups for e in entries if e.dist is not None}
    return sorted(f"{package.name} {package.version}" for package in packages)


@cache
def _entries(group: str) -> dict[str, Any]:
    points: dict[str, Any] = {}
    for entry in _load_entry_points().select(group=group):
        if entry.name in points and points[entry.name].value != entry.value:
            raise UnknownFormat(
                f"two plug-ins are called {entry.name!r}: {points[entry.name].value}, {entry.value}"
            )
        points[entry.name] = entry
    return points


@cache
def _load(group: str, name: str) -> Any:
    with refuse_exits():
        return _entries(group)[name].load()


def format_names() -> list[str]:
    """Names of the installed formats."""
    return sorted(_entries("serde.formats"))


def read_formats() -> list[str]:
    """Names of the installed formats whose files are read."""
    return [fmt.name for fmt in installed_formats() if fmt.is_read]


def written_formats() -> list[str]:
    """Names of the installed formats whose files are written."""
    return [fmt.name for fmt in installed_formats() if fmt.encode is not None]


def installed_formats() -> list[Format]:
    """The installed formats, by name."""
    return [get_format(name) for name in format_names()]


def remainder_formats() -> list[str]:
    """The formats that the remainder of a partitioned model can be in."""
    return [f.name for f in installed_formats() if f.encode and (f.runtime or f.can_be_remainder)]


def read_classes() -> list[type[ReadOptions]]:
    """The classes of the options that sources are read with."""
    return [ReadOptions, *(f.read_options for f in installed_formats())]


def write_classes() -> list[type[WriteOptions]]:
    """The classes of the options that results are written with."""
    return [WriteOptions, *(f.write_options for f in installed_formats())]


def get_format(name: str) -> Format:
    """The format called ``name``.

    Raises:
        UnknownFormat: listing those installed.
    """
    if name not in _entries("serde.formats"):
        known = format_names()
        hint = explain_profile(name) or suggest(name, known)
        raise UnknownFormat(f"no format is called {name!r}; installed: {', '.join(known)}{hint}")
    return _load("serde.formats", name)  # type: ignore[no-any-return]


def explain_profile(name: str) -> str:
    """The end of a message about a name that is no format, and a profile; nothing for others.

    Profiles are known by their other names too.
    """
    for fmt in installed_formats():
        for profile, consumer in fmt.consumers.items():
            if name in (profile, *consumer.also_called):
                return f"; it is a profile of {fmt.name}: --profile {profile}"
    return ""


def bridge_names() -> list[str]:
    """Names of the installed bridges."""
    return sorted(_entries("serde.bridges"))


class PluginRules(Mapping[str, Callable[..., Any]]):
    """Reading rules of a format by operator: those of the caller's, then those of plug-ins.

    The latter are entry points of the group ``serde.rules.<format>``, named after the operator, and
    loaded when they are asked for.
    """

    def __init__(self, name: str, built_in: Mapping[str, Callable[..., Any]] | None) -> None:
        self.built_in, self.group = built_in or {}, f"serde.rules.{name}"

    def __getitem__(self, op: str) -> Callable[..., Any]:
        rule = self.built_in.get(op)
        return _load(self.group, op) if rule is None else rule  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.built_in, *sorted(_entries(self.group).keys() - self.built_in.keys())])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def with_plugin_rules(fmt: Format, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options to read with, those rules added that plug-ins bring for the format.

    Raises:
        UsageError: for a format that takes none.
    """
    names = sorted(_entries(f"serde.rules.{fmt.name}"))
    if not names or isinstance(options.get("rules"), RuleTable):
        return options
    if "rules" not in list_parameters(fmt, "to_ir"):
        raise UsageError(f"{fmt.name} takes no rules; a plug-in brings some: {', '.join(names)}")
    return {**options, "rules": PluginRules(fmt.name, options.get("rules"))}


def target_names() -> list[str]:
    """Names of the targets of plug-ins: entry points of the group ``serde.targets``."""
    return sorted(_entries("serde.targets"))


def get_target(name: str) -> Any:
    """What a plug-in declares to write for: a ``Target``, or a ``Consumer``."""
    return _load("serde.targets", name)


def get_bridge(name: str) -> Bridge | None:
    """The bridge called ``name``, None if there is none."""
    if name not in _entries("serde.bridges"):
        return None
    return _load("serde.bridges", name)  # type: ignore[no-any-return]


def list_libraries() -> dict[str, str | None]:
    """The modules that run models, of all bridges, with the versions that processes loaded."""
    bridges = [bridge for name in bridge_names() if (bridge := get_bridge(name)) is not None]
    libraries: dict[str, str | None] = {name: None for b in bridges for name in b.libraries}
    return libraries | {name: version for b in bridges for name, version in b.versions.items()}


def bridge_for(thing: object) -> Bridge:
    """The bridge that takes ``thing``, by the module its class comes from."""
    roots = {c.__module__.partition(".")[0] for c in type(thing).__mro__}
    for name in bridge_names():
        bridge = get_bridge(name)
        if bridge is not None and roots & set(bridge.modules):
            return bridge
    module, name = type(thing).__module__, type(thing).__qualname__
    raise UnknownFormat(
        f"no bridge takes a {name if module == 'builtins' else f'{module}.{name}'}: a model is the "
        f"path of a file, a Graph, or an object of one of {', '.join(bridge_names())}"
    )


def maker_of(kind: str) -> Callable[[Graph], Any]:
    """The function of a bridge that makes live objects of that kind.

    Raises:
        UsageError: listing the kinds there are.
    """
    makers = {k: m for n in bridge_names() if (b := get_bridge(n)) for k, m in b.makes.items()}
    if kind not in makers:
        raise UsageError(f"nothing makes {kind!r} of a model; there is {', '.join(sorted(makers))}")
    return makers[kind]


def get_runtime_bridge(format: str) -> Bridge | None:
    """The bridge whose framework runs models of ``format``, None if there is none."""
    bridges = (get_bridge(name) for name in bridge_names())
    return next((b for b in bridges if b is not None and b.format == format and b.can_run), None)


def format_of(path: Path) -> Format:
    """The format of the file or folder at ``path``, judged by its content.

    Raises:
        UnknownFormat: when none claims it, or several do.
    """
    refuse_absent(path)
    matching = [f for n in format_names() if (f := get_format(n)).matches(path)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(f.name for f in matching)
        raise UnknownFormat(f"{path} could be {names}: say which with --from")
    kind = f"installed: {', '.join(read_formats())}"
    if path.is_dir():
        kind = "no model is in this folder: serde migrate looks into those below it too"
    elif path.exists():
        head = read_head(path)
        refuse_other_file(path, head)
        named = _format_of_suffix(path)
        kind = name_other(path.name, head) or (
            f"by its name it is {named.title or named.name}, by its content not: it may be cut off"
            if named is not None and named.is_read and path.name.endswith(named.suffixes[0])
            else kind
        )  # fmt: skip
    if models := list_models(path):
        raise UnknownFormat(f"{path} is a folder: name the model in it: {' or '.join(models)}")
    raise UnknownFormat(f"{path} is of no known format; {kind}")


def list_models(folder: Path) -> list[str]:
    """A few files of a folder that are of a known format, by name if any are."""
    files = sorted(p for p in folder.glob("*") if p.is_file())[:MOST_FILES]
    formats = [f for f in installed_formats() if f.is_read]
    models = [p for p in files if any(f.matches(p) for f in formats)]
    suffixes = tuple(s for f in formats for s in f.suffixes)
    shown = [p for p in models if p.name.endswith(suffixes)] or models
    return [str(p) for p in shown[:MOST_MODELS]]


def name_other(name: str, head: bytes) -> str | None:
    """What a file of no format is, as one of them tells, and what to do with it."""
    reasons = (f.name_other(name, head) for f in installed_formats())
    return next(filter(None, reasons), None) or name_archive(name, head)


def refuse_absent(path: Path) -> None:
    """Raise MalformedFile if nothing is at ``path``, and nothing whose prefix it is."""
    if not path.exists() and not any(path.parent.glob(f"{glob_escape(path.name)}-*")):
        advice = STREAMS if STREAM.match(str(path)) else ""
        raise MalformedFile(path, f"there is no such file, folder or prefix{advice}")


def format_for_writing(path: Path) -> Format:
    """The format whose suffix ``path`` ends with; the longest suffix wins."""
    best = _format_of_suffix(path)
    if best is None:
        formats = [get_format(n) for n in written_formats()]
        known = ", ".join(f"{s} ({f.title or f.name})" for f in formats for s in f.suffixes)
        if path.is_dir():
            raise UsageError(
                f"{path} is a folder: name a file in it, that ends with one of {known}"
            )
        raise UsageError(
            f"cannot tell a format from {str(path)!r}: end it with one of {known}, or name the "
            "format with --to"
        )
    return best


def _format_of_suffix(path: Path) -> Format | None:
    """The format with the longest suffix that a path ends with, if any."""
    pairs = [(len(s), f) for f in map(get_format, format_names()) for s in f.suffixes
             if path.name.endswith(s)]  # fmt: skip
    return max(pairs, key=lambda pair: pair[0])[1] if pairs else None


def refuse_other_suffix(fmt: Format, path: Path) -> None:
    """Refuse to write a format into a file whose name says that it is of another.

    Raises:
        UsageError: naming the suffixes of the format.
    """
    other = _format_of_suffix(path)
    if other is not None and other is not fmt and not path.name.endswith(tuple(fmt.suffixes)):
        raise UsageError(
            f"{path} ends like a file of {other.title}, and one of {fmt.title} is to be written: "
            f"end it with {' or '.join(fmt.suffixes)}"
        )
