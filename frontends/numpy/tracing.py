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
from serde.ir.graph import DType, Graph
from serde.passes import tidy
from serde.passes.cut_inputs import spec_of
from serde.passes.name_apart import name_outputs
from serde.spec.verify import check

from .array import TracedArray, as_array
from .environment import bind_names
from .number import TracedNumber
from .recorder import OWN, UNKNOWN, Recorder, TraceError, line_of, refuse

DEFAULT = "output"
Traced = tuple[Graph, list[str]]


def trace(function: Callable[..., Any], /, *specs: Any, **named_specs: Any) -> Graph:
    """Run ``function`` once on traced arrays; return the graph of what it computed.

    Args:
        function: takes arrays and returns an array, a tuple of arrays, or a dict of them by name.
        specs: an input each: a shape (``("N", 3, 224)``, float32), ``(shape, dtype)``, or an
            array, whose shape and element type are taken. Sizes are numbers, or names. A dict has
            all of them by the names of the parameters.
        named_specs: likewise, by the name of the parameter.

    Returns:
        A graph of the IR. Its inputs have the names of the parameters, its outputs those of the
        dict, else ``output`` or ``output_0``, ``output_1``, … Where the dict has the name of a
        parameter, ``x``, the input is called ``x_in``. Each node's source is the line of the
        user's code.

    Raises:
        TraceError: for what no graph can hold, with the function and the user's line. What
            NumPy raises for the shapes and types, the traced functions raise too.
    """
    graph, names = record(function, *specs, **named_specs)
    return name_outputs(graph, graph.outputs, names)


@pause_collector()
def record(function: Callable[..., Any], /, *specs: Any, **named_specs: Any) -> Traced:
    """The graph of a function and the names of its results, which the graph's outputs lack.

    Arguments are those of ``trace``. A name of the function's own may be that of a parameter.
    """
    name = getattr(function, "__name__", "") or "trace"
    code = getattr(function, "__code__", None)
    rec = Recorder(name, name if code and code.co_filename.startswith(OWN) else "")
    if len(specs) == 1 and isinstance(specs[0], Mapping):
        if twice := specs[0].keys() & named_specs.keys():
            raise UsageError(f"input {min(twice)!r} is given twice: leave one of them out")
        return record(function, **specs[0], **named_specs)
    names = _parameter_names(function, len(specs))
    all_specs = {**dict(zip(names, specs, strict=True)), **named_specs}
    if len(all_specs) < len(specs) + len(named_specs):
        twice = named_specs.keys() & set(names)
        raise UsageError(f"input {min(twice)!r} is given twice: leave one of them out")
    inputs = {name: _declare(rec, name, spec) for name, spec in all_specs.items()}
    with refuse_exits(), bind_names(rec, [function]), _name_lines():
        result = function(*(inputs[n] for n in names), **{n: inputs[n] for n in named_specs})
        results = [(name, as_array(x, rec)) for name, x in flatten_result(result)]
    if not results:
        raise UsageError("the function returns no array")
    titles = [name for name, _ in results]
    if twice := sorted({name for name in titles if titles.count(name) > 1}):
        raise UsageError(f"two results are called {twice[0]!r}: give each a name of its own")
    if not isinstance(result, Mapping):  # parameters keep their names
        titles = [rec.g.names.fresh(name) if name in inputs else name for name in titles]
    graph = tidy(rec.g.build(ensure_distinct_outputs(rec.g, [x.value for _, x in results])))
    check(graph)
    return graph, titles


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
            line = line_of(error)
            error.args = (f"{error.args[0]} ({line})",) if line != UNKNOWN else error.args
        raise


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
