"""Inputs and expected outputs that a caller gives, as a mapping or an ``.npz`` file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

import numpy as np

from serde.errors import MalformedFile, UsageError
from serde.graph import Graph
from serde.verification.random_inputs import random_inputs

Array = np.ndarray[Any, Any]


def _npz(given: Any) -> dict[str, Array]:
    """Arrays of an ``.npz`` file or a mapping; pickles are never loaded."""
    if isinstance(given, Mapping):
        return {str(k): np.asarray(v) for k, v in given.items()}
    try:
        with open(given, "rb") as file, np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, BadZipFile) as error:
        raise MalformedFile(os.fspath(given), f"not an .npz file of arrays: {error}") from error


def feeds_for(graph: Graph, data: Any, seed: int) -> tuple[dict[str, Array], str]:
    """The inputs to run a model on, given or random, and where they come from."""
    if data is None:
        return random_inputs(graph, seed), f"random inputs, seed {seed}"
    held = _npz(data)
    absent = [v.name for v in graph.inputs if v.name not in held]
    if absent and len(graph.inputs) == 1 and len(held) == 1:
        return {graph.inputs[0].name: next(iter(held.values()))}, "the inputs given"
    if absent:
        raise UsageError(
            f"the data have no input {', '.join(map(repr, absent))}; they have "
            f"{', '.join(map(repr, held))}"
        )
    return {v.name: held[v.name] for v in graph.inputs}, "the inputs given"


def expected_outputs(graph: Graph, expected: Any) -> list[Array]:
    """The outputs in order: by name where the names are the model's, otherwise as they come."""
    held = _npz(expected)
    names = [v.name for v in graph.outputs]
    if all(n in held for n in names):
        return [held[n] for n in names]
    if len(names) == 1 and "expected" in held:
        return [held["expected"]]
    if len(held) != len(names):
        raise UsageError(
            f"the expected outputs are called {', '.join(map(repr, held))}, the model's "
            f"{', '.join(map(repr, names))}"
        )
    return list(held.values())
