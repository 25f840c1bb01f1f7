"""Time of a partitioned ResNet-50 beside the whole one: ``python -m benchmarks.partition``.

Whole and parts run in ONNX Runtime, each in a process of its own, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from benchmarks.measure import publish, python, table, workplace
from serde.backends.partition import partition, prepare_graph
from serde.backends.runner import Hybrid
from serde.bridges.onnxruntime import prepare
from serde.ir.graph import Graph, Node
from serde.legalize.target import IllegalForm, Target
from tests import light_models

MODEL, OPSET = "light_resnet50", 21
WARMING, RUNS = 5, 20  # of a process
HEADLESS = "Conv BatchNormalization Relu MaxPool AveragePool Sum Add Dropout Reshape".split()


def run_alone(path: Path) -> None:
    """Run a model or a folder of parts; print milliseconds of each run, of clock and processor."""
    feeds = light_models.feeds(onnx.load(light_models.model_path(MODEL)))
    run: Any = Hybrid(path) if path.is_dir() else prepare(str(path))
    found = []
    for _ in range(WARMING + RUNS):
        start = time.perf_counter(), time.process_time()
        run(feeds)
        found.append([time.perf_counter() - start[0], time.process_time() - start[1]])
    print(json.dumps([[1e3 * t for t in each] for each in found[WARMING:]]))


def measure(paths: list[Path], processes: int) -> list[list[float]]:
    """The median milliseconds of each model, of clock and processor: of the best process."""
    found: list[list[list[float]]] = [[] for _ in paths]
    for _ in range(processes):
        for path, kept in zip(paths, found, strict=True):
            printed = python("-m", "benchmarks.partition", "--run", path).printed
            kept.append([statistics.median(t) for t in zip(*json.loads(printed), strict=True)])
    return [[min(t) for t in zip(*each, strict=True)] for each in found]


def main() -> None:
    """Measure a cut before the last layers, and one in the middle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--folder", help="where the models are made")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run_alone(given.run)
        return
    graph = prepare_graph(light_models.model_path(MODEL))
    middle = graph.nodes[len(graph.nodes) // 2].outputs[0].name
    targets = [Target("before the classifier", OPSET, {op: {} for op in HEADLESS}),
               Target("in the middle", OPSET, illegal=_end_before(graph, middle))]  # fmt: skip
    feeds = light_models.feeds(onnx.load(light_models.model_path(MODEL)))
    with workplace(given.folder) as folder:
        whole = folder / "whole.onnx"
        serde.save(graph, whole, opset=OPSET)
        cuts = [partition(graph, t, max_parts=1) for t in targets]
        for cut in cuts:
            cut.save(folder / cut.backend.name)
        paths = [folder / cut.backend.name for cut in cuts]
        times = measure([whole, *paths], given.processes)
        (wanted,) = prepare(str(whole))(feeds)
        outputs = [next(iter(Hybrid(path)(feeds).values())) for path in paths]
    rows = [["whole", "1", f"{times[0][0]:.1f}", "", f"{times[0][1]:.1f}", ""]]
    for cut, (clock, processor) in zip(cuts, times[1:], strict=True):
        shares = f"{clock / times[0][0]:.3f}", f"{processor / times[0][1]:.3f}"
        rows.append([cut.backend.name, str(len(cut.parts)), f"{clock:.1f}", shares[0],
                     f"{processor:.1f}", shares[1]])  # fmt: skip
    worst = max(float(np.abs(y - wanted).max()) for y in outputs)
    head = ["cut", "parts", "time, ms", "× whole", "processor, ms", "× whole"]
    text = (
        f"`{MODEL}` of the onnx package, one image; whole and parts in ONNX Runtime. Medians of "
        f"{RUNS} runs, of the best of {given.processes} processes of each, in turn. The outputs "
        f"differ by {worst:.0e} at most.\n\n{table(head, rows)}"
    )
    publish("ResNet-50 in two parts", text)


def _end_before(graph: Graph, name: str) -> dict[str, list[IllegalForm]]:
    """Checks that refuse every node that depends on a value."""
    late = {name}
    for node in graph.nodes:
        if any(v is not None and v.name in late for v in node.inputs):
            late |= {v.name for v in node.outputs}

    def check(node: Node) -> str | None:
        is_late = any(v is not None and v.name in late for v in node.inputs)
        return "it is in the second half" if is_late else None

    return {op: [check] for op in {n.op for n in graph.nodes}}


if __name__ == "__main__":
    main()
