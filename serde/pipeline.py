"""Reading and writing: decode → cut → inputs → IR → passes → check → target → encode."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

from serde.errors import SerdeError, UnknownFormat, UsageError
from serde.io.atomic_write import check_target
from serde.io.command_files import CommandFiles, active_files, within_command
from serde.io.gc_pause import pause_collector
from serde.io.json_text import make_writable
from serde.io.provenance import PREFIX, Provenance, enter_provenance
from serde.io.user_code import refuse_exits
from serde.io.weights_hash import KEY, weights_hash
from serde.ir.budget import active_budget, within_budget
from serde.ir.graph import Graph
from serde.ir.same_graph import is_same_graph
from serde.legalize.convert import without_functions
from serde.passes import drop_dead, merge_repeats, share_constants, tidy
from serde.passes.change_batch import dimension_names, fix_dimensions, size_names
from serde.passes.cut_inputs import cut, cut_inputs, find_values, rename, with_inputs
from serde.passes.dce import note_unused_weights
from serde.passes.drop_neutral import drop_neutral
from serde.passes.name_apart import name_apart
from serde.passes.optional import skip_passes
from serde.passes.set_inputs import set_inputs
from serde.passes.unfold_shared import unfold_shared
from serde.plugins import (
    STANDARD,
    Deferred,
    Format,
    bridge_for,
    format_for_writing,
    format_of,
    get_format,
    list_parameters,
    read_classes,
    refuse_other_suffix,
    select_options,
    with_plugin_rules,
    write_classes,
)
from serde.plugins.keywords import with_options
from serde.plugins.option_checks import check_options, refuse_unknown
from serde.plugins.options import HUB, ReadOptions, list_options
from serde.spec.verify import check as check_graph

Path_ = str | os.PathLike[str]
REWRITING = frozenset(
    {"cut_inputs", "edits", "set_inputs", "static", "rebatch"}
)  # options that need the IR
# Passes that only options ask for.
compress_weights = Deferred("serde.passes.compress_weights:compress_weights")
copy_weights = Deferred("serde.passes.copy_weights:copy_weights")
dequantize = Deferred("serde.passes.dequantize:dequantize")
edit_nodes = Deferred("serde.passes.edit_nodes:edit_nodes")
read_edits = Deferred("serde.passes.edit_nodes:read_edits")
fix_batch = Deferred("serde.passes.fixed_sizes:fix_batch")
fold_batchnorm = Deferred("serde.passes.fold_batchnorm:fold_batchnorm")
merge_factors = Deferred("serde.passes.merge_factors:merge_factors")
rebatch = Deferred("serde.passes.change_batch:rebatch")
settle_fixed_sizes = Deferred("serde.passes.fixed_sizes:settle_fixed_sizes")
to_float16 = Deferred("serde.passes.half_precision:to_float16")
to_float32 = Deferred("serde.passes.single_precision:to_float32")


@with_options(read_classes)
@refuse_exits()
@pause_collector()
def load(source: Any, *, format: str | None = None, **options: Any) -> Graph:
    """Read a model into the IR.

    Args:
        source: a path (file, prefix, folder or archive), a framework's live object, or a Graph.
        format: the source's format, where its content does not tell.
        options: those of ``ReadOptions``, and what the format takes beside them:
            docs/reference/cli.md lists both.

    Raises:
        SerdeError: one of its kinds, see ``serde.errors``.
    """
    opts = check_options(options, read_classes())
    with within_budget(), within_command() as files, skip_passes(opts.get("skip")):
        graph = raise_to_ir(*decode(source, format, opts), opts)
        return replace(graph, files=files.list_read())


@refuse_exits()
@pause_collector()
def raise_to_ir(
    fmt: Format, graph: Graph, values: Mapping[str, Any], defaults: Collection[str] = ()
) -> Graph:
    """Rewrite a graph of a format's vocabulary, as ``decode`` reads it, into the IR.

    ``values`` are those of the options to read with, ``defaults`` the options that the caller did
    not give: nothing is said where they do nothing.
    """
    options = ReadOptions(values)

    def apply(option: str, before: Graph, after: Graph) -> Graph:
        return after if option in defaults else note_no_effect(option, before, after)

    if options.edits is not None:
        edited = edit_nodes(graph, read_edits(options.edits))
        graph = apply("edits", graph, graph) if edited is graph else edited
    graph = set_inputs(with_inputs(graph, options.inputs), options.set_inputs)
    names, sizes = size_names(graph), options.static or {}
    graph = cut(graph, options.outputs)
    if options.values.get("training"):
        graph = note_unused_weights(graph)
    if options.cut_inputs:
        graph = begin_at_values(fmt, graph, options, apply)
        sizes = {n: size for n, size in sizes.items() if n not in names}
    else:
        graph = raise_vocabulary(fmt, graph, options)
    if options.dequantize:
        graph = apply("dequantize", graph, dequantize(graph))
    if options.rebatch is not None:
        rebatched = rebatch(fix_batch(graph, options.rebatch), options.rebatch)
        graph = apply("rebatch", graph, rebatched)
    if sizes:
        graph = apply("static", graph, fix_dimensions(graph, sizes, names))
    if not options.fp16 and options.values.keys() & {"fp16_keep", "fp16_io"}:
        raise UsageError("--fp16-keep and --fp16-io say how to convert to float16: give --fp16 too")
    if options.fp32:
        graph = to_float32(without_functions(graph))
    graph = tidy(graph)
    if dimension_names(graph):
        graph = settle_fixed_sizes(graph, without_functions(graph), options.inputs)
    if options.fold_batchnorm:
        plain = drop_neutral(graph)
        graph = apply("fold_batchnorm", plain, merge_factors(fold_batchnorm(plain)))
    if options.fp16 or options.weights:
        graph = change_precision(without_functions(graph), options)
    graph = name_apart(graph)
    check_graph(graph)
    if options.copy:
        copy_weights(graph.constants())
    return graph


def raise_vocabulary(fmt: Format, graph: Graph, options: ReadOptions) -> Graph:
    """The graph in the operators of the IR; without functions where options look into them."""
    read_options = select_options(fmt, "to_ir", with_plugin_rules(fmt, options.values))
    assert fmt.to_ir is not None
    graph = fmt.to_ir(graph, **read_options)
    untyped = any(v.dtype is None for v in graph.outputs)  # what a function computes
    if untyped or options.values.keys() & {"cut_inputs", "static", "rebatch", "dequantize"}:
        graph = without_functions(graph)
    return graph


def begin_at_values(
    fmt: Format, source: Graph, options: ReadOptions, apply: Callable[..., Graph]
) -> Graph:
    """The IR of what follows the values that ``cut_inputs`` names.

    Where the IR has lost one of them, to be folded or simplified, the source is cut: with the
    types of these values in the IR of the whole, whose results they are as well.
    """
    names = options.cut_inputs or ()

    def fix_sizes(graph: Graph) -> Graph:
        known = size_names(graph)
        sizes = {n: size for n, size in (options.static or {}).items() if n in known}
        return fix_dimensions(graph, sizes) if sizes else graph

    graph = fix_sizes(raise_vocabulary(fmt, source, options))
    try:
        return apply("cut_inputs", graph, cut_inputs(graph, names))
    except UsageError as error:
        try:
            values = find_values(source, names)
        except UsageError:
            raise error from None
        whole = replace(source, outputs=(*source.outputs, *values))
        typed = fix_sizes(raise_vocabulary(fmt, whole, options)).outputs[-len(values) :]
        return raise_vocabulary(fmt, cut_inputs(source, names, typed), options)


def note_no_effect(option: str, before: Graph, after: Graph) -> Graph:
    """``after``, with a note where an option left ``before`` as it was and nothing tells why."""
    if len(after.notes) > len(before.notes) or not is_same_graph(before, after):
        return after
    flag = list_options(ReadOptions)[option].all_flags[0]
    note = f"{flag} had no effect: the model has nothing that it would change"
    return replace(after, notes=(*after.notes, note))


def change_precision(graph: Graph, options: ReadOptions) -> Graph:
    """Weights, or weights and arithmetic, in fewer bits."""
    if options.fp16 and options.fp32:
        raise UsageError("--fp16 and --fp32 exclude each other: leave out one")
    if options.fp16 and options.weights:
        raise UsageError("--fp16 is of all weights: leave out --weights, or --fp16")
    changed: Graph = (
        compress_weights(graph, options.weights)
        if options.weights
        else to_float16(unfold_shared(graph), options.fp16_keep or (), bool(options.fp16_io))
    )
    return changed


@with_options(read_classes)
def read(source: Any, *, from_format: str | None = None, **options: Any) -> tuple[Graph, str]:
    """Read a model as it is, in its own vocabulary; return it and its format's name."""
    opts = check_options(options, read_classes())
    with within_budget():
        fmt, graph = decode(source, from_format, opts)
    refuse_unknown(fmt, opts.keys() & REWRITING, ())
    return cut(with_inputs(graph, opts.get("inputs")), opts.get("outputs")), fmt.name


def has_layers(source: Any, format: str | None = None) -> bool:
    """Whether a model is read, and not only its inputs and outputs, see ``read_interface``."""
    is_path = isinstance(source, (str, os.PathLike))
    return not is_path or get_format(format or format_of(Path(source)).name).is_read


@with_options(read_classes)
def read_interface(
    source: Any, *, from_format: str | None = None, **options: Any
) -> tuple[Graph, str]:
    """As ``read``, for models that are run: of formats that are written only, inputs and outputs.

    Such a graph has one node, and only the sizes of its inputs can be chosen (``inputs``).
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        fmt = get_format(from_format) if from_format else format_of(path)
        if fmt.read_interface is not None:
            opts = check_options(options, read_classes())
            refuse_unknown(fmt, opts, {"inputs"})
            with within_budget(), active_files().reading_model(path):
                return with_inputs(fmt.read_interface(path), opts.get("inputs")), fmt.name
    return read(source, from_format=from_format, **options)


@refuse_exits()
@pause_collector()
def decode(source: Any, format: str | None, opts: Mapping[str, Any]) -> tuple[Format, Graph]:
    """Read ``source`` into a graph of its own vocabulary.

    Formats that take ``outputs`` need not read what the outputs of those names do not depend on.
    """
    active_budget().allow_mebibytes(opts.get("max_growth") or 0)
    path = source if isinstance(source, (str, os.PathLike)) else ""
    with active_files().reading_model(path):
        return _decode(source, format, opts)


def _decode(source: Any, format: str | None, opts: Mapping[str, Any]) -> tuple[Format, Graph]:
    if isinstance(source, Graph):
        fmt = get_format(format or format_name(source))
        _refuse_unread(fmt, source.name)
        reader_options = list_parameters(fmt, "to_ir") & list_options(fmt.read_options).keys()
        refuse_unknown(fmt, opts, HUB | reader_options)
        active_files().enter_weights(source.list_files())
        return fmt, source
    if not isinstance(source, (str, os.PathLike)):
        bridge = bridge_for(source)
        fmt = get_format(bridge.format)
        refuse_unknown(fmt, opts, list_options(fmt.read_options))
        options = select_options(fmt, "decode", {k: v for k, v in opts.items() if k != "params"})
        return fmt, bridge.decode(source, opts.get("params"), **options)
    if not os.fspath(source):
        raise UsageError("the source is empty: name a file, prefix, folder or archive")
    path = Path(source)
    fmt = get_format(format) if format else format_of(path)
    _refuse_unread(fmt, path)
    refuse_unknown(fmt, opts, list_options(fmt.read_options))
    assert fmt.decode is not None
    graph = fmt.decode(path, **select_options(fmt, "decode", opts))
    name = make_writable(graph.name)  # that of a file may be no UTF-8
    return fmt, graph if name == graph.name else replace(graph, name=name)


def _refuse_unread(fmt: Format, source: object) -> None:
    """Raise UnknownFormat for a format whose files are written only."""
    if not fmt.is_read:
        reason = f"{fmt.title} is written, not read: {fmt.instead_of_reading}"
        raise UnknownFormat(f"{source}: {reason}")


@with_options(write_classes)
@refuse_exits()
def save(graph: Graph, path: Path_, *, format: str | None = None, **options: Any) -> list[str]:
    """Write an IR graph to ``path``; return the files written.

    The format is that of the path's suffix unless ``format`` names it. ``options`` are those of
    ``WriteOptions``, and what the format takes beside them: docs/reference/cli.md lists both.

    Raises:
        InvalidGraph: for a graph that is no IR. Unconvertible: for every node the target cannot
            express.
    """
    place, path = path, Path(path)
    fmt = get_format(format) if format else format_for_writing(path)
    opts = check_options(options, (fmt.write_options,))
    refuse_unknown(fmt, opts, list_options(fmt.write_options))
    check_graph(graph)
    with within_budget() as budget, within_command(), skip_passes(opts.get("skip")):
        enter_files(graph, path)
        check_place(fmt, place)
        budget.add_bytes(sum(v.tensor.nbytes for v in graph.constants() if v.tensor is not None))
        lowered = lower(fmt, rename(graph, opts.get("rename")), opts)
        lowered = enter_provenance(finish(lowered, opts.get("hash_weights")), Provenance(), opts)
        return encode(fmt, lowered, path, opts)


@refuse_exits()
def lower(fmt: Format, graph: Graph, options: Mapping[str, Any]) -> Graph:
    """Rewrite an IR graph into the vocabulary of a format."""
    refuse_unwritten(fmt)
    assert fmt.from_ir is not None
    return fmt.from_ir(graph, **select_options(fmt, "from_ir", options))


def finish(graph: Graph, hash_weights: bool | None = None) -> Graph:
    """The graph as it is written. What the source had of serde's own metadata is of the source."""
    graph = merge_repeats(share_constants(drop_dead(graph)))
    graph = graph if graph.domain else unfold_shared(graph)
    metadata = {k: v for k, v in graph.metadata.items() if not k.startswith(PREFIX)}
    if hash_weights:
        metadata[KEY] = weights_hash(graph)
    return replace(graph, metadata=metadata)


@refuse_exits()
@pause_collector()
def encode(fmt: Format, graph: Graph, path: Path, options: Mapping[str, Any]) -> list[str]:
    """Write a graph of a format's vocabulary to ``path``."""
    assert fmt.encode is not None
    return fmt.encode(graph, path, **select_options(fmt, "encode", options))


def check_place(fmt: Format, place: Path_) -> None:
    """Refuse a place for a result, before any work: what was read, or is of another kind."""
    check_target(os.fspath(place))
    active_files().refuse_target(place)
    path = Path(place)
    fmt.refuse_other_file(path)
    refuse_other_suffix(fmt, path)


def enter_files(graph: Graph, target: Path_) -> None:
    """Enter the files of a graph; by itself it may replace those of the model at ``target``."""
    command, files = active_files(), graph.list_files()
    if files and not command.read:  # no other model is read
        command.allow_replacing(target, Context().run(_list_files, target))
    command.enter_weights(files)


def _list_files(target: Path_) -> CommandFiles:
    """The files of the model at ``target``, if there is one."""
    with within_command() as files, suppress(SerdeError, OSError):
        read(target)
    return files


def format_name(source: Any) -> str:
    """The name of the format of a path, a live object or a Graph."""
    if isinstance(source, (str, os.PathLike)):
        return format_of(Path(source)).name
    if isinstance(source, Graph):
        return source.domain or STANDARD
    return bridge_for(source).format


def refuse_unwritten(fmt: Format) -> None:
    """Raise UsageError for a format that has no way from the IR."""
    if fmt.from_ir is None or fmt.encode is None:
        raise UsageError(f"{fmt.name} can be read but not written yet")
