"""A model with the Python code before and behind it in one graph."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from serde.errors import SerdeError, UsageError, show_error
from serde.io.command_files import active_files
from serde.io.sniff import open_regular
from serde.io.user_code import find_user_line, refuse_exits
from serde.ir.graph import Graph, Value
from serde.legalize.convert import without_functions
from serde.passes.join_graphs import join_graphs
from serde.passes.name_apart import name_outputs
from serde.pipeline import load
from serde.plugins.keywords import with_options

from .numpy.tracing import Traced, record

Function = Callable[..., Any]


@with_options()
def wrap(
    model: Any, pre: Function | str | None = None, post: Function | str | None = None, *,
    inputs: Mapping[str, Any] | None = None,
) -> Graph:  # fmt: skip
    """A model whose inputs are computed by ``pre`` and whose outputs go through ``post``.

    Args:
        model: anything that ``serde.load`` takes.
        pre: NumPy code whose results are the model's inputs: a dict of them by name, or all of
            them in order.
        post: NumPy code of the model's outputs: parameters that have names of outputs take
            those, else all outputs are given in order.
        inputs: the shapes and types of the inputs of ``pre``, as ``serde.trace`` takes them; those
            of the model's input of the same name, or of its only input, if left out.

    ``pre`` and ``post`` are functions, or places of them: ``module:function``,
    ``file.py:function``; modules are found where ``import`` finds them.
    """
    graph = without_functions(model if isinstance(model, Graph) else load(model))
    if pre is not None:
        graph = _prepend(graph, pre, inputs or {})
    elif inputs:
        raise UsageError("inputs are those of pre, and there is none")
    return graph if post is None else _append(graph, post)


def find_function(place: Function | str) -> Function:
    """The function at ``module:function`` or ``file.py:function``."""
    if callable(place):
        return place
    if not isinstance(place, str):
        raise UsageError(f"{place!r} is neither a function nor the place of one: prepare.py:resize")
    module, colon, name = place.rpartition(":")
    if not colon or not module or not name or (module[0] == "." and not module.endswith(".py")):
        raise UsageError(f"{place!r} is not module:function, such as prepare.py:resize")
    try:
        with refuse_exits():
            loaded = _load_file(module) if module.endswith(".py") else import_module(module)
        active_files().enter(getattr(loaded, "__file__", None) or "")
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename}: there is no such file") from error
    except (ImportError, OSError, SyntaxError) as error:
        raise UsageError(f"{module} cannot be imported: {error}") from error
    function = getattr(loaded, name, None)
    if not callable(function):
        raise UsageError(f"{module} has no function {name!r}")
    return function


def _load_file(path: str) -> Any:
    with open_regular(path):  # a pipe or a device would have to be waited for
        name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _spec(value: Value) -> Any:
    return value.ranked_shape, value.type


def _parameters(function: Function) -> list[str]:
    """The names of parameters that have no default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        reason = "tells no parameters: call it in a function of your own"
        name = getattr(function, "__name__", "the function")
        raise UsageError(f"{name} {reason}") from error
    return [p.name for p in parameters if p.kind in kinds and p.default is p.empty]


def _record(place: Function | str, function: Function, *specs: Any, **named: Any) -> Traced:
    """What a function records.

    Raises:
        SerdeError: for what a function fails with that was named by its place.
    """
    try:
        return record(function, *specs, **named)
    except (SerdeError, OSError):
        raise
    except Exception as error:
        if callable(place):
            raise
        where = find_user_line(error) or place
        raise SerdeError(f"{where}: the code fails with {show_error(error)}") from error


def _prepend(graph: Graph, pre: Function | str, inputs: Mapping[str, Any]) -> Graph:
    function = find_function(pre)
    inputs_by_name = {v.name: v for v in graph.inputs}
    specs: dict[str, Any] = {}
    for name in [*_parameters(function), *inputs]:
        if name in inputs:
            specs[name] = inputs[name]
        elif name in inputs_by_name or len(inputs_by_name) == 1:
            specs[name] = _spec(inputs_by_name.get(name) or graph.inputs[0])
        else:
            raise UsageError(
                f"the model has no input {name!r}: give the shape of this input of pre"
            )
    code, names = _record(pre, function, **specs)
    links = _connect(names, code.outputs, graph.inputs)
    joined = join_graphs(code, graph, links)
    left = [n for n, v in zip(names, code.outputs, strict=True) if v.name not in links]
    return name_outputs(joined, joined.outputs[len(graph.outputs) :], left)


def _append(graph: Graph, post: Function | str) -> Graph:
    function = find_function(post)
    outputs_by_name = {v.name: v for v in graph.outputs}
    names = _parameters(function)
    if set(names) <= outputs_by_name.keys():
        values: Sequence[Value] = [outputs_by_name[n] for n in names]
    else:
        values = graph.outputs
        if len(names) != len(values):
            raise UsageError(
                f"post takes {', '.join(names)}; the outputs are {', '.join(outputs_by_name)}"
            )
    code, titles = _record(post, function, *map(_spec, values))
    links = {v.name: i.name for v, i in zip(values, code.inputs, strict=True)}
    joined = join_graphs(graph, code, links)
    return name_outputs(joined, joined.outputs[: len(titles)], titles)


def _connect(
    names: Sequence[str], outputs: Sequence[Value], inputs: Sequence[Value]
) -> dict[str, str]:
    """Results of pre to inputs, by name where the names are those of inputs, else in order."""
    expected = [v.name for v in inputs]
    if set(names) & set(expected):
        pairs = zip(names, outputs, strict=True)
        return {v.name: name for name, v in pairs if name in expected}
    if len(names) != len(expected):
        raise UsageError(
            f"pre returns {', '.join(names)}; the model's inputs are {', '.join(expected)}"
        )
    return {v.name: name for v, name in zip(outputs, expected, strict=True)}
