"""Convert a whole network and run the result, for the tests and the sweep over all networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import serde
from serde import pipeline
from serde.ir.graph import Graph
from testing.networks import Network, compute, feeds, shapes
from testing.onnx_live import error

Array = np.ndarray[Any, Any]
Runs = Sequence[tuple[Mapping[str, Array], Sequence[Array]]]
TOLERANCE = 1e-4  # of the largest number of an output
BATCHES = {"static": (1,), "named": (1, 3)}
NEEDLESS = frozenset({"Identity", "Dropout", "Constant"})
SHAPE_ARITHMETIC = frozenset({"Shape", "Size", "ConstantOfShape", "Range"})


@dataclass(frozen=True)
class Outcome:
    """A converted network: its nodes, its largest error in terms of the output's scale, and what
    a hand-written model would not have.
    """

    nodes: int
    error: float
    needless: tuple[str, ...]


def load_ir(network: Network, symbol: Path | str, mode: str) -> Graph:
    """The IR of an exported network, for one sample or with the samples' number named."""
    one = feeds(network, 1)
    inputs = {n: (s, one[n].dtype) for n, s in shapes(network).items()}
    return serde.load(symbol, inputs=one if mode == "static" else inputs)


def references(network: Network, mode: str) -> Runs:
    """Inputs, and what MXNet computes for them."""
    every = (feeds(network, batch) for batch in BATCHES[mode])
    return [(arrays, compute(network, arrays)) for arrays in every]


def outcome(ir: Graph, opset: int, mode: str, runs: Runs, folder: Path) -> Outcome:
    """Write the network at ``opset``, check the file, run it and compare with MXNet."""
    path = folder / "network.onnx"
    for file in folder.glob("network.onnx*"):
        file.unlink()
    serde.save(ir, path, opset=opset, external_data="always")
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), _settings())
    errors = []
    read = {i.name for i in session.get_inputs()}
    for arrays, outputs in runs:
        got = session.run(None, {n: x for n, x in arrays.items() if n in read})
        errors += [error(y, w) for y, w in zip(got, outputs, strict=True)]
    graph = pipeline.read(path)[0]
    return Outcome(len(graph.nodes), max(errors), tuple(needless(graph, mode)))


def needless(graph: Graph, mode: str) -> Iterator[str]:
    """What a hand-written model would not have."""
    readers = Counter(v for node in graph.nodes for v in set(node.inputs))
    for node in graph.nodes:
        if node.op in NEEDLESS or (mode == "static" and node.op in SHAPE_ARITHMETIC):
            yield f"a {node.op}"
        if node.op == "Transpose" and readers[node.inputs[0]] > 1:
            continue  # of a weight that is in the file once
        if node.inputs and all(v is None or v.tensor is not None for v in node.inputs):
            yield f"a {node.op} of constants"
    held = Counter(
        (v.tensor.dtype, v.tensor.shape, v.tensor.load().tobytes())
        for v in graph.constants()
        if v.tensor is not None
    )
    yield from (f"{n} constants {dtype}{shape}" for (dtype, shape, _), n in held.items() if n > 1)


def _settings() -> onnxruntime.SessionOptions:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    return settings
