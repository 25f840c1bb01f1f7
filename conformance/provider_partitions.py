"""Parts of serde beside those that ONNX Runtime makes for a provider, of the same nodes.

The wheel ``onnxruntime-openvino`` has a provider for OpenVINO that runs on a CPU;
``SERDE_OPENVINO_PROVIDER`` names the Python of an environment with it. Some nodes of a model become
Hardmax, which that provider does not take. Whatever else it leaves to the CPU, serde leaves too.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

import serde
from serde.backends.numbered import Numbered
from serde.backends.partition import prepare_graph
from serde.backends.stages import assign_stages
from testing import light_models

from .matrix import Cell
from .record import RIGHT, WRONG, Outcome

PYTHON = "SERDE_OPENVINO_PROVIDER"
OPSET = 17
SHARES = (0.1, 0.3, 1.0)  # of the activations that become Hardmax
ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh", "LeakyRelu"})
SCRIPT = """
import sys, onnxruntime
settings = onnxruntime.SessionOptions()
settings.log_severity_level = 0
settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
openvino = "OpenVINOExecutionProvider", {"device_type": "CPU"}
onnxruntime.InferenceSession(sys.argv[1], settings, providers=[openvino, "CPUExecutionProvider"])
"""
PLACED = re.compile(r"placed on \[(\w+)\]\. Number of nodes: (\d+)")
NODE = re.compile(r"\]\s+\w+ \((n\d+)\)")
Row = dict[str, Any]  # by share: nodes, those taken, parts of serde, parts of ONNX Runtime


class ProviderPartitions(Cell):
    """Parts by the share of activations that are not taken."""

    seconds = 1200

    def cases(self) -> list[str]:
        return light_models.LIGHT

    def run(self, case: str) -> Row:
        if PYTHON not in os.environ:
            pytest.skip(f"{PYTHON} names no Python with onnxruntime-openvino")
        graph = prepare_graph(light_models.model_path(case))
        row: Row = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            for seed, share in enumerate(SHARES):
                serde.save(graph, path, opset=OPSET)
                change_activations(path, share, seed)
                row[f"{share:.0%}"] = compare(path)
        return row

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        return {name: _outcome(counts) for name, counts in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}


def _outcome(counts: Any) -> Outcome:
    if not isinstance(counts, list):
        return Outcome.of(WRONG, counts)
    *_, ours, theirs = counts
    return Outcome(RIGHT) if ours <= theirs else Outcome.of(WRONG, f"{ours} parts for {theirs}")


def change_activations(path: Path, share: float, seed: int) -> None:
    """Name the nodes of a model, and make some of its activations Hardmax."""
    model, draws = onnx.load(path), random.Random(seed)
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
        if node.op_type in ACTIVATIONS and draws.random() < share:
            node.op_type = "Hardmax"
            del node.attribute[:]
    onnx.save(model, path)


def compare(path: Path) -> list[int]:
    """The nodes of a model, those taken, and the parts of serde and of ONNX Runtime."""
    left, theirs = place_nodes(path)
    names = {n.output[0] for n in onnx.load(path).graph.node if n.name in left}
    numbered = Numbered(prepare_graph(path))
    taken = [n.outputs[0].name not in names for n in numbered.graph.nodes]
    stages = assign_stages(numbered.flow, taken)
    return [len(taken), sum(taken), len({s for s in stages if s % 2}), theirs]


def place_nodes(path: Path) -> tuple[set[str], int]:
    """The nodes that ONNX Runtime leaves to the CPU, and how many parts OpenVINO has."""
    command = [os.environ[PYTHON], "-c", SCRIPT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    provider, left, parts = "", set(), 0
    for line in done.stderr.splitlines():
        if (placed := PLACED.search(line)) is not None:
            provider = placed[1]
            parts += int(placed[2]) if provider.startswith("OpenVINO") else 0
        elif provider.startswith("CPU") and (node := NODE.search(line)) is not None:
            left.add(node[1])
    return left, parts


HEADER = """# Partitions beside ONNX Runtime's

Made by `python -m conformance models/providers`. ONNX Runtime cuts models for its providers. The
wheel of `onnxruntime` has none but the CPU's; that of `onnxruntime-openvino` 1.24.1 has OpenVINO's,
which runs on a CPU as well. Some activations of the `light` models become Hardmax, which OpenVINO's
provider does not take. It also leaves nodes in small pieces to the CPU. serde takes the nodes that
it takes, and no others.

| model | activations changed | nodes | taken | parts | ONNX Runtime's |
|---|---|---|---|---|---|
"""


def page(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/provider-partitions.md."""
    yield HEADER.rstrip()
    for case, row in sorted(rows.items()):
        for share, counts in row.items():
            if isinstance(counts, list):
                yield f"| {' | '.join(map(str, (case, share, *counts)))} |"
    yield ""
    yield from (f"* {case}, {name}: {outcome}" for case, row in sorted(rows.items())
                for name, counts in row.items()
                if (outcome := _outcome(counts)).kind != RIGHT)  # fmt: skip
    yield ""
