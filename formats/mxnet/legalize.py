"""Operators MXNet lacks, spelled out in operators of the IR that it has.

``spells`` has the rules made for MXNet, by family in ``ops``; where it has none,
an operator that came to the standard later becomes what it was before
(``serde.version_converter.adapters``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from serde.decompositions import onnx_ml
from serde.errors import ConversionError
from serde.ir.builder import Builder, Operand, plain
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Shape, Value
from serde.ir.replace_uses import replace_values
from serde.legalize.emulate_types import CARRIERS, Carried
from serde.legalize.stepping import Stepping
from serde.passes import drop_dead
from serde.rewrite.rules import RuleTable
from serde.spec import canonicalize, schema
from serde.version_converter.adapters import below

from .target import spells, writes

# Operands that are sizes; where they are known by name, an attribute ``sizes`` holds them.
SIZES = {"Expand": 1, "Loop": 0, "Range": 1, "Reshape": 1, "Slice": 2, "TopK": 1}
# Operators that give as much as they find or are asked for when the model runs, and the axis that
# is that long (None: the one they name); others are made of them.
COUNTED: Mapping[str, int | None] = {"NonMaxSuppression": 0, "NonZero": 1, "Range": 0, "TopK": None}
FINDING = frozenset({*COUNTED, "Compress", "Unique"})


def spelled(graph: Graph) -> tuple[Graph, Mapping[Value, str]]:
    """The graph with what MXNet lacks spelled out, and why what is left could not be."""
    reasons: dict[Value, str] = {}
    graph, renewed = _named(graph)

    def spell(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        assert isinstance(builder, Spelling)
        is_learned = node.domain == onnx_ml.DOMAIN and node.op in onnx_ml.learned
        anew = _is_made_anew(node, renewed) or builder.carries(node, inputs)
        if not is_learned and (node.domain or not anew):
            return builder.keep(node, inputs)
        mark = len(builder.nodes)
        try:
            if is_learned:
                return onnx_ml.learned.apply(node, builder, inputs)
            return builder.emit(node.op, inputs, node.attrs, len(node.outputs))
        except ConversionError as error:
            del builder.nodes[mark:]
            kept = builder.keep(node, inputs)
            reasons.update(dict.fromkeys(kept, error.reason))
            return kept

    builder = Spelling(graph.name, IR_OPSET, IR_OPSET, spelled_out=_later())
    done = RuleTable(spells.name, fallback=spell).rewrite(graph, builder)
    return drop_dead(_sized(drop_dead(done))), reasons


def _named(graph: Graph) -> tuple[Graph, bool]:
    """The graph with a name for every unknown size of its inputs, and whether values get others."""
    instead = {
        v: Value(v.name, v.dtype, tuple(
            f"{v.name}.{axis}" if d is None else d for axis, d in enumerate(v.shape)
        ))
        for v in graph.inputs
        if v.shape is not None and None in v.shape and not v.wrap
    }  # fmt: skip
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    counted = any(node.op in FINDING for node in _each(graph))
    return replace(replace_values(graph, instead), inputs=inputs), bool(instead) or counted


def _each(graph: Graph) -> Iterator[Node]:
    """Every node, those of subgraphs included."""
    for node in graph.nodes:
        yield node
        for body in node.graphs():
            yield from _each(body)


def _sized(graph: Graph) -> Graph:
    """Let nodes hold what is known of an operand that is sizes, instead of reading it.

    MXNet's attributes can say of a size that it is that of another tensor; nothing computes it.
    """
    return replace(graph, nodes=tuple(map(_with_sizes, graph.nodes)))


def _with_sizes(node: Node) -> Node:
    bodies = {n: _sized(b) for n, b in node.attrs.items() if isinstance(b, Graph)}
    at = SIZES.get(node.op, len(node.inputs))
    read = node.inputs[at] if at < len(node.inputs) else None
    sizes = None if read is None or read.tensor is not None else read.elements
    if sizes is None or None in sizes:
        return replace(node, attrs={**node.attrs, **bodies}) if bodies else node
    inputs = tuple(None if i == at else v for i, v in enumerate(node.inputs))
    if node.op == "Loop":  # one that ends before has to compare
        inputs = node.inputs
    return replace(node, inputs=inputs, attrs={**node.attrs, **bodies, "sizes": sizes})


def _is_made_anew(node: Node, renewed: bool) -> bool:
    """Whether an operator has a rule, or its results have to be typed anew."""
    if node.op in spells or node.op in COUNTED or node.op in _later():
        return True
    untyped = any(v.name and (v.dtype is None or v.shape is None) for v in node.outputs)
    return (renewed or untyped) and not any(True for _ in node.graphs())


@cache
def _later() -> frozenset[str]:
    """Operators that came later than others they can be written in, and that have no rule here."""
    return frozenset(
        op
        for version, table in below.items()
        for op in table.rules
        if schema.first_version(op) == version and op not in writes and op not in spells
    )


class Spelling(Stepping):
    """Emits operators of the IR as others that MXNet has, in element types it computes with."""

    def __init__(self, *made_of: Any, **more: Any) -> None:
        super().__init__(*made_of, **more)
        if self._outer is None:
            self.carried = Carried(self.opset, frozenset(CARRIERS))

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; one that MXNet cannot hold is told of by what it is said to be."""
        if self._outer is not None or dtype not in self.carried.lacking or wrap:
            return super().input(name, dtype, shape, wrap)
        assert dtype is not None
        return self.carried.stands(super().input(name, CARRIERS[dtype], shape), dtype)

    def carries(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether a node reads or gives elements of a type that is carried in another."""
        lacking, meant = self.carried.lacking, self.carried.meant
        return any(v in meant for v in inputs if v is not None) or any(
            v.dtype in lacking for v in node.outputs
        )

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Name what an operator counts, if no number tells it."""
        made = self._spelled(op, inputs, attrs, outputs)
        if op not in COUNTED:
            return made
        along, every = COUNTED[op], made if isinstance(made, tuple) else (made,)
        axis: int = attrs.get("axis", -1) if along is None else along
        if every[0].tensor is None and every[0].known[axis] is None:
            sizes = list(every[0].known)
            sizes[axis] = self.names.fresh(f"{every[0].name}.count")
            for value in every:
                value.shape = tuple(sizes)
        return made

    def _spelled(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Ask the rule for ``op``; one that returns None leaves the operator as it is."""
        rule = spells.rules.get(op)
        if rule is None:
            return super()._settle(op, inputs, attrs, outputs)
        operator = schema.operator(op)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        operands = canonicalize.operands(self, op, operands)
        while operands and operands[-1] is None:
            operands.pop()
        given = {k: plain(v) for k, v in attrs.items() if v is not None}
        full = canonicalize.complete(operator, tuple(operands), given)
        if (known := self._known(operator, operands, full, outputs)) is not None:
            return known
        wanted = {"outputs": outputs} if "outputs" in rule.attributes else {}
        made = rule.function(self, *operands, **spells.bind(rule, op, full), **wanted)
        if made is None:
            return super()._settle(op, operands, full, outputs)
        return made[0] if outputs == 1 and isinstance(made, tuple) else made
