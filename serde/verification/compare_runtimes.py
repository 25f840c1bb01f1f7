"""Source and result run on the same inputs, in every way users run them, and compared.

The source is run before the result is written, as the result may take its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError, UsageError
from serde.ir.graph import DType, Graph
from serde.pipeline import load
from serde.plugins import read_classes
from serde.plugins.keywords import with_options
from serde.verification.baked_batch import NotComparable, TakesTooMuch
from serde.verification.compare_outputs import (
    FLOAT32_TOLERANCE,
    TOLERANCE,
    Tolerance,
    describe_size,
)
from serde.verification.compare_results import (
    NOT_COMPARED,
    Clock,
    SourceRun,
    Verification,
    compare_result,
    compare_run_layers,
)
from serde.verification.dequantized import NotProved
from serde.verification.drawn_inputs import Drawn, describe_drawn, draw_inputs
from serde.verification.given_arrays import load_expected, load_inputs
from serde.verification.input_sets import InputSet, input_sets, narrow_input_sets
from serde.verification.random_inputs import SEED
from serde.verification.source_runs import Images, SourceModel

Array = np.ndarray[Any, Any]
# The share of its largest magnitude that an output may differ by where numbers have fewer bits.
PRECISION = {"fp32": 2e-2, "fp16": 2e-2, "bf16": 5e-2, "int8": 1e-1}
APART = ("inputs", "outputs")  # options that are no part of ``reading``
MakeSets = Callable[[Mapping[str, Any]], Iterator[InputSet]]  # of inputs as they are drawn


@with_options(read_classes)
def verify(
    source: Any,
    target: str | os.PathLike[str],
    *,
    params: Any = None,
    data: Any = None,
    expected: Any = None,
    seed: int = SEED,
    layers: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    from_format: str | None = None,
    to_format: str | None = None,
    rename: Mapping[str, str] | None = None,
    **options: Any,
) -> Verification:
    """Compare a converted model with its source.

    Args:
        source: what was converted: a path or a live object.
        target: the file it became.
        params: the source's parameters, where it does not hold them.
        data: the inputs, an ``.npz`` path or a mapping of names; seeded random ones otherwise.
        expected: the source's outputs, likewise, where it cannot be run here.
        seed: of the random inputs.
        layers: whether the layers are compared that both have.
        rtol, atol: what an element may differ by, ``atol + rtol * |expected|``; a share of the
            output's largest number if left out.
        from_format, to_format: those of source and target, where their content does not tell.
        options: ``rename``, and those of reading that the source was converted with.

    Raises:
        TypeError: for other options.
    """
    apart = {name: options.pop(name, None) for name in APART} | {"rename": rename}
    graph = _load_target(target, to_format, apart["inputs"], apart["rename"] or {})
    run = run_source(
        source, target, graph=graph, params=params, data=data, expected=expected, seed=seed,
        reading=options, tolerance=Tolerance.of(rtol, atol), from_format=from_format,
        to_format=to_format, **apart,
    )  # fmt: skip
    verification = compare_result(run, target)
    if layers:
        verification.layers = compare_run_layers(run, target)
    return verification


def _load_target(
    target: str | os.PathLike[str], to_format: str | None, inputs: Mapping[str, Any] | None,
    renames: Mapping[str, str],
) -> Graph:  # fmt: skip
    """The graph of a result, with the sizes of its inputs that the caller knows."""
    graph = load(target, format=to_format)
    named = {renames.get(n, n): spec for n, spec in (inputs or {}).items()}
    open_inputs = {v.name for v in graph.inputs if any(type(d) is not int for d in v.shape or ())}
    sizes = {n: spec for n, spec in named.items() if n in open_inputs}
    return load(target, format=to_format, inputs=sizes) if sizes else graph


def verify_conversion(source: Any, target: str | os.PathLike[str], **options: Any) -> Verification:
    """As ``verify``, for a conversion whose result is at hand as ``graph``.

    ``options`` are those of ``run_source``.
    """
    return compare_result(run_source(source, target, **options), target)


def run_source(
    source: Any,
    target: str | os.PathLike[str],
    *,
    graph: Graph,
    ir: Graph | None = None,
    params: Any = None,
    rename: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    data: Any = None,
    expected: Any = None,
    seed: int = SEED,
    reading: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    input_types: Mapping[str, DType] | None = None,
    narrowest: DType | None = None,
    replaces: bool = False,
    tolerance: Tolerance | None = None,
    images: Images | None = None,
    from_format: str | None = None,
    to_format: str | None = None,
) -> SourceRun:
    """Run the source of a conversion to ``target`` on every set of inputs.

    ``inputs`` and ``reading`` are what the source was read with. ``input_types`` are those of the
    source's inputs where the result has others; they are not None where any number differs in type.
    ``narrowest`` is the type of fewest bits that either computes in. ``replaces`` where the result
    is written to where the source is. ``images`` is the code before and behind the model.

    Where it cannot be run, the reason is kept for ``compare_result``.
    """
    ir = graph if ir is None else ir
    if expected is not None and data is None and graph.inputs:
        raise UsageError("--expected are the outputs for inputs of your own: give --data too")
    options = reading or {}
    origin = f"random inputs, seed {seed}" if data is None else "the inputs given"
    run = SourceRun(
        graph, ir, origin, is_narrow=bool(options.get("fp16")), is_mixed=input_types is not None,
        format=to_format, tolerance=tolerance,
    )  # fmt: skip
    if narrowest is not None:
        run.share = TOLERANCE.get(narrowest, FLOAT32_TOLERANCE)
        run.is_rounded = narrowest.bits <= 16
    make_sets = _choose_sets(run, precision_of(options), seed, input_types)
    if data is None:
        ahead = draw_inputs(graph, ir, seed)
    else:
        ahead = iter([Drawn(load_inputs(graph, data, is_cast=input_types is not None))])
        make_sets = partial(_make_first_set, make_sets)
    if expected is not None:
        run.results, run.origin = [load_expected(graph, expected)], "the outputs given"
    try:
        if expected is not None:
            run.sets = [next(make_sets(next(ahead).feeds))]
            return run
        run.model = SourceModel(source, params, outputs, rename, options, inputs, from_format)
        if input_types:
            run.model.retyped_inputs = {n: t.numpy for n, t in input_types.items()}
        run.model.images = images
        run.is_replaced = replaces and _is_same_file(source, target)
        if run.is_replaced:
            for setting in run.model.settings:
                run.model.prepare(setting)
        run.origin = run.model.bridge.name if run.model.bridge else ""
        _run_drawn(run, run.model, ahead, make_sets, is_drawn=data is None)
    except MissingDependency as error:
        run.is_missing = True
        run.statement = (
            f"{NOT_COMPARED}the source could not be run. {error}. "
            "Its outputs can be given instead: --expected out.npz with --data in.npz"
        )
    except TakesTooMuch as error:
        run.statement = f"{NOT_COMPARED}the source cannot be run here: {error}"
    except (NotComparable, NotProved) as error:
        reason = str(error).removeprefix(NOT_COMPARED)
        run.statement = f"{NOT_COMPARED}{reason}"
    except SerdeError as error:
        run.statement = f"{NOT_COMPARED}the source failed to run: {error}"
    return run


def _choose_sets(
    run: SourceRun, kind: str, seed: int, input_types: Mapping[str, DType] | None
) -> MakeSets:
    """A function of normal inputs that makes all sets of them, as numbers of source and result."""
    choose = narrow_input_sets if run.is_narrow or run.is_rounded else input_sets
    if kind in PRECISION:
        run.share = PRECISION[kind]
        run.not_compared.append("inputs that are not normal: in fewer bits they overflow")

    def make_sets(feeds: Mapping[str, Any]) -> Iterator[InputSet]:
        sets: Iterator[InputSet] = choose(run.graph, run.ir, seed, feeds)
        if run.is_mixed:
            sets = (round_inputs(s, run.graph, input_types or {}) for s in sets)
        return islice(sets, 1) if kind in PRECISION and not run.is_narrow else sets

    return make_sets


def _make_first_set(make_sets: MakeSets, feeds: Mapping[str, Any]) -> Iterator[InputSet]:
    return islice(make_sets(feeds), 1)


def round_inputs(inputs: InputSet, graph: Graph, types: Mapping[str, DType]) -> InputSet:
    """The same inputs, as numbers that both the source and the result have."""
    names = {v.name: v.type.numpy for v in graph.inputs}
    feeds = {
        n: x.astype(types[n].numpy).astype(names[n])
        if n in types and isinstance(x, np.ndarray)
        else x
        for n, x in inputs.feeds.items()
    }
    return InputSet(inputs.name, feeds)


def precision_of(reading: Mapping[str, Any]) -> str:
    """What the numbers of a source were made while it was read; nothing where they stayed."""
    arithmetic = next((name for name in ("fp16", "fp32") if reading.get(name)), "")
    return str(reading.get("weights") or arithmetic)


def _run_drawn(
    run: SourceRun, model: SourceModel, ahead: Iterator[Drawn], make_sets: MakeSets, is_drawn: bool
) -> None:
    """Run the source on the inputs that it takes: those drawn first, or others.

    Raises:
        NotComparable: where it takes none of them.
    """
    first = next(ahead)
    model.prepare()
    run.drawn = describe_drawn(run.graph, first.feeds) if is_drawn else ""
    rejected: SerdeError | None = None
    inputs: Drawn | None = first
    while inputs is not None:
        try:
            _run_sets(run, model, _complete_sets(run, model, make_sets(inputs.feeds)))
        except (MissingDependency, NotComparable):
            raise
        except SerdeError as error:
            rejected = rejected or error
            inputs = next(ahead, None)
            continue
        if inputs.change:
            run.not_compared.append(
                "inputs as they are drawn first, which the model does not take: it was run with "
                f"{inputs.change} ({run.drawn})"
            )
        return
    where = "the inputs that serde drew" if is_drawn else "the inputs given"
    advice = f". {run.drawn}" if run.drawn else ""
    raise NotComparable(f"{NOT_COMPARED}the source failed to run on {where}: {rejected}{advice}")


def _run_sets(run: SourceRun, model: SourceModel, sets: Iterator[InputSet]) -> None:
    """Run the source on the first inputs, and on others as long as it takes little time."""
    first = next(sets)
    clock = Clock()
    run.results = [clock.measure(lambda: model.run(first.feeds))]
    if reason := describe_size(run.results[0]):
        raise NotComparable(reason)
    run.sets, skipped = [first], []
    for inputs in sets:
        if not clock.has_time():
            skipped.append(inputs.name)
            continue
        try:
            results = clock.measure(lambda: model.run(inputs.feeds))  # noqa: B023
        except SerdeError as error:
            run.not_compared.append(f"{inputs.name} inputs: {error}")
            continue
        run.sets.append(inputs)
        run.results.append(results)
    if skipped:
        reason = f"the source takes {clock.last:.1f} s a run"
        run.not_compared.append(f"{', '.join(skipped)} inputs: {reason}")


def _complete_sets(
    run: SourceRun, model: SourceModel, sets: Iterator[InputSet]
) -> Iterator[InputSet]:
    """The sets with feeds that the source's framework takes as they are meant; tells of changes."""
    for inputs in sets:
        feeds, statement = model.complete_feeds(inputs.feeds)
        if statement and statement not in run.not_compared:
            run.not_compared.append(statement)
        yield replace(inputs, feeds=feeds)


def _is_same_file(source: Any, target: str | os.PathLike[str]) -> bool:
    is_path = isinstance(source, (str, os.PathLike))
    return is_path and os.path.realpath(source) == os.path.realpath(target)
