"""Variables that are inputs though the parameter file has an array for them.

C++ front ends save ``executor.arg_dict`` whole: the last batch and its labels lie in the file
beside the weights. MXNet tells inputs from parameters by what its caller names; here operators,
names and the variables' own nodes tell. What these leave open is refused, unless a caller names
inputs: then the other arrays are constants, as in MXNet.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from serde.errors import UsageError
from serde.ir.geometry import Ints
from serde.ir.graph import Graph, Node, Value, show_shape
from serde.passes.cut_inputs import LABEL

from ..operators import ALL, describe
from .declared import Declared, is_parameter_name, list_parameters

SHOWN = 8  # names in a message


class FoundInputs(NamedTuple):
    """Variables with an array that are inputs, that are labels, and that may be inputs as well but
    are constants, as a caller named others.
    """

    inputs: list[str]
    labels: list[str]
    constants: list[str]


def find_inputs(
    graph: Graph, variables: Mapping[str, Declared], shapes: Mapping[str, Ints],
    named: Collection[str], path: str,
) -> FoundInputs:  # fmt: skip
    """Tell inputs among the variables that have an array in the file at ``path``.

    ``shapes`` are those of the arrays. Variables that are ``named`` are inputs. Where another
    input has no array, the file was not saved whole, and all other arrays are constants.
    Otherwise inputs are variables that layers read as data and whose first size is a batch of more
    than 1, or the only one; no operator declares them as its parameters, nor does their name or
    node.

    Raises:
        UsageError: where an array may be an input or a parameter, and no input is named.
    """
    declared = list_parameters(graph)
    trained = {n for n, about in variables.items() if about.is_trained}
    by_name = {v.name for v in graph.inputs if is_parameter_name(v.name)} - declared - trained
    labels = find_labels(graph) - declared - (trained | by_name).difference(named)
    known = declared | labels | (trained | by_name).difference(named)
    others = [v for v in graph.inputs if v.name not in known]
    chosen = {v.name for v in graph.inputs if v.name in named} - declared
    if not shapes.keys() >= {v.name for v in others}:
        return _sort(shapes, chosen, labels, ())
    used = {v for node in graph.nodes for v in node.inputs}.union(graph.outputs)
    called = {v.name for v in used if v and v.name in by_name}
    if not called <= shapes.keys():
        return _sort(shapes, chosen, labels, ())
    misnamed = _find_misnamed(graph, by_name - chosen, others, shapes)
    candidates = [v for v in graph.inputs if v in used and (v in others or v.name in misnamed)]
    reading = _Reading(graph, candidates, known - misnamed, shapes, chosen)
    certain = {v.name for v in candidates if v in reading.data} - chosen
    if len(certain | chosen) > 1:  # a learned row that a layer of its own reads looks alike
        certain -= {n for n in certain if shapes[n][:1] == (1,)}
    called -= misnamed | chosen
    if not certain | chosen:
        certain = _find_only_one([v.name for v in candidates] or [*called], shapes)
    doubtful = {v.name for v in candidates} - certain - chosen
    inputs = certain | chosen
    doubtful |= (_find_shaped_as_data(called, shapes, inputs) if inputs else called) - inputs
    if doubtful and not chosen:
        raise UsageError(_ask_for_inputs(certain, doubtful, shapes, path))
    return _sort(shapes, certain | chosen, labels, doubtful)


def _sort(
    shapes: Mapping[str, Ints], inputs: Collection[str], labels: Collection[str],
    constants: Collection[str],
) -> FoundInputs:  # fmt: skip
    """The names in the order of the variables."""
    return FoundInputs(
        [n for n in shapes if n in inputs],
        [n for n in shapes if n in labels and n not in inputs],
        [n for n in shapes if n in constants],
    )


def _find_only_one(names: Sequence[str], shapes: Mapping[str, Ints]) -> set[str]:
    """The one variable that may be an input, unless it is a single number."""
    return {*names} if len(names) == 1 and math.prod(shapes[names[0]]) > 1 else set()


def _find_misnamed(
    graph: Graph, by_name: Collection[str], others: Sequence[Value], shapes: Mapping[str, Ints]
) -> set[str]:
    """Variables that are called as parameters are, and that a layer reads as its data.

    They have the batch of the ``others``, if there are some.
    """
    batches = {shapes[v.name][:1] for v in others}
    layers = (node for node in graph.nodes if describe(node.op).parameters)
    data = {v.name for node in layers for v in node.inputs[:1] if v}
    read = data.intersection(by_name, shapes)
    return {n for n in read if not others or shapes[n][:1] in batches}


def _find_shaped_as_data(
    names: Collection[str], shapes: Mapping[str, Ints], inputs: Collection[str]
) -> set[str]:
    """Those of the variables that are called as parameters are and have the batch of ``inputs``."""
    batches = {shapes[n][:1] for n in inputs if n in shapes}
    arrays = {n: shapes[n] for n in names if n in shapes}
    shaped = {n for n, s in arrays.items() if len(s) > 1 and s[:1] in batches}
    return shaped | {n for n, s in arrays.items() if s == (1,)}


def _ask_for_inputs(
    certain: Collection[str], doubtful: Collection[str], shapes: Mapping[str, Ints], path: str
) -> str:
    names = [n for n in shapes if n in doubtful]
    listed = ", ".join(f"{n!r} {show_shape(shapes[n])}" for n in names[:SHOWN])
    listed += ", …" if len(names) > SHOWN else ""
    inputs = [n for n in shapes if n in certain]
    flags = [f"--input {n}={','.join(map(str, shapes[n]))}" for n in (inputs or names)[:SHOWN]]
    more = f"--input {names[0]}={','.join(map(str, shapes[names[0]]))}"
    also = f", and with {more} if {names[0]!r} is one" if inputs else ""
    return (
        f"{path} has an array for every variable, inputs too, and no operator tells whether "
        f"{listed} is an input or a parameter. Name each input, as with {' '.join(flags)}{also}: "
        f"arrays that no --input names are constants"
    )


def find_labels(graph: Graph) -> set[str]:
    """Variables that are labels by name, or by what reads them."""
    labels = {v for v in graph.inputs if v.name.endswith(LABEL)}
    for node in reversed(graph.nodes):
        positions = describe(node.op).labels
        operands = [v for v in node.inputs if v is not None]
        if len(operands) == 1 and labels.issuperset(node.outputs):
            labels.update(operands)
        labels.update(v for at, v in enumerate(node.inputs) if v is not None and at in positions)
    return {v.name for v in labels}


class _Reading:
    """The values that are read as ``data``, in a file that was saved whole.

    ``fed`` are variables that are surely inputs. What is computed of one, or by a layer with
    parameters, may be mixed with a weight.
    """

    def __init__(
        self, graph: Graph, candidates: Sequence[Value], parameters: Collection[str],
        shapes: Mapping[str, Ints], named: Collection[str],
    ) -> None:  # fmt: skip
        self.parameters = {v for v in graph.inputs if v.name in parameters}
        self.computed = {v for v in graph.inputs if v.name in named}
        # The shape of the largest variable that a value is computed from, by number of elements.
        self.largest = {v: shapes[v.name] for v in graph.inputs if v.name in shapes}
        for node in graph.nodes:
            operands = [v for v in node.inputs if v is not None]
            is_layer = describe(node.op).parameters or any(node.graphs())
            if is_layer or not self.computed.isdisjoint(operands):
                self.computed.update(node.outputs)
            elif sources := [self.largest[v] for v in operands if v in self.largest]:
                self.largest.update(dict.fromkeys(node.outputs, max(sources, key=math.prod)))
        makes = {v for node in graph.nodes for v in node.outputs}
        self.data = makes.intersection(graph.outputs)
        for node in reversed(graph.nodes):
            self.data.update(self._data_operands(node))
        self.data.update(self._find_beside_data(graph, self.data.intersection(candidates)))

    def _data_operands(self, node: Node) -> Iterable[Value]:
        about = describe(node.op)
        if about.parameters:
            return [v for i, v in enumerate(node.inputs) if v and i not in about.parameters]
        operands = [v for v in node.inputs if v is not None and v not in self.parameters]
        if about.is_fed:
            return operands
        if about.labels and about.unread:
            return [v for v in node.inputs[:1] if v is not None]
        if self.data.isdisjoint(node.outputs):
            return ()
        is_mixing = is_alike_or_joined(node) or node.op.startswith("broadcast_")
        if len(operands) == 1 or not is_mixing:
            return operands if len(operands) == 1 else ()
        shapes = {v: self.largest[v] for v in operands if v in self.largest}
        is_pure = self.computed.isdisjoint(operands) and len(shapes) == len(operands)
        return _find_of_one_batch(shapes) if shapes and is_pure else ()

    def _find_beside_data(self, graph: Graph, data: Collection[Value]) -> Iterator[Value]:
        """What is joined with, or as large as, something computed, and has the batch of ``data``.

        A weight there would fix the size of the batch.
        """
        batches = {self.largest[v][:1] for v in data} - {(1,)}
        for node in graph.nodes:
            is_of_rows = node.op == "Concat" and node.attrs.get("dim") == "0"
            is_beside = is_alike_or_joined(node) and not is_of_rows
            if is_beside and not self.computed.isdisjoint(node.inputs):
                shapes = {v: self.largest[v] for v in node.inputs if v in self.largest}
                yield from (v for v, shape in shapes.items() if shape[:1] in batches)


def is_alike_or_joined(node: Node) -> bool:
    """Whether operands are computed with element by element, or put side by side."""
    return describe(node.op).shaped == ALL or node.op in ("Concat", "stack")


def _find_of_one_batch(shapes: Mapping[Value, Ints]) -> list[Value]:
    """Of operands that are mixed, those that surely are data: the larger one, and such that have
    its batch. A batch of 1 tells nothing.
    """
    largest = max(shapes.values(), key=math.prod)
    if largest[:1] != (1,):
        return [v for v, s in shapes.items() if s[:1] == largest[:1] and len(s) == len(largest)]
    largest_inputs = [v for v, s in shapes.items() if math.prod(s) == math.prod(largest)]
    return largest_inputs if len(largest_inputs) == 1 else []
