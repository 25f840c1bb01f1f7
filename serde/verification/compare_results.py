"""What a source computed, and a result run on the same inputs, in every way users run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError, UsageError
from serde.ir.graph import Graph
from serde.pipeline import read
from serde.plugins import Bridge, format_of, get_runtime_bridge
from serde.verification.baked_batch import NotComparable
from serde.verification.compare_layers import CutModel, LayersComparison, compare_layers
from serde.verification.compare_outputs import OutputComparison, Tolerance, narrow_both, not_run
from serde.verification.given_arrays import find_other_shape
from serde.verification.input_sets import NORMAL, InputSet
from serde.verification.show_verification import ShownVerification
from serde.verification.source_runs import SourceModel, prepare, prepare_cut
from serde.verification.tolerated import Judge

Array = np.ndarray[Any, Any]
EXTRA_SECONDS = 10.0  # for the inputs beside the normal ones: of the source, and of each setting
DEFAULT = "by default"
NOT_COMPARED = "not compared: "


@dataclass(repr=False)
class Verification(ShownVerification):
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

    ``graph`` is the result, ``ir`` the graph of the IR that it was made from, ``format`` that of
    the result's file. ``statement`` is why there is nothing to compare with, ``drawn`` what was
    chosen at random. ``is_replaced`` where the result takes the source's place, ``is_missing``
    where the framework is not installed. ``share`` of its largest magnitude is what an output may
    differ by at least, unless the user gives a ``tolerance``; ``is_narrow`` where the result was
    made to compute in float16, ``is_mixed`` where source and result have floats of other types,
    which are compared in that of fewer bits.
    """

    graph: Graph
    ir: Graph
    inputs: str
    origin: str = ""
    sets: list[InputSet] = field(default_factory=list)
    results: list[Sequence[Any]] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    statement: str = ""
    drawn: str = ""
    format: str | None = None
    model: SourceModel | None = None
    is_replaced: bool = False
    is_missing: bool = False
    share: float = 0
    tolerance: Tolerance | None = None
    is_narrow: bool = False
    is_mixed: bool = False
    is_rounded: bool = False


class Clock:
    """Time spent on inputs beside the first."""

    def __init__(self) -> None:
        self.first = self.last = self.spent = 0.0

    def measure(self, run: Callable[[], Any]) -> Any:
        """What ``run`` returns; its time counts unless it is the first."""
        start = perf_counter()
        try:
            return run()
        finally:
            self.last = perf_counter() - start
            self.spent += self.last if self.first else 0.0
            self.first = self.first or self.last

    def has_time(self) -> bool:
        """Whether another run as long as the last is to be made."""
        return self.spent + self.last <= EXTRA_SECONDS


def compare_result(
    run: SourceRun, target: str | os.PathLike[str], *, weights: str | None = None
) -> Verification:
    """Compare a result, its parameters in the file ``weights``, with what its source computed.

    A result that fails to run where its source ran is wrong; one whose runtime is not installed,
    or lacks what the model needs, is not compared.
    """
    try:
        return compare_installed(run, target, weights=weights)
    except MissingDependency as error:
        statement = f"{NOT_COMPARED}the result could not be run. {error}"
        return Verification(False, "", run.inputs, statement=statement)


def compare_installed(
    run: SourceRun, target: str | os.PathLike[str], *, weights: str | None = None
) -> Verification:
    """As ``compare_result``, for those who do otherwise without the runtime of the result.

    Raises:
        MissingDependency: where it is not installed.
    """
    bridge = _find_bridge(run, target)
    if bridge is None or not bridge.can_run:
        raise MissingDependency("no bridge that is installed runs models of its format")
    if run.statement:
        return Verification(False, "", run.inputs, statement=run.statement)
    settings = {DEFAULT: {}, **bridge.settings, **(bridge.narrow_settings if run.is_narrow else {})}
    verification = Verification(
        True, run.origin, run.inputs, sets=[s.name for s in run.sets], settings=[*settings],
        not_compared=[*run.not_compared],
    )  # fmt: skip

    def probe(names: Sequence[str], inputs: InputSet) -> Sequence[Any]:
        return prepare(bridge, target, params=weights, outputs=names)(inputs.feeds)

    def resume(feeds: Mapping[str, Any], names: Sequence[str]) -> Sequence[Any]:
        return prepare(bridge, target, params=weights, outputs=names, cut_inputs=[*feeds])(feeds)

    judge = Judge(
        run.model, run.ir, probe, run.share, run.tolerance, run.is_replaced,
        resume if bridge.begins_anywhere else None,
    )  # fmt: skip
    runs: list[Sequence[OutputComparison]] = []
    for setting, options in settings.items():
        prepare_result = partial(prepare, bridge, target, params=weights, **options)
        name = "" if setting == DEFAULT else setting
        try:
            runs += _compare_setting(run, bridge, name, prepare_result, judge)
        except NotComparable as error:
            reason = f"the result cannot be run here: {_without_head(error)}"
            if not name:
                return Verification(False, "", run.inputs, statement=f"{NOT_COMPARED}{reason}")
            judge.not_compared.append(f"{name}: {reason}")
            verification.settings.remove(name)
    verification.not_compared += judge.not_compared
    verification.outputs = find_worst(runs)
    is_any = not verification.outputs or any(c.is_compared for each in runs for c in each)
    if verification.ok and not is_any:
        verification.done, reasons = False, "; ".join(judge.not_compared)
        verification.statement = (
            f"{NOT_COMPARED}no output has a number{': ' if reasons else ''}{reasons}. "
            "--data in.npz gives inputs that the model is made for"
        )
    if not verification.ok and bridge.describe_inexactness is not None:
        verification.not_compared += filter(None, [bridge.describe_inexactness(run.ir)])
    return verification


def _find_bridge(run: SourceRun, target: str | os.PathLike[str]) -> Bridge | None:
    """What runs a result: of the format it was written in, which its content may not tell."""
    return get_runtime_bridge(run.format or format_of(Path(target)).name)


def _without_head(error: SerdeError) -> str:
    return str(error).removeprefix(NOT_COMPARED)


def _compare_setting(
    run: SourceRun, bridge: Bridge, setting: str, prepare_result: Callable[[], Any], judge: Judge
) -> Iterator[list[OutputComparison]]:
    """Run the result in one way on every set of inputs; yield its outputs, compared, of each."""
    names = [v.name for v in run.graph.outputs]
    try:
        prepared = prepare_result()
    except (MissingDependency, NotComparable):
        raise
    except SerdeError as error:
        yield _list_failed(run, names, setting, error)
        return
    clock = Clock()
    for inputs, expected in zip(run.sets, run.results, strict=True):
        where = _circumstances(inputs, setting)
        if inputs.name != NORMAL and not clock.has_time():
            judge.not_compared.append(f"{where}: the result takes {clock.last:.1f} s a run")
            continue
        try:
            got = clock.measure(lambda: prepared(inputs.feeds))  # noqa: B023
        except NotComparable:
            raise
        except SerdeError as error:
            if other := find_other_shape(run.graph.inputs, inputs.feeds):
                raise UsageError(f"{other}: give one of that shape") from error
            yield _list_failed(run, names, where, error)
            if inputs.name == NORMAL:
                return
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


def _list_failed(
    run: SourceRun, names: Sequence[str], where: str, error: SerdeError
) -> list[OutputComparison]:
    """The outputs of a result that fails to run where its source ran."""
    reason = f"the result failed to run{', ' if where else ''}{where}, its source did not: {error}"
    advice = f" ({run.drawn})" if run.drawn else ""
    return [not_run(name, reason + advice) for name in names]


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
    bridge = _find_bridge(run, target)
    if run.model is None or not run.results or bridge is None:
        reason = run.statement.removeprefix(NOT_COMPARED) or "the source was not run"
        return LayersComparison(statement=f"{NOT_COMPARED}{reason}")
    if run.is_replaced:
        reason = "the result has replaced its source; write it to another file"
        return LayersComparison(statement=f"{NOT_COMPARED}{reason}")
    model = run.model
    params = {} if weights is None else {"params": weights}
    target_graph = graph or read(target, from_format=run.format, **params)[0]

    def run_result(names: Sequence[str], feeds: Mapping[str, Array]) -> Sequence[Any]:
        if bridge.ends_anywhere:
            return prepare(bridge, target, params=weights, outputs=names)(feeds)
        return prepare_cut(bridge, target_graph, names)(feeds)

    source = CutModel(model.read(), lambda names, feeds: model.cut(names).run(feeds))
    return compare_layers(
        source,
        CutModel(target_graph, run_result),
        run.sets[0].feeds,
        run.ir,
        run.tolerance,
        run.share,
    )


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
