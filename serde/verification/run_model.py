"""A model of any format, loaded into the runtime of that format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError, UsageError, shorten_tracebacks
from serde.io.command_files import within_command
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import Graph, Value, show_shape
from serde.passes.cut_inputs import check_integer
from serde.pipeline import encode, load, read_interface, save
from serde.plugins import Bridge, bridge_for, get_format, get_runtime_bridge
from serde.verification.first_nonfinite import describe_first
from serde.verification.given_arrays import check_type, find_other_shape, is_sequence
from serde.verification.source_runs import PreparedRun
from serde.verification.source_runs import prepare as prepare_run

Array = np.ndarray[Any, Any]
RUN_OPSET = 21  # at which graphs of the IR are run


class RunnableModel:
    """A model as a function of its inputs: ``model(x)``, ``model({"data": x})``, ``model(data=x)``.

    ``inputs`` and ``outputs`` are its Values, whose names are those of the file; ``runtime`` is the
    name of the bridge that runs it. ``threads`` is how many the runtime has, if it can be told;
    ``apart`` is whether it has a process of its own, where it can have none.
    """

    def __init__(
        self, source: Any, *, from_format: str | None = None, threads: int | None = None,
        apart: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        self._source, self._options = source, options
        self._read = partial(read_interface, source, from_format=from_format, **options)
        with within_command():
            graph, name = self._read()
        bridge = _find_bridge(source, name)
        self.runtime = bridge.name
        self._load = partial(load, source, format=from_format, **options)
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self._run = _prepare(bridge, source, options, collect_settings(threads, apart))

    @shorten_tracebacks
    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """The outputs by name.

        Args:
            arrays: the inputs in order, or one mapping of their names to arrays.
            named: inputs by name.

        Raises:
            UsageError: for names and types that the model does not take. SerdeError: where the
                runtime refuses the inputs.
        """
        feeds = self._name_inputs(arrays, named)
        try:
            results = self._run(feeds)
        except SerdeError as error:
            absent = [v.name for v in self.inputs if v.name not in feeds]
            if not absent and (other := find_other_shape(self.inputs, feeds)):
                raise UsageError(f"{other}: give one of that shape") from error
            if not absent:
                raise
            names = ", ".join(map(repr, absent))
            raise UsageError(f"without the input {names} the model does not run: {error}") from None
        if len(results) != len(self.outputs):  # some are computed to train only
            self.outputs = self._load().outputs
        return dict(zip([v.name for v in self.outputs], results, strict=True))

    @property
    def pid(self) -> int | None:
        """The process that runs the model, None where it is this one."""
        return self._run.pid

    def bind_inputs(self, feeds: Mapping[str, Any]) -> Callable[[int], tuple[float, float]]:
        """A function of a count that runs the model so often on these inputs.

        It gives the seconds of one run, by the clock and by the processor.
        """
        return partial(self._run.time_runs, self._name_inputs((), feeds))

    def describe_nonfinite(self, feeds: Mapping[str, Any]) -> str:
        """In which layers NaN and infinities arise, for inputs that make some."""
        arrays = self._name_inputs((), feeds)
        graph, name = self._read()
        bridge = _find_bridge(self._source, name)

        def probe(names: Sequence[str]) -> Sequence[Any]:
            return _prepare(bridge, self._source, {**self._options, "outputs": names}, {})(arrays)

        return describe_first(graph, arrays, probe)

    def select_inputs(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those arrays that are inputs; one array of another name is the only input there is."""
        known = {v.name: arrays[v.name] for v in self.inputs if v.name in arrays}
        if known or len(arrays) != 1 or len(self.inputs) != 1:
            return known or arrays
        return {self.inputs[0].name: next(iter(arrays.values()))}

    def _name_inputs(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name, as the runtime takes them."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            named, arrays = {**arrays[0], **named}, ()
        if len(arrays) > len(self.inputs):
            raise UsageError(f"{len(arrays)} arrays are more than the model has inputs: {self}")
        by_name = {v.name: v for v in self.inputs}
        feeds = {v.name: x for v, x in zip(self.inputs, arrays, strict=False)}
        for name, array in named.items():
            if name not in by_name:
                close = get_close_matches(name, by_name, 1)
                there = f"did you mean {close[0]!r}?" if close else f"it has {self}"
                raise UsageError(f"the model has no input {name!r}; {there}")
            if name in feeds:
                raise UsageError(f"the input {name!r} is given twice, by its place and its name")
            feeds[name] = array
        return {n: _to_feed(by_name[n], x) for n, x in feeds.items()}

    def __repr__(self) -> str:
        return show_signature(self.inputs, self.outputs)


def show_signature(*ends: Sequence[Value]) -> str:
    """What a model takes, and gives: ``(x: float32 (N, 3)) -> (y: float32 (N, 2))``."""
    shown = (
        ", ".join(f"{v.name}: {v.dtype.title if v.dtype else '?'} {show_shape(v.shape)}"
                  for v in values)
        for values in ends
    )  # fmt: skip
    return " -> ".join(f"({values})" for values in shown)


def collect_settings(threads: int | None, apart: bool) -> dict[str, Any]:
    """What a bridge is told of how to run a model, where it is not as by default."""
    settings = {} if threads is None else {"threads": threads}
    return settings if apart else {**settings, "apart": False}


def check_threads(threads: int | None) -> None:
    """Refuse more threads than the machine has cores.

    Raises:
        UsageError: for these, and what is no number of threads.
    """
    if threads is not None:
        most = os.cpu_count() or 1
        check_integer(threads, "threads", 1)
        if threads > most:
            raise UsageError(f"threads={threads}: this machine has {most} cores; give {most}")


def run_graph(graph: Graph, *arrays: Any, **named: Any) -> dict[str, Any]:
    """The outputs of a graph by name; ``Graph.__call__`` comes here."""
    return RunnableModel(graph)(*arrays, **named)


def _find_bridge(source: Any, format_name: str) -> Bridge:
    """The bridge that runs a source of a format."""
    is_file = isinstance(source, (str, os.PathLike, Graph))
    bridge = get_runtime_bridge(format_name) if is_file else bridge_for(source)
    if bridge is None or not bridge.can_run:
        raise MissingDependency(
            f"no bridge that is installed runs {format_name} models: convert the model to onnx"
        )
    return bridge


def _prepare(
    bridge: Bridge, source: Any, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> PreparedRun:
    """The function of the feeds; a graph is written for its runtime, which loads it at once."""
    if not isinstance(source, Graph):
        return prepare_run(bridge, source, **options, **settings)
    fmt = get_format(bridge.format)
    with TemporaryFolder() as folder:
        path = Path(folder) / f"graph{fmt.suffixes[0]}"
        if not source.domain:
            with within_command():
                save(source, path, opset=RUN_OPSET)
            return prepare_run(bridge, path, **settings)
        files = encode(fmt, source, path, {})
        params = next((f for f in files if f != os.fspath(path)), None)
        return prepare_run(bridge, path, params=params, **settings)


def _to_feed(value: Value, array: Any) -> Any:
    """An input as its runtime takes it: lists and numbers in its type, arrays in their own.

    Raises:
        UsageError: for an array of another type.
    """
    if is_sequence(value) and isinstance(array, (list, tuple)):
        return [_to_array(each) for each in array]
    if isinstance(array, (bool, int, float, list, tuple)) and value.dtype is not None:
        return np.asarray(array, value.dtype.numpy)
    plain = _to_array(array)
    check_type(value, plain)
    return plain


def _to_array(value: Any) -> Array:
    """An array of NumPy, or of a framework."""
    for method in ("asnumpy", "numpy"):
        if hasattr(value, method):
            value = getattr(value, method)()
            break
    return np.asarray(value)
