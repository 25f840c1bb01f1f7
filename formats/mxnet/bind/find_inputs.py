"""Variables that are inputs though the parameter file has an array for them.

C++ front ends save ``executor.arg_dict`` whole: the last batch and its labels lie in the file
beside the weights. MXNet tells inputs from parameters by what its caller names; here operators,
names and the variables' own nodes tell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from serde.errors import UsageError
from serde.ir.geometry import Ints
from serde.ir.graph import Graph, Node, Value, show_shape
from serde.passes.cut_inputs import LABEL

from ..infer_shapes.relations import ALIKE
from .declared import (
    LABELS,
    OUTPUT_LAYERS,
    PARAMETERS,
    Declared,
    find_expected_shapes,
    is_parameter_name,
)

# Operators of several operands that are all computed, or fed: none is usually a weight.
FED = frozenset(
    "BilinearSampler Correlation Crop GridGenerator ROIPooling SequenceLast SequenceMask "
    "SequenceReverse SpatialTransformer _contrib_MultiProposal _contrib_PSROIPooling "
    "_contrib_Proposal _contrib_ROIAlign slice_like broadcast_like reshape_like".split()
)
# Operators whose operands are computed with element by element, or put side by side.
ALIKE_OR_JOINED = ALIKE | {"Concat", "stack"}


def find_inputs(
    graph: Graph, variables: Mapping[str, Declared], shapes: Mapping[str, Ints],
    named: Collection[str], path: str,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The variables with an array in the file at ``path`` that are inputs, and those of labels.

    ``shapes`` are those of the arrays. Inputs are variables that no operator declares as its
    parameter: those that are ``named``, and those that layers read as data, where the name and the
    node of the variable do not say parameter (or the name alone does, of what a layer reads), and
    nothing fed is mixed in on the way. Where another
    input has no array, the file was not saved whole: only what layers with weights read alone
    counts.

    Raises:
        UsageError: where every variable has an array and nothing tells an input.
    """
    declared = {name for name, _, _ in find_expected_shapes(graph)}
    trained = {n for n, about in variables.items() if about.is_trained}
    by_name = {v.name for v in graph.inputs if is_parameter_name(v.name)} - declared - trained
    parameters = declared | (trained | by_name).difference(named)
    labels = _find_labels(graph) - parameters
    parameters -= _find_misnamed(graph, by_name, parameters | labels, shapes)
    others = [v for v in graph.inputs if v.name not in parameters | labels]
    reading = _Reading(graph, others, parameters, shapes, named)
    read = {v.name for v in graph.inputs if v in reading.data} - parameters
    is_used = not {v for node in graph.nodes for v in node.inputs}.isdisjoint(others)
    if is_used and not (reading.fed or read):
        raise UsageError(_ask_for_inputs([v.name for v in others], shapes, path))
    data = read | labels.union(v.name for v in others).intersection(named)
    return [n for n in shapes if n in data], [n for n in shapes if n in labels - data]


def _find_misnamed(
    graph: Graph, by_name: Collection[str], known: Collection[str], shapes: Mapping[str, Ints]
) -> set[str]:
    """Inputs that are called as parameters are: a layer reads them as its data.

    They have the batch of the others, or there are no others, in a file that was saved whole.
    """
    others = [v.name for v in graph.inputs if v.name not in known]
    if not shapes.keys() >= {*others}:
        return set()
    batches = {shapes[n][:1] for n in others}
    data = {v.name for node in graph.nodes if node.op in PARAMETERS for v in node.inputs[:1] if v}
    read = data.intersection(by_name, shapes)
    return {n for n in read if not others or shapes[n][:1] in batches}


def _ask_for_inputs(names: list[str], shapes: Mapping[str, Ints], path: str) -> str:
    listed = ", ".join(f"{n!r} {show_shape(shapes[n])}" for n in names[:8])
    example = ",".join(map(str, shapes[names[0]]))
    return (
        f"the model would have no input: {path} has an array for every variable, and no operator "
        f"tells which of {listed} is one. Name each input, as in --input {names[0]}={example}; "
        f"--set-input {names[0]}=FILE.npy makes one a constant"
    )


def _find_labels(graph: Graph) -> set[str]:
    """Variables that are labels by name, or by what reads them."""
    labels = {v for v in graph.inputs if v.name.endswith(LABEL)}
    for node in reversed(graph.nodes):
        positions = (1,) if node.op in OUTPUT_LAYERS else LABELS.get(node.op, ())
        operands = [v for v in node.inputs if v is not None]
        if len(operands) == 1 and labels.issuperset(node.outputs):
            labels.update(operands)
        labels.update(v for at, v in enumerate(node.inputs) if v is not None and at in positions)
    return {v.name for v in labels}


class _Reading:
    """The values that are read as ``data``.

    ``fed`` are variables that are surely inputs. What is computed of one, or by a layer with
    parameters, may be mixed with a weight. The file ``is_whole`` if it has an array for each of the
    ``others``, the variables that are neither parameters nor labels.
    """

    def __init__(
        self, graph: Graph, others: Sequence[Value], parameters: Collection[str],
        shapes: Mapping[str, Ints], named: Collection[str],
    ) -> None:  # fmt: skip
        self.parameters = {v for v in graph.inputs if v.name in parameters}
        self.fed = {v for v in others if v.name not in shapes or v.name in named}
        self.is_whole = all(v.name in shapes for v in others)
        self.computed = {*self.fed}
        # The shape of the largest variable that a value is computed from, by number of elements.
        self.largest = {v: shapes[v.name] for v in graph.inputs if v.name in shapes}
        for node in graph.nodes:
            operands = [v for v in node.inputs if v is not None]
            is_layer = node.op in PARAMETERS or any(node.graphs())
            if is_layer or not self.computed.isdisjoint(operands):
                self.computed.update(node.outputs)
            elif sources := [self.largest[v] for v in operands if v in self.largest]:
                self.largest.update(dict.fromkeys(node.outputs, max(sources, key=math.prod)))
        makes = {v for node in graph.nodes for v in node.outputs}
        self.data = makes.intersection(graph.outputs if self.is_whole else ())
        for node in reversed(graph.nodes):
            self.data.update(self._data_operands(node))
        if self.is_whole:
            self.data.update(self._find_beside_data(graph, self.data.intersection(others)))

    def _data_operands(self, node: Node) -> Iterable[Value]:
        operands = [v for v in node.inputs if v is not None and v not in self.parameters]
        if node.op in PARAMETERS:
            return self._data_of_layer(node)
        if node.op in FED or node.op in OUTPUT_LAYERS:
            fed = node.inputs[:1] if node.op in OUTPUT_LAYERS else operands
            return (v for v in fed if v is not None and self.is_whole)
        if self.data.isdisjoint(node.outputs):
            return ()
        is_mixing = node.op in ALIKE_OR_JOINED or node.op.startswith("broadcast_")
        if len(operands) == 1 or not is_mixing:
            return operands if len(operands) == 1 else ()
        shapes = {v: self.largest[v] for v in operands if v in self.largest}
        if not self.computed.isdisjoint(operands) or not shapes:
            return ()
        batch = max(shapes.values(), key=math.prod)[:1]
        return [v for v, shape in shapes.items() if shape[:1] == batch]

    def _find_beside_data(self, graph: Graph, data: Collection[Value]) -> Iterable[Value]:
        """What is joined with, or as large as, something computed, and has the batch of ``data``.

        A weight there would fix the size of the batch.
        """
        batches = {self.largest[v][:1] for v in data} - {(1,)}
        for node in graph.nodes:
            is_of_rows = node.op == "Concat" and node.attrs.get("dim") == "0"
            is_beside = node.op in ALIKE_OR_JOINED and not is_of_rows
            if is_beside and not self.computed.isdisjoint(node.inputs):
                shapes = {v: self.largest[v] for v in node.inputs if v in self.largest}
                yield from (v for v, shape in shapes.items() if shape[:1] in batches)

    def _data_of_layer(self, node: Node) -> list[Value]:
        """The operands that are no parameters; only the first, of arrays, in a part of a model."""
        positions = PARAMETERS[node.op]
        if self.is_whole:
            return [v for i, v in enumerate(node.inputs) if v is not None and i not in positions]
        weights = [v for i, v in enumerate(node.inputs) if v is not None and i in positions]
        return [v for v in node.inputs[:1] if v is not None and self.computed.isdisjoint(weights)]
