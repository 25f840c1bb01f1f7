"""From a module to the IR: parameters bound, ``main`` partially evaluated, operators rewritten."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from serde.decompositions.random_source import with_random
from serde.errors import Listing, MalformedFile, UsageError
from serde.ir.graph import Graph, Tensor
from serde.rewrite.rules import RuleTable, add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import ast, ops
from .ops.qdq import QdqRules
from .ops.random import draws
from .partial_eval.evaluator import partially_evaluate
from .partial_eval.types import dtype_of
from .passes.undo_weight_transforms import undo_weight_transforms
from .rules import reads
from .upgrade import ambiguous_nodes, parse_release, upgrade_graph

__all__ = ["check_parameters", "find_entry", "module_graph", "ops", "to_ir"]


def module_graph(
    module: ast.Module, params: Mapping[str, Tensor] | None = None, path: str = "module",
    params_path: str = "", entry: str | None = None, ignore_extra: bool = False,
) -> Graph:  # fmt: skip
    """The graph of a module's operators; ``path`` names it in errors."""
    name = find_entry(module, entry, path)
    arrays = dict(params or {})
    _refuse_mismatches(module.functions[name], arrays, path, params_path, ignore_extra)
    stem = os.path.basename(path)
    for suffix in (".gz", ".json", ".txt", ".relay"):
        stem = stem.removesuffix(suffix)
    return partially_evaluate(module, arrays, name, stem or name, reads.refusal)


def find_entry(module: ast.Module, requested: str | None, path: str) -> str:
    """The function that is the model: the one requested, ``main``, or the only one."""
    names = list(module.functions)
    if requested is not None and requested not in names:
        raise UsageError(f"{path} has no function @{requested}; it has {', '.join(names)}")
    if requested is not None or "main" in names or len(names) == 1:
        return requested or ("main" if "main" in names else names[0])
    if not names:
        raise MalformedFile(path, "the module holds no function")
    raise UsageError(f"{path} has no @main but {', '.join('@' + n for n in names)}: "
                     "name one with entry=")  # fmt: skip


def check_parameters(
    main: ast.Function, arrays: Mapping[str, Tensor], ignore_extra: bool = False
) -> list[str]:
    """Why arrays do not fit the parameters: by name, or by type."""
    params = {p.name: p for p in main.params}
    extra = [n for n in arrays if n not in params]
    unset = [n for n in params if n not in arrays]
    lines = (
        []
        if ignore_extra
        else [f"{n} belongs to no parameter{_suggest_name(n, unset)}" for n in extra]
    )
    for name, param in params.items():
        type_ = param.annotation
        if name in arrays and isinstance(type_, ast.TensorType):
            tensor = arrays[name]
            fits = dtype_of(type_.dtype) is tensor.dtype and len(tensor.shape) == len(type_.shape)
            pairs = zip(tensor.shape, type_.shape, strict=False)
            if not fits or any(isinstance(w, int) and w != d for d, w in pairs):
                dims = ", ".join("?" if not isinstance(d, int) else str(d) for d in type_.shape)
                lines.append(f"{name} is {tensor.dtype.value}{list(tensor.shape)}, "
                             f"@main takes {type_.dtype}[{dims}]")  # fmt: skip
    if extra and unset and lines:
        lines.append(f"without an array, and so inputs: {', '.join(unset)}")
    return lines


def _refuse_mismatches(
    main: ast.Function, arrays: Mapping[str, Tensor], path: str, params_path: str, ignore: bool
) -> None:
    """Raise MalformedFile listing arrays without a parameter, or of the wrong type for theirs."""
    lines = check_parameters(main, arrays, ignore)
    if lines:
        shown = (f"  {line}" for line in lines[:50])
        reason = Listing([f"parameters do not fit {path}:", *shown])
        raise MalformedFile(params_path or "params", reason)


def _suggest_name(name: str, unset: list[str]) -> str:
    close = get_close_matches(name, unset, 1, 0.5)
    return f" (perhaps {close[0]!r})" if close else ""


def to_ir(
    graph: Graph, *, rules: RuleTable | Mapping[str, Any] | None = None, random: str = "refuse",
    integers: str = "exact", dequantize: bool = False, training: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite a graph of Relay's operators into the IR.

    ``rules`` are rules by operator, taken before those there are, or a table instead of it.

    ``random`` chooses how operators that draw random numbers are converted: ``refuse`` refuses
    them, with ``onnx`` the runtime draws them, with ``input`` they read noise from an input of the
    model. With ``integers="qdq"``, or where they are to be dequantized (``dequantize``), quantized
    operators compute with real numbers between DequantizeLinear and QuantizeLinear; otherwise their
    integers are TVM's. ``training`` keeps Dropout.

    Raises:
        Unconvertible: for every node no rule takes.
    """
    release = parse_release(graph.metadata.get("relay.tvm", ""))
    upgraded = upgrade_graph(graph, release)
    table = with_random(rules if isinstance(rules, RuleTable) else reads, draws, random)
    if not isinstance(rules, RuleTable):
        if integers == "qdq" or dequantize:
            table = table.merge(QdqRules().rules())
        table = add_rules(table, rules, {n.op for n in upgraded.all_nodes()})
    if release is None:
        ambiguous = ambiguous_nodes(upgraded)
        table = table.with_hints({n.outputs[0]: {"decide_by_shapes": True} for n in ambiguous})
    builder = OnnxBuilder(graph.name)
    builder.for_training = builder.keeps_weights = training
    done = table.rewrite(undo_weight_transforms(upgraded), builder)
    return replace(done, metadata={k: v for k, v in graph.metadata.items() if v})
