"""Operators Relay has not, or not in such a form, as operators of the IR that it has."""

from __future__ import annotations

from functools import cache

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Graph
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.emulate_types import STORAGE_TYPE
from serde.legalize.target import Target
from serde.legalize.walk import Legalized, legalize
from serde.passes import tidy

from .target import TYPES, legalizations, writes

# TVM accumulates float16 in float16, ONNX Runtime in float32 (products have an ``out_dtype``), and
# does not compile inverse functions of it.
WITHOUT_HALVES = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh AveragePool ConvTranspose CumProd CumSum Einsum "
    "GlobalAveragePool GlobalLpPool InstanceNormalization LRN LogSoftmax LpNormalization "
    "LpPool MeanVarianceNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean "
    "ReduceProd ReduceSum ReduceSumSquare Softmax".split()
)
WIDE = {"T": frozenset(DType) - {DType.FLOAT16}}


@cache
def relay_target() -> Target:
    """Relay, once all families have filled the tables."""
    rules = add_decompositions(legalizations, writes.rules)
    named = (*writes.rules, *(WITHOUT_HALVES & rules.rules.keys()))
    operators = {op: WIDE if op in WITHOUT_HALVES else {} for op in named}
    return Target(
        "relay", supports=operators, legalizations=rules, emulated=frozenset(STORAGE_TYPE) - TYPES
    )


def legalize_for_relay(graph: Graph) -> Legalized:
    """Rewrite an IR graph into one whose operators, but those without any way, Relay has."""
    graph = scalarize_sequences(without_functions(graph, traced=True))
    return legalize(graph, relay_target(), tidy)
