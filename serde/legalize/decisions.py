"""What becomes of nodes, decided once for all that nothing on their way can tell apart.

``decider`` looks up, once for an operator, which rules are on its way to a target. Three cases:

* none: a node is legal by its element types, and stays as it is (``is_legal``);
* version adapters that are registered as looking at types and ranks only, or the IR's canonical
  form: the first node of a signature is emitted, and if it came to one node of the same operator
  and operands, so do those that follow, by the same attributes;
* others: every node is emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from serde.ir.graph import DType, Graph, Node, Value
from serde.rewrite.rules import Rule, always
from serde.spec import canonicalize, inference, schema
from serde.spec.memo import memoize
from serde.spec.onnx_builder import TypedCall
from serde.spec.simplify import MERGED, RESHAPING
from serde.spec.static_shapes import Rule as ShapeRule
from serde.spec.static_shapes import rule_for_values
from serde.spec.verify import find_namesake
from serde.version_converter.element_types import are_allowed

from . import scalarize_sequences
from .routes import Way, next_step
from .target import IR, Target

Inputs = tuple[Value | None, ...]
MERGING = MERGED | RESHAPING


class Decider(NamedTuple):
    """The version adapters on an operator's way, and in raising the rule of its shape."""

    op: str
    adapters: tuple[Rule, ...] = ()
    shape: ShapeRule | None = None

    def looks_at_sizes(self, attrs: Mapping[str, Any]) -> bool:
        """Whether a rule on the way looks at more than types and ranks, with these attributes."""
        implied = self.shape is not None and canonicalize.looks_at_sizes(self.op, attrs)
        return implied or any(rule.sizes(attrs) for rule in self.adapters)


class Decision(NamedTuple):
    """The node that stands for others of a signature; without ``shape`` their types stay."""

    attrs: Mapping[str, Any]
    dtype: DType | None
    shape: ShapeRule | None


def decider(target: Target, op: str, opset: int) -> Decider | None:
    """The decider of an operator of ``opset``; None where each node has to be emitted."""
    key = op, opset
    if key not in target.memo:
        memoize(target.memo, key, lambda: _make_decider(target, op, opset))
    return target.memo[key]  # type: ignore[no-any-return]


def _make_decider(target: Target, op: str, opset: int) -> Decider | None:
    shape = rule_for_values(op) if target is IR else None
    if schema.find(op, opset) is None or op in target.counted or (target is IR and shape is None):
        return None
    if op == "Identity" and target.supports is not None:  # an Identity is seldom needed
        return None
    adapters: list[Rule] = []
    step = next_step(target, op, opset, False)
    while step.way is not Way.TARGET:
        if step.rule is not None:
            adapters.append(step.rule)
        step = next_step(target, op, step.speaks, step.way is not Way.UP)
    is_decided = all(rule.sizes is not always for rule in adapters)
    is_ruled = bool(adapters) and op in target.rewrites
    return Decider(op, tuple(adapters), shape) if is_decided and not is_ruled else None


class _Pending(NamedTuple):
    """A signature that the next node of it decides about."""

    decider: Decider
    key: Any


def take(g: Any, node: Node, inputs: Inputs) -> Any:
    """The outputs of what stands for a node by decision.

    None where it has to be emitted; a ``_Pending`` where the outcome decides for others.
    """
    by = decider(g.target, node.op, g.current_opset)
    if by is None or _is_constant(inputs) or _is_emulated(g, node, inputs):
        return None
    if not by.adapters and by.shape is None:
        return _keep(g, node, inputs) if is_legal(g, node, inputs) else None
    key = _signature(g, node, inputs, by)
    if key is None or (node.op in MERGED and merges(g, inputs)):
        return None
    decision = g.decisions.get(key)
    return _Pending(by, key) if decision is None else _repeat(g, decision, node, inputs)


def is_legal_graph(g: Any, graph: Graph) -> bool:
    """Whether every node of a graph would stay as it is, and be called what it is."""
    ends = (*graph.inputs, *graph.constants())
    if not g.target.is_standard or graph.functions:
        return False
    if any(v.dtype is None or v.shape is None or v.dtype in g.emulated_types.lacking for v in ends):
        return False
    constructors = scalarize_sequences.CONSTRUCTORS if g.resolving else ()
    kept: dict[str, bool] = {}  # operators that no version adapter is on the way of
    computed: set[Value] = set()
    for node in graph.nodes:
        op, inputs = node.op, node.inputs
        if op not in kept:
            by = decider(g.target, op, g.current_opset)
            is_plain = by is not None and not by.adapters and by.shape is None
            is_known = schema.find(op, g.target.opset) is not None
            kept[op] = is_plain and is_known and op not in constructors
        if not kept[op] or node.domain or node.graphs() or _is_constant(inputs):
            return False
        if not is_legal(g, node, inputs):
            return False
        computed.update(node.outputs)
    has_own_outputs = len(computed.intersection(graph.outputs)) == len(graph.outputs)
    return has_own_outputs and find_namesake(graph) is None


def is_legal(g: Any, node: Node, inputs: Inputs) -> bool:
    """Whether the target takes a node of the IR's version as it stands, by its element types."""
    types = tuple([v and (v.dtype, v.container) for v in inputs])
    results = tuple(
        [(v.dtype, v.container, v.shape is None and bool(v.name)) for v in node.outputs]
    )
    key = (node.op, tuple(node.attrs), types, results)
    known = g.decisions.get(key)
    if known is None:
        known = g.decisions[key] = _are_legal(g.target, node, types)
    return known  # type: ignore[no-any-return]


def _are_legal(target: Target, node: Node, types: Sequence[Any]) -> bool:
    operator = schema.operator(node.op, target.opset)
    is_untyped = any(v.name and (v.dtype is None or v.shape is None) for v in node.outputs)
    if target.supports is not None and not node.graphs() and is_untyped:
        return False
    if not node.attrs.keys() <= operator.attributes:
        return False
    if any(v.dtype in target.emulated_types for v in node.outputs):
        return False
    results = tuple([(v.dtype, v.container) for v in node.outputs])
    sides = ("inputs", tuple(types)), ("outputs", results)
    if not all(are_allowed(node.op, operator.since, side, t) for side, t in sides):
        return False
    values = [t and Value("value", t[0], None, container=t[1]) for t in types]
    return not target.promoted_types(operator, values)


def _keep(g: Any, node: Node, inputs: Inputs) -> Any:
    """A legal node as it stands, or what the target's rule makes of it."""
    if node.op in g.target.rewrites:
        known = [inference.type_of(v) for v in node.outputs]
        operator = schema.operator(node.op, g.opset)
        call = TypedCall(operator, inputs, dict(node.attrs), known, node.outputs[0].shape_data)
        if (result := g.apply_legalization(call)) is not None:
            return result
    return g.keep(node, inputs)


def _is_constant(inputs: Inputs) -> bool:
    """Whether there are operands, and all of them constants."""
    for value in inputs:
        if value is None or value.tensor is None:
            return False
    return bool(inputs)


def _is_emulated(g: Any, node: Node, inputs: Inputs) -> bool:
    """Whether a node makes, reads or returns what only stands for another type."""
    sequences, types = g.known_sequences, g.emulated_types.logical_types
    if g.resolving and node.op in scalarize_sequences.CONSTRUCTORS:
        return True
    if not sequences and not types:
        return False
    ends = (*inputs, *(v for body in node.graphs() for v in body.outputs))
    return any(v in types or v in sequences for v in ends if v is not None)


def merges(g: Any, inputs: Sequence[Value | None]) -> bool:
    """Whether what now makes the operand may merge with a node that is emitted anew."""
    maker = g.producer(inputs[0])
    return maker is not None and maker.op in MERGING


def _signature(g: Any, node: Node, inputs: Inputs, by: Decider) -> Any:
    """What nodes have in common that one decision holds for; None where none may."""
    number, is_raising = g.number_attributes(node.attrs), by.shape is not None
    if number is None or (is_raising and len(node.outputs) != 1):
        return None
    key: list[Any] = [node.op, number]
    for v in inputs:
        if v is None:
            key.append(None)
        elif v.shape is None or v.container or (is_raising and v.shape_data is not None):
            return None
        else:
            key += (v.dtype, v.tensor is None, len(v.shape))
    if not is_raising:
        key += [(v.dtype, v.container, v.shape is None) for v in node.outputs]
    return tuple(key)


def learn(g: Any, pending: _Pending, node: Node, inputs: Inputs, result: Any, mark: int) -> None:
    """Decide about a signature by what became of the first node of it."""
    by, results = pending.decider, result if isinstance(result, tuple) else (result,)
    if len(g.nodes) != mark + 1 or by.looks_at_sizes(node.attrs):
        return
    emitted = g.nodes[-1]
    if emitted.op != node.op or emitted.inputs != inputs or emitted.outputs != results:
        return
    if by.shape is not None:
        is_alike = by.shape([v for v in inputs if v], emitted.attrs) == results[0].shape
    else:
        pairs = zip(results, node.outputs, strict=True)
        is_alike = all(
            inference.type_of(a) == inference.type_of(b) and a.shape_data == b.shape_data
            for a, b in pairs
        )
    if is_alike:
        g.decisions[pending.key] = Decision(emitted.attrs, results[0].dtype, by.shape)


def _repeat(g: Any, decision: Decision, node: Node, inputs: Inputs) -> Any:
    """A node with the attributes that were decided; None where its name is not free."""
    name = g._sources[0].name if g._sources else node.name
    attrs, old = decision.attrs, node.outputs[0]
    if decision.shape is None:
        kept = Node(node.op, node.inputs, node.outputs, attrs, "", name, node.sources)
        return g.keep(kept, inputs)
    shape = decision.shape([v for v in inputs if v], attrs)
    if shape is None or not old.name or old.name in g.names.used:
        return None
    g.names.used.add(old.name)
    value = Value(old.name, decision.dtype, shape)
    g.nodes.append(Node(node.op, inputs, (value,), attrs, "", name, g._sources))
    g._makers[value] = g.nodes[-1]
    return (value,)


def take_or_emit(g: Any, node: Node, inputs: Inputs, emit: Any) -> Any:
    """What stands for a node: by decision, or emitted and decided for those that follow."""
    result = take(g, node, inputs)
    if result is None:
        return emit(g, node, inputs)
    if result.__class__ is not _Pending:
        return result
    mark, pending = len(g.nodes), result
    result = emit(g, node, inputs)
    learn(g, pending, node, inputs, result, mark)
    return result
