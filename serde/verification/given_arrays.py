"""Inputs and expected outputs that a caller gives, as a mapping or an ``.npz`` file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.io import arrays
from serde.io.command_files import active_files
from serde.ir.graph import Graph, Value

Array = np.ndarray[Any, Any]


def read_npz(source: Any) -> dict[str, Array]:
    """Arrays of an ``.npz`` file or a mapping; pickles are never loaded."""
    if isinstance(source, Mapping):
        return {str(k): np.asarray(v) for k, v in source.items()}
    active_files().enter(source)
    return arrays.read_npz(source)


def load_inputs(graph: Graph, data: Any) -> dict[str, Any]:
    """The inputs a caller gives, by name; one array for one input needs none.

    Elements of a sequence are the rows of an array.

    Raises:
        UsageError: where one is missing.
    """
    arrays = read_npz(data)
    absent = [v.name for v in graph.inputs if v.name not in arrays]
    if absent and len(graph.inputs) == 1 and len(arrays) == 1:
        return {graph.inputs[0].name: next(iter(arrays.values()))}
    if absent:
        raise UsageError(
            f"the data have no input {', '.join(map(repr, absent))}; they have "
            f"{', '.join(map(repr, arrays))}"
        )
    sequences = {v.name for v in graph.inputs if is_sequence(v)}
    return {
        v.name: [*arrays[v.name]] if v.name in sequences else arrays[v.name] for v in graph.inputs
    }


def is_sequence(value: Value) -> bool:
    """Whether a value is a list of tensors, or may be."""
    return "sequence" in value.container


def load_expected(graph: Graph, expected: Any) -> list[Array]:
    """The outputs in order: by name where the names are the model's, otherwise as they come."""
    arrays = read_npz(expected)
    names = [v.name for v in graph.outputs]
    if all(n in arrays for n in names):
        return [arrays[n] for n in names]
    if len(names) == 1 and "expected" in arrays:
        return [arrays["expected"]]
    if len(arrays) != len(names):
        raise UsageError(
            f"the expected outputs are called {', '.join(map(repr, arrays))}, the model's "
            f"{', '.join(map(repr, names))}"
        )
    return list(arrays.values())
