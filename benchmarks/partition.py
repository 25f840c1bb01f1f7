"""Time of a partitioned ResNet-50 beside the whole one: ``python -m benchmarks.partition``.

Whole and parts run in ONNX Runtime in one process, in turn and in changing order, with one thread
and with as many as ONNX Runtime takes by itself. ``--nodes`` measures partitioning itself.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from benchmarks.measure import publish, python, table, workplace
from conformance.model_sources import with_weights
from serde.backends.partition import partition, prepare_graph
from serde.backends.runner import Hybrid
from serde.bridges.onnxruntime import prepare
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.legalize.forms.form import Call, Form
from serde.legalize.target import Target
from testing import light_models

MODEL, OPSET = "light_resnet50", 21
WARMING = 5  # rounds that are not counted
SMALLEST = 28  # size of the images that a backend takes which cuts the model in the middle
HEADLESS = "Conv BatchNormalization Relu MaxPool AveragePool Sum Add Dropout Reshape".split()
SIZES, BINARY = (10_000, 100_000), ("Add", "Mul")
THREADS = {"one thread": 1, "default threads": None}
Feeds = Mapping[str, Any]
Run = Callable[[Feeds], Any]
Times = tuple[float, float]  # of the clock and of the processor


def main() -> None:
    """Measure a cut before the last layers, and two in the middle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--folder", help="where the models are made")
    parser.add_argument("--nodes", action="store_true", help="partition graphs of many nodes")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        folder, threads = args.run
        print(json.dumps(run_rounds(Path(folder), THREADS[threads], args.rounds)))
        return
    if args.nodes:
        measure_partitioning()
        return
    with workplace(args.folder) as folder:
        cuts = make_models(folder)
        rows = [row for threads in THREADS for row in measure(folder, threads, args, cuts)]
        worst = compare_outputs(folder, cuts)
    head = ["threads", "model", "parts", "time, ms", "× whole", "processor, ms", "× whole"]
    text = (
        f"`{MODEL}` of the onnx package with random weights, one image; whole and parts in ONNX "
        f"Runtime, in one process, {args.rounds} rounds in which each runs once, in changing "
        "order. Medians of the times and of the rounds' ratios, those of the median of "
        f"{args.processes} processes, with the least and the most. The outputs "
        f"differ by {worst:.0e} of scale at most. Inside a block, ONNX Runtime's fusion of "
        f"Conv, BatchNormalization, Sum and Relu ends at the cut.\n\n{table(head, rows)}"
    )
    publish("ResNet-50 in two parts", text)


def make_models(folder: Path) -> list[str]:
    """Write the whole model and its parts for two cuts; return the names of the cuts."""
    proto = with_weights(onnx.load(light_models.model_path(MODEL)))
    graph = prepare_graph(proto)
    targets = [Target("before the classifier", OPSET, {op: {} for op in HEADLESS})]
    for name, is_small in (("between two stages", _makes_small), ("inside a block", _reads_small)):
        lacks = {op: [Form("small data", is_small)] for op in {n.op for n in graph.nodes}}
        targets.append(Target(name, OPSET, lacks=lacks))
    serde.save(graph, folder / "whole.onnx", opset=OPSET)
    for target in targets:
        cut = partition(graph, target, max_parts=1)
        assert len(cut.parts) == 2
        cut.save(folder / target.name)
    return [t.name for t in targets]


def load_here(path: str | Path, threads: int | None) -> Run:
    """A model in ONNX Runtime in this process."""
    return prepare(path, threads=threads, apart=False)


def run_rounds(folder: Path, threads: int | None, rounds: int) -> dict[str, list[Times]]:
    """Milliseconds of clock and processor of each run of the whole model and of each cut."""
    runs: dict[str, Run] = {"whole": load_here(folder / "whole.onnx", threads)}
    load = None if threads is None else lambda path: load_here(path, threads)
    runtimes = {"accelerator": load, "remainder": load} if load else {}
    cuts = sorted(p.parent for p in folder.glob("*/manifest.json"))
    runs |= {path.name: Hybrid(path, runtimes, apart=False) for path in cuts}
    feeds = make_feeds()
    samples: dict[str, list[Times]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(WARMING + rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter(), time.process_time()
            runs[name](feeds)
            end = time.perf_counter(), time.process_time()
            samples[name].append((1e3 * (end[0] - start[0]), 1e3 * (end[1] - start[1])))
    return {name: times[WARMING:] for name, times in samples.items()}


def measure(
    folder: Path, threads: str, args: argparse.Namespace, cuts: Sequence[str]
) -> list[list[str]]:
    """A row for the whole model, and one for each cut."""
    command = ("--rounds", str(args.rounds), "--run", folder, threads)
    tries = [json.loads(python("-m", "benchmarks.partition", *command).printed)
             for _ in range(args.processes)]  # fmt: skip
    middle = statistics.median
    rows = []
    for name in ("whole", *cuts):
        clock, processor = (middle(middle(t[at] for t in run[name]) for run in tries)
                            for at in range(2))  # fmt: skip
        row = [threads, name, "1" if name == "whole" else "2", f"{clock:.1f}"]
        ratios = [[middle(a[at] / b[at] for a, b in zip(run[name], run["whole"], strict=True))
                   for run in tries] for at in range(2)]  # fmt: skip
        spread = f"{middle(ratios[0]):.3f} ({min(ratios[0]):.3f} to {max(ratios[0]):.3f})"
        row += [spread, f"{processor:.1f}", f"{middle(ratios[1]):.3f}"]
        rows.append(row)
    return rows


def make_feeds() -> Feeds:
    """One image."""
    return light_models.feeds(onnx.load(light_models.model_path(MODEL)))


def compare_outputs(folder: Path, cuts: Sequence[str]) -> float:
    """The largest difference of the parts' output from the whole's, of its scale."""
    feeds = make_feeds()
    (expected,) = prepare(str(folder / "whole.onnx"))(feeds)
    outputs = [next(iter(Hybrid(folder / cut)(feeds).values())) for cut in cuts]
    return max(float(np.abs(y - expected).max() / np.abs(expected).max()) for y in outputs)


def measure_partitioning() -> None:
    """Publish the time that it takes to partition graphs of many nodes."""
    some = Target("Conv, Relu, Add and Mul", OPSET, {op: {} for op in ("Conv", "Relu", *BINARY)})
    rows = []
    for nodes in SIZES:
        graph = make_graph(nodes)
        for backend in (some, "coreml", "qnn"):
            start = time.process_time()
            split = partition(graph, backend)
            seconds = time.process_time() - start
            each = f"{1e6 * seconds / nodes:.0f}"
            row = [split.backend.name, f"{nodes:,}", str(len(split.parts)), f"{seconds:.1f}", each]
            rows.append(row)
    head = ["backend", "nodes", "parts", "processor, s", "µs a node"]
    text = (
        "Graphs of Conv, Relu and other activations, Add and Mul, each node reading some of the 20 "
        f"values before it. One run of each.\n\n{table(head, rows)}"
    )
    publish("Parts of graphs of many nodes", text)


def make_graph(nodes: int) -> Graph:
    """A random graph of images."""
    draws, shape = random.Random(0), (1, 4, 8, 8)
    kernel = np.ones((4, 4, 1, 1), np.float32)
    weight = Value("w", DType.FLOAT32, kernel.shape, Tensor.of(kernel))
    values, layers = [Value("x", DType.FLOAT32, shape)], []
    convolution = {"auto_pad": "NOTSET", "dilations": (1, 1), "group": 1, "kernel_shape": (1, 1),
                   "pads": (0, 0, 0, 0), "strides": (1, 1)}  # fmt: skip
    for number in range(nodes):
        op = draws.choice(("Conv", "Relu", "Sigmoid", "Tanh", "Neg", "Abs", *BINARY))
        x, y = (draws.choice(values[-20:]) for _ in range(2))
        operands = (x, weight) if op == "Conv" else (x, y) if op in BINARY else (x,)
        output = Value(f"v{number}", DType.FLOAT32, shape)
        layers.append(Node(op, operands, (output,), convolution if op == "Conv" else {}))
        values.append(output)
    return Graph("random", (values[0],), tuple(values[-20:]), tuple(layers))


def _reads_small(call: Call) -> bool:
    """Whether a node reads small images."""
    return _is_small(call.inputs[0])


def _makes_small(call: Call) -> bool:
    """Whether a node makes small images."""
    return _is_small(call.results[0])


def _is_small(value: Value | None) -> bool:
    shape = value.ranked_shape if value is not None else ()
    return len(shape) != 4 or not isinstance(shape[2], int) or shape[2] < SMALLEST


if __name__ == "__main__":
    main()
