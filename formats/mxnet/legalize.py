"""Operators MXNet lacks, decomposed into operators of the IR that it has.

``legalizations`` has the rules made for MXNet, by family in ``ops``; where it has none,
an operator that came to the standard later becomes what it was before
(``serde.version_converter.adapters``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from serde.decompositions.table import add_decompositions
from serde.ir.graph import BYTES, DType, Graph, Node, Value
from serde.ir.map_nodes import map_nodes
from serde.ir.replace_uses import replace_values
from serde.legalize.convert import scalarize_sequences
from serde.legalize.emulate_types import STORAGE_TYPE
from serde.legalize.target import Target, legalization_table
from serde.legalize.walk import Legalized, legalize
from serde.passes.dce import drop_dead

from .releases import Release
from .target import legalizations, writes

# Operands that are sizes; where they are known by name, a hint ``sizes`` holds them.
SIZES = {"Expand": 1, "Loop": 0, "Range": 1, "Reshape": 1, "Slice": 2, "Split": 1, "TopK": 1}
# Operators that give as much as they find or are asked for when the model runs, and the axis that
# is that long (None: the one they name); others are made of them.
COUNTED: Mapping[str, int | None] = {"NonMaxSuppression": 0, "NonZero": 1, "Range": 0, "TopK": None}
# Operators without kernels for halves, that is on processors, and MaxPool's for bytes.
NO_HALVES = {"T": frozenset(DType) - {DType.FLOAT16}}
OF_WIDE_FLOATS = (
    "Conv ConvTranspose GRU Gemm InstanceNormalization LRN LSTM LogSoftmax MatMul RNN ReduceL2 "
    "ReduceMean ReduceProd ReduceSum Softmax".split()
)
CONSTRAINTS = dict.fromkeys(OF_WIDE_FLOATS, NO_HALVES) | {
    "MaxPool": {"T": frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})}
}
# Operators whose rules need what old releases lack: there they are decomposed.
NEEDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "DeformConv": ("_contrib_ModulatedDeformableConvolution", {}),
    "Erf": ("erf", {}),
    "Gelu": ("LeakyReLU", {"act_type": "gelu"}),
    "If": ("_cond", {}),
    "Loop": ("_foreach", {}),
    "RoiAlign": ("_contrib_ROIAlign", {"aligned": True}),
    "Selu": ("LeakyReLU", {"act_type": "selu"}),
}
CPU_KERNELS = {"GRU": 10300, "RNN": 10300}  # the releases that first have them
Hints = dict[Value, Mapping[str, Any]]  # for rules, by the first output of a node


def mxnet_target(release: Release) -> Target:
    """A release of MXNet, once all families have filled the tables."""
    lacks = [op for op, (needed, attrs) in NEEDS.items() if not release.has(needed, **attrs)]
    lacks += [op for op, first in CPU_KERNELS.items() if release.number < first]
    return _target_without(frozenset(lacks))


@cache
def _target_without(lacks: frozenset[str]) -> Target:
    supported = {op: CONSTRAINTS.get(op, {}) for op in writes.rules if op not in lacks}
    table = legalization_table(legalizations.name)
    table = table.merge({op: r for op, r in legalizations.rules.items() if op not in lacks})
    return Target(
        "mxnet",
        supports=supported,
        legalizations=add_decompositions(table, supported),
        emulated=frozenset(STORAGE_TYPE).difference(BYTES),
        emulates_inputs=True,
        control_flow="Loop" not in lacks,
        counted=COUNTED,
    )


def legalize_for_mxnet(graph: Graph, release: Release) -> tuple[Legalized, Hints]:
    """The graph in operators and element types of a release, as far as it can be, and hints."""
    legal = legalize(_name_unknown_sizes(scalarize_sequences(graph)), mxnet_target(release))
    hints: Hints = {}
    return legal._replace(graph=drop_dead(_collect_size_hints(legal.graph, hints))), hints


def _name_unknown_sizes(graph: Graph) -> Graph:
    """The graph with a name for every unknown size of its inputs."""
    instead = {
        v: Value(v.name, v.dtype, tuple(
            f"{v.name}.{axis}" if d is None else d for axis, d in enumerate(v.shape)
        ))
        for v in graph.inputs
        if v.shape is not None and None in v.shape and not v.container
    }  # fmt: skip
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    return replace(replace_values(graph, instead), inputs=inputs)


def _collect_size_hints(graph: Graph, hints: Hints) -> Graph:
    """Enter what is known of an operand that is sizes into ``hints``, and do not read it.

    MXNet's attributes can say of a size that it is that of another tensor; nothing computes it.
    """
    return map_nodes(graph, lambda node: _add_size_hints(node, hints))


def _add_size_hints(node: Node, hints: Hints) -> Node:
    at = SIZES.get(node.op, len(node.inputs))
    read = node.inputs[at] if at < len(node.inputs) else None
    sizes = None if read is None or read.tensor is not None else read.shape_data
    if sizes is None or None in sizes:
        return node
    hints[node.outputs[0]] = {"sizes": sizes}
    inputs = tuple(None if i == at else v for i, v in enumerate(node.inputs))
    if node.op == "Loop":  # one that ends before has to compare
        inputs = node.inputs
    return replace(node, inputs=inputs)
