"""The numbers that a graph holds, wherever they are, and what they are like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import Graph, Node, Tensor, Value

Array = np.ndarray[Any, Any]
BINS = 24  # of a histogram
CHUNK = 1 << 20  # elements looked at at a time
NUMBERS = {float: np.float32, int: np.int64}  # of the lists that ONNX's Constant takes


def find_weights(graph: Graph) -> list[Value]:
    """All tensors of a graph, each once: those of subgraphs, functions and attributes too."""
    weights: dict[Tensor, Value] = {}
    for body in (graph, *(f.body for f in graph.functions)):
        inside = (v for node in body.all_nodes() for v in _find_attributes(node))
        for value in (*body.constants(), *inside):
            if value.tensor is not None:
                weights.setdefault(value.tensor, value)
    return [*weights.values()]


def make_weight(name: str, tensor: Tensor) -> Value:
    """A tensor as a value."""
    return Value(name, tensor.dtype, tensor.shape, tensor)


def _find_attributes(node: Node) -> Iterator[Value]:
    """The tensors among attributes; of a Constant also lists of numbers."""
    name = node.outputs[0].name if node.outputs else node.name
    for value in node.attrs.values():
        if isinstance(value, Tensor):
            yield make_weight(name, value)
        elif node.op == "Constant" and isinstance(value, tuple):
            dtype = next((NUMBERS.get(type(number)) for number in value), None)
            if dtype is not None:
                yield make_weight(name, Tensor.of(np.asarray(value, dtype)))


class Statistics(NamedTuple):
    """What the numbers of an array are like; measures are of the finite ones.

    ``histogram`` counts them in bins of equal width from ``least`` to ``largest``.
    """

    least: float
    largest: float
    mean: float
    deviation: float
    zeros: int
    not_finite: int
    histogram: tuple[int, ...]

    def __str__(self) -> str:
        text = (
            f"min {self.least:.4g}, max {self.largest:.4g}, mean {self.mean:.4g}, "
            f"std {self.deviation:.4g}"
        )
        text += f", {self.zeros:,} zeros" if self.zeros else ""
        return text + (f", {self.not_finite:,} not finite" if self.not_finite else "")


def measure(array: Array) -> Statistics | None:
    """The statistics of an array of real numbers; None for others, and where none is finite."""
    if array.dtype.kind in "cSUO" or not array.size:
        return None
    count = zeros = 0
    least, largest, mean = np.inf, -np.inf, 0.0
    for part in _chunks(array):
        count += part.size
        if part.size:
            zeros += int(np.count_nonzero(part == 0))
            least, largest = min(least, float(part.min())), max(largest, float(part.max()))
            mean += float((part / array.size).sum())
    if not count:
        return None
    mean *= array.size / count
    half = largest / 2 - least / 2  # of the width, which may be beyond the largest float64
    squares, counts = 0.0, np.zeros(BINS, np.int64)
    for part in _chunks(array):
        from_least, from_mean = (
            (part / 2 - start / 2) / half if half else np.zeros(part.size)
            for start in (least, mean)
        )
        squares += float(np.square(from_mean).sum())
        counts += np.histogram(from_least if half else from_least + 0.5, BINS, (0, 1))[0]
    return Statistics(
        least, largest, mean, half * (2 * (squares / count) ** 0.5), zeros, array.size - count,
        tuple(map(int, counts)),
    )  # fmt: skip


def _chunks(array: Array) -> Iterator[Array]:
    """The finite numbers of an array as float64, a part at a time."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK].astype(np.float64)
        yield part[np.isfinite(part)]


def show_size(nbytes: float) -> str:
    """A number of bytes as people read it: ``86.9 KB``, ``1.2 GB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:,.1f} {unit}"
    return f"{int(nbytes)} bytes"


def show_sizes(before: int, after: int) -> str:
    """What became of a size: ``93.0 KB → 46.2 KB, × 0.50``."""
    return f"{show_size(before)} → {show_size(after)}, × {after / before:.2f}"
