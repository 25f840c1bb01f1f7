"""The rule table of ATen operators: arguments in the order of their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

from serde.errors import ConversionError, UnsupportedAttribute, UnsupportedOp, show_attribute
from serde.ir.builder import Builder
from serde.ir.dim_expr import INT64
from serde.ir.graph import Graph, Node, Value
from serde.rewrite.rules import Rule, RuleTable

from .io.weights import DTYPES
from .operands import Complex, Number, Operand
from .signatures import SIGNATURES

# What no result depends on: where and how tensors lie, and how gradients are computed.
IGNORED = frozenset(
    "device layout pin_memory non_blocking memory_format cudnn_enabled cudnn_enable sparse"
    " scale_grad_by_freq implicit sparse_grad requires_grad compute_mode stable sorted".split()
)
REQUIRED = "required"
LITERALS = {"None": None, "True": True, "False": False, "[]": ()}
SIZES, GRAPH = "int", "Graph"
TYPES: Mapping[str, tuple[type, ...]] = {  # what numbers and texts of each kind are in Python
    "int": (int,), "bool": (int,), "float": (int, float), "number": (int, float), "str": (str,),
    "Tensor": (int, float, complex),
}  # fmt: skip
# What operators take that have graphs, in their order; operands behind it come singly.
WITH_GRAPHS = {
    "cond": "Scalar Graph Graph Scalar[]", "while_loop": "Graph Graph Scalar[] Scalar[]",
    "scan": "Graph Scalar[] Scalar[] Scalar[]", "map_impl": "Graph Scalar[] Scalar[]",
    "wrap_with_set_grad_enabled": "Scalar Graph", "tag_activation_checkpoint": "Graph",
    "wrap_with_autocast": "Scalar Scalar Scalar Scalar Graph", "wrap": "Graph",
}  # fmt: skip
REASONS = dict.fromkeys(
    "linalg_svd svd linalg_svdvals linalg_eig linalg_eigvals linalg_eigh _linalg_eigh"
    " linalg_eigvalsh _linalg_svd linalg_lstsq linalg_lu linalg_lu_factor"
    " linalg_matrix_rank linalg_cond geqrf"
    " linalg_pinv linalg_pinv.atol_rtol_tensor linalg_pinv.atol_rtol_float".split(),
    "ONNX has no such factors of matrices: compute them before the export where the matrix is "
    "constant, or leave them out of the module",
)


PARTWISE = frozenset(
    "alias cat chunk clone concat contiguous copy detach diagonal_scatter expand expand_copy"
    " fft_fftshift fft_ifftshift flatten.using_ints flip gather index.Tensor index_select"
    " lift_fresh_copy mean.dim movedim.int neg permute repeat reshape resolve_conj resolve_neg roll"
    " select.int select_scatter slice.Tensor slice_scatter split.Tensor split_with_sizes"
    " squeeze squeeze.dim squeeze.dims stack sum.dim_IntList t transpose.int unbind.int"
    " unflatten.int unsqueeze view _unsafe_view zeros_like".split()
)  # what is done to the real and the imaginary part alike


class Parameter(NamedTuple):
    """An argument of an operator, as its schema declares it."""

    name: str
    kind: str
    default: Any


@lru_cache(4096)
def signature_of(op: str) -> tuple[Parameter, ...] | None:
    """The arguments of an operator, None for what is not in the table."""
    text = SIGNATURES.get(op)
    if text is None:
        return None
    return tuple(_parse(part) for part in text.split(", ") if part)


def _parse(part: str) -> Parameter:
    kind, _, rest = part.partition(" ")
    name, is_optional, default = rest.partition("=")
    return Parameter(name, kind, _literal(default) if is_optional else REQUIRED)


def _literal(text: str) -> Any:
    if text in LITERALS:
        return LITERALS[text]
    if text.startswith('"'):
        return text.strip('"')
    if text.startswith("["):
        return tuple(int(t) for t in text.strip("[]").split(","))
    return float(text) if "." in text or "e" in text else int(text)


class AtenTable(RuleTable):
    """A rule takes the arguments of its operator in their order, as many as it declares.

    What it does not declare has to be the default. A size or a number that is computed is a tensor
    of shape (1,); as a ``Scalar`` or in place of a tensor it is a ``Number``. ``outputs`` is how
    many results are read.
    """

    def apply(self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]) -> Any:
        """Emit what a node becomes."""
        try:
            if is_complex(node):
                return self._apply_complex(node, builder, inputs)
            return self._call(node.op, node, builder, inputs)
        except ConversionError as error:
            place = node.sources[0].doc if node.sources else ""
            if place and place not in error.reason:
                raise type(error)(f"{error.reason} [{place}]") from error
            raise

    def _call(
        self, op: str, node: Node, builder: Builder, inputs: Sequence[Any]
    ) -> tuple[Any, ...]:  # fmt: skip
        rule = self._rules.get(op)
        if rule is None:
            raise self._no_rule(op)
        positional, named = bind(rule, node, inputs)
        if "outputs" in rule.attributes:
            named["outputs"] = len(node.outputs)
        results = rule.function(builder, *positional, **named)
        return results if isinstance(results, tuple) else (results,)

    def _apply_complex(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Any, ...]:  # fmt: skip
        operands = [Complex(builder, pair=new) if is_complex_value(old) else new
                    for old, new in zip(node.inputs, inputs, strict=True)]  # fmt: skip
        is_mixed = any(isinstance(v, Value) and v.type.kind == "f" for v in operands)
        if node.op in PARTWISE and not is_mixed:
            halves = [[getattr(v, name, v) for v in operands] for name in ("real", "imaginary")]
            pairs = zip(*(self._call(node.op, node, builder, half) for half in halves), strict=True)
            return tuple(Complex(builder, *pair).pair for pair in pairs)
        results = self._call(f"complex.{node.op}", node, builder, operands)
        return tuple(r.pair if isinstance(r, Complex) else r for r in results)

    def bodies(self, node: Node, builder: Builder, inputs: Any) -> frozenset[str]:
        """The arguments that are graphs: all are put where a rule wants them."""
        return frozenset(name for name, raw in node.attrs.items() if isinstance(raw, Graph))

    def refusal(self, node: Node) -> ConversionError | None:
        """Why ``node`` cannot be converted, as far as is known without its operands."""
        op = node.op
        if is_complex(node) and op not in PARTWISE:
            op = f"complex.{op}"
        return None if op in self._rules else self._no_rule(op)

    def _no_rule(self, op: str) -> UnsupportedOp:
        if op.startswith("complex."):
            return UnsupportedOp("complex numbers: compute with their parts, torch.view_as_real")
        known = super()._no_rule(op)
        if op in self.reasons or op.startswith("higher_order."):
            return known
        return UnsupportedOp(f"{known.reason}: save what the program's run_decompositions() "
                             "returns, where that has others instead")  # fmt: skip


def is_complex(node: Node) -> bool:
    """Whether an operand or a result is complex."""
    return any(map(is_complex_value, (*node.inputs, *node.outputs)))


def is_complex_value(value: Value | None) -> bool:
    """Whether a value of the program is complex."""
    return value is not None and value.dtype is not None and value.dtype.kind == "c"


def bind(rule: Rule, node: Node, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
    """The arguments that a rule is called with."""
    signature = signature_of(node.op)
    if signature is None:
        kinds = WITH_GRAPHS.get(node.op.removeprefix("higher_order."), "").split()
        names = [*node.attrs, *map(str, range(len(node.attrs), len(kinds)))]
        pairs = zip_longest(names, kinds, fillvalue="Scalar")
        signature = tuple(Parameter(name, kind, REQUIRED) for name, kind in pairs)
    attrs = {**node.attrs}
    if "self" in attrs and signature and all(p.name != "self" for p in signature):
        attrs[signature[0].name] = attrs.pop("self")  # of a form in place
    if unknown := sorted(attrs.keys() - {p.name for p in signature}):
        raise UnsupportedAttribute(f"unknown argument {', '.join(unknown)}")
    _, most = rule.operands
    positional: list[Any] = []
    named = {}
    for at, parameter in enumerate(signature):
        raw = attrs.get(parameter.name, parameter.default)
        if isinstance(raw, str) and raw == REQUIRED:
            raise ConversionError(f"argument {parameter.name!r} is missing")
        is_declared = parameter.name in rule.attributes
        if is_declared or most is None or at < most:
            value = _fill(raw, parameter.kind, inputs)
            if is_declared:
                named[parameter.name] = value
            else:
                positional.append(value)
        elif parameter.name not in IGNORED | rule.ignore and not _is_default(raw, parameter):
            raise UnsupportedAttribute(f"{parameter.name}={show_attribute(raw)} is not supported")
    return positional, named


def _is_default(raw: Any, parameter: Parameter) -> bool:
    return bool(raw == parameter.default)


def _fill(raw: Any, kind: str, inputs: Sequence[Any]) -> Any:
    """An argument with its values in place."""
    if kind == GRAPH and not callable(raw):
        raise ConversionError("an argument that is no graph: export the module again")
    base = kind.removesuffix("[]")
    if isinstance(raw, Operand):
        value = inputs[raw.place]
        if base is not kind and not raw.is_number:
            raise ConversionError(f"a tensor that is no {kind}: export the module again")
        return Number(value) if raw.is_number and not kind.startswith(SIZES) else value
    if isinstance(raw, tuple) and (base is not kind or kind not in TYPES):
        return tuple(_fill(r, base, inputs) for r in raw)
    if raw is not None and not isinstance(raw, TYPES.get(base, object)):
        raise ConversionError(f"an argument {show_attribute(raw)} that is no {kind}: export the "
                              "module again")  # fmt: skip
    if type(raw) is int and raw not in INT64:
        raise ConversionError(f"a number of {raw.bit_length()} bits: export the module again")
    if isinstance(raw, str) and raw.startswith("dtype:"):
        dtype = DTYPES.get(int(raw.removeprefix("dtype:")))
        if dtype is None:
            raise ConversionError(f"element type {raw} is not read: use another")
        return dtype
    return (raw,) if base is not kind and raw is not None else raw


reads = AtenTable("aten → ir", reasons=REASONS)
