"""The names that users call: ``load``, ``save``, ``convert``, ``check`` and what is installed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serde.api.idle_options import note_idle_options
from serde.api.remote_files import at_urls
from serde.api.report import Report
from serde.api.report.data import describe_source
from serde.errors import Unconvertible
from serde.io.command_files import active_files, within_command
from serde.io.gc_pause import pause_collector, resume_collector
from serde.io.provenance import Provenance, describe_call, enter_provenance, stamp_files
from serde.io.weights_hash import KEY
from serde.ir.budget import within_budget
from serde.ir.graph import Graph
from serde.passes.cut_inputs import rename
from serde.passes.layout.ends import refuse_turned_twice
from serde.passes.optional import skip_passes
from serde.pipeline import (
    check_place,
    decode,
    encode,
    enter_files,
    finish,
    format_name,
    load,
    lower,
    raise_to_ir,
    read,
    refuse_unwritten,
    save,
)
from serde.plugins import (
    STANDARD,
    Deferred,
    Format,
    bridge_names,
    format_for_writing,
    get_bridge,
    get_format,
    list_libraries,
    read_classes,
    select_options,
    write_classes,
)
from serde.plugins.command_options import ImageOptions, VerifyOptions
from serde.plugins.keywords import with_options
from serde.plugins.option_checks import check_options, refuse_unknown
from serde.plugins.options import list_options, names_of
from serde.plugins.targets import find_target, get_consumer

IMAGES = Deferred("serde.frontends.image_inputs:read_images")  # which traces NumPy


class Stage(str):
    """The name of a stage that writes ``total`` bytes, about, to ``target``."""

    target: str
    total: int

    def __new__(cls, name: str, target: str, total: int) -> Stage:
        stage = super().__new__(cls, name)
        stage.target, stage.total = target, total
        return stage


Progress = Callable[[str], None]
UNREPORTED = frozenset({"params", "inputs", "outputs", "rename", "hash_weights"})


@with_options(lambda: [*read_classes(), *write_classes(), VerifyOptions])
@at_urls
@pause_collector()
@within_command()
def convert(
    source: Any,
    target: str | os.PathLike[str],
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    verify: bool | str = False,
    data: Any = None,
    expected: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    images: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Convert a model file or object to a file; where that fails, what was there before stays.

    A result is verified once it is written, and stays where it is found to be wrong.

    Args:
        source: as for ``load``, or a URL of fsspec.
        target: the file to write, or a URL.
        from_format, to_format: where content and suffix do not tell.
        verify: run source and result on the same inputs and compare; see ``serde.verification``.
            ``"layers"`` compares the layers that both have as well.
        data: inputs to run them on, as an ``.npz`` path or mapping; random ones otherwise.
        expected: the source's outputs, as an ``.npz`` path or mapping, where it cannot be run.
        rtol, atol: what an element may differ by, ``atol + rtol * |expected|``; if left out, a
            share of the output's largest number. Imply ``verify``.
        images: how the pixels of images become the model's inputs, as code in the graph:
            ``mean``, ``std``, ``scale`` and ``layout`` by the input's name, ``bgr`` the names of
            inputs, ``labels`` those of the classes. See docs/how-to/prepare-images.md.
        progress: called with the name of each stage as it begins; a ``Stage`` where much is
            written.
        options: those of ``load`` and ``save``: docs/reference/cli.md lists them.

    Returns:
        A Report; its ``ok`` is False where the verification failed.

    Raises:
        SerdeError: one of its kinds; an Unconvertible has the Report as its ``report``.
    """
    files = active_files()
    if isinstance(source, Graph):
        enter_files(source, target)
    check_options({"verify": verify, "images": images}, [VerifyOptions, ImageOptions])
    tolerance = _read_tolerance(rtol, atol)
    into = get_format(to_format) if to_format else format_for_writing(Path(target))
    reading, writing = _split(options, into)
    refuse_unwritten(into)
    check_place(into, target)
    report = Report(
        describe_source(source), os.fspath(target), "", into.name,
        options=_list_reported({**reading, **writing}),
    )  # fmt: skip
    report.provenance = about = _begin_provenance(
        "convert",
        source,
        target,
        from_format=from_format,
        to_format=to_format,
        images=images,
        **options,
    )
    if into.check_target is not None:
        into.check_target(Path(target), **select_options(into, "encode", writing))
    defaults = _list_defaults(into, writing, from_format or format_name(source), reading)
    reading = {**defaults, **reading}
    try:
        with within_budget(), skip_passes(options.get("skip")):
            with _time_stage(report, "read", progress):
                decoded = _decode(report, source, from_format, reading)
                graph = raise_to_ir(*decoded, reading, defaults)
                _enter_source(report, source, graph, target)
            with _time_stage(report, "convert", progress):
                prepared = IMAGES(graph, images) if images else None
                if images:  # whose layouts are checked now
                    turned = writing.get("channels_last") or ()
                    refuse_turned_twice(images.get("layout") or {}, turned)
                graph = graph if prepared is None else prepared.add_to(graph)
                graph = rename(graph, writing.get("rename"))
                report.notes = list(graph.notes)
                lowered = finish(lower(into, graph, writing), writing.get("hash_weights"))
                lowered = enter_provenance(lowered, about, writing)
                report.notes += lowered.notes[len(graph.notes) :]
                report.weights_sha256 = lowered.metadata.get(KEY)
                if writing.get("hash_weights") and not into.has_metadata:
                    report.notes.append(f"--hash: {into.title} files hold no hash; the report does")
                if prepared is None:
                    report.notes += note_idle_options(
                        *decoded, into, reading, writing, defaults, lowered
                    )
    except Unconvertible as error:
        report.refuse(error.problems)
        error.report = report
        raise
    files.enter_weights(graph.list_files())
    files.allow_replacing(target)
    files.refuse_target(target)
    run = None
    # The source is run before it is replaced, if it is.
    if verify or any(value is not None for value in (data, expected, tolerance)):
        graphs = graph, lowered, prepared
        with resume_collector(), _time_stage(report, "run", progress):
            run = _run_source(
                source, target, graphs, writing, data=data, expected=expected,
                tolerance=tolerance, from_format=from_format, to_format=into.name,
                replaces=True, **_for_running(reading),
            )  # fmt: skip
    report.describe(lowered)
    stage = Stage("write", os.fspath(target), report.weight_bytes)
    with _time_stage(report, stage, progress):
        report.files = encode(into, lowered, Path(target), writing)
    about.result = stamp_files(report.files)
    report.result_bytes = sum(file.bytes for file in about.result)
    if run is not None:
        _compare(report, run, target, lowered if verify == "layers" else None, progress)
    return report


def _run_source(
    source: Any, target: str | os.PathLike[str], graphs: tuple[Graph, Graph, Any],
    writing: Mapping[str, Any], **options: Any,
) -> Any:  # fmt: skip
    """Run a source; ``graphs`` are that of the IR, that of the result, and what prepares images."""
    from serde.verification import TurnedEnds, run_source

    ir, lowered, around = graphs
    shown = ir if lowered.functions else lowered  # inside functions no index is seen as one
    names = writing.get("rename")
    if turned := writing.get("channels_last"):
        around = TurnedEnds(ir, turned, around, names)
        ir = around.graph
    return run_source(source, target, graph=shown, ir=ir, rename=names, images=around, **options)


def _compare(
    report: Report, run: Any, target: str | os.PathLike[str], layers_of: Graph | None,
    progress: Progress | None,
) -> None:  # fmt: skip
    """Enter how the result compares with the run of its source, by layer where a graph has any."""
    from serde.verification import compare_result, compare_run_layers

    weights = next((f for f in report.files if f != os.fspath(target)), None)
    with resume_collector(), _time_stage(report, "verify", progress):
        report.verification = compare_result(run, target, weights=weights)
    if layers_of is not None:
        with resume_collector(), _time_stage(report, "layers", progress):
            report.verification.layers = compare_run_layers(
                run, target, weights=weights, graph=layers_of
            )


def _begin_provenance(function: str, *arguments: Any, **options: Any) -> Provenance:
    """The provenance of a result: the command as it was typed, or the call."""
    passed = {name: value for name, value in options.items() if value is not None}
    call = active_files().call or describe_call(f"serde.{function}", arguments, passed)
    return Provenance(call, list_runtimes=list_libraries)


def _enter_source(report: Report, source: Any, graph: Graph, target: Any = "") -> None:
    """Enter the files of a source; those that the result replaces are hashed before."""
    if report.provenance is None or not isinstance(source, (str, os.PathLike)):
        return
    stamps = stamp_files(graph.list_files() | active_files().list_read())
    report.source_bytes = sum(file.bytes for file in stamps)
    is_replaced = target and os.path.realpath(target) in {file.path for file in stamps}
    report.provenance.source = [f.with_hash() for f in stamps] if is_replaced else stamps


def _read_tolerance(rtol: float | None, atol: float | None) -> Any:
    """The tolerance that is given, if any."""
    if rtol is None and atol is None:
        return None
    from serde.verification.compare_outputs import Tolerance

    return Tolerance.of(rtol, atol)


def _decode(
    report: Report, source: Any, from_format: str | None, reading: Mapping[str, Any]
) -> tuple[Format, Graph]:
    """Read a source as it is, and enter into the report what it is."""
    fmt, graph = decode(source, from_format, reading)
    report.source_format = fmt.name
    report.describe_source(graph)
    return fmt, graph


def _split(options: Mapping[str, Any], into: Format) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that are given, for reading and for writing.

    Raises:
        UsageError: for values that mean nothing, and what the format to write does not take.
    """
    opts = check_options(options, (*read_classes(), into.write_options))
    read_names, write_names = names_of(read_classes()), list_options(into.write_options).keys()
    writing = {k: v for k, v in opts.items() if k in write_names or k not in read_names}
    refuse_unknown(into, writing, write_names)
    return {k: v for k, v in opts.items() if k in read_names}, writing


def _list_defaults(
    into: Format, writing: Mapping[str, Any], source_format: str, reading: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that sources are read with for a format or a consumer, where none are given."""
    profile = writing.get("profile")
    wanted = {**into.reading(writing), **(get_consumer(profile).reading if profile else {})}
    known = list_options(get_format(source_format).read_options).keys() - reading.keys()
    return {n: v for n, v in wanted.items() if n in known}


def _for_running(reading: Mapping[str, Any]) -> dict[str, Any]:
    """What a source was read with, as verification takes it."""
    apart = ("params", "inputs", "outputs")
    others = {k: v for k, v in reading.items() if k not in apart}
    return {**{k: reading.get(k) for k in apart}, "reading": others}


def _list_reported(options: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in sorted(options.items()) if v is not None and k not in UNREPORTED}


@contextmanager
def _time_stage(report: Report, stage: str, progress: Progress | None) -> Iterator[None]:
    if progress is not None:
        progress(stage)
    start = time.perf_counter()
    try:
        yield
    finally:
        report.seconds[str(stage)] = time.perf_counter() - start


@with_options(lambda: [*read_classes(), *write_classes()])
@within_command()
def check(
    source: Any, *, to: str = STANDARD, from_format: str | None = None, **options: Any
) -> Report:
    """Run the real converters and write nothing; ``problems`` of the Report stand in the way.

    Weights of MXNet's models that are not found are stood for by others, with a note.

    ``to`` is a format, or a profile: ``to="relax"``. ``options`` are as for ``convert``.

    Raises:
        SerdeError: where the source cannot be read at all.
    """
    into, profile = find_target(to)
    reading, writing = _split({**options, "profile": profile or options.get("profile")}, into)
    report = Report(describe_source(source), "", from_format or format_name(source), to)
    report.provenance = _begin_provenance(
        "check", source, to=to, from_format=from_format, **options
    )
    defaults = _list_defaults(into, writing, report.source_format, reading)
    reading = {**defaults, **reading}
    if "missing_weights" in list_options(get_format(report.source_format).read_options):
        reading["missing_weights"] = "infer"
    try:
        with within_budget(), skip_passes(options.get("skip")):
            decoded = _decode(report, source, from_format, reading)
            graph = raise_to_ir(*decoded, reading, defaults)
            _enter_source(report, source, graph)
            report.notes = list(graph.notes)
            report.describe(graph)
            graph = rename(graph, writing.get("rename"))
            lowered = lower(into, graph, writing)
            enter_provenance(lowered, report.provenance, {})
            report.notes += lowered.notes[len(graph.notes) :]
            report.notes += note_idle_options(*decoded, into, reading, writing, defaults, lowered)
            report.describe(lowered)
    except Unconvertible as error:
        report.refuse(error.problems)
    return report


def bridges() -> dict[str, str]:
    """The installed bridges, and the format each one's objects are read as."""
    return {n: b.format for n in bridge_names() if (b := get_bridge(n)) is not None}


__all__ = ["bridges", "check", "convert", "load", "read", "save"]
