"""What a file holds: a model in its own operators, or arrays alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serde.api.report.data import (
    count_operators,
    describe_model,
    describe_value,
    describe_weights,
    to_json,
)
from serde.errors import SerdeError, escape_controls
from serde.io.command_files import active_files, within_command
from serde.ir.budget import within_budget
from serde.ir.graph import Graph, Tensor, Value
from serde.ir.printer import show_value
from serde.ir.weights import Statistics, find_weights, make_weight, measure
from serde.pipeline import read
from serde.plugins import get_format, installed_formats, read_classes, select_options
from serde.plugins.keywords import with_options
from serde.plugins.options import list_options

SCHEMA = 1  # version of the JSON; fields may be added to it


@dataclass(repr=False)
class Inspection:
    """What a source holds. ``graph`` is the model in its own operators, None for arrays alone.

    ``weights`` are all tensors, those of Constant nodes and subgraphs too. ``notes`` tell why
    shapes are not known.
    """

    source: str
    format: str
    version: str
    graph: Graph | None
    weights: list[Value]
    notes: list[str]

    @property
    def parameters(self) -> int:
        """How many numbers the weights have."""
        return sum(w.tensor.size for w in self.weights if w.tensor is not None)

    @property
    def weight_bytes(self) -> int:
        """How many bytes they take."""
        return sum(w.tensor.nbytes for w in self.weights if w.tensor is not None)

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The inputs as a report describes them."""
        return [describe_value(v) for v in (self.graph.inputs if self.graph else ())]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The outputs as a report describes them."""
        return [describe_value(v) for v in (self.graph.outputs if self.graph else ())]

    @property
    def operators(self) -> dict[str, int]:
        """How many nodes of each operator there are."""
        return count_operators(self.graph) if self.graph else {}

    def measure_weights(self) -> Iterator[tuple[Value, Statistics | None]]:
        """Each weight with its statistics, loaded one after the other."""
        for weight in self.weights:
            yield weight, measure(weight.array())

    def describe(self, has_values: bool = False) -> Iterator[str]:
        """Lines of what a source holds; with every value, and the weights' statistics, if asked."""
        graph, title = self.graph, f"{self.format} {self.version}".strip()
        if graph is None:
            yield f"{self.source}: parameters of {title}, {len(self.weights)} arrays"
            yield f"  {describe_weights(self)}"
        else:
            yield f"{self.source}: {title}, {len(graph.nodes)} nodes"
            yield from describe_model(self)
        for node in graph.ordered_nodes() if graph is not None and has_values else ():
            yield f"  {node.op}: {', '.join(map(show_value, node.outputs))}"
        if has_values:
            for weight, statistics in self.measure_weights():
                yield f"  weight {show_value(weight)}{f': {statistics}' if statistics else ''}"
        elif graph is None:
            yield from (f"  {show_value(weight)}" for weight in self.weights)

    def __str__(self) -> str:
        lines = [*self.describe(), *(f"note: {note}" for note in self.notes)]
        return "\n".join(map(escape_controls, lines))

    __repr__ = __str__

    def to_json(self, all_values: bool = False) -> dict[str, Any]:
        """The fields of the JSON; with every value, and the weights' statistics, if asked for."""
        graph = self.graph
        fields: dict[str, Any] = {
            "schema": SCHEMA, "source": self.source, "source_format": self.format,
            "version": self.version, "parameters": self.parameters,
            "weight_bytes": self.weight_bytes, "notes": self.notes,
        }  # fmt: skip
        if graph is not None:
            fields |= {
                "nodes": len(graph.nodes), "inputs": [*map(_to_entry, graph.inputs)],
                "outputs": [*map(_to_entry, graph.outputs)], "operators": self.operators,
            }  # fmt: skip
        if graph is not None and all_values:
            fields["values"] = [
                {"operator": n.qualified_op if n.domain != graph.domain else n.op, **_to_entry(v)}
                for n in graph.nodes
                for v in n.outputs
            ]
        if all_values or graph is None:
            measured = self.measure_weights() if all_values else ((w, None) for w in self.weights)
            fields["weights"] = [
                _to_entry(w) | ({"statistics": s and s._asdict()} if all_values else {})
                for w, s in measured
            ]
        return dict(to_json(fields))


def _to_entry(value: Value) -> dict[str, Any]:
    """Name, type and shape: a list of sizes, names and null, or null where the rank is unknown."""
    return {"name": value.name, "dtype": value.dtype, "shape": value.shape}


@with_options(read_classes)
@within_command()
def inspect(
    source: Any, *, from_format: str | None = None, all_values: bool = False, **options: Any
) -> Inspection:
    """What a source holds, as it is, with the types and shapes that a conversion would infer.

    A file of parameters is listed, even where a model lies beside it. ``all_values`` is whether the
    types of values inside are inferred too. ``options`` are those that a model is read with.

    Raises:
        SerdeError: where the source cannot be read.
    """
    shown = os.fspath(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    if isinstance(source, (str, os.PathLike)) and not options and from_format is None:
        name, arrays = read_arrays(Path(source))
        if arrays is not None:
            weights = [make_weight(n, t) for n, t in arrays.items()]
            note = "it holds parameters alone: name the model's file to see the model"
            return Inspection(shown, name, "", None, weights, [note])
    graph, name = read(source, from_format=from_format, **options)
    values = [*graph.inputs, *graph.outputs]
    values += [v for n in graph.all_nodes() for v in n.outputs] if all_values else []
    notes = []
    if not isinstance(source, Graph) and any(v.dtype is None or v.shape is None for v in values):
        notes = _infer_types(graph, name, values, options)
    version = graph.metadata.get(f"{name}.version") or (
        "" if graph.domain else f"opset {graph.opset}"
    )
    return Inspection(shown, name, version, graph, find_weights(graph), notes)


def read_arrays(path: Path) -> tuple[str, Mapping[str, Tensor] | None]:
    """The format of a file of parameters, and its arrays; None for other files."""
    for fmt in installed_formats():
        if fmt.read_arrays is not None and (arrays := fmt.read_arrays(path)) is not None:
            active_files().enter(path)
            return fmt.name, arrays
    return "", None


def _infer_types(
    graph: Graph, name: str, values: Iterable[Value], options: Mapping[str, Any]
) -> list[str]:
    """Give values that have none the types of the IR; tell why that is not possible."""
    fmt = get_format(name)
    if "missing_weights" in list_options(fmt.read_options):
        options = {**options, "missing_weights": "infer"}
    try:
        with within_budget():
            assert fmt.to_ir is not None
            ir = fmt.to_ir(graph, **select_options(fmt, "to_ir", options))
    except SerdeError as error:
        first = str(error).partition("\n")[0].removesuffix(":")
        return [f"types and shapes are not known: {first}; serde check tells more"]
    inside = (*ir.all_values(), *ir.outputs, *find_weights(graph))
    known = {v.name: v for v in inside}
    shapes = {} if options.get("inputs") else fmt.list_shapes(graph)
    for value in values:
        inferred = known.get(value.name)
        if inferred is not None:
            value.dtype = value.dtype or inferred.dtype
            value.shape = inferred.shape if value.shape is None else value.shape
        value.shape = shapes.get(value) if value.shape is None else value.shape
    return []
