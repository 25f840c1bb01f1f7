"""A model in ONNX Runtime, whole and in parts: what becomes of it for a backend.

Without ONNX Runtime's optimizers the same kernels run on the same numbers, so that parts of which
nothing is legalized have to give the same bits.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import serde
from serde.backends.description import Backend
from serde.backends.partition import INSIDE, lower_for, partition
from serde.backends.parts import CONTROL, Partitioned
from serde.backends.runner import Hybrid
from serde.bridges.onnxruntime import PreparedModel
from serde.errors import SerdeError
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph, Tensor, Value
from serde.legalize.target import Target
from serde.verification.source_runs import GRAPH_OPSET
from testing.onnx_live import OPTIMIZED, PLAIN, run_at, session_of

from .matrix import NotRun, reason
from .part_checks import check_files, check_parts, difference, has_same_bits, is_legalized

LISTS = 50  # random lists of operators that each model is partitioned for
LARGE = 4096  # elements of weights that sessions in memory share
HALVES = frozenset({DType.FLOAT16, DType.BFLOAT16})
WHOLE = Target("opset of graphs", GRAPH_OPSET)
Row = dict[str, Any]
Arrays = Mapping[str, Any]


def describe_failure(problem: Exception) -> Row:
    """The row of a model whose parts were not made or not run; any other error is a defect."""
    if isinstance(problem, NotRun):
        return {"not run": str(problem)}
    if isinstance(problem, SerdeError):
        return {"refused": reason(problem)}
    return {"failed": f"{type(problem).__name__}: {problem}"[:300]}


class Model:
    """A model and what ONNX Runtime computes of it whole, to compare its parts with."""

    def __init__(self, graph: Graph, feeds: Arrays) -> None:
        self.graph, self.failure = graph, ""
        self.feeds = {v.name: feeds[v.name] for v in graph.inputs}
        self.has_control_flow = any(n.op in INSIDE for n in graph.nodes)
        self.has_halves = any(v.dtype in HALVES for n in graph.all_nodes() for v in n.outputs)
        self.memory = SharedSessions()
        self.expected: dict[str, Sequence[Any]] = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "whole.onnx"
            try:
                serde.save(graph, path, opset=GRAPH_OPSET)
            except SerdeError as error:
                self.failure = f"it has no ONNX: {reason(error)}"
                return
            try:
                self.expected = {e: run_at(e, path, self.feeds) for e in (PLAIN, OPTIMIZED)}
                run = self.memory.load(lower_for(graph, WHOLE))
                self.in_memory = run(self.feeds)
            except Exception as error:  # whatever ONNX Runtime raises
                self.failure = f"ONNX Runtime refuses the whole: {error}"[:300]

    def examine(self, backend: Backend) -> Row:
        """What becomes of the model for a backend; its files are checked."""
        try:
            split = partition(self.graph, backend)
            check_parts(split)
            row = self.compare(split, {})
            with tempfile.TemporaryDirectory() as folder:
                split.save(folder)
                check_files(split, Path(folder))
                if len(split.parts) > 1:  # a single one is as optimized as the whole
                    row["optimized"] = self.compare_files(split, folder, OPTIMIZED)["error"]
        except Exception as problem:
            return describe_failure(problem)
        return {
            "parts": len(split.accelerator_parts), "of": len(split.parts),
            "bytes": split.bytes_moved, "share": round(split.report.share_of_nodes, 4), **row,
        }  # fmt: skip

    def compare_files(self, split: Partitioned, folder: str, level: str) -> Row:
        """The error of the parts in a folder."""
        load = partial(_load_part, level)
        hybrid = Hybrid(folder, {"accelerator": load, "remainder": load})
        return self.judge_outputs(split, [*hybrid(self.feeds).values()], self.expected[level])

    def examine_list(self, number: int, known: dict[Any, Row]) -> Row:
        """What becomes of the model for a random list; ``known`` are the rows of parts run."""
        flow = "inside" if self.has_control_flow and number % 2 else "whole"
        try:
            split = partition(self.graph, choose_operators(self.graph, number), control_flow=flow)
            check_parts(split)
            return {"parts": len(split.accelerator_parts), **self.compare(split, known)}
        except Exception as problem:
            return describe_failure(problem)

    def compare(self, split: Partitioned, known: dict[Any, Row]) -> Row:
        """The error without optimizers of parts that share weights; of parts in ``known``, that."""
        if any(p.kind == CONTROL for p in split.parts):  # which the hybrid runner runs
            with tempfile.TemporaryDirectory() as folder:
                split.save(folder)
                return self.compare_files(split, folder, PLAIN)
        graphs = [p.legalized or lower_for(p.graph, WHOLE) for p in split.parts]
        loaded = [self.memory.load(graph) for graph in graphs]
        key = tuple(map(id, loaded))
        if key not in known:
            values: dict[str, Any] = dict(self.feeds)
            for part, graph, run in zip(split.parts, graphs, loaded, strict=True):
                inputs = zip(graph.inputs, part.graph.inputs, strict=True)
                results = run({a.name: values[b.name] for a, b in inputs})
                values.update(zip((v.name for v in part.graph.outputs), results, strict=True))
            outputs = [_to_array(values[v.name]) for v in self.graph.outputs]
            expected = list(map(_to_array, self.in_memory))
            known[key] = self.judge_outputs(split, outputs, expected)
        return known[key]

    def judge_outputs(
        self, split: Partitioned, outputs: Sequence[Any], expected: Sequence[Any]
    ) -> Row:
        """The error of parts, and whether bits are the same where nothing was legalized."""
        pairs = list(zip(outputs, expected, strict=True))
        row: Row = {"error": max((difference(a, b) for a, b in pairs), default=0.0)}
        is_same = all(has_same_bits(a, b) for a, b in pairs)
        if self.has_halves:
            row["halves"] = True
        if is_same or not (is_legalized(split) or self.has_halves):
            row["same bits" if is_same else "bits differ"] = True
        return row


def choose_operators(graph: Graph, seed: int) -> Target:
    """A target that takes some of a model's operators."""
    operators = sorted({n.op for n in graph.all_nodes() if not n.domain})
    rng = random.Random(seed)
    chosen = rng.sample(operators, rng.randint(1, max(len(operators) - 1, 1))) if operators else []
    return Target(f"list {seed}", GRAPH_OPSET, {op: {} for op in chosen})


def _load_part(level: str, path: str) -> PreparedModel:
    return PreparedModel(_session(Path(path), level))


def _session(model: Any, level: str) -> Any:
    """A session; NotRun where ONNX Runtime has no kernel for an operator of the standard."""
    try:
        return session_of(model, level)
    except Exception as error:  # ONNX Runtime's own have no common base
        if "NOT_IMPLEMENTED" in str(error):
            raise NotRun(
                f"ONNX Runtime: {str(error).partition('NOT_IMPLEMENTED : ')[2]}"
            ) from error
        raise


class SharedSessions:
    """Sessions of parts in memory. Parts that are the same are one, and weights are not copied."""

    def __init__(self) -> None:
        self.runs: dict[Any, Any] = {}
        self.weights: dict[int, tuple[Tensor, Any]] = {}

    def load(self, graph: Graph) -> Any:
        """A function that runs a graph of ONNX's operators on values, or on arrays."""
        large = [v for v in graph.constants() if v.tensor is not None and _is_large(v)]
        held = {v: v.tensor for v in large}
        for value in large:  # an input while the graph is written
            value.tensor = None
        try:
            inputs = (*graph.inputs, *large)
            proto = to_proto(Graph("part", inputs, graph.outputs, graph.nodes, opset=graph.opset))
        finally:
            for value, tensor in held.items():
                value.tensor = tensor
        text = proto.SerializeToString(deterministic=True)
        key = text, tuple(id(v.tensor) for v in large)
        if key not in self.runs:
            run = PreparedModel(_session(text, PLAIN))
            weights = {v.name: self.share(v.tensor) for v in large if v.tensor is not None}
            self.runs[key] = lambda values: run.run_values({**values, **weights})
        return self.runs[key]

    def share(self, tensor: Tensor) -> Any:
        """A constant as a value of ONNX Runtime."""
        if id(tensor) not in self.weights:
            array = np.ascontiguousarray(tensor.load())
            value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            self.weights[id(tensor)] = tensor, value
        return self.weights[id(tensor)][1]


def _is_large(value: Value) -> bool:
    return value.tensor is not None and value.tensor.size >= LARGE and value.type.kind == "f"


def _to_array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value
