"""A module from Relay to ONNX, back to Relay and once more to ONNX, both ONNX models run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.ir.graph import Graph
from testing.directions import Found, error_of, run_onnx

Array = np.ndarray[Any, Any]


def there_and_back(
    ir: Graph, weights: Collection[str], feeds: Mapping[str, Array], expected: Sequence[Array],
    folder: Path, rows: int | None = None,
) -> tuple[Found, Found, list[str]]:  # fmt: skip
    """The errors of both ONNX models, and what is called differently the second time.

    ``ir`` was read from Relay; ``weights`` are the names of its parameters. ``rows`` counts the
    leading rows of the first output that are defined.
    """
    first, second, third = (folder / n for n in ("1.onnx", "2.json", "3.onnx"))
    serde.save(ir, first)
    serde.save(serde.load(first), second, format="relay")
    held = second.with_suffix(".params")
    back = serde.load(second, format="relay", **({"params": held} if held.exists() else {}))
    serde.save(back, third)
    errors = (error_of(run_onnx(p, feeds, 0), expected, rows) for p in (first, third))
    models = (onnx.load(p, load_external_data=False) for p in (first, third))
    return *errors, list(find_renames(*models, weights))


def find_renames(
    before: onnx.ModelProto, after: onnx.ModelProto, weights: Collection[str]
) -> Iterator[str]:
    """Which kinds of names are not those of the first model; of weights those the source has."""
    for kind in ("input", "output", "initializer"):
        old, new = ([v.name for v in getattr(m.graph, kind)] for m in (before, after))
        if kind == "initializer":
            old, new = (sorted(n for n in names if n in weights) for names in (old, new))
        if old != new:
            yield f"{kind}s"
