"""From a graph of any opset to the IR."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.convert import raise_to_ir
from serde.rewrite.custom_ops import Readers, without_unused_imports
from serde.rewrite.rules import RuleTable, add_rules

from . import contrib
from .consumers.onnxruntime.integer_kernels import take_exact_branches
from .moved_attributes import move_attributes


def to_ir(
    graph: Graph, *, rules: Mapping[str, Callable[..., Any]] | None = None,
    keep_domain: Collection[str] = (), dequantize: bool = False, training: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite a graph of any opset into the IR.

    ``rules`` are rules by operator, taken before those there are: of other domains by
    ``domain::Operator``. ``keep_domain`` are domains whose operators
    are carried along even where they could be read as operators of the standard:
    ``com.microsoft``, for a model that stays with ONNX Runtime. ``dequantize`` reads operators that
    quantize what they read as those on floats. ``training`` keeps Dropout.
    """
    tables = contrib.FLOAT_TABLES if dequantize else contrib.TABLES
    opsets = contrib.OPSETS
    if rules:
        tables, opsets = _add_rules(graph, tables, rules)
    readers = Readers(tables, contrib.REFUSALS, opsets, contrib.SYNONYMS, tuple(keep_domain))
    graph = take_exact_branches(move_attributes(graph))
    return without_unused_imports(raise_to_ir(graph, readers, training), tables)


def _add_rules(
    graph: Graph, tables: Mapping[str, RuleTable], rules: Mapping[str, Callable[..., Any]]
) -> tuple[Mapping[str, RuleTable], Mapping[str, Any]]:
    """The tables by domain with rules of callers and plug-ins, and the opsets of operators."""
    bodies = (graph, *(f.body for f in graph.functions))
    present = {(n.domain, n.op) for body in bodies for n in body.all_nodes()}
    rules_of_domain: dict[str, dict[str, Callable[..., Any]]] = {}
    for name in rules:
        domain, _, op = name.rpartition("::")
        if (domain, op) in present:
            rules_of_domain.setdefault(domain, {})[op] = rules[name]
    new = {
        d: add_rules(tables.get(d, RuleTable(f"{d} → ir")), of, of)
        for d, of in rules_of_domain.items()
    }
    every = range(1, IR_OPSET + 1)
    return {**tables, **new}, {
        **contrib.OPSETS,
        **dict.fromkeys(rules_of_domain.get("", ()), every),
    }
