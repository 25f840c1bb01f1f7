"""What a target accepts, as data. Nothing here builds or rewrites a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from serde.errors import ConversionError
from serde.ir.graph import EMPTY, IR_OPSET, DType, Graph, Node, Value, show_shape
from serde.legalize.forms.form import Call, Lacks, add_forms
from serde.rewrite.rules import RuleTable
from serde.spec import schema
from serde.version_converter.adapters import downgrades
from serde.version_converter.element_types import BORN, format_type, wider_types

LOWEST_WRITTEN = 7  # the lowest opset of a target
TypeConstraints = Mapping[str, frozenset[DType]]  # type variable of the schema -> element types


def legalization_table(name: str) -> RuleTable:
    """An empty table of rules over operators of the IR, with the standard's defaults.

    A rule returns None where the target takes the operator in the form it is given.
    """
    return RuleTable(name, defaults=schema.defaults_of)


@dataclass(frozen=True, eq=False)
class Target:
    """The operators, element types and forms a target accepts, and its own legalizations.

    ``supports`` has the element types by operator and type variable; a variable that is not listed
    takes all. None: every operator the standard has at ``opset``. ``lacks`` lists by operator the
    forms that it lacks, ``lacks_results`` those that may not compute an output of the model.
    ``legalizations`` are rules of whole operators, which apply to what is of none of these forms.
    ``title`` is what messages call it, its name unless given; ``source`` says how it is known:
    ``measured`` or ``documented``. ``decomposed``
    are operators to avoid though the opset has them. ``emulated`` are element types stored in wider
    ones, beside those that are younger than ``opset``; with ``emulates_inputs`` the model's inputs
    of such types too. Without ``control_flow`` there are no loops of a dynamic trip count, without
    ``sequences`` values are tensors only, without ``dynamic_shapes`` every dimension is a number.
    With ``keeps_weights`` what is computed of arrays that are trained is not folded.
    ``counted`` are operators whose result has a data-dependent length, to be given a name, and the
    axis of it (None: the attribute ``axis``). ``domains`` are those beside the standard's whose
    operators it has, in all forms. ``opsets`` are those it was measured with; None: any. ``memo``
    are answers about it, which are kept as long as it is. ``type_advice`` says what to do about
    operators of element types that it lacks, ``operator_advice`` about operators that it lacks.
    """

    name: str
    opset: int = IR_OPSET
    supports: Mapping[str, TypeConstraints] | None = None
    lacks: Lacks = field(default_factory=lambda: EMPTY)
    legalizations: RuleTable = field(default_factory=lambda: RuleTable("no legalizations"))
    decomposed: frozenset[str] = frozenset()
    emulated: frozenset[DType] = frozenset()
    emulates_inputs: bool = False
    control_flow: bool = True
    sequences: bool = True
    dynamic_shapes: bool = True
    keeps_weights: bool = False
    counted: Mapping[str, int | None] = field(default_factory=lambda: EMPTY)
    lacks_results: Lacks = field(default_factory=lambda: EMPTY)
    domains: frozenset[str] = frozenset()
    opsets: range | None = None
    title: str = ""
    type_advice: Mapping[Any, str] = field(default_factory=lambda: EMPTY)
    operator_advice: str = ""
    source: str = "documented"
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def rewrites(self) -> RuleTable:
        """The legalizations, and before them the rewrites of the forms that it lacks."""
        return add_forms(self.legalizations, self.lacks)

    @property
    def who(self) -> str:
        """What messages call it."""
        return self.title or self.name

    @cached_property
    def is_standard(self) -> bool:
        """Whether the target is an opset of the standard, and nothing more."""
        return self.supports is None and not self.rewrites.rules

    @cached_property
    def emulated_types(self) -> frozenset[DType]:
        """The element types of the IR that values of the target only stand for."""
        return self.emulated | {d for d, opset in BORN.items() if opset > self.opset}

    def for_graph(self, legal: Graph) -> Target:
        """The target as it judges a legal graph; one that looks beyond single nodes knows more."""
        return self

    def lowest_opset(self, op: str) -> int:
        """The opset to lower an operator to: below its first version where it is decomposed."""
        first = max(schema.first_version(op) or 0, LOWEST_WRITTEN)
        if op not in downgrades.get(first, ()):
            return self.opset
        lacks = self.supports is not None and op not in self.supports
        if op in self.decomposed or (lacks and op not in self.rewrites):
            return min(self.opset, first - 1)
        return self.opset

    def promoted_types(
        self, operator: schema.Operator, operands: Sequence[Value | None]
    ) -> dict[str, DType]:
        """A wider, supported element type for each type variable bound to an unsupported one."""
        constraints = self.supports.get(operator.name) if self.supports is not None else None
        if not constraints:
            return {}
        promoted: dict[str, DType] = {}
        for index, value in enumerate(operands):
            if value is None or value.dtype in (None, DType.BOOL) or value.container:
                continue
            tie = operator.input(index).tie
            legal = constraints.get(tie)
            if legal is None or value.dtype in legal:
                continue
            choices = wider_types(operator, index, value.type)
            wider = next((d for d in choices if d in legal), None)
            if wider is not None:
                promoted[tie] = wider
        return promoted

    def illegal_form(self, node: Node, is_result: bool = False) -> str | None:
        """Why the target cannot take a node in this form, None if it can.

        ``is_result``: it computes an output of the model.
        """
        if node.domain:
            return None
        forms = [*self.lacks.get(node.op, ())]
        forms += self.lacks_results.get(node.op, ()) if is_result else ()
        if not forms:
            return None
        call = Call.of(node)
        refusals = (f.refusal(self.who, call) for f in forms if f.rewrite is None)
        try:
            return next((reason for reason in refusals if reason is not None), None)
        except ConversionError as error:  # what tells the form is not known
            return error.reason

    def illegal_operator(self, node: Node) -> str | None:
        """Why the target lacks the operator of a node, None if it has it."""
        if node.domain in self.domains:
            return None
        is_supported = self.supports is None or node.op in self.supports
        if node.domain or not is_supported:
            advice = self.operator_advice and f". {self.operator_advice}"
            return f"{self.who} has no {node.qualified_op}{advice}"
        return None

    def illegal_types(self, node: Node) -> str | None:
        """Why the target cannot take a node's operands and results, None if it can."""
        if node.domain:
            return None
        operator = schema.operator(node.op, self.opset)
        legal = EMPTY if self.supports is None else self.supports[node.op]
        last = len(operator.outputs) - 1
        values = [(operator.input(i).tie, v) for i, v in enumerate(node.inputs)]
        values += [(operator.outputs[min(i, last)].tie, v) for i, v in enumerate(node.outputs)]
        for tie, value in values:
            if value is None or not value.name:
                continue
            if (reason := self.illegal_value(value)) is not None:
                return reason
            if value.dtype is not None and value.dtype not in legal.get(tie, (value.dtype,)):
                elements = f"{format_type(value.dtype)} elements"
                advice = self.type_advice.get(value.dtype) or _advise_types(value.dtype, legal[tie])
                return f"{self.who} has no {node.op} of {elements}{advice and '. '}{advice}"
        return None

    def illegal_value(self, value: Value) -> str | None:
        """Why the target has no such value, None if it has."""
        if value.container and not self.sequences:
            kind = " of ".join(value.container)
            return f"{value.name!r} is a {kind}; {self.who} has tensors only"
        if self.dynamic_shapes or value.container or value.is_static:
            return None
        sizes = f"{value.name!r} has the shape {show_shape(value.shape)}"
        return f"{sizes}; {self.who} takes static shapes only: give numbers (--static, --input)"


def _advise_types(dtype: DType, legal: Collection[DType]) -> str:
    """What to do where an operator takes other element types only."""
    fits = [t for t in legal if t.kind == "f" or dtype.kind != "f"]
    names = ", ".join(sorted(map(format_type, fits)))
    return f"It takes {names}: cast to one that holds the numbers" if names else ""


@lru_cache(64)
def opset_target(opset: int, decomposed: frozenset[str] = frozenset()) -> Target:
    """An opset of the standard; the same target each time, with what is known of it."""
    return Target(f"opset {opset}", opset, decomposed=decomposed)


IR = Target("ir")  # operators of older opsets that are emitted for it become the IR's
