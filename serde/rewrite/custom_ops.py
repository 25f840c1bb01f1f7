"""Operators of other domains: read by a table of rules, or kept as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from serde.errors import ConversionError, UnsupportedOp, require
from serde.ir.graph import IR_OPSET, Graph, Node, Value
from serde.spec.inference import infer_declared
from serde.spec.schema import find

if TYPE_CHECKING:
    from serde.rewrite.rules import RuleTable

Inputs = tuple["Value | None", ...]


@dataclass(frozen=True)
class Readers:
    """How operators that the standard does not define are read.

    ``tables`` has rules by domain; that of the default domain is for operators which a runtime
    defines there on its own, at the ``opsets`` of each. ``refusals`` are reasons not to take a
    domain at all. ``synonyms`` are values that a runtime takes for another value of an attribute,
    by operator of the default domain. Nodes of ``kept`` domains are kept even where there
    is a rule. ``defined`` are the operators that functions of the model define, which are no one
    else's. ``versions`` are those of the domains that the model imports.
    """

    tables: Mapping[str, RuleTable] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    opsets: Mapping[str, Container[int]] = field(default_factory=dict)
    synonyms: Mapping[str, Mapping[tuple[str, Any], Any]] = field(default_factory=dict)
    kept: Collection[str] = ()
    defined: frozenset[tuple[str, str]] = frozenset()
    versions: Mapping[str, int] = field(default_factory=dict)

    def of_model(self, graph: Graph) -> Readers:
        """The same, but for the operators that functions of ``graph`` define."""
        defined = frozenset((f.domain, f.name) for f in graph.functions)
        return replace(self, defined=defined, versions=graph.imports)

    def table(self, node: Node, opset: int) -> RuleTable | None:
        """The table with a rule for ``node``, which stands in a graph of ``opset``."""
        table = self.tables.get(node.domain)
        if table is None or node.op not in table or (node.domain, node.op) in self.defined:
            return None
        return table if node.domain or opset in self.opsets.get(node.op, ()) else None

    def standardize(self, node: Node) -> Node:
        """The node, with attributes of the standard's values for those a runtime takes as such."""
        if node.domain or node.op not in self.synonyms:
            return node
        canonical = self.synonyms[node.op]
        attrs = {n: canonical[n, v] for n, v in node.attrs.items() if isinstance(v, str)
                 if (n, v) in canonical}  # fmt: skip
        return replace(node, attrs={**node.attrs, **attrs}) if attrs else node

    def notes(self, graph: Graph) -> Iterator[str]:
        """What is said of operators of the default domain that a runtime defines, each once."""
        counts: Counter[str] = Counter()
        pairs = [(graph, graph.opset), *((f.body, f.body.opset) for f in graph.functions)]
        while pairs:
            body, opset = pairs.pop()
            for node in body.nodes:
                pairs.extend((inner, opset) for inner in node.graphs())
                if not node.domain and self.table(node, opset) is not None:
                    counts[f"{node.op} of opset {opset}"] += 1
                if node.op in self.synonyms:
                    attrs, changed = node.attrs, self.standardize(node).attrs
                    different = [n for n, v in attrs.items() if changed[n] != v]
                    counts.update(f"{node.op} with {n}={attrs[n]!r}" for n in different)
        for text, count in counts.items():
            yield f"{text} ×{count}: not in the standard; read as ONNX Runtime runs it"


def read(g: Any, node: Node, inputs: Inputs) -> tuple[Value | None, ...]:
    """What stands for a node of another domain: what a rule makes of it, or the node itself."""
    table = g.readers.table(node, g.current_opset)
    if table is not None and node.domain not in g.readers.kept:
        with g.at_opset(IR_OPSET):
            return _apply(g, table, node, inputs)
    if node.domain not in g.readers.kept:
        require(node.domain not in g.readers.refusals, g.readers.refusals.get(node.domain, ""))
    results: tuple[Value, ...] = g.keep(node, inputs)
    if table is not None:
        _infer_types(g, table, node, inputs, results)
    operator = find(node.op, g.readers.versions.get(node.domain, 1), node.domain)
    if operator is not None and any(v.dtype is None for v in results):
        for value, known in zip(results, infer_declared(operator, node, inputs), strict=True):
            if value.dtype is None and known.dtype is not None:
                value.dtype, value.shape, value.container = known
    return results


def _apply(g: Any, table: RuleTable, node: Node, inputs: Inputs) -> tuple[Value | None, ...]:
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    try:
        return table.apply(node, g, inputs)
    except ConversionError as error:
        if not node.domain:
            raise
        kept = f"--keep-domain={node.domain} carries it along into ONNX files"
        raise type(error)(f"{error.reason.removesuffix('.')}. {kept}") from error


def _infer_types(
    g: Any, table: RuleTable, node: Node, inputs: Inputs, results: tuple[Value, ...]
) -> None:
    """Give a node that is kept the types of what its rule would make of it."""
    names, mark = g.names.used.copy(), len(g.nodes)
    try:
        with g.at_opset(IR_OPSET):
            values: tuple[Value | None, ...] = _apply(g, table, node, inputs)
    except ConversionError:
        values = ()  # in a form that has no rule: what the file says of it has to do
    finally:
        del g.nodes[mark:]
        g.names.used = names
    for value, like in zip(results, values, strict=False):
        if like is not None and value.name:
            value.dtype, value.shape = like.dtype or value.dtype, like.shape or value.shape


def refuse(node: Node, target: str) -> ConversionError:
    """The refusal of a node of another domain by a target that is no ONNX file."""
    return UnsupportedOp(
        f"{target} has no operators of the domain {node.domain!r}. Cut the model before it with "
        f"--outputs; ONNX files carry it along"
    )


def without_unused_imports(graph: Graph, domains: Collection[str]) -> Graph:
    """The graph without imports of those ``domains`` that no node of it is of."""
    if not graph.imports:
        return graph
    stack, used = [graph, *(f.body for f in graph.functions)], set()
    while stack:
        for node in stack.pop().nodes:
            used.add(node.domain)
            stack.extend(node.graphs())
    kept = {d: v for d, v in graph.imports.items() if d in used or d not in domains}
    return replace(graph, imports=MappingProxyType(kept))
