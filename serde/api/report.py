"""What a conversion did, for people and as JSON."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from serde.errors import Problem
from serde.ir.graph import DType, Graph, Tensor, Value, show_shape


@dataclass
class Report:
    """The record of one conversion.

    ``files`` are those written, ``operators`` counts the nodes of the result, ``seconds`` is wall
    time by stage, ``problems`` (of a check) what cannot be converted, ``weights_sha256`` the hash
    of the result's weights where it was asked for.
    """

    source: str
    target: str
    source_format: str
    target_format: str
    options: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    parameters: int = 0
    weight_bytes: int = 0
    weights_sha256: str | None = None
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    verification: Any = None

    @property
    def ok(self) -> bool:
        """Whether everything could be converted, and the numbers agree where they were compared."""
        return not self.problems and (self.verification is None or self.verification.ok)

    def describe(self, graph: Graph) -> None:
        """Enter what the result looks like."""
        self.inputs = [_entry(v) for v in graph.inputs]
        self.outputs = [_entry(v) for v in graph.outputs]
        self.operators = dict(
            Counter(
                n.op if n.domain == graph.domain else n.qualified_op for n in graph.nodes
            ).most_common()
        )
        tensors = [v.tensor for v in graph.constants() if v.tensor is not None]
        self.parameters = sum(t.size for t in tensors)
        self.weight_bytes = sum(t.nbytes for t in tensors)

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(_to_json({**_fields(self), "ok": self.ok}), indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as JSON."""
        from serde.io.atomic_write import Replacing

        with Replacing(os.fspath(path)) as files, files.open(os.fspath(path)) as out:
            out.write(self.to_json().encode())


def _entry(value: Value) -> dict[str, Any]:
    dtype = value.dtype.value if value.dtype else None
    return {"name": value.name, "dtype": dtype, "shape": show_shape(value.shape)}


def _fields(thing: Any) -> dict[str, Any]:
    return {f.name: getattr(thing, f.name) for f in fields(thing)}


def _to_json(thing: Any) -> Any:
    """A value as JSON has it.

    NaN and infinity are null; a tensor or an array is its type and shape, ``float32[2,3]``; an
    element type is its name; a set is a sorted list; bytes are text.

    Raises:
        TypeError: for anything a report is not documented to hold.
    """
    if thing is None or isinstance(thing, (str, bool, int)):
        return thing
    if isinstance(thing, (float, np.floating)):
        return float(thing) if math.isfinite(thing) else None
    if isinstance(thing, (np.bool_, np.integer)):
        return thing.item()
    if isinstance(thing, Mapping):
        return {str(k): _to_json(v) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_to_json(v) for v in thing]
    if isinstance(thing, (set, frozenset)):
        return [_to_json(v) for v in sorted(thing)]
    if isinstance(thing, bytes):
        return thing.decode("utf-8", "backslashreplace")
    if isinstance(thing, os.PathLike):
        return os.fspath(thing)
    if isinstance(thing, DType):
        return thing.value
    if isinstance(thing, (Tensor, np.ndarray)):
        return f"{DType.of(thing.dtype).value}[{','.join(map(str, thing.shape))}]"
    if is_dataclass(thing):
        return _to_json(_fields(thing))
    if callable(thing):
        return getattr(thing, "__qualname__", type(thing).__qualname__)
    raise TypeError(f"a report holds no {type(thing).__qualname__}")
