"""``trace``: run a function once on traced arrays, and give the graph of what it did."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from serde.errors import ConversionError, SerdeError, UsageError
from serde.io.gc_pause import pause_collector
from serde.io.user_code import refuse_exits
from serde.ir.builder import ensure_distinct_outputs
from serde.ir.graph import DType, Graph, Value
from serde.passes import tidy
from serde.passes.cut_inputs import spec_of
from serde.spec.verify import check

from .array import TracedArray, as_array
from .environment import bind_names
from .kernels import TraceBuilder
from .number import TracedNumber
from .recorder import Recorder, TraceError, line_of, refuse

DEFAULT = "output"


@pause_collector()
def trace(function: Callable[..., Any], /, *specs: Any, **named_specs: Any) -> Graph:
    """Run ``function`` once on traced arrays; return the graph of what it computed.

    Args:
        function: takes arrays and returns an array, a tuple of arrays, or a dict of them by name.
        specs: an input each: a shape (``("N", 3, 224)``, float32), ``(shape, dtype)``, or an
            array, whose shape and element type are taken. Sizes are numbers, or names.
        named_specs: likewise, by the name of the parameter.

    Returns:
        A graph of the IR. Its inputs have the names of the parameters, its outputs those of the
        dict, else ``output`` or ``output_0``, ``output_1``, … Each node's source is the line of
        the user's code.

    Raises:
        TraceError: for what no graph can hold, with the function and the user's line. What
            NumPy raises for the shapes and types, the traced functions raise too.
    """
    rec = Recorder(getattr(function, "__name__", "") or "trace")
    names = _parameter_names(function, len(specs))
    all_specs = {**dict(zip(names, specs, strict=True)), **named_specs}
    if len(all_specs) < len(specs) + len(named_specs):
        raise UsageError("an input is given twice")
    inputs = {name: _declare(rec, name, spec) for name, spec in all_specs.items()}
    with refuse_exits(), bind_names(rec, [function]), _name_lines():
        result = function(*(inputs[n] for n in names), **{n: inputs[n] for n in named_specs})
        outputs = {name: as_array(x, rec) for name, x in flatten_result(result)}
    if not outputs:
        raise UsageError("the function returns no array")
    return _build(rec, {name: x.value for name, x in outputs.items()})


@contextmanager
def _name_lines() -> Iterator[None]:
    """Add the user's line to errors of the builder, of NumPy, and of what else the code calls."""
    try:
        yield
    except ConversionError as error:
        raise TraceError(f"{line_of(error)}: {error.reason}") from error
    except SerdeError:
        raise
    except Exception as error:
        if len(error.args) == 1 and error.args[0] == str(error):
            error.args = (f"{error.args[0]} ({line_of(error)})",)
        raise


def _build(rec: Recorder, outputs: Mapping[str, Value]) -> Graph:
    g = rec.g
    values = ensure_distinct_outputs(g, outputs.values())
    holders = {v.name: v for v in _all_values(g)}
    for name, value in zip(outputs, values, strict=True):
        holder = holders.get(name, value)
        if holder is not value:
            if holder in g.inputs:
                name = g.names.fresh(name)
            else:
                g.names.relabel(holder, g.names.fresh(f"{name}_inner"))
                holders[holder.name] = holder
        g.names.relabel(value, name)
        holders[name] = value
    graph = tidy(g.build(values))
    check(graph)
    return graph


def _all_values(g: TraceBuilder) -> Iterator[Value]:
    yield from g.inputs
    for node in g.nodes:
        yield from node.outputs


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first parameters that are given by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [f"input_{i}" for i in range(count)]
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY,
                                                           p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    if count > len(positional) and rest is None:
        raise UsageError(f"{count} inputs are given for {len(positional)} parameters")
    extra = [f"{rest}_{i}" for i in range(count - len(positional))]
    return [*positional[:count], *extra]


def _declare(rec: Recorder, name: str, value: Any) -> TracedArray:
    """Declare an input of the graph."""
    if isinstance(value, (int, float, np.generic)) and not isinstance(value, np.ndarray):
        value = np.asarray(value)
    spec = spec_of(name, value)
    if spec.shape is None:
        raise UsageError(f"input {name!r}: a traced array needs a rank: give its shape")
    dtype = DType.FLOAT32 if spec.dtype is None else spec.dtype
    if dtype.kind not in "fiub" or dtype.bits < 8 or dtype.value.startswith(("float8", "bfloat")):
        raise UsageError(f"input {name!r}: arrays of {dtype.value} cannot be traced")
    return TracedArray(rec, rec.g.input(name, dtype, spec.shape), is_input=True)


def flatten_result(result: Any) -> Iterator[tuple[str, Any]]:
    """The results of a function and what they are called."""
    if isinstance(result, Mapping):
        for key, item in result.items():
            yield from _flatten(str(key), item)
    elif isinstance(result, (tuple, list)):
        if len(result) == 1:
            yield from _flatten(DEFAULT, result[0])
        else:
            for at, item in enumerate(result):
                yield from _flatten(f"{DEFAULT}_{at}", item)
    else:
        yield from _flatten(DEFAULT, result)


def _flatten(name: str, item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        for key, inner in item.items():
            yield from _flatten(f"{name}_{key}", inner)
    elif isinstance(item, (tuple, list)):
        for at, inner in enumerate(item):
            yield from _flatten(f"{name}_{at}", inner)
    elif isinstance(item, (TracedArray, TracedNumber, np.ndarray, np.generic, int, float)):
        yield name, item
    elif hasattr(item, "imaginary"):
        yield f"{name}_real", item.real
        yield f"{name}_imag", item.imag
    else:
        refuse("trace", f"the result {name} is a {type(item).__name__}", "Return arrays")
