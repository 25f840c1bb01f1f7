"""From the IR to a graph of the opset that is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from serde.errors import UsageError
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to, lower_to_target, require_opset, without_functions
from serde.legalize.target import LOWEST_WRITTEN, Target
from serde.passes.drop_neutral import drop_neutral
from serde.passes.expand_constants import expand_constants
from serde.passes.fold_bias import fold_bias
from serde.passes.fold_pads import fold_pads
from serde.passes.int8_weights import note_uint8_weights, use_int8_weights
from serde.passes.linear_layers import make_gemms
from serde.passes.merge_reductions import merge_reductions
from serde.passes.merge_reshapes import merge_reshapes
from serde.passes.merge_slices import merge_slices
from serde.passes.name_constants import name_constants
from serde.passes.name_dimensions import name_dimensions
from serde.passes.narrow_operands import narrow_operands
from serde.passes.parallel_products import join_parallel_products
from serde.passes.qlinear_ops import use_qlinear_ops
from serde.passes.sink_reversals import sink_reversals
from serde.plugins.consumer import Consumer
from serde.plugins.targets import get_consumer
from serde.rewrite.outline import KEEP, Keep, forget_calls, outline_calls

from .consumers.onnxruntime.forms import avoid_runtime_forms, operators_without_kernel
from .domain_versions import fit_domain_versions
from .model_fields import note_lost_values
from .writer import FUNCTIONS_IR, least_ir_version

STEPS = (
    sink_reversals, fold_bias, fold_pads, narrow_operands, drop_neutral, merge_slices,
    merge_reshapes, merge_reductions, make_gemms, join_parallel_products, expand_constants,
)  # fmt: skip


def from_ir(
    graph: Graph,
    opset: int | None = None,
    ir_version: int | None = None,
    profile: str = "generic",
    functions: Keep | None = None,
    decomposed: Collection[str] = frozenset(),
    integer_kernels: bool | None = None,
    int8_weights: bool = False,
) -> Graph:
    """Lower the IR to ``opset``, as the consumer called ``profile`` takes it.

    Functions are kept where the file's IR version has them. ``integer_kernels`` writes products of
    integers in units of 1 as ``QLinearConv`` and ``QLinearMatMul``, which every runtime computes
    alike; ``int8_weights`` writes weights of these and of integer products as int8 in place of
    uint8. ``decomposed`` operators are written as older ones. What is not given, the consumer says.
    """
    consumer = get_consumer(profile, "onnx")
    opset = consumer.default_opset() if opset is None else opset
    require_opset(opset, LOWEST_WRITTEN)
    functions = consumer.functions if functions is None else functions  # type: ignore[assignment]
    if functions not in KEEP:
        raise UsageError(f"--functions={functions!r} is not one of {', '.join(KEEP)}")
    if integer_kernels is None:
        integer_kernels = consumer.integer_kernels
    target = consumer.get_target()
    version = least_ir_version(opset) if ir_version is None else ir_version
    kept = functions if version >= FUNCTIONS_IR and target is None else "inline"
    graph = forget_calls(fit_domain_versions(graph, opset), kept)
    if target is not None:
        graph = name_dimensions(graph)
    for step in (*consumer.passes, *(s for s in STEPS if s.__name__ not in consumer.skips)):
        graph = step(graph)
    if target is not None:
        lowered = _lower_for(consumer, target, graph, opset, integer_kernels, int8_weights)
        return note_lost_values(lowered)
    older = consumer.decomposed.union(decomposed)
    graph = _note_older(graph, older)
    older = operators_without_kernel(opset) | older
    lowered = drop_neutral(lower_to(graph, opset, kept != "inline", older, integer_kernels))
    lowered = use_int8_weights(lowered) if int8_weights else note_uint8_weights(lowered)
    return note_lost_values(outline_calls(name_constants(avoid_runtime_forms(lowered)), kept))


def _lower_for(
    consumer: Consumer, target: Target, graph: Graph, opset: int, integer_kernels: bool,
    int8_weights: bool,
) -> Graph:  # fmt: skip
    """Lower a graph to the operators that a consumer accepts.

    Raises:
        UsageError: for an opset that it is not known with.
    """
    opsets = consumer.known_opsets()
    if opsets is not None and opset not in opsets:
        first, last = opsets[0], opsets[-1]
        known = f"opset {first} only" if first == last else f"opsets {first} to {last}"
        raise UsageError(
            f"the profile {consumer.name} is known with {known}, and what reads the file may get "
            f"opset {opset} wrong: leave out --opset"
        )
    if integer_kernels:
        graph = use_qlinear_ops(without_functions(graph), True, False)
    target = target if opset == target.opset else replace(target, opset=opset)
    legal = lower_to_target(graph, target)
    legal = avoid_runtime_forms(legal) if consumer.runs_in_onnxruntime else legal
    legal = use_int8_weights(legal) if int8_weights else legal
    return name_constants(legal if consumer.prepare is None else consumer.prepare(legal))


def _note_older(graph: Graph, operators: Collection[str]) -> Graph:
    """The graph, with a note of those operators in it that are written as older ones."""
    older = sorted({n.op for n in graph.all_nodes() if not n.domain}.intersection(operators))
    note = f"{', '.join(older)} written as older operators"
    return replace(graph, notes=(*graph.notes, note)) if older else graph
