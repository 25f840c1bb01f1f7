"""How long models take, and how much memory: each in its runtime, in a process of its own."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import Context
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serde.api.bench.process import ModelProcess
from serde.backends.manifest import read_manifest
from serde.backends.runner import has_parts
from serde.errors import SerdeError, UsageError, escape_controls
from serde.io.arrays import write_npz
from serde.io.command_files import within_command
from serde.io.provenance import stamp_files
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import Graph
from serde.ir.weights import show_size
from serde.passes.cut_inputs import with_inputs
from serde.pipeline import Path_, has_layers, load, read_interface
from serde.verification.compare_models import fit_sizes
from serde.verification.given_arrays import read_npz
from serde.verification.random_inputs import SEED, make_random_inputs
from serde.verification.run_model import check_threads

WARMING, LEAST, MOST = 3, 7, 200  # rounds that are not counted, and that are
ROUND = 4e-3  # seconds that each model runs at least in a round
SECONDS = 5.0


@dataclass
class Measurement:
    """What one model takes. Times are medians, in milliseconds; memory is in bytes.

    ``ratio`` and ``ratio_quartiles`` are of its time to that of the first model, round by round;
    ``processor_ratio`` is that of the processor's time. ``memory`` is the peak of the process,
    Python and the framework included; ``size`` that of the model's files.
    """

    model: str
    runtime: str
    milliseconds: float
    milliseconds_quartiles: tuple[float, float]
    ratio: float
    ratio_quartiles: tuple[float, float]
    processor_ratio: float
    memory: int
    memory_ratio: float
    load_seconds: float
    size: int


@dataclass(frozen=True, repr=False)
class Benchmark:
    """The models that were measured, the first that to which ratios are."""

    models: list[Measurement]
    rounds: int
    threads: int
    inputs: str

    def to_dict(self) -> dict[str, Any]:
        """The fields of the JSON."""
        return asdict(self)

    def describe(self) -> Iterator[str]:
        """Lines of what each model takes."""
        threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        yield f"{self.rounds} rounds, {threads}, {self.inputs}:"
        for at, each in enumerate(self.models):
            low, high = each.milliseconds_quartiles
            time = f"{each.milliseconds:.4g} ms a run (half of the rounds {low:.4g} to {high:.4g})"
            low, high = each.ratio_quartiles
            ratio = f", × {each.ratio:.2f} ({low:.2f} to {high:.2f})" if at else ""
            memory = f", × {each.memory_ratio:.2f}" if at else ""
            size = f", × {each.size / max(self.models[0].size, 1):.2f}" if at else ""
            yield f"{each.model} ({each.runtime})"
            yield f"  time    {time}{ratio}"
            yield f"  memory  {show_size(each.memory)} of the process at most{memory}"
            yield f"  file    {show_size(each.size)}{size}, loaded in {each.load_seconds:.2f} s"

    def __str__(self) -> str:
        return "\n".join(map(escape_controls, self.describe()))

    __repr__ = __str__


@within_command()
def bench(
    models: Path_ | Sequence[Path_], *, data: Any = None, inputs: Mapping[str, Any] | None = None,
    params: Path_ | None = None, seed: int = SEED, seconds: float = SECONDS, threads: int = 1,
) -> Benchmark:  # fmt: skip
    """Run models on the same inputs, in turn, and measure what they take.

    Each is loaded into the framework of its format, in a process of its own. In each round every
    model runs once, fast ones several times, in an order that changes: other work on the machine
    slows all of them alike. ``serde compare`` tells whether they compute the same.

    Args:
        models: files, of any formats, and folders of partitioned models; or one.
        data: the inputs, an ``.npz`` path or mapping by the names of the first model; seeded random
            ones otherwise. Others take them by name, or else by place.
        inputs: shapes of the first model's inputs, where its file leaves them open.
        params: the first model's parameters, where they are not beside it.
        seed: of the random inputs.
        seconds: how long to measure.
        threads: how many the frameworks have, up to the cores of the machine.

    Raises:
        SerdeError: where a model does not run. MissingDependency: without its framework.
    """
    models = [models] if isinstance(models, (str, os.PathLike)) else models
    if not models:
        raise UsageError("there is no model to measure: name one")
    reading = {k: v for k, v in {"params": params, "inputs": inputs}.items() if v is not None}
    check_threads(threads)
    feeds = read_npz(data) if data is not None else make_inputs(models, reading, seed)
    with TemporaryFolder() as folder, ExitStack() as stack:
        path = Path(folder) / "feeds.npz"
        with path.open("wb") as file:
            write_npz(file, feeds)
        processes = []
        for at, model in enumerate(models):
            params_of_model = os.fspath(params) if params is not None and not at else None
            process = ModelProcess(os.fspath(model), params_of_model, os.fspath(path), threads)
            processes.append(stack.enter_context(process))
        rounds = _run_rounds(processes, seconds)
        memory = [process.measure_memory() for process in processes]
    parameters = [params, *[None] * len(models)]
    sizes = [Context().run(_measure_model, *each) for each in zip(models, parameters, strict=False)]
    origin = "the inputs given" if data is not None else f"random inputs, seed {seed}"
    measured = _summarize(processes, rounds, memory, sizes)
    return Benchmark(measured, len(rounds), threads, origin)


def make_inputs(models: Sequence[Path_], reading: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Random inputs: of the first model whose layers are read, which tell what they are for."""
    files = [m for m in models if not has_parts(m)]
    whole = next(filter(has_layers, files), None)
    if not files:
        values = tuple(v.to_value() for v in read_manifest(Path(models[0])).inputs)
        graph = with_inputs(Graph("parts", values, (), ()), reading.get("inputs"))
    elif whole is None:
        graph, _ = read_interface(files[0], **reading)
    elif whole is models[0]:
        graph = load(whole, **reading)
    else:
        graph = load(whole, **{n: v for n, v in reading.items() if n != "params"})
    for other in (m for m in files if m is not whole):
        with suppress(SerdeError):  # which its framework tells of, if it cannot run it
            graph = fit_sizes(graph, load(other) if has_layers(other) else read_interface(other)[0])
    feeds = make_random_inputs(graph, seed)
    if lists := [n for n, x in feeds.items() if not isinstance(x, np.ndarray)]:
        raise UsageError(f"the input {lists[0]!r} is a sequence: no file of arrays can hold it")
    return feeds


def _measure_model(model: Path_, params: Path_ | None) -> int:
    """The bytes of the files of a model."""
    with within_command() as files:
        if has_parts(model):
            parts = read_manifest(Path(model)).all_parts()
            names = {os.path.join(model, name) for part in parts for name in part.files}
            return sum(f.bytes for f in stamp_files(names | files.list_read()))
        reading: dict[str, Any] = {} if params is None else {"params": params}
        graph, _ = read_interface(model, **reading)
        return sum(f.bytes for f in stamp_files(graph.list_files() | files.list_read()))


Times = tuple[float, float]  # of the clock and of the processor, in seconds


def _run_rounds(processes: Sequence[ModelProcess], seconds: float) -> list[list[Times]]:
    """The times of each round, by model."""
    order = random.Random(0)
    repeats = [max(1, round(ROUND / max(p.least_seconds, 1e-7))) for p in processes]
    rounds: list[list[Times]] = []
    start = time.perf_counter()
    places = [*range(len(processes))]
    for number in range(WARMING + MOST):
        if number >= WARMING + LEAST and time.perf_counter() - start > seconds:
            break
        order.shuffle(places)
        times = {at: processes[at].run(repeats[at]) for at in places}
        rounds.append([times[at] for at in range(len(processes))])
    return rounds[WARMING:]


def _summarize(
    processes: Sequence[ModelProcess], rounds: Sequence[Sequence[Times]], memory: Sequence[int],
    sizes: Sequence[int],
) -> list[Measurement]:  # fmt: skip
    measured = []
    for at, process in enumerate(processes):
        clock = [times[at][0] * 1e3 for times in rounds]
        ratios = [times[at][0] / times[0][0] for times in rounds]
        processor = [times[at][1] / max(times[0][1], 1e-9) for times in rounds]
        measured.append(
            Measurement(
                process.model, process.runtime, statistics.median(clock), _quartiles(clock),
                statistics.median(ratios), _quartiles(ratios), statistics.median(processor),
                memory[at], memory[at] / max(memory[0], 1), process.load_seconds, sizes[at],
            )
        )  # fmt: skip
    return measured


def _quartiles(numbers: Sequence[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return low, high
