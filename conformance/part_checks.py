"""Checks of a partitioned model: order, operators, files, and the outputs beside the whole's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from serde.backends.description import DESCRIPTIONS
from serde.backends.parts import ACCELERATOR, Partitioned
from serde.verification.source_runs import GRAPH_OPSET

from .backend_files import find_violations, load_skeleton


def is_legalized(split: Partitioned) -> bool:
    """Whether the backend gets any operators in place of others."""
    is_other = split.backend.target.opset != GRAPH_OPSET
    bodies = (b for p in split.parts for b in p.bodies.values())
    return is_other or any(r.legalized for r in split.report.rows) or any(map(is_legalized, bodies))


def difference(got: Any, expected: Any) -> float:
    """The largest difference in terms of scale; infinite where type, shape or integers differ."""
    if isinstance(expected, list):
        pairs = zip(got, expected, strict=True)
        return max((difference(a, b) for a, b in pairs), default=0.0)
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, expected) else float("inf")
    is_special = ~np.isfinite(got) | ~np.isfinite(expected)
    if not np.array_equal(got[is_special], expected[is_special], equal_nan=True):
        return float("inf")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = got[~is_special].astype(wide), expected[~is_special].astype(wide)
    scale = max(float(np.abs(b).max(initial=0)), 1e-6)
    return float(np.abs(a - b).max(initial=0)) / scale


def has_same_bits(got: Any, expected: Any) -> bool:
    """Whether two outputs are of the same type, shape and bits."""
    if isinstance(expected, list):
        return all(has_same_bits(a, b) for a, b in zip(got, expected, strict=True))
    a, b = np.asarray(got), np.asarray(expected)
    is_alike = a.dtype == b.dtype and a.shape == b.shape
    if not is_alike or a.dtype == object:
        return is_alike and bool(np.array_equal(a, b))
    return a.tobytes() == b.tobytes()


def check_parts(split: Partitioned) -> None:
    """Raise ValueError for parts out of order, or an operator that the backend does not take."""
    known = {v.name for v in split.graph.inputs}
    supports = split.backend.target.supports
    for part in split.parts:
        if late := {v.name for v in part.graph.inputs} - known:
            raise ValueError(f"{part.name} reads {min(late)!r} before it is computed")
        known |= {v.name for v in part.graph.outputs}
        if part.kind == ACCELERATOR and part.legalized is not None and supports is not None:
            others = {n.op for n in part.legalized.all_nodes()} - supports.keys()
            if others:
                raise ValueError(f"{part.name} has {min(others)}, which is not taken")
        for body in part.bodies.values():
            check_parts(body)


def check_files(split: Partitioned, folder: Path) -> None:
    """Raise ValueError for a file of a part with what its backend's description does not take."""
    description = DESCRIPTIONS / f"{split.backend.name}.toml"
    for part in split.accelerator_parts:
        path = folder / f"{part.name}.onnx"
        if description.exists() and split.backend.documented is None:
            reasons = list(find_violations(path, description))
        else:
            model = load_skeleton(path)
            opsets = {o.domain: o.version for o in model.opset_import}
            reasons = [] if opsets == {"": split.backend.target.opset} else [f"opsets {opsets}"]
        if reasons:
            raise ValueError(f"{part.name}: {reasons[0]}")
