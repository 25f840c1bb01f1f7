"""Inputs and expected outputs that a caller gives, as a mapping or an ``.npz`` file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.io import arrays
from serde.io.command_files import active_files
from serde.ir.graph import DType, Graph, Value, show_shape

Array = np.ndarray[Any, Any]


def read_npz(source: Any) -> dict[str, Array]:
    """Arrays of an ``.npz`` file or a mapping; pickles are never loaded."""
    if isinstance(source, Mapping):
        return {str(k): np.asarray(v) for k, v in source.items()}
    if not isinstance(source, (str, os.PathLike)):
        what = type(source).__name__
        raise UsageError(f"arrays are a mapping by name, or an .npz file, and no {what}")
    active_files().enter(source)
    return arrays.read_npz(source)


def load_inputs(graph: Graph, data: Any, is_cast: bool = False) -> dict[str, Any]:
    """The inputs a caller gives, by name; one array for one input needs none.

    Elements of a sequence are the rows of an array. ``is_cast`` where others give them their types.

    Raises:
        UsageError: where one is missing, or of another type.
    """
    arrays = read_npz(data)
    absent = [v.name for v in graph.inputs if v.name not in arrays]
    if absent and len(graph.inputs) == 1 and len(arrays) == 1:
        arrays, absent = {graph.inputs[0].name: next(iter(arrays.values()))}, []
    if absent:
        raise UsageError(
            f"the data have no input {', '.join(map(repr, absent))}; they have "
            f"{', '.join(map(repr, arrays))}"
        )
    sequences = {v.name for v in graph.inputs if is_sequence(v)}
    for value in () if is_cast else graph.inputs:
        check_type(value, arrays[value.name])
    return {
        v.name: [*arrays[v.name]] if v.name in sequences else arrays[v.name] for v in graph.inputs
    }


def check_type(value: Value, array: Array) -> None:
    """Refuse an array of another element type than an input has.

    Raises:
        UsageError: with the call that converts it.
    """
    if value.dtype is not None and value.dtype is not DType.STRING and array.dtype.kind in "OSUT":
        shown = f"an array of {array.dtype}" if array.ndim else repr(array.item())
        raise UsageError(
            f"the input {value.name!r} takes {value.dtype.title}, and not {shown}: give an array "
            "of numbers; np.load reads one from a file"
        )
    if value.dtype is not None and DType.of(array.dtype) is not value.dtype:
        raise UsageError(
            f"the input {value.name!r} is {value.dtype.title}, and not {array.dtype}: convert the "
            f"array with .astype({value.dtype.value!r})"
        )


def find_other_shape(values: Iterable[Value], feeds: Mapping[str, Any]) -> str:
    """Which input has another shape than is declared, in words; empty where none has."""
    for value in values:
        array = feeds.get(value.name)
        if value.shape is None or not isinstance(array, np.ndarray):
            continue
        pairs = zip(value.shape, array.shape, strict=False)
        is_other = any(isinstance(d, int) and d != n for d, n in pairs)
        if is_other or len(value.shape) != array.ndim:
            shapes = show_shape(value.shape), show_shape(array.shape)
            return f"the input {value.name!r} is {shapes[0]}, and not {shapes[1]}"
    return ""


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
