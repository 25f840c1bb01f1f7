"""From the IR to a graph of the opset that is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from serde.errors import UsageError
from serde.ir.graph import Graph
from serde.legalize.convert import (
    LOWEST_WRITTEN,
    lower_to,
    lower_to_target,
    require_opset,
    without_functions,
)
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
from serde.passes.same_pads import settle_same_pads
from serde.passes.sink_reversals import sink_reversals
from serde.plugins import get_target
from serde.rewrite.outline import KEEP, Keep, forget_calls, outline_calls

from . import consumers
from .consumers.onnxruntime.forms import avoid_runtime_forms, operators_without_kernel
from .domain_versions import fit_domain_versions
from .writer import FUNCTIONS_IR, least_ir_version

STEPS = (
    sink_reversals, fold_bias, fold_pads, narrow_operands, drop_neutral, merge_slices,
    merge_reshapes, merge_reductions, make_gemms, join_parallel_products, expand_constants,
)  # fmt: skip
# Steps that consumers do without: pnnx takes attention of layers that read rows for another.
LEFT_OUT: Mapping[str | None, tuple[Any, ...]] = MappingProxyType({"ncnn": (make_gemms,)})

WITHOUT_AUTO_PAD = frozenset({"onnx2torch"})


def from_ir(
    graph: Graph,
    opset: int = 17,
    ir_version: int | None = None,
    decomposed: Collection[str] = frozenset(),
    functions: Keep = "keep",
    integer_kernels: bool = True,
    importer: str | None = None,
    int8_weights: bool = False,
) -> Graph:
    """Lower the IR to ``opset``; functions are kept where the file's IR version has them.

    ``integer_kernels`` writes products of integers in units of 1 as ``QLinearConv`` and
    ``QLinearMatMul``, which every runtime computes alike; ``int8_weights`` writes weights of these
    and of integer products as int8 in place of uint8. ``importer="relax"`` keeps to what TVM's
    importer into Relax gets right; the name of a plug-in's target, to what that takes.
    """
    require_opset(opset, LOWEST_WRITTEN)
    if functions not in KEEP:
        raise UsageError(f"functions={functions!r} is not one of {', '.join(KEEP)}")
    version = least_ir_version(opset) if ir_version is None else ir_version
    graph = fit_domain_versions(graph, opset)
    kept = functions if version >= FUNCTIONS_IR and importer is None else "inline"
    graph = forget_calls(graph, kept)
    if importer is not None:
        graph = name_dimensions(graph)
    if importer in WITHOUT_AUTO_PAD:
        graph = settle_same_pads(graph)
    for step in STEPS:
        if step not in LEFT_OUT.get(importer, ()):
            graph = step(graph)
    if importer is not None:
        if integer_kernels:
            graph = use_qlinear_ops(without_functions(graph), True, False)
        legal = _legalize_for(importer, graph, opset)
        legal = use_int8_weights(legal) if int8_weights else legal
        return name_constants(consumers.prepare(importer, legal))
    older = operators_without_kernel(opset).union(decomposed)
    lowered = drop_neutral(lower_to(graph, opset, kept != "inline", older, integer_kernels))
    lowered = use_int8_weights(lowered) if int8_weights else note_uint8_weights(lowered)
    return outline_calls(name_constants(avoid_runtime_forms(lowered)), kept)


def _legalize_for(importer: str, graph: Graph, opset: int) -> Graph:
    from .consumers import relax

    if (consumer := consumers.get_consumer(importer)) is not None:
        if consumer.opsets is not None and opset not in consumer.opsets:
            first, last = consumer.opsets[0], consumer.opsets[-1]
            raise UsageError(
                f"the profile {importer} is measured with opsets {first} to {last}, and its "
                f"runtime may get files of opset {opset} wrong: leave out opset"
            )
        return avoid_runtime_forms(lower_to_target(graph, replace(consumer, opset=opset)))
    if importer != "relax":
        target = get_target(importer)
        if opset != target.opset:
            raise UsageError(f"the target {importer} takes opset {target.opset} only")
        return lower_to_target(graph, target)
    if opset != relax.OPSET:
        raise UsageError(f"TVM's importer into Relax is known at opset {relax.OPSET} only")
    return relax.for_relax(graph)
