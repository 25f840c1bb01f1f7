"""Run a model in its runtime, or a partitioned one: each part in a runtime of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import (
    MalformedFile,
    MissingDependency,
    SerdeError,
    UsageError,
    show_error,
    suggest,
)
from serde.io.arrays import write_npz
from serde.io.atomic_write import Replacing
from serde.io.command_files import within_command
from serde.io.user_code import refuse_exits
from serde.ir.graph import DType
from serde.plugins import get_format, get_runtime_bridge, installed_formats, read_classes
from serde.plugins.keywords import with_options
from serde.verification.given_arrays import read_npz
from serde.verification.run_model import (
    RunnableModel,
    check_threads,
    collect_settings,
    show_signature,
)
from serde.verification.source_runs import time_calls

from .checks import check_finite, check_inputs, check_values
from .manifest import KINDS, NAME, Manifest, PartInfo, read_manifest

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]
ROLES = ("accelerator", "remainder")


class Hybrid:
    """A partitioned model with its parts loaded into their runtimes.

    ``runtimes`` has a runtime for ``accelerator``, for ``remainder``, or for a part by name: the
    name of one that a format declares, or a function of the path of a part's file. What it returns
    is called with arrays by name, and returns the outputs in order or by name. Parts of no runtime
    run in that of their format. ``finite`` refuses results with infinities or NaN. ``threads`` is
    how many each runtime has, if that can be told, ``apart`` as for ``prepare``. ``seconds`` is
    how long each part ran, in all runs together; ``runtime`` names where they run.
    """

    def __init__(
        self, folder: str | os.PathLike[str], runtimes: Mapping[str, Any] | None = None,
        finite: bool = False, threads: int | None = None, apart: bool = True,
    ) -> None:  # fmt: skip
        self.folder, self.finite = Path(folder), finite
        self._settings = collect_settings(threads, apart)
        self.seconds: dict[str, float] = {}
        self.manifest = read_manifest(self.folder)
        self.runtimes = dict(runtimes or {})
        known = {*ROLES, *(p.name for p in self.manifest.all_parts())}
        for name in self.runtimes.keys() - known:
            hint = suggest(name, known) or f"; there are {', '.join(sorted(known))}"
            raise UsageError(f"no part is called {name!r}{hint}")
        self.inputs = tuple(v.to_value() for v in self.manifest.inputs)
        parts = [*self.manifest.all_parts()]
        self.runtime = ", ".join(sorted({p.format for p in parts if p.format})) + " in parts"
        self.load_parts = {p.name: self._load(p) for p in parts}

    def __repr__(self) -> str:
        outputs = [v.to_value() for v in self.manifest.outputs]
        return f"{show_signature(self.inputs, outputs)} in {len(self.load_parts)} parts"

    def __call__(self, inputs: Feeds) -> dict[str, Any]:
        """The outputs of the model by name, for inputs by name.

        Raises:
            UsageError: for inputs that are missing, or not of the model's types and shapes.
            SerdeError: where a runtime refuses its part.
        """
        values = self._run_parts(self.manifest, check_inputs(self.manifest.inputs, inputs))
        return {v.name: _to_array(values[v.name]) for v in self.manifest.outputs}

    pid = None  # of a process that runs the model, if another does

    def bind_inputs(self, feeds: Feeds) -> Callable[[int], tuple[float, float]]:
        """As ``RunnableModel.bind_inputs``."""
        return partial(time_calls, partial(self, feeds))

    def _run_parts(self, manifest: Manifest, inputs: Feeds) -> dict[str, Any]:
        """The values between the parts of a model or of a subgraph, with those that leave it."""
        values = {v.name: inputs[v.name] for v in manifest.inputs}
        left: dict[str, int] = {}
        for value in (v for p in manifest.parts for v in p.inputs):
            left[value.name] = left.get(value.name, 0) + 1
        kept = {v.name for v in manifest.outputs}
        for part in manifest.parts:
            start = time.perf_counter()
            results = self.load_parts[part.name](values)
            duration = time.perf_counter() - start
            self.seconds[part.name] = self.seconds.get(part.name, 0.0) + duration
            if self.finite:
                named = zip((v.name for v in part.outputs), map(_to_array, results), strict=True)
                check_finite(f"part {part.name!r}", dict(named))
            values.update(zip((v.name for v in part.outputs), results, strict=True))
            for value in part.inputs:  # what no one reads any more is given back
                left[value.name] -= 1
                if not left[value.name] and value.name not in kept:
                    del values[value.name]
        return values

    def _load(self, part: PartInfo) -> Callable[[Feeds], Sequence[Any]]:
        """A function of the values between parts that runs a part."""
        if part.kind == "control":
            return partial(self._run_control, part, self._constants(part))
        runtime = self.runtimes.get(part.name, self.runtimes.get(part.kind))
        path = self.folder / next(iter(part.files))
        if runtime is None or isinstance(runtime, str):
            return partial(_run_part, part, _load_in(runtime, part, path, self._settings))
        with _name_part(part, "its runtime cannot load it:"):
            run = runtime(os.fspath(path))
        return partial(_run_part, part, partial(_run_foreign, run))

    def _constants(self, part: PartInfo) -> dict[str, Array]:
        """The operands of an If or a Loop that are constants."""
        constants = read_npz(self.folder / next(iter(part.files))) if part.files else {}
        known = constants.keys() | {v.name for v in part.inputs}
        optional = 2 if part.operator == "Loop" else 0  # the first operands of a Loop
        needed = [n for at, n in enumerate(part.operands) if n or at >= optional]
        states = len(part.operands) if part.operator == "Loop" else 0  # with turn and condition
        needed += [v.name for body in part.bodies.values() for v in body.inputs[states:]]
        if absent := [n for n in needed if n not in known]:
            reason = f"nothing computes {absent[0]!r}, which its {part.operator} reads"
            raise MalformedFile(self.folder / NAME, reason, part.name)
        return constants

    def _run_control(self, part: PartInfo, constants: Feeds, values: Feeds) -> list[Any]:
        """Run an If or a Loop, whose subgraphs are in parts."""
        feeds = {**values, **constants}
        operands = [_to_array(feeds[name]) if name else None for name in part.operands]
        if part.operator == "If":
            body = part.bodies["then_branch" if np.any(operands[0]) else "else_branch"]
            outputs = self._run_parts(body, feeds)
            return [outputs[v.name] for v in body.outputs]
        results = self._run_loop(part, operands, feeds)
        return results[: len(part.outputs)]  # those behind may be left out

    def _run_loop(self, part: PartInfo, operands: Sequence[Any], around: Feeds) -> list[Any]:
        """Run a Loop: its states, then what it gathers of each iteration."""
        body = part.bodies["body"]
        most, going = operands[0], operands[1]
        if most is not None and np.size(most) != 1:
            reason = f"the limit of its turns, {part.operands[0]!r}, is not one number"
            raise MalformedFile(self.folder / NAME, reason, part.name)
        states: list[Any] = [*operands[2:]]
        is_going, turn = going is None or bool(np.all(going)), 0
        gathered: list[list[Any]] = [[] for _ in body.outputs[1 + len(states) :]]
        while is_going and (most is None or turn < int(np.reshape(most, ()))):
            first = (np.array(turn, np.int64), np.array(is_going), *states)
            arguments = {v.name: x for v, x in zip(body.inputs, first, strict=False)}
            outputs = self._run_parts(body, {**around, **arguments})
            results = [_to_array(outputs[v.name]) for v in body.outputs]
            is_going, states = bool(np.all(results[0])), results[1 : 1 + len(states)]
            for rows, result in zip(gathered, results[1 + len(states) :], strict=True):
                rows.append(result)
            turn += 1
        return [*states, *map(_stack, gathered, body.outputs[1 + len(states) :])]


def _stack(rows: Sequence[Any], row: Any) -> Array:
    """What a Loop gathers; of no iterations, nothing of the right type and shape."""
    if rows:
        return np.stack(rows)
    shape = [d if isinstance(d, int) else 0 for d in row.shape or ()]
    return np.zeros([0, *shape], DType(row.dtype).numpy)


def _load_in(
    runtime: str | None, part: PartInfo, path: Path, settings: Mapping[str, Any]
) -> Callable[[Feeds], Any]:
    """Load a part into a runtime of a name, or into that of its format."""
    formats = {f.runtime: f.name for f in installed_formats() if f.runtime}
    name = runtime or get_format(part.format).runtime
    if name not in formats:
        hint = suggest(name, formats.keys()) or f"; there are {', '.join(formats)}"
        raise UsageError(f"no runtime is called {name!r}{hint}, or give a function")
    if formats[name] != part.format:
        what = f"part {part.name!r} is a file of {part.format}, which {name} does not run"
        raise UsageError(f"{what}: partition the model with the remainder in {formats[name]}")
    bridge = get_runtime_bridge(part.format)
    if bridge is None or bridge.prepare is None:
        raise MissingDependency(f"part {part.name!r} needs a bridge that runs {part.format}")
    try:
        return bridge.prepare(os.fspath(path), **settings)
    except MissingDependency as error:
        raise MissingDependency(f"part {part.name!r} needs {name}: {error}") from error


def _run_part(part: PartInfo, run: Callable[[Feeds], Any], values: Feeds) -> list[Any]:
    """Run a part; values stay with the runtime where it takes its own."""
    run_values = getattr(run, "run_values", None)
    take = run_values or run
    feeds = {v.file_name or v.name: values[v.name] for v in part.inputs}
    if run_values is None:
        feeds = {name: _to_array(value) for name, value in feeds.items()}
        check_values(part, part.inputs, list(feeds.values()))
    with _name_part(part, "its runtime failed with"):
        results = _order_results(part, take(feeds))
    if run_values is None:
        check_values(part, part.outputs, [_to_array(v) for v in results])
    return results


@contextmanager
def _name_part(part: PartInfo, failure: str) -> Iterator[None]:
    """Name the part in whatever a vendor's function raises, an exit too."""
    try:
        with refuse_exits():
            yield
    except SerdeError as error:
        raise SerdeError(f"part {part.name!r}: {error}") from error
    except Exception as error:
        raise SerdeError(f"part {part.name!r}: {failure} {show_error(error)}") from error


def _run_foreign(run: Callable[[Feeds], Any], feeds: Feeds) -> Any:
    """The results of a vendor's function, which may write into what it is given.

    It may use the memory of its results again when it is called.
    """
    results = run({name: _copy(value) for name, value in feeds.items()})
    if isinstance(results, Mapping):
        return {name: _copy(value) for name, value in results.items()}
    return [*map(_copy, results)] if isinstance(results, (list, tuple)) else results


def _copy(value: Any) -> Any:
    if isinstance(value, list):  # of a sequence
        return [*map(_copy, value)]
    return value.copy() if isinstance(value, np.ndarray) else value


def _order_results(part: PartInfo, results: Any) -> list[Any]:
    """What a runtime gives, in the order of the part's outputs."""
    if isinstance(results, Mapping):
        absent = [v.name for v in part.outputs if v.name not in results]
        if absent:
            names = ", ".join(map(repr, results)) or "nothing"
            raise SerdeError(f"its runtime gives no {absent[0]!r}; it gives {names}")
        return [results[v.name] for v in part.outputs]
    if not isinstance(results, (list, tuple)):
        kind = type(results).__name__
        raise SerdeError(f"its runtime gives a {kind}. Return a list, or arrays by name")
    if len(results) != len(part.outputs):
        counts = f"{len(part.outputs)} outputs, and its runtime gives {len(results)}"
        raise SerdeError(f"it has {counts}")
    return [*results]


def _to_array(value: Any) -> Any:
    """A value as an array; a list of them for a sequence."""
    return value.numpy() if hasattr(value, "numpy") else value


@with_options(read_classes, lambda option: option.is_run)
def prepare(
    model: Any, runtimes: Mapping[str, Any] | None = None, *, from_format: str | None = None,
    threads: int | None = None, apart: bool = True, **options: Any,
) -> Any:  # fmt: skip
    """A model loaded into its runtime, as a function of its inputs, to run several times.

    Args:
        model: a partitioned model, as ``Partitioned.save`` wrote it, or what ``load`` takes, which
            runs in the framework of its format: MXNet, ONNX Runtime or TVM; a Graph in ONNX
            Runtime.
        runtimes: those of the parts, see ``Hybrid``.
        from_format: the model's, where its content does not tell.
        threads: how many its framework has, if that can be told.
        apart: whether its framework has a process of its own, which ends alone where the model
            takes too much memory. In this one ONNX Runtime and TVM run small models faster, and
            hand values on from part to part without a copy.
        options: those of ``load`` that tell what of the files is meant, such as ``params``.

    Raises:
        MissingDependency: where the framework is not installed.
    """
    check_threads(threads)
    options = {"from_format": from_format, **options}
    options = {n: v for n, v in options.items() if v is not None}
    if has_parts(model):
        if options:
            raise UsageError(f"{os.fspath(model)} is in parts: it takes no {', '.join(options)}")
        return Hybrid(model, runtimes, threads=threads, apart=apart)
    if runtimes:
        raise UsageError(f"{model} is not in parts: leave runtimes out; its format decides")
    return RunnableModel(model, threads=threads, apart=apart, **options)


def has_parts(model: Any) -> bool:
    """Whether a folder has a manifest, parts without one, or no model at all."""
    if not isinstance(model, (str, os.PathLike)) or not os.path.isdir(model):
        return False
    path = Path(model)
    names = {NAME, *(f"{kind}_*" for kind in KINDS)}
    has_parts = any(True for name in names for _ in path.glob(name))
    return has_parts or not any(f.matches(path) for f in installed_formats())


@with_options(read_classes, lambda option: option.is_run and option.name != "inputs")
def run(
    model: Any, inputs: Any, runtimes: Mapping[str, Any] | None = None, *,
    from_format: str | None = None, threads: int | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """The outputs of a model by name; ``prepare`` is for several runs.

    Args:
        model, runtimes, options: as for ``prepare``.
        inputs: arrays by name; one array where there is one input.

    Raises:
        UsageError: for inputs that the model does not take. MissingDependency: for a runtime that
            is not installed. MalformedFile: for parts that are not as they were written.
    """
    options |= {"from_format": from_format, "threads": threads}
    return dict(prepare(model, runtimes, **options)(inputs))


@within_command()
def run_files(
    model: str, data: Any, target: str | None, runtimes: Mapping[str, Any], finite: bool = False,
    **options: Any,
) -> tuple[dict[str, Any], dict[str, float]]:  # fmt: skip
    """Run a model on the arrays of an ``.npz`` file, or mapping, that may have others; write one.

    The outputs, and how long the model or each of its parts ran.
    """
    runnable = prepare(model, runtimes, **options)
    arrays: Feeds = read_npz(data)
    if isinstance(runnable, Hybrid):
        runnable.finite = finite
        outputs = runnable(arrays)
        seconds = runnable.seconds
    else:
        arrays = runnable.select_inputs(arrays)
        start = time.perf_counter()
        outputs = dict(runnable(arrays))
        seconds = {Path(model).name: time.perf_counter() - start}
        if finite:
            check_finite("the model", outputs, partial(runnable.describe_nonfinite, arrays))
    if target is not None:
        if lists := [n for n, v in outputs.items() if not isinstance(v, np.ndarray)]:
            reason = "is a sequence, which an .npz file cannot hold"
            raise UsageError(f"the output {lists[0]!r} {reason}")
        with Replacing(target) as files, files.open(target) as out:
            write_npz(out, outputs)
    return outputs, seconds
