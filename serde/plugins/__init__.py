"""Formats, bridges and targets, found by entry point, the built-in formats like others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, wraps
from glob import escape as glob_escape
from importlib import import_module
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from serde.errors import MalformedFile, UnknownFormat, UsageError
from serde.io.sniff import read_head, refuse_other_file
from serde.io.user_code import refuse_exits
from serde.ir.graph import Graph
from serde.plugins.options import (
    ReadOptions,
    WriteOptions,
    list_options,
    names_of,
    option,
    warn_renamed,
)
from serde.rewrite.rules import RuleTable

if TYPE_CHECKING:
    from serde.legalize.target import Target


class Deferred:
    """A function at ``module:name``, as entry points spell it, whose module is imported late.

    The formats that a conversion does not need cost no time so.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    @cached_property
    def value(self) -> Any:
        """What is at the place."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.value(*arguments, **options)


STAGES = ("decode", "to_ir", "from_ir", "encode")
MOST_FILES, MOST_MODELS = 100, 3  # of a folder that are looked at, that a message names


def _accept_old_fields(cls: type[Format]) -> type[Format]:
    """Let plug-ins of before make a Format: with ``claims`` and ``options``, and a warning."""
    make: Any = cls.__init__

    @wraps(make)
    def init(
        self: Format, *values: Any, claims: Any = None, options: Any = None, **named: Any
    ) -> None:
        if claims is not None:
            warn_renamed("Format(claims=…)", "Format(matches=…)")
            named["matches"] = claims
        if options is not None:
            warn_renamed("Format(options=…)", "Format(read_options=…, write_options=…)")
            named["read_options"] = _as_class(ReadOptions, options, ("decode", "to_ir"))
            named["write_options"] = _as_class(WriteOptions, options, ("from_ir", "encode"))
        make(self, *values, **named)
        for stage in STAGES if options is not None else ():
            if (function := getattr(self, stage)) is not None:
                wrapper = _Function(function, frozenset(options.get(stage, ())))
                object.__setattr__(self, stage, wrapper)

    cls.__init__ = init  # type: ignore[assignment]
    return cls


@dataclass(frozen=True)
class _Function:
    """A function of a plug-in of before, and the names of the options it takes."""

    function: Callable[..., Any]
    option_names: frozenset[str]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)


def _as_class(base: type, options: Mapping[str, Any], stages: Sequence[str]) -> type:
    """The class that declares the options whose names a plug-in of before lists by stage."""
    names = sorted({n for s in stages for n in options.get(s, ())} - list_options(base).keys())
    return type(f"Old{base.__name__}", (base,), {n: option("", kind="object") for n in names})


@_accept_old_fields
@dataclass(frozen=True, eq=False)
class Format:
    """A file format: a codec between files and graphs, and the way from and to the IR.

    Attributes:
        name: what users call it.
        suffixes: endings its files are written with, the first the default.
        matches: whether the file or folder at a path is of this format, judged by content.
        decode: ``(path, **options) -> Graph`` in the format's own vocabulary.
        to_ir: ``(graph, **options) -> Graph`` of the IR.
        from_ir: ``(graph, **options) -> Graph`` of the format, or None where it is not written yet.
        encode: ``(graph, path, **options) -> list[str]``, the files written.
        read_options, write_options: the declared options. Each of the four functions gets those
            that are given and that its signature names; all of them if it has ``**options``.
        tables: its rule tables, for the operator tables and the tests, or where they are.
        check_target: ``(path, **options) -> None``, with the options of ``encode``: raises
            UsageError where what lies at or beside ``path`` stands in the way of a result there.
        repair: ``(source path, target path) -> list[str]``, what was mended in a file, if it can.
    """

    name: str
    suffixes: tuple[str, ...]
    matches: Callable[[Path], bool]
    decode: Callable[..., Graph]
    to_ir: Callable[..., Graph]
    from_ir: Callable[..., Graph] | None = None
    encode: Callable[..., list[str]] | None = None
    read_options: type[ReadOptions] = ReadOptions
    write_options: type[WriteOptions] = WriteOptions
    tables: tuple[RuleTable | Deferred, ...] = ()
    repair: Callable[..., list[str]] | None = None
    check_target: Callable[..., None] | None = None

    @classmethod
    def in_package(cls, package: str, **fields: Any) -> Format:
        """A format whose functions are in modules of their names: ``decode.py``, ``to_ir.py``, …

        Its tables are the ``reads`` of ``to_ir`` and the ``writes`` of ``from_ir``.
        """
        places: dict[str, Any] = {n: Deferred(f"{package}.{n}:{n}") for n in STAGES}
        reads, writes = Deferred(f"{package}.to_ir:reads"), Deferred(f"{package}.from_ir:writes")
        return cls(**{**places, "tables": (reads, writes), **fields})

    @property
    def claims(self) -> Callable[[Path], bool]:
        """What ``matches`` was called before."""
        warn_renamed("Format.claims", "Format.matches")
        return self.matches

    def own_options(self) -> frozenset[str]:
        """The names of the options that it declares beside the hub's."""
        return names_of((self.read_options, self.write_options)) - HUB

    def rule_tables(self) -> tuple[RuleTable, ...]:
        """Its rule tables, filled."""
        return tuple(t.value if isinstance(t, Deferred) else t for t in self.tables)


Completion = Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], str]]


@dataclass(frozen=True, eq=False)
class Bridge:
    """A framework's live objects.

    ``modules`` are the top-level modules whose objects it takes, so that asking imports nothing.
    ``decode(object, params, **options)`` gives a graph in the vocabulary of ``format``;
    ``run(source, feeds)`` runs such a source in its own framework, for verification, and
    ``prepare(source)``, where there is one, gives a function of the feeds for several runs.
    ``settings`` are options of both by name: other ways to run a model that must give the same;
    ``narrow_settings`` are further ones for a model that was made to compute in float16.
    Both take ``cut_inputs`` where ``begins_anywhere``: names of values to begin a source at, and
    ``outputs`` where ``ends_anywhere``: those to end it at.
    ``makes`` has the functions that turn a graph of the IR into live objects, by what users call
    those. ``describe_inexactness(graph)`` says what of a graph of the IR frameworks compute
    inexactly on this processor, or nothing. ``complete_feeds(source, **options)`` gives a
    function that changes feeds to some with which the framework, as it runs here, computes what the
    model means, and tells what is not compared so; or None. Where it is not ``has_scalars``, a
    tensor of shape (1,) stands for one of no axes.
    """

    name: str
    modules: tuple[str, ...]
    format: str
    decode: Callable[..., Graph]
    run: Callable[..., Any] | None = None
    makes: Mapping[str, Callable[[Graph], Any]] = field(default_factory=dict)
    prepare: Callable[..., Callable[[Mapping[str, Any]], Any]] | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    narrow_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    begins_anywhere: bool = False
    ends_anywhere: bool = True
    describe_inexactness: Callable[[Graph], str] | None = None
    complete_feeds: Callable[..., Completion | None] | None = None
    has_scalars: bool = True


HUB = names_of((ReadOptions, WriteOptions))


@cache
def list_parameters(fmt: Format, stage: str) -> frozenset[str]:
    """The names that one of a format's functions has for its parameters, or may get as any."""
    function = getattr(fmt, stage)
    if isinstance(function, _Function):
        return function.option_names
    callee = function.value if isinstance(function, Deferred) else function
    parameters = signature(callee).parameters.values()
    names = frozenset(p.name for p in parameters)
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    return names | fmt.own_options() if takes_any else names


def select_options(fmt: Format, stage: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given options that one of a format's functions takes."""
    return {k: v for k, v in options.items() if k in list_parameters(fmt, stage)}


Plugin = TypeVar("Plugin", Format, Bridge)


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


def installed_formats() -> list[Format]:
    """The installed formats, by name."""
    return [get_format(name) for name in format_names()]


def get_format(name: str) -> Format:
    """The format called ``name``.

    Raises:
        UnknownFormat: listing those installed.
    """
    if name not in _entries("serde.formats"):
        raise UnknownFormat(f"no format is called {name!r}; installed: {', '.join(format_names())}")
    return _load("serde.formats", name)  # type: ignore[no-any-return]


def bridge_names() -> list[str]:
    """Names of the installed bridges."""
    return sorted(_entries("serde.bridges"))


def rule_names(name: str) -> list[str]:
    """Operators for which plug-ins have a reading rule of their own, in the format ``name``.

    Such a rule is an entry point of the group ``serde.rules.<format>``, named after the operator.
    """
    return sorted(_entries(f"serde.rules.{name}"))


def get_rule(name: str, op: str) -> Callable[..., Any]:
    """A plug-in's reading rule."""
    return _load(f"serde.rules.{name}", op)  # type: ignore[no-any-return]


def target_names() -> list[str]:
    """Names of the targets of plug-ins: entry points of the group ``serde.targets``."""
    return sorted(_entries("serde.targets"))


def get_target(name: str) -> Target:
    """A plug-in's target.

    Raises:
        UsageError: listing those installed.
    """
    if name not in _entries("serde.targets"):
        installed = ", ".join(target_names()) or "none"
        raise UsageError(f"no target is called {name!r}; installed: {installed}")
    return _load("serde.targets", name)  # type: ignore[no-any-return]


def get_bridge(name: str) -> Bridge | None:
    """The bridge called ``name``, None if there is none."""
    if name not in _entries("serde.bridges"):
        return None
    return _load("serde.bridges", name)  # type: ignore[no-any-return]


def bridge_for(thing: object) -> Bridge:
    """The bridge that takes ``thing``, by the module its class comes from."""
    roots = {c.__module__.partition(".")[0] for c in type(thing).__mro__}
    for name in bridge_names():
        bridge = get_bridge(name)
        if bridge is not None and roots & set(bridge.modules):
            return bridge
    raise UnknownFormat(
        f"no bridge takes a {type(thing).__module__}.{type(thing).__qualname__}; "
        f"installed: {', '.join(bridge_names())}"
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
    return next((b for b in bridges if b is not None and b.format == format and b.run), None)


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
    if path.exists() and not path.is_dir():
        refuse_other_file(path, read_head(path))
    if models := _list_models(path):
        raise UnknownFormat(f"{path} is a folder: name the model in it: {' or '.join(models)}")
    raise UnknownFormat(f"{path} is of no known format; installed: {', '.join(format_names())}")


def _list_models(folder: Path) -> list[str]:
    """A few files of a folder that are of a known format, by name if any are."""
    files = sorted(p for p in folder.glob("*") if p.is_file())[:MOST_FILES]
    formats = [get_format(n) for n in format_names()]
    models = [p for p in files if any(f.matches(p) for f in formats)]
    suffixes = tuple(s for f in formats for s in f.suffixes)
    shown = [p for p in models if p.name.endswith(suffixes)] or models
    return [str(p) for p in shown[:MOST_MODELS]]


def refuse_absent(path: Path) -> None:
    """Raise MalformedFile if nothing is at ``path``, and nothing whose prefix it is."""
    if not path.exists() and not any(path.parent.glob(f"{glob_escape(path.name)}-*")):
        raise MalformedFile(path, "there is no such file, folder or prefix")


def format_for_writing(path: Path) -> Format:
    """The format whose suffix ``path`` ends with; the longest suffix wins."""
    best, longest = None, 0
    for name in format_names():
        fmt = get_format(name)
        for suffix in fmt.suffixes:
            if path.name.endswith(suffix) and len(suffix) > longest:
                best, longest = fmt, len(suffix)
    if best is None:
        known = ", ".join(s for n in format_names() for s in get_format(n).suffixes)
        raise UsageError(f"cannot tell a format from {path.name!r}: end it with one of {known}")
    return best
