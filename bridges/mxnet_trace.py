"""Gluon blocks that cannot be hybridized: one imperative run, recorded operator by operator.

MXNet's C functions are watched while the block runs: calls of operators become nodes of a symbol,
arrays that no call has made are parameters or constants. Nothing is freed meanwhile, so that an
address stands for one array. MXNet's functions are of all threads: calls of others pass through
unrecorded, and one thread at a time traces.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from serde.errors import SerdeError, UsageError
from serde.ir.graph import Graph

Entry = tuple[int, int]  # a node, and which of its outputs
COPY = "_copyto"
READS = ("MXNDArraySyncCopyToCPU",)
RESHAPES = ("MXNDArrayReshape64",)
SLICES = ("MXNDArraySlice", "MXNDArraySlice64")
ROWS = ("MXNDArrayAt", "MXNDArrayAt64")
LOCK = threading.RLock()
ALIASES = ("MXShallowCopyNDArray", "MXNDArrayDetach")


@dataclass
class _Memory:
    """Memory that an array and its views share, and how often it was written."""

    version: int = 0


class _Run:
    """What one run has recorded: the nodes of a symbol, and which array is the output of which."""

    def __init__(self, mx: ModuleType) -> None:
        self.mx = mx
        self.nodes: list[dict[str, Any]] = []
        self.entries: dict[int, Entry] = {}
        self.memory: dict[int, tuple[_Memory, int]] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.inputs: set[int] = set()
        self.computed: set[int] = set()  # nodes that depend on an input
        self.reads: dict[str, None] = {}
        self.names: dict[int, str] = {}
        self.is_quiet = False

    def declare(self, name: str, handle: int) -> None:
        """Give an array a variable."""
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        self.entries[handle] = len(self.nodes) - 1, 0
        self.memory[handle] = _Memory(), 0

    def entry(self, handle: int) -> Entry:
        """The output that an array is; a constant where nothing has made it."""
        memory = self.memory.get(handle)
        if memory is not None and memory[0].version != memory[1]:
            raise SerdeError(
                f"{find_line()}: an array and a view of it are read, and one of them was changed. "
                "Copy one of them: x.copy()"
            )
        if handle not in self.entries:
            name = f"constant_{len(self.arrays)}"
            self.arrays[name] = self.numbers_of(handle)
            self.declare(name, handle)
        return self.entries[handle]

    def numbers_of(self, handle: int) -> np.ndarray[Any, Any]:
        """The numbers of an array at an address."""
        copy = self.mx.base.NDArrayHandle()
        self.is_quiet = True
        try:
            lib = self.mx.base._LIB
            self.mx.base.check_call(
                lib.MXShallowCopyNDArray(self.mx.base.NDArrayHandle(handle), ctypes.byref(copy))
            )
            return self.mx.nd.NDArray(handle=copy).asnumpy()  # type: ignore[no-any-return]
        finally:
            self.is_quiet = False

    def add(self, op: str, inputs: Sequence[int], outputs: Sequence[int], **attrs: str) -> None:
        """A node whose operands and results are arrays."""
        read = [self.entry(h) for h in inputs]
        name = f"{find_line()}/{op}{len(self.nodes)}"
        self.nodes.append(
            {"op": op, "name": name, "attrs": attrs, "inputs": [[n, i, 0] for n, i in read]}
        )
        node = len(self.nodes) - 1
        if any(n in self.computed or h in self.inputs for (n, _), h in
               zip(read, inputs, strict=True)):  # fmt: skip
            self.computed.add(node)
        for at, handle in enumerate(outputs):
            self.write(handle)
            self.entries[handle] = node, at

    def write(self, handle: int) -> None:
        """An array gets new contents; its views are out of date."""
        if handle in self.inputs or handle in self.names:
            what = self.names.get(handle, "an input")
            raise SerdeError(f"{find_line()}: the block changes {what}. Change a copy: x.copy()")
        memory = self.memory.setdefault(handle, (_Memory(), 0))[0]
        memory.version += 1
        self.memory[handle] = memory, memory.version

    def add_view(self, op: str, source: int, view: int, **attrs: str) -> None:
        """A node for an array that shares the memory of another."""
        if source not in self.entries and source not in self.memory:
            return  # of a constant: it is read where it is used
        self.entry(source)
        memory = self.memory[source][0]
        self.add(op, [source], [], **attrs)
        self.entries[view] = len(self.nodes) - 1, 0
        self.memory[view] = memory, memory.version

    def symbol(self, outputs: Sequence[int]) -> str:
        """The symbol, as MXNet writes it."""
        heads = [[*self.entry(h), 0] for h in outputs]
        variables = [i for i, n in enumerate(self.nodes) if n["op"] == "null"]
        version = self.mx.__version__.split(".")
        number = int(version[0]) * 10000 + int(version[1]) * 100 + int(version[2])
        attrs = {"mxnet_version": ["int", number],
                 "is_np_shape": ["int", int(self.mx.util.is_np_shape())]}  # fmt: skip
        return json.dumps(
            {"nodes": self.nodes, "arg_nodes": variables, "heads": heads, "attrs": attrs},
            ensure_ascii=False,
        )


def find_line() -> str:
    """``file.py:12``: the innermost line at work that is not of MXNet, Python or serde."""
    folders = tuple(
        f"{Path(sys.modules[m].__file__ or '').parent}{os.sep}"
        for m in ("mxnet", "ctypes", __name__)
    )
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith((*folders, "<")) and "contextlib" not in frame.filename:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "?"


def _value(handle: Any) -> int:
    return handle if isinstance(handle, int) else int(handle.value)


def _result(reference: Any) -> int:
    return int(reference._obj.value)


def _watchers(run: _Run) -> dict[str, Callable[..., None]]:
    """What to record after each C function, by its name."""
    base = run.mx.base
    known: dict[int, str] = {}

    def op_name(handle: Any) -> str:
        key = _value(handle)
        if key not in known:
            text = ctypes.c_char_p()
            base.check_call(base._LIB.MXSymbolGetAtomicSymbolName(handle, ctypes.byref(text)))
            known[key] = base.py_str(text.value)
        return known[key]

    def invoke(op: Any, count: Any, inputs: Any, outs: Any, results: Any, n: Any, keys: Any,
               values: Any, stypes: Any) -> None:  # fmt: skip
        attrs = {k.decode(): v.decode() for k, v in zip(keys, values, strict=True)}
        outputs = [int(results._obj[i]) for i in range(outs._obj.value)]
        read = [_value(inputs[i]) for i in range(count.value)]
        name = op_name(op)
        types = [_element_type(run, h) for h in (*read, *outputs)] if name == COPY else []
        if len(set(types)) > 1:  # a copy to another element type
            name, attrs = "Cast", {"dtype": types[1]}
        run.add(name, read, outputs, **attrs)

    def reshape(handle: Any, rank: Any, sizes: Any, reverse: Any, out: Any) -> None:
        shape = str(tuple(int(s) for s in sizes[:rank]))
        run.add_view(
            "Reshape", _value(handle), _result(out), shape=shape, reverse=str(bool(reverse))
        )

    def slice_rows(handle: Any, start: Any, stop: Any, out: Any) -> None:
        run.add_view("slice_axis", _value(handle), _result(out), axis="0", begin=str(start.value),
                     end=str(stop.value))  # fmt: skip

    def take_row(handle: Any, at: Any, out: Any) -> None:
        source, view = _value(handle), _result(out)
        if source not in run.entries:
            return
        row = str(at.value)
        run.add_view("slice_axis", source, -view, axis="0", begin=row, end=str(at.value + 1))
        shape = run.mx.nd.NDArray(handle=base.NDArrayHandle(view))
        sizes = _shape_of(run, shape)
        run.add_view("Reshape", -view, view, shape=str(sizes))

    def alias(handle: Any, out: Any) -> None:
        source = _value(handle)
        if source in run.entries and not run.is_quiet:
            run.entry(source)
            run.entries[_result(out)] = run.entries[source]
            run.memory[_result(out)] = run.memory[source]

    def read(handle: Any, *rest: Any) -> None:
        entry = run.entries.get(_value(handle))
        if not run.is_quiet and entry is not None and (
            entry[0] in run.computed or _value(handle) in run.inputs
        ):  # fmt: skip
            run.reads[find_line()] = None

    def fill(handle: Any, *rest: Any) -> None:
        if _value(handle) in run.entries:
            run.write(_value(handle))
            del run.entries[_value(handle)]

    def refuse_cached(*arguments: Any) -> None:
        raise SerdeError(f"{find_line()}: a hybridized block runs as one operator: call "
                         "hybridize(False) on it before")  # fmt: skip

    watchers: dict[str, Callable[..., None]] = {"MXImperativeInvokeEx": invoke,
                                                "MXNDArraySyncCopyFromCPU": fill,
                                                "MXInvokeCachedOpEx": refuse_cached}  # fmt: skip
    for names, function in ((RESHAPES, reshape), (SLICES, slice_rows), (ROWS, take_row),
                            (ALIASES, alias), (READS, read)):  # fmt: skip
        watchers.update(dict.fromkeys(names, function))
    return watchers


def _shape_of(run: _Run, array: Any) -> tuple[int, ...]:
    """The shape of an array whose handle is another's."""
    shape = tuple(array.shape)
    array.handle = None
    return shape


def _element_type(run: _Run, handle: int) -> str:
    array = run.mx.nd.NDArray(handle=run.mx.base.NDArrayHandle(handle))
    name = np.dtype(array.dtype).name
    array.handle = None
    return str(name)


@contextmanager
def _watch(run: _Run) -> Iterator[None]:
    """Record what MXNet's library is asked for in the block; free nothing until its end."""
    lib = run.mx.base._LIB
    kept: list[Any] = []
    tracing = threading.get_ident()
    originals: dict[str, Any] = {"MXNDArrayFree": lib.MXNDArrayFree}

    def free(handle: Any) -> int:
        if handle is not None and getattr(handle, "value", None) is not None:
            kept.append(handle)
        return 0

    def watch(original: Any, record: Callable[..., None]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            code = original(*arguments)
            if code == 0 and threading.get_ident() == tracing:
                record(*arguments)
            return int(code)

        return call

    watchers = {n: f for n, f in _watchers(run).items() if hasattr(lib, n)}
    for name, record in watchers.items():
        originals[name] = getattr(lib, name)
        setattr(lib, name, watch(originals[name], record))
    lib.MXNDArrayFree = free
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(lib, name, original)
        for handle in kept:
            lib.MXNDArrayFree(handle)


@contextmanager
def _without_hybridization(block: Any) -> Iterator[None]:
    """Let every block inside run its operators one by one."""
    changed: list[Any] = []

    def turn_off(each: Any) -> None:
        if getattr(each, "_active", False):
            changed.append(each)
            each._active = False

    block.apply(turn_off)
    try:
        yield
    finally:
        for each in changed:
            each._active = True


@contextmanager
def _with_plain_tensordot(mx: ModuleType) -> Iterator[None]:
    """``mx.np.tensordot`` by its operators: else it does not go through the watched functions."""
    module = sys.modules.get("mxnet.ndarray.numpy._api_internal")
    original = getattr(module, "tensordot", None)
    internal = sys.modules.get("mxnet.ndarray.numpy._internal")
    if module is None or original is None:
        yield
        return

    def tensordot(a: Any, b: Any, axes: Any) -> Any:
        if isinstance(axes, int):
            return internal.tensordot_int_axes(a, b, axes)  # type: ignore[union-attr]
        pair = [(x,) if isinstance(x, int) else tuple(x) for x in axes]
        return internal.tensordot(a, b, *pair)  # type: ignore[union-attr]

    module.tensordot = tensordot  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.tensordot = original  # type: ignore[attr-defined]


def record(mx: ModuleType, block: Any, inputs: Sequence[Any]) -> tuple[str, dict[str, Any], _Run]:
    """Run a block; return the symbol of the run, its arrays, and what was recorded."""
    if not inputs or not all(isinstance(x, mx.nd.NDArray) for x in inputs):
        raise UsageError("trace takes the block and the arrays it is called with")
    with _without_hybridization(block):
        block(*inputs)  # parameters whose shapes are deferred get them
        run = _Run(mx)
        parameters = {n: p.data() for n, p in block.collect_params().items() if p._data is not None}
        for at, x in enumerate(inputs):
            run.declare("data" if len(inputs) == 1 else f"data{at}", int(x.handle.value))
            run.inputs.add(int(x.handle.value))
        for name, array in parameters.items():
            run.declare(name, int(array.handle.value))
            run.names[int(array.handle.value)] = name
            run.arrays[name] = array.asnumpy()
        with LOCK, _watch(run), _with_plain_tensordot(mx):
            result = block(*inputs)
            outputs = [int(x.handle.value) for x in _flatten(result)]
            symbol = run.symbol(outputs)
    used = {run.nodes[n]["name"] for node in run.nodes for n, *_ in node["inputs"]}
    used |= {run.nodes[n]["name"] for n, *_ in json.loads(symbol)["heads"]}
    return symbol, {n: a for n, a in run.arrays.items() if n in used}, run


def _flatten(result: Any) -> Iterator[Any]:
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from _flatten(item)
    else:
        yield result


def output_names(graph: Graph) -> dict[str, str]:
    """Plain names for the outputs: ``output``, or ``output0``, ``output1``, …"""
    names = [v.name for v in graph.outputs]
    if len(names) == 1:
        return {names[0]: "output"}
    return {name: f"output{at}" for at, name in enumerate(names)}


def add_notes(graph: Graph, run: _Run) -> Graph:
    """Say which lines read numbers that the inputs decide."""
    notes = tuple(
        f"{line} reads numbers that inputs decide: the graph does what this run did"
        for line in run.reads
    )
    return replace(graph, notes=(*graph.notes, *notes))
