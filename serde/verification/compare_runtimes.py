"""Source and result run on the same inputs, in every way users run them, and compared.

The source is run before the result is written, as the result may take its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError, UsageError
from serde.ir.graph import DType, Graph
from serde.pipeline import load, read
from serde.plugins import Bridge, format_of, get_runtime_bridge, read_classes
from serde.plugins.keywords import with_options
from serde.verification.baked_batch import NotComparable
from serde.verification.compare_layers import CutModel, LayersComparison, compare_layers
from serde.verification.compare_outputs import OutputComparison, narrow_both, not_run
from serde.verification.given_arrays import load_expected, load_inputs
from serde.verification.input_sets import NORMAL, InputSet, input_sets, narrow_input_sets
from serde.verification.random_inputs import SEED
from serde.verification.source_runs import SourceModel, prepare, prepare_cut
from serde.verification.tolerated import Judge

Array = np.ndarray[Any, Any]
# The share of its largest magnitude that an output may differ by where numbers have fewer bits.
PRECISION = {"fp32": 2e-2, "fp16": 2e-2, "bf16": 5e-2, "int8": 1e-1}
EXTRA_SECONDS = 10.0  # for the inputs beside the normal ones: of the source, and of each setting
DEFAULT = "by default"


@dataclass
class Verification:
    """The comparison of a source and a result. ``done`` is False where the source could not run.

    ``outputs`` has each output once: as it was where it was found wrong, otherwise as on the first
    inputs. ``sets`` are the sets of inputs and ``settings`` the ways the result was run;
    ``not_compared`` says what was left out, and why; ``layers`` are there if they were asked for.
    """

    done: bool
    source: str
    inputs: str
    outputs: list[OutputComparison] = field(default_factory=list)
    statement: str = ""
    sets: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    layers: LayersComparison | None = None

    @property
    def ok(self) -> bool:
        """Whether no output was found wrong; look at ``done`` for whether any was compared."""
        return all(o.passed for o in self.outputs)

    def respell(self, change: Callable[[str], str]) -> None:
        """Change the texts that a reader is told."""
        self.statement = change(self.statement)
        self.not_compared = [*map(change, self.not_compared)]


@dataclass
class SourceRun:
    """What a source computes on each set of inputs.

    ``graph`` is the result, ``ir`` the graph of the IR that it was made from. ``statement`` is why
    there is nothing to compare with; ``error`` why running it failed. ``is_replaced`` where the
    result takes the source's place, ``is_missing`` where the framework is not installed. ``share``
    of its largest magnitude is what an output may differ by at least; ``is_narrow`` where the
    result was made to compute in float16, ``is_mixed`` where source and result have floats of other
    types, which are compared in that of fewer bits.
    """

    graph: Graph
    ir: Graph
    inputs: str
    origin: str = ""
    sets: list[InputSet] = field(default_factory=list)
    results: list[Sequence[Any]] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    statement: str = ""
    error: SerdeError | None = None
    model: SourceModel | None = None
    is_replaced: bool = False
    is_missing: bool = False
    share: float = 0
    is_narrow: bool = False
    is_mixed: bool = False


@with_options(read_classes)
def verify(
    source: Any,
    target: str | os.PathLike[str],
    *,
    params: Any = None,
    data: Any = None,
    expected: Any = None,
    seed: int = SEED,
    **options: Any,
) -> Verification:
    """Compare a converted model with its source.

    Args:
        source: what was converted: a path or a live object.
        target: the file it became.
        params: the source's parameters, where it does not hold them.
        data: the inputs, an ``.npz`` path or a mapping of names; seeded random ones otherwise.
        expected: the source's outputs, likewise, where it cannot be run here.
    """
    return verify_conversion(
        source, target, graph=load(target), params=params, data=data, expected=expected, seed=seed,
        reading=options,
    )  # fmt: skip


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
) -> SourceRun:
    """Run the source of a conversion to ``target`` on every set of inputs.

    ``inputs`` and ``reading`` are what the source was read with. ``input_types`` are those of the
    source's inputs where the result has others; they are not None where any number differs in type.

    Where it cannot be run, the reason is kept for ``compare_result``.
    """
    ir = graph if ir is None else ir
    options = reading or {}
    kind, is_narrow = precision_of(options), bool(options.get("fp16"))
    is_mixed = input_types is not None
    if data is not None:
        run = SourceRun(graph, ir, "the inputs given", is_narrow=is_narrow, is_mixed=is_mixed)
        sets = iter([InputSet(NORMAL, load_inputs(graph, data))])
    else:
        origin = f"random inputs, seed {seed}"
        run = SourceRun(graph, ir, origin, is_narrow=is_narrow, is_mixed=is_mixed)
        sets = (narrow_input_sets if is_narrow or is_mixed else input_sets)(graph, ir, seed)
    if is_mixed:
        run.share = PRECISION["fp16"]
        sets = (round_inputs(s, graph, input_types or {}) for s in sets)
    if kind in PRECISION:
        run.share = PRECISION[kind]
        sets = sets if is_narrow else islice(sets, 1)
        run.not_compared.append("inputs that are not normal: in fewer bits they overflow")
    if expected is not None:
        run.sets, run.results = [next(sets)], [load_expected(graph, expected)]
        run.origin = "the outputs given"
        return run
    try:
        run.model = SourceModel(source, params, outputs, rename, reading or {}, inputs)
        if input_types:
            run.model.narrow_inputs = {n: t.numpy for n, t in input_types.items()}
        run.is_replaced = _is_same_file(source, target)
        if run.is_replaced:
            for setting in run.model.settings:
                run.model.prepare(setting)
        run.origin = run.model.bridge.name if run.model.bridge else ""
        _run_sets(run, run.model, sets)
    except MissingDependency as error:
        run.is_missing = True
        run.statement = (
            f"not compared: the source could not be run. {error}. "
            "Its outputs can be given instead: --expected out.npz with --data in.npz"
        )
    except NotComparable as error:
        run.statement = str(error)
    except SerdeError as error:
        unknown = [v.name for v in ir.inputs if data is None and None in (v.shape or ())]
        run.error = None if unknown else error
        if unknown:
            run.statement = (
                f"not compared: {error}. Sizes of {', '.join(map(repr, unknown))} are not known: "
                "give them with --input, or inputs with --data"
            )
    return run


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


def _run_sets(run: SourceRun, model: SourceModel, sets: Iterator[InputSet]) -> None:
    """Run the source on the first inputs, and on others as long as it takes little time."""
    sets = _complete_sets(run, model, sets)
    first = next(sets)
    model.prepare()
    clock = _Clock()
    run.sets, run.results = [first], [clock.measure(lambda: model.run(first.feeds))]
    skipped = []
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


class _Clock:
    """Time spent on inputs beside the first."""

    def __init__(self) -> None:
        self.first = self.last = self.spent = 0.0

    def measure(self, run: Callable[[], Any]) -> Any:
        start = perf_counter()
        try:
            return run()
        finally:
            self.last = perf_counter() - start
            self.spent += self.last if self.first else 0.0
            self.first = self.first or self.last

    def has_time(self) -> bool:
        return self.spent + self.last <= EXTRA_SECONDS


def compare_result(
    run: SourceRun, target: str | os.PathLike[str], *, weights: str | None = None
) -> Verification:
    """Compare a result, its parameters in the file ``weights``, with what its source computed.

    Raises:
        SerdeError: where the source or the result could not be run on the first inputs.
    """
    bridge = get_runtime_bridge(format_of(Path(target)).name)
    if bridge is None or bridge.run is None:
        statement = "the result's format cannot be run here"
        return Verification(False, "", run.inputs, statement=statement)
    if run.error is not None:
        raise run.error
    if run.statement:
        return Verification(False, "", run.inputs, statement=run.statement)
    settings = {DEFAULT: {}, **bridge.settings, **(bridge.narrow_settings if run.is_narrow else {})}
    verification = Verification(
        True, run.origin, run.inputs, sets=[s.name for s in run.sets], settings=[*settings],
        not_compared=[*run.not_compared],
    )  # fmt: skip

    def probe(name: str, inputs: InputSet) -> Sequence[Any]:
        return prepare(bridge, target, params=weights, outputs=[name])(inputs.feeds)

    judge = Judge(run.model, run.ir, probe, run.share)
    runs: list[Sequence[OutputComparison]] = []
    for setting, options in settings.items():
        prepare_result = partial(prepare, bridge, target, params=weights, **options)
        name = "" if setting == DEFAULT else setting
        runs += _compare_setting(run, bridge, name, prepare_result, judge)
    verification.not_compared += judge.not_compared
    verification.outputs = find_worst(runs)
    if not verification.ok and bridge.describe_inexactness is not None:
        verification.not_compared += filter(None, [bridge.describe_inexactness(run.ir)])
    return verification


def _compare_setting(
    run: SourceRun, bridge: Bridge, setting: str, prepare_result: Callable[[], Any], judge: Judge
) -> Iterator[list[OutputComparison]]:
    """Run the result in one way on every set of inputs; yield its outputs, compared, of each."""
    names = [v.name for v in run.graph.outputs]
    try:
        prepared = prepare_result()
    except SerdeError as error:
        if not setting:
            raise
        yield [not_run(n, f"{setting}: {error}") for n in names]
        return
    clock = _Clock()
    for inputs, expected in zip(run.sets, run.results, strict=True):
        where = _circumstances(inputs, setting)
        if inputs.name != NORMAL and not clock.has_time():
            judge.not_compared.append(f"{where}: the result takes {clock.last:.1f} s a run")
            continue
        try:
            got = clock.measure(lambda: prepared(inputs.feeds))  # noqa: B023
        except SerdeError as error:
            if not where:
                raise
            yield [not_run(n, f"{where}: {error}") for n in names]
            continue
        if len(got) != len(expected):
            raise UsageError(f"{len(expected)} outputs to compare with, the result has {len(got)}")
        if not bridge.has_scalars:
            got = [_drop_axis(a, e) for a, e in zip(got, expected, strict=True)]
        if run.is_mixed:
            pairs = [narrow_both(a, b) for a, b in zip(got, expected, strict=True)]
            got, expected = [a for a, _ in pairs], [b for _, b in pairs]
        compared = judge.compare(inputs, got, expected)
        for c in compared:
            if c.reason and where:
                c.reason = f"{c.reason} {where}"
        yield compared


def _drop_axis(got: Any, expected: Any) -> Any:
    """The one element of ``got`` where a tensor of no axes is expected."""
    is_scalar = not isinstance(expected, list) and np.ndim(expected) == 0
    return np.reshape(got, ()) if is_scalar and np.shape(got) == (1,) else got


def compare_run_layers(
    run: SourceRun, target: str | os.PathLike[str], *, weights: str | None = None,
    graph: Graph | None = None,
) -> LayersComparison:  # fmt: skip
    """Compare a result with its source layer by layer, on the first inputs.

    ``graph`` is the result as it was written, which has names that its file may lack.
    """
    bridge = get_runtime_bridge(format_of(Path(target)).name)
    if run.model is None or not run.results or bridge is None:
        reason = run.statement.removeprefix("not compared: ") or "the source was not run"
        return LayersComparison(statement=f"not compared: {reason}")
    if run.is_replaced:
        return LayersComparison(
            statement="not compared: the result has replaced its source; write it to another file"
        )
    model = run.model
    own = graph or read(target, **({} if weights is None else {"params": weights}))[0]

    def run_result(names: Sequence[str], feeds: Mapping[str, Array]) -> Sequence[Any]:
        if bridge.ends_anywhere:
            return prepare(bridge, target, params=weights, outputs=names)(feeds)
        return prepare_cut(bridge, own, names)(feeds)

    source = CutModel(model.read(), lambda names, feeds: model.cut(names).run(feeds))
    return compare_layers(source, CutModel(own, run_result), run.sets[0].feeds, run.ir)


def _circumstances(inputs: InputSet, setting: str) -> str:
    """What differs from a run of the first inputs as users run them."""
    on = "" if inputs.name == NORMAL else f"on {inputs.name} inputs"
    return ", ".join(filter(None, (on, setting)))


def find_worst(runs: Iterable[Iterable[OutputComparison]]) -> list[OutputComparison]:
    """Each output once: where it failed first, otherwise as it was first."""
    outputs: dict[str, OutputComparison] = {}
    for run in runs:
        for output in run:
            known = outputs.setdefault(output.name, output)
            if known.passed and not output.passed:
                outputs[output.name] = output
    return [*outputs.values()]


def _is_same_file(source: Any, target: str | os.PathLike[str]) -> bool:
    is_path = isinstance(source, (str, os.PathLike))
    return is_path and os.path.realpath(source) == os.path.realpath(target)
