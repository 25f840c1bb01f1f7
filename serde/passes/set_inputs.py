"""Inputs that are given a value: they become constants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import ConversionError, UsageError, show_attribute
from serde.io.command_files import active_files
from serde.ir import arrays
from serde.ir.graph import DType, Graph, Tensor, Value, show_shape
from serde.ir.replace_uses import replace_values
from serde.passes.cut_inputs import inputs_by_name


def parse_setting(text: str) -> tuple[str, Any]:
    """Read ``NAME=VALUE`` as on the command line; VALUE is JSON, or the path of an ``.npy`` file.

    Raises:
        UsageError: for anything else.
    """
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise UsageError(f"{text!r} is not NAME=VALUE, such as sr=16000, or x=file.npy")
    if value.endswith(".npy"):
        from serde.io.arrays import read_npy

        active_files().enter(value)
        return name, read_npy(value)
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{text[:80]!r}: the value is a number, true, false, a list such as [1,2], a string in "
            "double quotes, or the path of an .npy file"
        ) from None


def set_inputs(graph: Graph, values: Mapping[str, Any] | None) -> Graph:
    """Return ``graph`` with inputs replaced by constants: numbers, lists or arrays by name.

    A single number fills an input of static shape. Sizes that an array gives to dimensions with a
    name hold for the other inputs too.

    Raises:
        UsageError: for inputs the model has not, and for values of another shape or type.
    """
    if not values:
        return graph
    known = inputs_by_name(graph, values)
    sizes: dict[str, int] = {}
    constants = {known[n]: _constant_of(known[n], value, sizes) for n, value in values.items()}
    instead = {
        v: constants.get(v) or _replace_dims(v, sizes)
        for v in graph.inputs
        if v in constants or sizes
    }
    renewed = replace_values(graph, instead)
    left = tuple(instead.get(v, v) for v in graph.inputs if v not in constants)
    outputs = tuple(instead.get(v, v) for v in graph.outputs)
    return replace(renewed, inputs=left, outputs=outputs)


def constant_inputs(
    graph: Graph, values: Mapping[str, Any] | None
) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that ``set_inputs`` puts in place of inputs, by name."""
    known = inputs_by_name(graph, values or {})
    sizes: dict[str, int] = {}
    return {n: _constant_of(known[n], v, sizes).array() for n, v in (values or {}).items()}


def _replace_dims(value: Value, sizes: Mapping[str, int]) -> Value:
    """A value like ``value`` with numbers for the dimensions that ``sizes`` names."""
    shape = None if value.shape is None else tuple(
        sizes.get(d, d) if isinstance(d, str) else d for d in value.shape
    )  # fmt: skip
    return Value(value.name, value.dtype, shape, container=value.container)


def _constant_of(value: Value, data: Any, sizes: dict[str, int]) -> Value:
    """The constant that stands for an input; enters sizes of dimensions with a name."""
    what = f"input {value.name!r}"
    if value.container:
        raise UsageError(f"{what} is no tensor and cannot be set to a value")
    array = array_of(what, data, value.dtype)
    shape = array.shape if value.shape is None else value.shape
    if array.ndim == 0 and value.is_static:
        array = arrays.full(value.static_shape, array, array.dtype)
    fits = len(shape) == array.ndim and all(
        d is None or sizes.setdefault(d, n) == n if not isinstance(d, int) else d == n
        for d, n in zip(shape, array.shape, strict=True)
    )
    if not fits:
        shown = f"{what} is {show_shape(shape)}, and the value {show_shape(array.shape)}"
        is_number = array.ndim == 0
        advice = "set its sizes by --input, then a number fills it" if is_number else "give another"
        raise UsageError(f"{shown}: {advice}")
    tensor = Tensor.of(array)
    return Value(value.name, tensor.dtype, tensor.shape, tensor)


def _show(data: Any) -> str:
    return show_attribute(data) if hasattr(data, "dtype") else repr(data)


def array_of(what: str, data: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """``data`` in the type of the input; float32 where the model declares none."""
    try:
        array = np.asarray(data)
        array_dtype = DType.of(array.dtype)
    except (ValueError, ConversionError):
        raise UsageError(f"{what}: {_show(data)} is no array") from None
    expected = dtype or (array_dtype if hasattr(data, "dtype") else DType.FLOAT32)
    if array_dtype is DType.STRING and not all(isinstance(e, str) for e in array.flat):
        raise UsageError(f"{what}: {_show(data)} is no array of numbers")
    if (expected is DType.STRING) is not (array_dtype is DType.STRING):
        shown = "string" if expected is DType.STRING else expected.value
        raise UsageError(f"{what} is of type {shown}; {_show(data)} is not")
    if expected is DType.STRING:
        return array.astype(object)
    if array_dtype.kind == "c" and expected.kind != "c":
        raise UsageError(
            f"{what} is of type {expected.value}, and the value of {array_dtype.value}"
        )
    with np.errstate(all="ignore"):
        cast = array.astype(expected.numpy)
    if expected.kind in "iub":
        is_same = np.array_equal(cast.astype(array.dtype), array)
    else:
        is_same = np.array_equal(np.isfinite(cast), np.isfinite(array))
    if not is_same:
        raise UsageError(f"{what} is of type {expected.value}, which cannot hold {data!r}")
    return cast
