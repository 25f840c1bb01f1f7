"""The pipeline, on one page: decode → cut → inputs → IR → passes → check → target → encode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from serde.errors import Unconvertible, UsageError
from serde.io.gc_pause import collector_paused
from serde.ir.graph import Graph
from serde.plugins import (
    Format,
    bridge_for,
    bridge_names,
    format_for_writing,
    format_of,
    get_bridge,
    get_format,
)
from serde.report import Report

Path_ = str | os.PathLike[str]
Progress = Callable[[str], None]
READING = (
    "params", "epoch", "entry", "tvm", "ignore_extra", "strict_paths", "rules", "random",
    "custom_domain", "custom_outputs", "match_params", "nms", "integers", "cut_inputs", "static",
    "rebatch", "dequantize", "kernels", "set_inputs", "keep_domain",
)  # fmt: skip
ARGUMENTS = (
    "inputs", "outputs", "rename", "opset", "from_format", "to_format", "profile", "verify", "data",
    "expected", "hash_weights",
)  # fmt: skip


@collector_paused()
def load(
    source: Any,
    *,
    params: Any = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    format: str | None = None,
    cut_inputs: Sequence[str] | None = None,
    static: Mapping[str, int] | None = None,
    rebatch: int | str | None = None,
    dequantize: bool | None = None,
    set_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Graph:
    """Read a model into the IR.

    Args:
        source: a path (file, prefix, folder or archive), a framework's live object, or a Graph.
        params: the parameters, where the source does not hold them: a path, or for live objects a
            mapping of names to arrays.
        inputs: for each input's name a shape (sizes, names or None), a ``(shape, dtype)`` pair, or
            an array whose shape and type are taken.
        outputs: names of values or layers to cut the model at.
        format: the source's format, where its content does not tell.
        cut_inputs: names of values the model is to begin at.
        static: sizes for dimensions by name.
        rebatch: a batch size, or a name for it, in place of the one the model was made with, in
            constant shapes too.
        dequantize: compute with floats what the model computes with integers between a
            QuantizeLinear and a DequantizeLinear; its weights become floats.
        set_inputs: for names of inputs the number or array that each is fixed to; it becomes a
            constant and is no input any more. A number fills an input of static shape.
        options: what the format itself takes: ``epoch``, ``ignore_extra``, ``rules``, ``random``,
            ``nms``, ``integers``, ``kernels``, ``custom_domain``, ``strict_paths``,
            ``keep_domain``, ``tvm``.

    Raises:
        SerdeError: one of its kinds, see ``serde.errors``.
    """
    from serde.legalize.convert import without_functions
    from serde.passes import tidy
    from serde.passes.change_batch import dimension_names, fixed
    from serde.passes.change_batch import rebatch as rebatched
    from serde.passes.cut_inputs import check_arguments, cut, with_inputs
    from serde.passes.cut_inputs import cut_inputs as begin_at
    from serde.passes.dequantize import dequantize as dequantized
    from serde.passes.set_inputs import set_inputs as fix_inputs
    from serde.spec.verify import check as check_graph

    check_arguments(
        inputs, outputs, cut_inputs=cut_inputs, static=static, rebatch=rebatch,
        set_inputs=set_inputs, **options,
    )  # fmt: skip
    found, graph = _decode(source, params, format, options, outputs)
    graph = fix_inputs(with_inputs(graph, inputs), set_inputs)
    declared = dimension_names(graph)
    given = {**options, "dequantize": dequantize, "outputs": outputs}
    graph = found.to_ir(cut(graph, outputs), **_taken(found, "to_ir", given))
    untyped = any(v.dtype is None for v in graph.outputs)  # what a function computes
    if cut_inputs or static or rebatch is not None or untyped:
        graph = without_functions(graph)
    graph = begin_at(graph, cut_inputs)
    if dequantize:
        graph = dequantized(graph)
    if rebatch is not None:
        graph = rebatched(graph, rebatch)
    if static:
        graph = fixed(graph, static, declared)
    graph = tidy(graph)
    check_graph(graph)
    return graph


def read(
    source: Any,
    *,
    params: Any = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    from_format: str | None = None,
    **options: Any,
) -> tuple[Graph, str]:
    """Read a model as it is, in its own vocabulary; return it and its format's name."""
    from serde.passes.cut_inputs import check_arguments, cut, with_inputs

    check_arguments(inputs, outputs, **options)
    found, graph = _decode(source, params, from_format, options, outputs)
    return cut(with_inputs(graph, inputs), outputs), found.name


def _decode(
    source: Any, params: Any, format: str | None, options: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
) -> tuple[Format, Graph]:  # fmt: skip
    """Read ``source`` into a graph of its own vocabulary.

    Formats that take ``outputs`` need not read what the outputs of those names do not depend on.
    """
    if isinstance(source, Graph):
        found = get_format(format or _format_name(source))
        _refuse_unknown(found, {**options, "params": params}, ("to_ir",))
        return found, source
    if not isinstance(source, (str, os.PathLike)):
        bridge = bridge_for(source)
        found = get_format(bridge.format)
        _refuse_unknown(found, options, ("decode", "to_ir"))
        taken = _taken(found, "decode", {**options, "outputs": outputs})
        return found, bridge.decode(source, params, **taken)
    if not os.fspath(source):
        raise UsageError("the source is empty: name a file, prefix, folder or archive")
    path = Path(source)
    found = get_format(format) if format else format_of(path)
    given = {**options, **({} if params is None else {"params": params})}
    _refuse_unknown(found, given, ("decode", "to_ir"))
    return found, found.decode(path, **_taken(found, "decode", {**given, "outputs": outputs}))


def _taken(found: Format, stage: str, options: Mapping[str, Any]) -> dict[str, Any]:
    names = found.options.get(stage, frozenset())
    return {k: v for k, v in options.items() if k in names and v is not None}


def _refuse_unknown(found: Format, options: Mapping[str, Any], stages: Sequence[str]) -> None:
    known = {n for s in stages for n in found.options.get(s, ())}
    unknown = sorted(k for k, v in options.items() if k not in known and v is not None)
    if unknown:
        listed = f"it takes {', '.join(sorted(known)) or 'none'}"
        close = get_close_matches(unknown[0], {*known, *READING, *ARGUMENTS}, 1)
        meant = f"did you mean {close[0]}?" if close and close[0] not in unknown else listed
        raise UsageError(f"{found.name} takes no option {', '.join(unknown)} here; {meant}")


def save(graph: Graph, path: Path_, *, format: str | None = None, **options: Any) -> list[str]:
    """Write an IR graph to ``path``; return the files written.

    The format is that of the path's suffix unless ``format`` names it. ``options`` are the
    format's: for ONNX ``opset`` (7 to 28, default 17), ``ir_version``, ``external_data``; for
    MXNet ``mxnet``, the release that is to load it (``1.5`` to ``1.9.1``, the default), and
    ``write_epoch``, the number of the parameter file.

    Raises:
        InvalidGraph: for a graph that is no IR. Unconvertible: for every node the target cannot
            express.
    """
    from serde.spec.verify import check as check_graph

    path = Path(path)
    found = get_format(format) if format else format_for_writing(path)
    _refuse_unknown(found, options, ("from_ir", "encode"))
    check_graph(graph)
    return _encode(found, _finished(_lowered(found, graph, options)), path, options)


@collector_paused()
def _lowered(found: Format, graph: Graph, options: Mapping[str, Any]) -> Graph:
    if found.from_ir is None or found.encode is None:
        raise UsageError(f"{found.name} can be read but not written yet")
    return found.from_ir(graph, **_taken(found, "from_ir", options))


def _finished(graph: Graph, hash_weights: bool = False) -> Graph:
    """The graph as it is written. A hash that the source had is that of the source's weights."""
    from serde.passes import drop_dead, share_constants
    from serde.verification.weights_hash import KEY, weights_hash

    graph = share_constants(drop_dead(graph))
    metadata = {k: v for k, v in graph.metadata.items() if k != KEY}
    if hash_weights:
        metadata[KEY] = weights_hash(graph)
    return replace(graph, metadata=metadata)


@collector_paused()
def _encode(found: Format, graph: Graph, path: Path, options: Mapping[str, Any]) -> list[str]:
    assert found.encode is not None
    return found.encode(graph, path, **_taken(found, "encode", options))


def convert(
    source: Any,
    target: Path_,
    *,
    params: Any = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    opset: int | None = None,
    from_format: str | None = None,
    to_format: str | None = None,
    profile: str | None = None,
    verify: bool = False,
    data: Any = None,
    expected: Any = None,
    hash_weights: bool = False,
    progress: Progress = lambda stage: None,
    **options: Any,
) -> Report:
    """Convert a model file or object to a file; where that fails, what was there before stays.

    A result is verified once it is written, and stays where it is found to be wrong.

    Args:
        source, params, inputs, outputs: as for ``load``.
        target: the file to write.
        rename: new names of inputs and outputs.
        opset: the opset to write, for ONNX; 17 unless given.
        from_format, to_format: where content and suffix do not tell.
        profile: what the consumer asks for, see ``serde.legalize.profiles``: ``generic``,
            ``tensorrt``, ``openvino``, ``relax`` or ``npu-static``.
        verify: run source and result on the same inputs and compare; see ``serde.verification``.
        data: inputs to run them on, as an ``.npz`` path or mapping; random ones otherwise.
        expected: the source's outputs, as an ``.npz`` path or mapping, where it cannot be run.
        hash_weights: enter a SHA-256 of the weights into the result's metadata and the report;
            ``serde.verification.weights_hash.verify_hash`` compares them later.
        progress: called with the name of each stage as it begins.
        options: the formats' own, such as ``external_data`` or ``epoch``.

    Returns:
        A Report; its ``ok`` is False where the verification failed.

    Raises:
        SerdeError: one of its kinds.
    """
    from serde.io.atomic_write import check_target
    from serde.legalize.profiles import get_profile, prepare
    from serde.passes.cut_inputs import check_arguments
    from serde.passes.cut_inputs import rename as renamed
    from serde.verification.weights_hash import KEY

    check_arguments(inputs, outputs, rename=rename, opset=opset, **options)
    into = get_format(to_format) if to_format else format_for_writing(Path(target))
    reading = {k: v for k, v in options.items() if k in READING}
    writing = {k: v for k, v in options.items() if k not in READING}
    asked = get_profile(profile or "generic")
    if "opset" in into.options.get("from_ir", ()):
        writing = asked.writing(opset) | writing
    elif opset is not None or profile is not None:
        raise UsageError(f"{into.name} has no opsets and no profiles")
    _refuse_unknown(into, writing, ("from_ir", "encode"))
    _refuse_unwritten(into)
    check_target(os.fspath(target))
    used = {"profile": profile, "opset": opset, **options}
    report = Report(_shown(source), os.fspath(target), "", into.name, options=_given(used))
    if into.check_target is not None:
        into.check_target(Path(target), **_taken(into, "encode", writing))
    with _timed(report, "read", progress):
        graph = load(
            source, params=params, inputs=inputs, outputs=outputs, format=from_format, **reading
        )
        report.source_format = from_format or _format_name(source)
    with _timed(report, "convert", progress):
        graph, more = prepare(renamed(graph, rename), asked)
        report.notes = [*graph.notes, *more]
        lowered = _finished(_lowered(into, graph, writing), hash_weights)
        report.notes += lowered.notes[len(graph.notes) :]
        report.weights_sha256 = lowered.metadata.get(KEY)
    run = None
    # The source is run before it is replaced, if it is.
    if verify or data is not None or expected is not None:
        from serde.verification import compare_result, run_source

        shown = graph if lowered.functions else lowered  # inside functions no index is seen as one
        with _timed(report, "run", progress):
            run = run_source(
                source, target, graph=shown, ir=graph, params=params, rename=rename,
                outputs=outputs, data=data, expected=expected, reading=reading, inputs=inputs,
            )  # fmt: skip
    with _timed(report, "write", progress):
        report.files = _encode(into, lowered, Path(target), writing)
    report.describe(lowered)
    if run is not None:
        others = [f for f in report.files if f != os.fspath(target)]
        with _timed(report, "verify", progress):
            report.verification = compare_result(run, target, weights=next(iter(others), None))
    return report


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in sorted(options.items()) if v is not None}


def _refuse_unwritten(into: Format) -> None:
    if into.from_ir is None or into.encode is None:
        raise UsageError(f"{into.name} can be read but not written yet")


def _shown(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Graph):
        return source.name or "graph"
    return f"{type(source).__module__}.{type(source).__qualname__}"


def _format_name(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return format_of(Path(source)).name
    if isinstance(source, Graph):
        return source.domain or "onnx"
    return bridge_for(source).format


@contextmanager
def _timed(report: Report, stage: str, progress: Progress) -> Iterator[None]:
    progress(stage)
    start = time.perf_counter()
    try:
        yield
    finally:
        report.seconds[stage] = time.perf_counter() - start


def check(
    source: Any,
    *,
    to: str = "onnx",
    params: Any = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    opset: int | None = None,
    from_format: str | None = None,
    **options: Any,
) -> Report:
    """Run the real converters and write nothing; ``problems`` of the Report stand in the way.

    Weights of MXNet's models that are not found are stood for by others, with a note.

    ``to`` is a format, or a profile of ONNX: ``to="relax"``. ``options`` are the formats' own, as
    for ``convert``.

    Raises:
        SerdeError: where the source cannot be read at all.
    """
    from serde.legalize.profiles import PROFILES, get_profile, prepare
    from serde.passes.cut_inputs import check_arguments

    check_arguments(inputs, outputs, opset=opset, **options)
    into = get_format("onnx" if to in PROFILES else to)
    asked = get_profile(to if to in PROFILES else "generic")
    reading = {k: v for k, v in options.items() if k in READING}
    report = Report(_shown(source), "", from_format or _format_name(source), to)
    writing = {k: v for k, v in options.items() if k not in READING}
    _refuse_unknown(into, writing, ("from_ir", "encode"))
    if "missing_weights" in get_format(report.source_format).options.get("to_ir", ()):
        reading["missing_weights"] = "infer"
    try:
        graph = load(
            source, params=params, inputs=inputs, outputs=outputs, format=from_format, **reading
        )
        report.notes = list(graph.notes)
        report.describe(graph)
        graph, more = prepare(graph, asked)
        report.notes += more
        lowered = _lowered(into, graph, asked.writing(opset) | writing)
        report.notes += lowered.notes[len(graph.notes) :]
        report.describe(lowered)
    except Unconvertible as error:
        report.problems = list(error.problems)
    return report


def bridges() -> dict[str, str]:
    """The installed bridges, and the format each one's objects are read as."""
    return {n: b.format for n in bridge_names() if (b := get_bridge(n)) is not None}


__all__ = ["bridges", "check", "convert", "load", "read", "save"]
