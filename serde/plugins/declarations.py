"""What a format and a bridge declare of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serde.io.atomic_write import refuse_other_file
from serde.ir.graph import EMPTY, Graph, Shape, Tensor, Value
from serde.plugins.consumer import Consumer
from serde.plugins.deferred import Deferred
from serde.plugins.options import HUB, ReadOptions, WriteOptions, names_of
from serde.rewrite.rules import RuleTable


def matches_none(path: Path) -> bool:
    """That of a format whose files are not told by their content."""
    return False


STAGES = ("decode", "to_ir", "from_ir", "encode")


@dataclass(frozen=True, eq=False)
class Format:
    """A file format: a codec between files and graphs, and the way from and to the IR.

    Attributes:
        name: what users call it.
        title: what headings call it.
        suffixes: endings its files are written with, the first the default.
        matches: whether the file or folder at a path is of this format, judged by content.
        name_other: ``(name, beginning) -> str | None``, what a file is that people hold for one of
            this format, and what to do with it.
        decode: ``(path, **options) -> Graph`` in the format's own vocabulary, or None where files
            are written only.
        to_ir: ``(graph, **options) -> Graph`` of the IR, likewise.
        read_interface: ``(path) -> Graph``, one node with the inputs and outputs of a file that is
            run and not read, if that can be told.
        instead_of_reading: what to convert where files are written only.
        from_ir: ``(graph, **options) -> Graph`` of the format, or None where it is not written yet.
        encode: ``(graph, path, **options) -> list[str]``, the files written.
        read_options, write_options: the declared options. Each of the four functions gets those
            that are given and that its signature names; all of them if it has ``**options``.
        tables: its rule tables, for the operator tables and the tests, or where they are.
        check_target: ``(path, **options) -> None``, with the options of ``encode``: raises
            UsageError where what lies at or beside ``path`` stands in the way of a result there.
        repair: ``(source path, target path) -> list[str]``, what was mended in a file, if it can.
        consumers: what files of the format are written for, by name (``--profile``).
        next_step: how a result is run, by the suffix of its file where that matters; ``{name}`` and
            ``{stem}`` stand for its path, and each option of writing for its value.
        has_metadata: whether its files hold what serde enters of a model, such as a hash.
        can_be_remainder: whether a partitioned model can have its remainder in this format, though
            it has no runtime of a name.
        replaces: names of profiles that are no more, and what to use of the format instead.
        runtime: the name of what runs its files, if anything does.
        reading: ``(options) -> Mapping[str, Any]``, what sources are read with for files that are
            written with these options, unless the caller says otherwise.
        read_arrays: ``(path) -> Mapping[str, Tensor]``, the arrays of a file that holds nothing
            else, or None for other files.
        list_shapes: ``(graph) -> Mapping[Value, Shape]``, what the file of a graph says of values
            whose shapes are inferred for a conversion, for people to see.
    """

    name: str
    suffixes: tuple[str, ...]
    matches: Callable[[Path], bool] = matches_none
    decode: Callable[..., Graph] | None = None
    to_ir: Callable[..., Graph] | None = None
    from_ir: Callable[..., Graph] | None = None
    encode: Callable[..., list[str]] | None = None
    read_options: type[ReadOptions] = ReadOptions
    write_options: type[WriteOptions] = WriteOptions
    tables: tuple[RuleTable | Deferred, ...] = ()
    repair: Callable[..., list[str]] | None = None
    check_target: Callable[..., None] | None = None
    title: str = ""
    consumers: Mapping[str, Consumer] = field(default_factory=lambda: EMPTY)
    next_step: str | Mapping[str, str] = ""
    has_metadata: bool = False
    can_be_remainder: bool = False
    replaces: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    runtime: str = ""
    read_arrays: Callable[[Path], Mapping[str, Tensor] | None] | None = None
    read_interface: Callable[[Path], Graph] | None = None
    instead_of_reading: str = "give the source"
    reading: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda options: EMPTY
    name_other: Callable[[str, bytes], str | None] = lambda name, head: None
    list_shapes: Callable[[Graph], Mapping[Value, Shape]] = lambda graph: {}

    @property
    def is_read(self) -> bool:
        """Whether files of it are read at all."""
        return self.decode is not None

    @classmethod
    def in_package(cls, package: str, **fields: Any) -> Format:
        """A format whose functions are in modules of their names: ``decode.py``, ``to_ir.py``, …

        Its tables are the ``reads`` of ``to_ir`` and the ``writes`` of ``from_ir``.
        """
        places: dict[str, Any] = {n: Deferred(f"{package}.{n}:{n}") for n in STAGES}
        reads, writes = Deferred(f"{package}.to_ir:reads"), Deferred(f"{package}.from_ir:writes")
        return cls(**{**places, "tables": (reads, writes), **fields})

    def refuse_other_file(self, path: Path) -> None:
        """Refuse to write over a file that is none of the format.

        Raises:
            TargetRefused: naming the file.
        """
        if self.matches is not matches_none:
            refuse_other_file(path, self.matches, f"model of {self.title or self.name}")

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
    ``run(source, feeds)`` runs such a source in its own framework, for verification, or
    ``prepare(source)`` gives a function of the feeds for several runs.
    ``settings`` are options of both by name: other ways to run a model that must give the same;
    ``narrow_settings`` are further ones for a model that was made to compute in float16.
    Both take ``cut_inputs`` where ``begins_anywhere``: names of values to begin a source at, and
    ``outputs`` where ``ends_anywhere``: those to end it at.
    ``makes`` has the functions that turn a graph of the IR into live objects, by what users call
    those. ``describe_inexactness(graph)`` says what of a graph of the IR frameworks compute
    inexactly on this processor, or nothing. ``complete_feeds(source, **options)`` gives a
    function that changes feeds to some with which the framework, as it runs here, computes what the
    model means, and tells what is not compared so; or None. Where it is not ``has_scalars``, a
    tensor of shape (1,) stands for one of no axes. ``libraries`` are the modules whose versions
    reports tell, where they are imported; ``versions`` has those that were loaded by processes.
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
    libraries: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_run(self) -> bool:
        """Whether it runs models."""
        return self.run is not None or self.prepare is not None
