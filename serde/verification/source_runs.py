"""The source of a conversion, ready to run on the inputs of the result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from serde.errors import MissingDependency, SerdeError, show_error
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import DType, Graph
from serde.passes.cut_inputs import InputSpec, cut
from serde.passes.edit_nodes import edit_nodes, read_edits
from serde.passes.single_precision import OTHER
from serde.pipeline import REWRITING, encode, load, read, save
from serde.plugins import (
    STANDARD,
    Bridge,
    Completion,
    bridge_for,
    format_of,
    get_format,
    get_runtime_bridge,
)
from serde.plugins.options import list_options
from serde.verification.baked_batch import BakedBatch, NotComparable, find_baked_batch
from serde.verification.dequantized import DequantizedRun, put_roundings_back

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]
Run = Callable[[Feeds], Sequence[Any]]
HALF = frozenset({DType.FLOAT16})
# Options that change a graph once it is in the IR.
AFTER_RAISING = frozenset(
    "copy dequantize fold_batchnorm fp16 fp16_io fp16_keep fp32 integers rebatch static "
    "weights".split()
)


class Images(Protocol):
    """Code that a conversion puts before and behind a model, which its source lacks."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The images by name."""

    def prepare(self, feeds: Feeds) -> Feeds:
        """What the source is fed, by its own names."""

    def add_results(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of the result, of those of its source."""


GRAPH_OPSET = 21  # at which a Graph is run


def prepare(bridge: Bridge, source: Any, **options: Any) -> PreparedRun:
    """A function of the feeds that runs ``source`` in the framework of ``bridge``.

    Whatever the framework raises is a SerdeError.
    """
    if bridge.prepare is None:
        assert bridge.run is not None
        run: Run = partial(bridge.run, source, **options)
    else:
        with convert_errors(bridge):
            run = bridge.prepare(source, **options)

    return PreparedRun(bridge, run)


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A function of the feeds that a bridge has made, and its errors as SerdeErrors.

    It cannot write into the feeds.
    """

    bridge: Bridge
    run: Run

    def __call__(self, feeds: Feeds) -> Sequence[Any]:
        with convert_errors(self.bridge):
            return self.run({name: _view_read_only(value) for name, value in feeds.items()})

    @property
    def pid(self) -> int | None:
        """The process that runs the model, None where it is this one."""
        return getattr(self.run, "pid", None)

    def time_runs(self, feeds: Feeds, count: int) -> tuple[float, float]:
        """The seconds of one of so many runs: of the clock, and of the processor of its process."""
        if self.pid is not None:
            with convert_errors(self.bridge):
                return self.run.time_runs(feeds, count)  # type: ignore[attr-defined, no-any-return]
        return time_calls(partial(self.run, feeds), count)


def _view_read_only(value: Any) -> Any:
    """An array, or those of a sequence, without the right to write into it."""
    if isinstance(value, list):
        return [*map(_view_read_only, value)]
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def time_calls(call: Callable[[], Any], count: int) -> tuple[float, float]:
    """The seconds of one of so many calls: of the clock, and of this process's processor."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return (time.perf_counter() - clock) / count, (time.process_time() - processor) / count


@contextmanager
def convert_errors(bridge: Bridge) -> Iterator[None]:
    """Raise errors of a framework as one of serde; those of the system stay as they are."""
    try:
        yield
    except (SerdeError, OSError, MemoryError):
        raise
    except Exception as error:
        raise SerdeError(f"{bridge.name} raises {show_error(error)}") from error


def prepare_cut(bridge: Bridge, graph: Graph, outputs: Sequence[str]) -> Run:
    """A function of the feeds that runs a graph of the bridge's format up to ``outputs``.

    Raises:
        NotComparable: where models of the format are read and not written.
    """
    fmt = get_format(bridge.format)
    if fmt.encode is None:
        raise NotComparable(
            f"{fmt.title} files run as a whole, not up to values inside. Export the model with "
            "these as outputs"
        )
    with TemporaryFolder() as folder:
        path = Path(folder) / f"model{fmt.suffixes[0]}"
        files = encode(fmt, cut(graph, outputs), path, {})
        params = next((f for f in files if f != os.fspath(path)), None)
        return prepare(bridge, path, params=params)


class SourceModel:
    """A source with the options it was read by; feeds have the names of the result's inputs."""

    def __init__(
        self, source: Any, params: Any, outputs: Sequence[str] | None,
        rename: Mapping[str, str] | None, reading: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None, format: str | None = None,
    ) -> None:  # fmt: skip
        self.format = format
        self.fixed = _fixed_arrays(source, params, inputs, reading, format)
        self.bridge = _bridge_of(source, format)
        self.source, self.reading, self.inputs = source, dict(reading), inputs
        self.options = {"params": params, "outputs": outputs, **self.reading}
        self.renames = dict(rename or {})
        self.old_names = {new: name for name, new in self.renames.items()}
        self.runs: dict[str, Run] = {}
        self.images: Images | None = None
        self.is_part = False  # which ends at other values than the model

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Other ways to run it, see ``Bridge``."""
        return {} if self.bridge is None else self.bridge.settings

    def prepare(self, setting: str = "") -> Run:
        """The function that runs it; it needs the source's files no more."""
        if self.bridge is None or not self.bridge.can_run:
            raise MissingDependency("no bridge that is installed runs models of its format")
        if self.reading.get("cut_inputs") and not self.bridge.begins_anywhere:
            raise NotComparable("not compared: the source cannot be begun in its middle")
        _ = self.batch  # while its files are there
        if setting not in self.runs:
            named = {"inputs": self.inputs} if self.inputs else {}
            options = {**self.options, **named, **(self.settings[setting] if setting else {})}
            if self.reading.get("dequantize"):
                self.runs[setting] = self._dequantize(options)
            else:
                self.runs[setting] = self._prepare(options)
        return self.runs[setting]

    def _prepare(self, options: Mapping[str, Any]) -> Run:
        assert self.bridge is not None
        if self.reading.get("edits") is not None:
            return self._prepare_edited()
        if isinstance(self.source, Graph):
            return _prepare_graph(self.bridge, self.source, options)
        return prepare(self.bridge, self.source, **options)

    def _prepare_edited(self) -> Run:
        """The source with what the user edited in it, written anew in its own format."""
        assert self.bridge is not None
        graph = edit_nodes(self.read(), read_edits(self.reading["edits"]))
        outputs = self.options["outputs"] or [v.name for v in graph.outputs]
        try:
            return prepare_cut(self.bridge, graph, outputs)
        except SerdeError as error:
            raise NotComparable(f"not compared: the edited source cannot run: {error}") from error

    def _dequantize(self, options: Mapping[str, Any]) -> Run:
        """What the source computes without its roundings to integers.

        Both run in the last of the settings, as optimizers round otherwise.
        """
        reading = {k: v for k, v in self.options.items() if k not in AFTER_RAISING}
        assert self.bridge is not None
        has_integers = "integers" in list_options(get_format(self.bridge.format).read_options)
        pairs = {"integers": "qdq"} if has_integers else {}
        graph = load(self.source, inputs=self.inputs, **reading, **pairs)
        floats = load(self.source, inputs=self.inputs, **reading, dequantize=True)
        bridge = get_runtime_bridge(STANDARD)
        assert bridge is not None
        plain = list(bridge.settings.values())[-1] if bridge.settings else {}
        float_options = plain if self.bridge is bridge else {}
        rounded, missing = put_roundings_back(graph, floats)
        return DequantizedRun(
            self._prepare({**options, **float_options}), _prepare_graph(bridge, floats, {}),
            _prepare_graph(bridge, rounded, plain), missing,
        )  # fmt: skip

    def cut(self, outputs: Sequence[str]) -> SourceModel:
        """The model that ends at other values, by the names of the source."""
        params = self.options["params"]
        shorter = SourceModel(
            self.source, params, outputs, self.renames, self.reading, self.inputs, self.format
        )
        shorter.retyped_inputs, shorter.batch = self.retyped_inputs, self.batch
        shorter.images, shorter.is_part = self.images, True
        if self.bridge is not None and not self.bridge.ends_anywhere:
            shorter.runs[""] = prepare_cut(self.bridge, self.read(), outputs)
        return shorter

    def read(self) -> Graph:
        """Its graph, in its own vocabulary."""
        options = {k: v for k, v in self.reading.items() if k not in REWRITING}
        params = self.options["params"]
        return read(
            self.source, from_format=self.format, params=params, inputs=self.inputs, **options
        )[0]

    def run(self, feeds: Feeds, setting: str = "") -> Sequence[Any]:
        """Its outputs.

        Raises:
            NotComparable: where it takes other batches. SerdeError: where it refuses the inputs.
        """
        inputs = {**self.fixed, **self._to_own(feeds)}
        run, is_half = self.prepare(setting), bool(self.reading.get("fp16_io"))
        if is_half:
            inputs = {n: _retype(a, HALF, DType.FLOAT32) for n, a in inputs.items()}
        types = self.retyped_inputs
        inputs = {n: _cast(a, types[n]) if n in types else a for n, a in inputs.items()}
        if self.batch is None:
            outputs = run(inputs)
        else:
            outputs = self.batch.run(run, inputs, self.options["outputs"])
        if is_half:
            outputs = [_retype(a, {DType.FLOAT32}, DType.FLOAT16) for a in outputs]
        elif self.reading.get("fp32"):
            outputs = [_retype(a, OTHER, DType.FLOAT32) for a in outputs]
        return outputs if self.images is None or self.is_part else self.images.add_results(outputs)

    def _to_own(self, feeds: Feeds) -> Feeds:
        """Feeds of the result as the source takes them, by its names."""
        named = {self.old_names.get(n, n): a for n, a in feeds.items()}
        return named if self.images is None else self.images.prepare(named)

    @cached_property
    def completion(self) -> Completion | None:
        """What the framework needs changed in feeds, if anything."""
        if self.bridge is None or self.bridge.complete_feeds is None:
            return None
        return self.bridge.complete_feeds(self.source, **self.options, inputs=self.inputs)

    def complete_feeds(self, feeds: Feeds) -> tuple[Feeds, str]:
        """Feeds with which the framework computes what the model means, and what is left out."""
        if self.completion is None:
            return feeds, ""
        assert self.bridge is not None
        with convert_errors(self.bridge):
            source_feeds = self._to_own(feeds)
            done, left_out = self.completion(source_feeds)
        changed = {n: a for n, a in done.items() if a is not source_feeds.get(n)}
        if self.images is not None and changed.keys() & self.images.inputs.keys():
            raise NotComparable("not compared: the source takes another batch of images")
        return {**feeds, **{self.renames.get(n, n): a for n, a in changed.items()}}, left_out

    @cached_property
    def batch(self) -> BakedBatch | None:
        """The batch it was made for, where the result was made for another."""
        if (batch := self.reading.get("rebatch")) is None:
            return None
        options = {k: v for k, v in self.options.items() if k != "rebatch"}
        graph = load(self.source, format=self.format, inputs=self.inputs, **options)
        return find_baked_batch(graph, batch)

    @cached_property
    def retyped_inputs(self) -> Mapping[str, Any]:
        """The types of the inputs that are float32 in the result only."""
        if not self.reading.get("fp32"):
            return {}
        reading = {k: v for k, v in self.reading.items() if k != "fp32"}
        graph = load(
            self.source, format=self.format, params=self.options["params"], inputs=self.inputs,
            **reading,
        )  # fmt: skip
        return {v.name: v.type.numpy for v in graph.inputs if v.dtype in OTHER}


def _cast(value: Any, dtype: Any) -> Any:
    """An array, or those of a sequence, in another type."""
    return [a.astype(dtype) for a in value] if isinstance(value, list) else value.astype(dtype)


def _retype(array: Any, of: Set[DType], to: DType) -> Any:
    """An array in another type where it is of these; sequences as they are."""
    is_one = isinstance(array, np.ndarray) and DType.of(array.dtype) in of
    return array.astype(to.numpy) if is_one else array


def _fixed_arrays(
    source: Any, params: Any, inputs: Mapping[str, Any] | None, reading: Mapping[str, Any],
    format: str | None,
) -> Feeds:  # fmt: skip
    """What inputs of the source were set to, which the result lacks."""
    from serde.passes.set_inputs import constant_inputs

    values = reading.get("set_inputs")
    if not values:
        return {}
    named = {**dict.fromkeys(values, InputSpec(None, None)), **(inputs or {})}
    options = {k: v for k, v in reading.items() if k not in REWRITING}
    graph, _ = read(source, from_format=format, params=params, inputs=named, **options)
    return constant_inputs(graph, values)


def _bridge_of(source: Any, format: str | None) -> Bridge | None:
    """The bridge whose framework runs a source.

    Raises:
        NotComparable: for a Graph in the vocabulary of a framework, which is no model by itself.
    """
    if isinstance(source, Graph):
        if source.domain:
            raise NotComparable(
                f"not compared: convert the {source.domain} file instead of a Graph"
            )
        return get_runtime_bridge(STANDARD)
    is_path = isinstance(source, (str, os.PathLike))
    if not is_path:
        return bridge_for(source)
    return get_runtime_bridge(format or format_of(Path(source)).name)


def _prepare_graph(bridge: Bridge, graph: Graph, options: Mapping[str, Any]) -> Run:
    """A function of the feeds that runs a graph, which is written for it once."""
    with TemporaryFolder() as folder:
        path = Path(folder) / "graph.onnx"
        save(load(graph), path, opset=GRAPH_OPSET, external_data="never")
        run = prepare(bridge, path, **options)
    names = {v.name for v in graph.inputs}
    return lambda feeds: run({n: x for n, x in feeds.items() if n in names})
