"""From a graph of MXNet's operators to the IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from serde.decompositions.random_source import with_random
from serde.errors import Unconvertible, UsageError
from serde.ir.graph import Graph
from serde.spec.onnx_builder import OnnxBuilder

from . import ops
from .bind.bind_params import refuse_missing_parameters
from .bind.cast_arrays import cast_arrays
from .bind.declared import Declared
from .bind.symbol_info import SymbolInfo, symbol_info
from .decode import VERSION, parse_version
from .infer_shapes.begin_states import infer_open_sizes
from .infer_shapes.infer_inputs import InputShapes, complete_inputs
from .infer_shapes.merge_shapes import BATCH
from .infer_shapes.shape_checks import check_shapes
from .ops.output_layers import plain_kernels
from .ops.quantization.layers import floating, floating_second
from .ops.random.sampling import draws
from .passes.custom_ops import (
    CUSTOM,
    Rules,
    add_custom_rules,
    collect_custom_ops,
    keep_custom_nodes,
    rename_by_kind,
)
from .passes.drop_labels import drop_labels, drop_unread_labels
from .passes.inference_mode import collect_notes
from .passes.mark_requantized import requantized_hints
from .passes.strip_nms import apply_nms_option
from .rules import SECOND, reads, reads_of

__all__ = ["ops", "reads", "to_ir"]


def to_ir(
    graph: Graph, *, rules: Rules | None = None, random: str = "refuse",
    custom_domain: str | None = None, custom_outputs: Mapping[str, Any] | None = None,
    nms: str = "full", integers: str = "exact", dequantize: bool = False, kernels: str = "onednn",
    outputs: Sequence[str] | None = None, missing_weights: str = "refuse", training: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite an MXNet graph into the IR, with all its inputs but labels.

    Outputs that only training needs are left out, unless the caller named the ``outputs``.

    ``rules`` are rules by operator, taken before those there are, or a table instead of it. With
    a ``custom_domain`` operators MXNet does not define are kept, in that domain; what they compute
    has the shapes ``custom_outputs`` says.

    ``random`` says what becomes of operators that draw random numbers: with ``refuse`` they are
    not converted, with ``onnx`` the runtime draws them, with ``input`` they are made of noise that
    is an input of the model. With ``nms="none"`` a detector gives the boxes and scores that its
    last suppression would choose from. Fused integer layers compute with integers in units of 1
    between a dequantisation and a quantisation, which give those of MXNet bit for bit; with
    ``integers="qdq"``, or where they are to be dequantised (``dequantize``), they compute with the
    numbers those stand for. With ``missing_weights="infer"``, for checks, ones of the shapes that
    are inferred stand for weights of which no file was found. Where MXNet's kernels disagree, the
    results are those of ``kernels``: of the ``onednn`` ones, as released, or the ``plain`` ones of
    a build without oneDNN. ``training`` keeps Dropout, and how fast statistics move.

    Raises:
        MalformedFile: for parameters without a value. UsageError: for inputs without a shape.
        Unconvertible: for every node no rule takes.
    """
    info = symbol_info(graph)
    ops_of_user = collect_custom_ops(rules) | ({CUSTOM} if custom_domain is not None else set())
    graph = drop_labels(graph, outputs is not None, ops_of_user)
    graph = apply_nms_option(graph, nms)
    if missing_weights == "infer":
        from .bind.placeholders import add_placeholders

        graph = add_placeholders(graph)
    else:
        refuse_missing_parameters(graph)
    graph = cast_arrays(graph, info.variables)
    exact = integers == "exact" and not dequantize
    version = parse_version(graph.metadata.get(VERSION))
    known = reads_of(version)
    if not exact:
        known = known.merge(floating.rules)
        known = known.merge(floating_second.rules) if version >= SECOND else known
    known = known if kernels == "onednn" else known.merge(plain_kernels.rules)
    table = with_random(add_custom_rules(known, graph, rules), draws, random)
    table = table.with_guard(partial(check_shapes, info.has_numpy_shapes))
    try:
        complete = complete_inputs(graph, _declare_array_shapes(graph, info))
    except UsageError:
        if custom_domain is None:
            from .infer_shapes.failures import refuse_operators

            refuse_operators(rename_by_kind(graph, table), table)
        raise
    complete = rename_by_kind(complete, table)
    if exact:
        table = table.with_hints(requantized_hints(complete, table))
    if custom_outputs and custom_domain is None:
        raise UsageError(
            "--custom-output is of operators that --custom-domain keeps: give that too"
        )
    if custom_domain is not None:
        complete, table = keep_custom_nodes(complete, table, custom_domain, custom_outputs or {})
    complete = infer_open_sizes(complete, table, unknown=-1 if info.has_numpy_shapes else 0)
    try:
        builder = OnnxBuilder(graph.name)
        builder.for_training = builder.keeps_weights = training
        done = drop_unread_labels(table.rewrite(complete, builder))
    except Unconvertible as error:
        from .infer_shapes.failures import refuse_given_shapes

        refuse_given_shapes(graph, info.variables, error, table)
        raise
    kept = {k: v for k, v in graph.metadata.items() if k == VERSION}
    notes = dict.fromkeys((*done.notes, *collect_notes(complete.ordered_nodes(), training)))
    return replace(done, metadata=kept, notes=tuple(notes))


def _declare_array_shapes(graph: Graph, info: SymbolInfo) -> Mapping[str, Declared]:
    """What is known of the variables; sizes that operators do not tell are those of the batch in
    the file.
    """
    arrays = {v: a.shape for v in graph.inputs
              if v.shape is None and (a := info.input_arrays.get(v.name)) is not None}  # fmt: skip
    if not arrays:
        return info.variables
    declared, inferred = {**info.variables}, InputShapes(graph, info.variables)
    for v, saved in arrays.items():
        shape = None if v in inferred.undetermined else inferred.shape_of(v)
        if saved and (shape is None or len(shape) == len(saved)):
            known = shape or (BATCH, *saved[1:])
            merged = tuple(
                (d or BATCH) if not axis else saved[axis] if d is None else d
                for axis, d in enumerate(known)
            )
            declared[v.name] = declared.get(v.name, Declared())._replace(shape=merged)
    return declared
