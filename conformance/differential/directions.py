"""The ways that a model is sent, each to results that a runtime computes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

import serde
from conformance import matrix
from serde.ir.graph import Graph
from serde.pipeline import read

from .evaluate import NEWEST, Rejected, run_by_node, session_of
from .program import Array, Program

Results = Mapping[str, Array]
LOWEST = 7
LACKING = (  # what ONNX Runtime says where it has no kernel, or cannot expand a function
    "NOT_IMPLEMENTED", "not implemented", "_inlfunc_", "in node ()", "No corresponding Numpy type",
    "data type is not supported with", "Unsupported value attribute datatype",
)  # fmt: skip
MEMORY = Path("/dev/shm")


STORED = {"bool": "float32", "uint64": "int64", "uint32": "int64", "uint16": "int32"}  # in MXNet


class NotRun(Exception):
    """No runtime has the result's operators for these types."""


class CannotRun(Exception):
    """A runtime refuses the result."""


@dataclass
class Trip:
    """A program on its way: its model read into the IR, and a folder for files.

    ``by_node`` says whether what is written runs node by node, not in one run.
    """

    program: Program
    ir: Graph
    folder: Path
    by_node: bool = False

    def file(self, path: Path) -> File:
        """A file that was written."""
        return File(path, self.by_node)

    def choose(self, items: Sequence[Any], purpose: str) -> Any:
        """An item, always the same for a program and a purpose."""
        return Random(f"{purpose} {self.program.seed}").choice(items)

    def path(self, name: str) -> Path:
        """A file in the folder."""
        return self.folder / name

    def each(self, run: Callable[[dict[str, Array]], list[Array]]) -> Iterator[Results]:
        """What a runtime computes of every set of inputs, by the names of the outputs."""
        for values in self.program.data:
            got = run(self.program.feeds(values))
            if len(got) != len(self.program.outputs):
                raise CannotRun(f"{len(got)} outputs")
            yield dict(zip(self.program.outputs, got, strict=True))


class File:
    """A file in ONNX Runtime, or in onnx.reference node by node where that lacks a kernel."""

    def __init__(self, path: Path, by_node: bool = False) -> None:
        self.model = onnx.load(path)
        self.types = {i.name: i.type.tensor_type.elem_type for i in self.model.graph.input}
        self.trains = any(a.name == "training_mode" and a.i for n in self.model.graph.node
                          for a in n.attribute)  # fmt: skip
        self.session: Any = None
        if self.model.opset_import[0].version <= NEWEST and not by_node:
            self.session = self.attempt(lambda: session_of(self.model))

    @staticmethod
    def attempt(run: Callable[[], Any]) -> Any:
        """What ONNX Runtime does; None where it has no kernel. Raises CannotRun."""
        try:
            return run()
        except Exception as error:  # ONNX Runtime raises what it likes
            if any(text in str(error) for text in LACKING):
                return None
            raise CannotRun(str(error)) from error

    def __call__(self, feeds: Mapping[str, Array]) -> list[Array]:
        inputs = {name: feeds[name] for name in self.types if name in feeds}
        if self.session is not None:
            outputs = self.attempt(lambda: self.session.run(None, inputs))
            if self.trains:  # ONNX Runtime writes the statistics over its initializers
                self.session = session_of(self.model)
            if outputs is not None:
                return list(outputs)
        try:
            return run_by_node(self.model, inputs)
        except Rejected as error:
            raise NotRun(str(error)) from error


def to_opset(trip: Trip) -> Iterator[Results]:
    """Lowered to an opset."""
    path = lower(trip)
    yield from trip.each(trip.file(path))


def lower(trip: Trip) -> Path:
    """Write at a random opset, once."""
    path = trip.path("opset.onnx")
    if not path.exists():
        serde.save(trip.ir, path, opset=trip.choose(range(LOWEST, NEWEST + 1), "opset"))
    return path


def back_from_opset(trip: Trip) -> Iterator[Results]:
    """What was lowered is read again, and written at a newer opset."""
    path, again = lower(trip), trip.path("again.onnx")
    opset = onnx.load(path).opset_import[0].version
    serde.save(serde.load(path), again, opset=trip.choose(range(opset, NEWEST + 1), "again"))
    yield from trip.each(trip.file(again))


def by_relay(trip: Trip) -> Iterator[Results]:
    """Written as a Relay module, as text or JSON, read again and written as ONNX."""
    path, again = trip.path(trip.choose(("m.relay", "m.json"), "relay")), trip.path("relay.onnx")
    serde.save(trip.ir, path, format="relay")
    serde.save(load_relay(path), again, opset=NEWEST)
    yield from trip.each(trip.file(again))


def load_relay(path: Path) -> Graph:
    """A module that was written, with its parameters."""
    params = path.with_suffix(".params")
    if params.exists():
        return serde.load(path, format="relay", params=params)
    return serde.load(path, format="relay")


def by_mxnet(trip: Trip) -> Iterator[Results]:
    """Written as a symbol, read again with the shapes of the inputs and written as ONNX."""
    path, again = trip.path("m-symbol.json"), trip.path("mxnet.onnx")
    serde.save(trip.ir, path)
    if trip.program.is_symbolic:
        return
    values = trip.program.data[0]
    feeds = {n: np.atleast_1d(a) for n, a in trip.program.feeds(values).items()}
    names = read_arguments(path)
    types = {n: (a.shape, "float32" if a.dtype == bool else a.dtype)
             for n, a in feeds.items() if n in names}  # fmt: skip
    if not types:  # where all variables have arrays, one that is read as data is an input
        return
    serde.save(serde.load(path, inputs=types), again, opset=NEWEST)
    file = trip.file(again)
    yield from trip.each(lambda feeds: lift(file(lower_feeds(file, feeds)), values, trip.program))


def read_arguments(path: Path) -> list[str]:
    """The names of a symbol's inputs and parameters, without those that nothing reads."""
    symbol = json.loads(path.read_text())
    nodes = symbol["nodes"]
    read = {entry[0] for entries in (symbol["heads"], *(n["inputs"] for n in nodes))
            for entry in entries}  # fmt: skip
    return [n["name"] for at, n in enumerate(nodes) if n["op"] == "null" and at in read]


def lower_feeds(file: File, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs as what was a symbol has them: no scalars, and booleans are floats."""
    kinds = {n: onnx.helper.tensor_dtype_to_np_dtype(code) for n, code in file.types.items()}
    return {n: np.atleast_1d(a).astype(kinds[n]) for n, a in feeds.items() if n in kinds}


def lift(results: list[Array], values: Any, program: Program) -> list[Array]:
    """Results of MXNet as ONNX has them: scalars, and booleans."""
    outputs = []
    for name, got in zip(program.outputs, results, strict=True):
        expected = values[name]
        if not isinstance(expected, list) and isinstance(got, np.ndarray):
            if expected.ndim == 0 and got.shape == (1,):
                got = got.reshape(())
            if expected.dtype == bool and got.dtype != bool:
                got = got.astype(bool)
        outputs.append(got)
    return outputs


def for_relax(trip: Trip) -> Iterator[Results]:
    """Written with the profile of TVM's importer into Relax, and run by ONNX Runtime."""
    path = trip.path("relax.onnx")
    serde.save(trip.ir, path, profile="relax")
    yield from trip.each(trip.file(path))


def in_mxnet(trip: Trip) -> Iterator[Results]:
    """Written as a symbol, and run by live MXNet."""
    path = trip.path("live-symbol.json")
    serde.save(trip.ir, path)
    runtime = live("MXNet")
    mx = runtime.mxnet
    symbol = mx.sym.load(str(path))
    held = dict(mx.nd.load(str(trip.path("live-0000.params"))))
    arrays = {n.partition(":")[2]: a for n, a in held.items()}
    names = set(symbol.list_inputs())
    for values in trip.program.data:
        feeds = {n: a for n, a in trip.program.feeds(values).items() if n in names}
        plain = {n: a.astype(STORED.get(a.dtype.name, a.dtype)) for n, a in feeds.items()}
        try:
            got = runtime.bind(symbol, arrays, plain)
        except matrix.NotRun as error:
            raise NotRun(str(error)) from error
        except mx.MXNetError as error:
            raise CannotRun(matrix.last_line(error)) from error
        yield dict(zip(trip.program.outputs, lift(got, values, trip.program), strict=True))


@cache
def live(name: str) -> Any:
    """The target of the matrix that runs a framework."""
    from conformance import targets

    return getattr(targets, name)()


def in_relay(trip: Trip) -> Iterator[Results]:
    """Written as a Relay module, compiled and run by live TVM."""
    from testing.relay.tvm_live import TvmError, run_network

    path = trip.path("live.json")
    serde.save(trip.ir, path, format="relay")
    params = path.with_suffix(".params")
    held = [v.name for v in read(path, from_format="relay")[0].inputs]

    def run(feeds: dict[str, Array]) -> list[Array]:
        inputs = {n: a for n, a in feeds.items() if n in held}
        try:
            return run_network(path, params if params.exists() else None, inputs, SECONDS)
        except TvmError as error:
            if str(error).startswith("TVM takes"):
                raise NotRun(str(error)) from error
            raise CannotRun(matrix.last_line(error)) from error

    yield from trip.each(run)


def in_relax(trip: Trip) -> Iterator[Results]:
    """Written with the profile ``relax``, imported, compiled and run by live TVM."""
    from testing.relax.relax_live import RelaxError, run_within

    path = trip.path("live.onnx")
    serde.save(trip.ir, path, profile="relax")
    names = {i.name for i in onnx.load(path).graph.input}

    def compute(feeds: dict[str, Array]) -> list[Array]:
        inputs = {n: a for n, a in feeds.items() if n in names}
        try:
            return run_within(SECONDS, str(path), inputs)
        except RelaxError as error:  # the importer lacks operators, and says so
            raise NotRun(matrix.last_line(error)) from error

    yield from trip.each(compute)


@cache
def torch_worker() -> Any:
    """The process that runs written modules."""
    from serde.bridges.torch import TorchWorker

    return TorchWorker()


def in_torch(trip: Trip) -> Iterator[Results]:
    """Written as a PyTorch module, and run by live PyTorch."""
    return in_worker(torch_worker(), "live.py", trip)


def in_worker(worker: Any, name: str, trip: Trip, **options: Any) -> Iterator[Results]:
    """Written to a file of this name, and run by a process."""
    path = trip.path(name)
    serde.save(trip.ir, path)
    names = [v.name for v in trip.ir.inputs]

    def compute(feeds: dict[str, Array]) -> list[Array]:
        try:
            return worker.run(str(path), [feeds[n] for n in names], **options)  # type: ignore[no-any-return]
        except serde.SerdeError as error:
            if "not implemented for" in str(error):  # these types
                raise NotRun(matrix.last_line(error)) from error
            raise CannotRun(matrix.last_line(error)) from error

    yield from trip.each(compute)


def by_tflite(trip: Trip) -> Iterator[Results]:
    """Written for TensorFlow Lite, read again and written as ONNX."""
    path, again = trip.path("m.tflite"), trip.path("tflite.onnx")
    serde.save(trip.ir, path)
    serde.save(serde.load(path), again, opset=NEWEST)
    yield from trip.each(trip.file(again))


@cache
def litert_worker() -> Any:
    """The process that runs files of TensorFlow Lite."""
    from serde.bridges.litert import LitertWorker

    return LitertWorker()


def in_litert(trip: Trip) -> Iterator[Results]:
    """Written for TensorFlow Lite, and run by LiteRT with one of its sets of kernels."""
    delegates = trip.choose((True, False), "LiteRT")
    return in_worker(litert_worker(), "live.tflite", trip, delegates=delegates)


def in_consumer(name: str, trip: Trip) -> Iterator[Results]:
    """Written with the profile of a consumer, and run by it."""
    from testing.consumers.runtimes import run
    from testing.live_worker import LiveError

    path = trip.path(f"{name}.onnx")
    serde.save(trip.ir, path, profile=name, external_data="never")
    graph = onnx.load(path).graph
    held = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in held]

    def compute(feeds: dict[str, Array]) -> list[Array]:
        try:
            return run(name, str(path), {n: feeds[n] for n in names})
        except LiveError as error:
            raise CannotRun(matrix.last_line(error)) from error

    yield from trip.each(compute)


LIVE: dict[str, Callable[[Trip], Iterator[Results]]] = {
    "MXNet": in_mxnet,
    "Relay": in_relay,
    "Relax": in_relax,
    "PyTorch": in_torch,
}
FILES: dict[str, Callable[[Trip], Iterator[Results]]] = {
    "ONNX, lowered": to_opset,
    "ONNX, raised again": back_from_opset,
    "Relay, read again": by_relay,
    "MXNet, read again": by_mxnet,
    "profile relax": for_relax,
}
CONSUMERS = {
    title: partial(in_consumer, name)
    for name, title in (
        ("onnxruntime", "profile onnxruntime"), ("openvino", "OpenVINO"), ("tract", "tract"),
        ("mnn", "MNN"), ("ncnn", "ncnn"),
    )
} | {"LiteRT": in_litert, "TensorFlow Lite, read again": by_tflite}  # fmt: skip
DIRECTIONS = FILES | LIVE | CONSUMERS
SECONDS = 30  # that TVM is given for a model


def is_narrow(directions: Iterable[str]) -> bool:
    """Whether all of some directions, and one at least, are consumers."""
    chosen = set(directions)
    return bool(chosen) and chosen <= CONSUMERS.keys()


def start(program: Program, model: onnx.ModelProto) -> Trip:
    """Read the model of a program. Raises SerdeError."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None, prefix="serde-diff-"))
    path = folder / "source.onnx"
    try:
        onnx.save(model, path)
        return Trip(program, serde.load(path), folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
