"""Proof of a conversion: source and result on the same inputs, compared output by output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MissingDependency, UsageError
from serde.graph import Graph
from serde.plugins import bridge_for, format_of, running
from serde.verification.compare_outputs import Compared, compare, mark_failed
from serde.verification.given_arrays import expected_outputs, feeds_for
from serde.verification.random_inputs import SEED

Array = np.ndarray[Any, Any]


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
    feeds, said = feeds_for(graph, data, seed)
    found = running(format_of(Path(target)).name)
    if found is None or found.run is None:
        return Verification(False, "", said, statement="the result's format cannot be run here")
    if expected is not None:
        wanted, origin = expected_outputs(graph, expected), "the outputs given"
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
        yield mark_failed(shown, f"{len(got)} tensors where the source has {len(wanted)}")
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
