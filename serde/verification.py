"""Proof of a conversion: source and result on the same inputs, compared output by output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.graph import DType, Graph, Node, Value
from serde.plugins import bridge_for, format_of, running

Array = np.ndarray[Any, Any]
SEED = 0
NAMED_SIZES = {"N": 2, "batch": 2, "batch_size": 2}
OTHER_SIZE, IMAGE_SIZE = 8, 64  # for other named dimensions; for those of an image
# What an output may differ by, as a share of its largest magnitude.
TOLERANCE = {DType.FLOAT16: 2e-2, DType.BFLOAT16: 1e-1, DType.FLOAT64: 1e-6}
FLOAT32_TOLERANCE = 1e-4
PASSED_ON = frozenset(
    {"Cast", "Clip", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Max", "Min"}
)


@dataclass
class Compared:
    """One output: how far it is from what it should be; ``passed`` says whether that is enough."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float
    max_rel: float
    rmse: float
    cosine: float
    tolerance: float
    passed: bool
    reason: str = ""


@dataclass
class Verification:
    """The comparison of a source and a result. ``done`` is False where the source could not run."""

    done: bool
    source: str
    inputs: str
    outputs: list[Compared] = field(default_factory=list)
    statement: str = ""

    @property
    def ok(self) -> bool:
        """Whether no output was found wrong; look at ``done`` for whether any was compared."""
        return all(o.passed for o in self.outputs)


def verify(
    source: Any,
    target: str | os.PathLike[str],
    *,
    params: Any = None,
    data: Any = None,
    expected: Any = None,
    seed: int = SEED,
    **options: Any,
) -> Verification:
    """Compare a converted model with its source.

    Args:
        source: what was converted: a path or a live object.
        target: the file it became.
        params: the source's parameters, where it does not hold them.
        data: the inputs, an ``.npz`` path or a mapping of names; seeded random ones otherwise.
        expected: the source's outputs, likewise, where it cannot be run here.
    """
    from serde.api import load

    return verify_conversion(
        source, target, graph=load(target), params=params, data=data, expected=expected, seed=seed,
        reading=options,
    )  # fmt: skip


def verify_conversion(
    source: Any,
    target: str | os.PathLike[str],
    *,
    graph: Graph,
    params: Any = None,
    rename: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    data: Any = None,
    expected: Any = None,
    seed: int = SEED,
    reading: Mapping[str, Any] | None = None,
) -> Verification:
    """As ``verify``, for a conversion whose result is at hand as ``graph``."""
    feeds, said = _feeds(graph, data, seed)
    found = running(format_of(Path(target)).name)
    if found is None or found.run is None:
        return Verification(False, "", said, statement="the result's format cannot be run here")
    if expected is not None:
        wanted, origin = _given_outputs(graph, expected), "the outputs given"
    else:
        if (reading or {}).get("cut_inputs"):
            statement = "not compared: the source cannot be begun in its middle"
            return Verification(False, "", said, statement=statement)
        bridge = _source_bridge(source)
        if bridge is None or bridge.run is None:
            return Verification(False, "", said, statement="the source's format cannot be run here")
        old = {new: name for name, new in (rename or {}).items()}
        given = {old.get(n, n): a for n, a in feeds.items()}
        run = partial(bridge.run, source, params=params, outputs=outputs, **dict(reading or {}))
        batch = _own_batch(source, params, reading or {})
        try:
            made = run(given) if batch is None else _in_batches(run, given, batch)
            if made is None:
                statement = f"not compared: the source takes batches of {batch} alone"
                return Verification(False, "", said, statement=statement)
            wanted = made
        except MissingDependency as error:
            statement = (
                f"not compared: the source could not be run. {error}. "
                "Its outputs can be given instead: --expected out.npz with --data in.npz"
            )
            return Verification(False, "", said, statement=statement)
        origin = bridge.name
    got = found.run(target, feeds)
    if len(got) != len(wanted):
        raise UsageError(f"{len(wanted)} outputs to compare with, the result has {len(got)}")
    compared = [
        c
        for v, g, w in zip(graph.outputs, got, wanted, strict=True)
        for c in _compared(v.name, g, w)
    ]
    return Verification(True, origin, said, compared)


def _compared(name: str, got: Any, wanted: Any) -> Iterator[Compared]:
    """Compare an output; of a sequence each of its tensors."""
    if not isinstance(wanted, list) or not isinstance(got, list):
        yield compare(name, got, wanted)
    elif len(got) != len(wanted):
        shown = Compared(name, (len(got),), "sequence", 0.0, 0.0, 0.0, 1.0, 0.0, True)
        yield _failed(shown, f"{len(got)} tensors where the source has {len(wanted)}")
    else:
        for at, (g, w) in enumerate(zip(got, wanted, strict=True)):
            yield compare(f"{name}[{at}]", g, w)


def _own_batch(source: Any, params: Any, reading: Mapping[str, Any]) -> int | None:
    """The batch a source was made for, where the result was made for another."""
    from serde.api import read

    if reading.get("rebatch") is None:
        return None
    options = {k: v for k, v in reading.items() if k not in ("rebatch", "static", "cut_inputs")}
    graph, _ = read(source, params=params, **options)
    sizes = {v.shape[0] for v in graph.inputs if v.shape}
    (size,) = sizes if len(sizes) == 1 else (None,)
    return size if isinstance(size, int) else None


def _in_batches(
    run: Callable[[Mapping[str, Array]], Sequence[Array]], feeds: Mapping[str, Array], size: int
) -> list[Array] | None:
    """What a source computes for several of its batches, one behind another.

    None where the feeds are no whole number of them, or an output has no axis for them.
    """
    count = {a.shape[0] if a.ndim else 0 for a in feeds.values()}
    (total,) = count if len(count) == 1 else (0,)
    if size < 1 or total < 1 or total % size:
        return None
    starts = range(0, total, size)
    parts = [run({n: a[at : at + size] for n, a in feeds.items()}) for at in starts]
    if any(np.shape(a)[:1] != (size,) for part in parts for a in part):
        return None
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _source_bridge(source: Any) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return running(format_of(Path(source)).name)
    return bridge_for(source)


def compare(name: str, got: Any, wanted: Any) -> Compared:
    """Compare one output with what it should be.

    The tolerance is a share of the largest finite magnitude of ``wanted``; integers and truth
    values must be equal, and so must shapes, types, and the places of NaN and infinity.
    """
    got, wanted = np.asarray(got), np.asarray(wanted)
    dtype = DType.of(wanted.dtype)
    shown = Compared(name, got.shape, got.dtype.name, 0.0, 0.0, 0.0, 1.0, 0.0, True)
    if got.shape != wanted.shape:
        return _failed(shown, f"shape {list(got.shape)} where the source has {list(wanted.shape)}")
    if got.dtype != wanted.dtype:
        return _failed(shown, f"{got.dtype} elements where the source has {wanted.dtype}")
    if dtype.kind not in "fc":
        return shown if np.array_equal(got, wanted) else _failed(shown, "not equal")
    a, b = _numbers(got), _numbers(wanted)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        return _failed(shown, "NaN or infinity in other places than in the source")
    a, b = a[finite], b[finite]
    if not a.size:
        return shown
    return _measured(shown, a, b, TOLERANCE.get(dtype, FLOAT32_TOLERANCE))


def _numbers(array: Array) -> Array:
    """The elements as float64, complex ones as two each."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128).ravel().view(np.float64)
    return array.astype(np.float64).ravel()


def _measured(shown: Compared, a: Array, b: Array, share: float) -> Compared:
    gap = np.abs(a - b)
    scale = float(np.abs(b).max())
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    shown.max_abs = float(gap.max())
    shown.max_rel = float((gap / np.maximum(np.abs(b), 1e-3 * scale + 1e-30)).max())
    shown.rmse = float(np.sqrt(np.mean(gap**2)))
    shown.cosine = float(a @ b) / norms if norms else 1.0
    shown.tolerance = share * scale if scale else share
    shown.passed = shown.max_abs <= shown.tolerance
    shown.reason = "" if shown.passed else f"off by {shown.max_abs:.3g}"
    return shown


def _failed(shown: Compared, reason: str) -> Compared:
    shown.passed, shown.reason = False, reason
    shown.max_abs = shown.max_rel = shown.rmse = float("nan")
    shown.cosine = float("nan")
    return shown


def _npz(given: Any) -> dict[str, Array]:
    """Arrays of an ``.npz`` file or a mapping; pickles are never loaded."""
    if isinstance(given, Mapping):
        return {str(k): np.asarray(v) for k, v in given.items()}
    try:
        with open(given, "rb") as file, np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, BadZipFile) as error:
        raise MalformedFile(os.fspath(given), f"not an .npz file of arrays: {error}") from error


def _feeds(graph: Graph, data: Any, seed: int) -> tuple[dict[str, Array], str]:
    if data is None:
        return random_inputs(graph, seed), f"random inputs, seed {seed}"
    held = _npz(data)
    absent = [v.name for v in graph.inputs if v.name not in held]
    if absent and len(graph.inputs) == 1 and len(held) == 1:
        return {graph.inputs[0].name: next(iter(held.values()))}, "the inputs given"
    if absent:
        raise UsageError(
            f"the data have no input {', '.join(map(repr, absent))}; they have "
            f"{', '.join(map(repr, held))}"
        )
    return {v.name: held[v.name] for v in graph.inputs}, "the inputs given"


def _given_outputs(graph: Graph, expected: Any) -> list[Array]:
    """The outputs in order: by name where the names are the model's, otherwise as they come."""
    held = _npz(expected)
    names = [v.name for v in graph.outputs]
    if all(n in held for n in names):
        return [held[n] for n in names]
    if len(names) == 1 and "expected" in held:
        return [held["expected"]]
    if len(held) != len(names):
        raise UsageError(
            f"the expected outputs are called {', '.join(map(repr, held))}, the model's "
            f"{', '.join(map(repr, names))}"
        )
    return list(held.values())


def random_inputs(graph: Graph, seed: int = SEED) -> dict[str, Array]:
    """Seeded inputs for a model: normal floats, small integers, valid indices for look-ups."""
    rng = np.random.default_rng(seed)
    readers: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for at, value in enumerate(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append((node, at))
    named: dict[str, int] = {}
    feeds = {}
    for value in graph.inputs:
        shape = tuple(_size(d, i, len(value.known), named) for i, d in enumerate(value.known))
        rows = _rows(value, readers, 8)
        feeds[value.name] = _random(rng, value, shape, rows)
    return feeds


def _size(dim: Any, axis: int, rank: int, named: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    default = 2 if axis == 0 else IMAGE_SIZE if rank >= 4 and axis >= 2 else OTHER_SIZE
    if dim is None:
        return default
    return named.setdefault(dim, NAMED_SIZES.get(dim, default))


def _rows(value: Value, readers: Mapping[Value, list[tuple[Node, int]]], depth: int) -> int | None:
    """The size of the table that ``value`` indexes, None if it is no index."""
    for node, at in readers.get(value, ()) if depth else ():
        if node.op == "Gather" and at == 1 and node.inputs[0] is not None:
            axis = node.attrs.get("axis", 0)
            shape = node.inputs[0].shape
            rows = shape[axis] if shape is not None and isinstance(axis, int) else None
            return rows if isinstance(rows, int) else None
        if node.op in PASSED_ON and at == 0:
            found = _rows(node.outputs[0], readers, depth - 1)
            if found is not None:
                return found
    return None


def _random(
    rng: np.random.Generator, value: Value, shape: tuple[int, ...], rows: int | None
) -> Array:
    dtype = value.type
    if rows is not None or dtype.kind in "iu":
        return rng.integers(0, rows or 8, shape).astype(dtype.numpy)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind != "f":
        raise UsageError(f"no random inputs of type {dtype.value}: give data")
    return rng.standard_normal(shape).astype(dtype.numpy)
