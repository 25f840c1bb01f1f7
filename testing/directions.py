"""Models taken from every format to every other, each result run in its own runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import serde
from serde.errors import SerdeError, Unconvertible
from serde.ir.graph import Graph
from testing import networks
from testing.mxnet_live import live_mxnet, run_symbol
from testing.relay.tvm_live import TvmError, run_network

FILES = {"mxnet": "m-symbol.json", "onnx": "m.onnx", "relay": "m.json"}
DIRECTIONS = tuple(f"{a} → {b}" for a in FILES for b in FILES)
TOLERANCE = 1e-4
Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]
Found = float | str  # the largest error in terms of the output's scale, or why there is none


def run_mxnet(path: Path, feeds: Feeds, seconds: int) -> list[Array]:
    """What MXNet computes: its tensors have an axis, and what is true is a float."""
    params = path.with_name(path.name.replace("symbol.json", "0000.params"))
    text, held = path.read_text(), networks.load_params(params) if params.exists() else {}
    known = live_mxnet().sym.load_json(text).list_inputs()
    arrays = {n: np.atleast_1d(a) for n, a in feeds.items() if n in known}
    plain = {n: a.astype("float32") if a.dtype == bool else a for n, a in arrays.items()}
    return run_symbol(text, held, plain)


def run_onnx(path: Path, feeds: Feeds, seconds: int) -> list[Array]:
    """What ONNX Runtime computes."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), settings)
    known = {i.name for i in session.get_inputs()}
    return list(session.run(None, {n: a for n, a in feeds.items() if n in known}))


def run_relay(path: Path, feeds: Feeds, seconds: int) -> list[Array]:
    """What TVM computes, if it takes no longer than so many seconds."""
    params = path.with_suffix(".params")
    return run_network(path, params if params.exists() else None, feeds, seconds)


RUN: dict[str, Callable[[Path, Feeds, int], list[Array]]] = {
    "mxnet": run_mxnet, "onnx": run_onnx, "relay": run_relay,
}  # fmt: skip


def directions(
    ir: Graph, form: str, feeds: Feeds, expected: Sequence[Array], folder: Path,
    seconds: int = 300, rows: int | None = None,
) -> Iterator[tuple[str, Found]]:  # fmt: skip
    """What becomes of a model in every direction.

    ``ir`` was read from ``form``; the model in the other two is what was made of it. ``rows``
    counts the leading rows of the first output that are defined.
    """
    for source in sorted(FILES, key=lambda f: f != form):
        graph = ir
        if source != form:
            path = folder / form / FILES[source]
            try:
                graph = reread(path, source, feeds)
            except FileNotFoundError:
                yield from ((f"{source} → {t}", "no such model") for t in FILES)
                continue
            except SerdeError as error:
                yield from ((f"{source} → {t}", f"refused: {reason(error)}") for t in FILES)
                continue
        for target in FILES:
            place = folder / source
            place.mkdir(exist_ok=True)
            bounds = rows, "mxnet" in (source, target)
            yield (
                f"{source} → {target}",
                one(graph, target, place, feeds, expected, seconds, *bounds),
            )


def one(
    graph: Graph, target: str, folder: Path, feeds: Feeds, expected: Sequence[Array], seconds: int,
    rows: int | None, lifted: bool,
) -> Found:  # fmt: skip
    """Write a graph to a folder in one format, run it and compare."""
    path = folder / FILES[target]
    try:
        serde.save(graph, path, format=target)
    except SerdeError as error:
        return f"refused: {reason(error)}"
    shaped = {v.name: as_read(feeds[v.name], v) for v in graph.inputs}
    try:
        results = RUN[target](path, shaped, seconds)
    except Exception as error:  # whatever the runtime says of it
        if isinstance(error, TvmError) and str(error).startswith("TVM takes"):
            return f"not run: {error}"
        return f"failed: {str(error).strip().splitlines()[-1][:300]}"
    return error_of(results, expected, rows, lifted)


def reread(path: Path, form: str, feeds: Feeds) -> Graph:
    """A file that was made of a graph, read again; MXNet's do not tell the shapes of inputs."""
    if not path.exists():
        raise FileNotFoundError(path)
    params = path.with_suffix(".params")
    if form == "relay" and params.exists():
        return serde.load(path, format=form, params=params)
    if form != "mxnet":
        return serde.load(path, format=form)
    known = live_mxnet().sym.load_json(path.read_text()).list_inputs()
    arrays = {n: np.atleast_1d(a) for n, a in feeds.items() if n in known}
    types = {n: "float32" if a.dtype == bool else a.dtype for n, a in arrays.items()}
    return serde.load(path, format=form, inputs={n: (a.shape, types[n]) for n, a in arrays.items()})


def as_read(array: Array, value: Any) -> Array:
    """An array in the type of an input, and with its axis where MXNet has given it one."""
    array = array if array.ndim or value.shape == () else array.reshape(1)
    return array.astype(value.dtype.numpy) if array.dtype == bool else array


def reason(error: SerdeError) -> str:
    """A refusal in one line."""
    if not isinstance(error, Unconvertible):
        return " ".join(str(error).split())
    return "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in error.problems))


def error_of(
    actual: Sequence[Array],
    expected: Sequence[Array],
    rows: int | None = None,
    lifted: bool = False,
) -> Found:
    """The largest error of floats in terms of their scale, or what else is not the same.

    ``lifted``: MXNet has taken part, whose tensors have an axis, and to which truth is a float.
    """
    if len(actual) != len(expected):
        return f"wrong: {len(actual)} outputs for {len(expected)}"
    errors = [0.0]
    for at, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if lifted and b.ndim == 0 and a.shape == (1,):
            a = a.reshape(())
        if lifted and b.dtype == bool:
            a = a.astype(bool)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"wrong: {a.dtype}{a.shape} for {b.dtype}{b.shape}"
        if rows is not None and at == 0:
            a, b = a[:rows], b[:rows]
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"wrong: {int((a != b).sum())} of {b.size} integers"
            continue
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return "wrong: infinite or no numbers differ"
        x, y = a[finite].astype("float64"), b[finite].astype("float64")
        scale = float(np.abs(y).max(initial=0)) or 1.0
        errors.append(float(np.abs(x - y).max(initial=0)) / scale)
    return max(errors)
