"""Build graphs of ONNX operators: canonical, simplified, folded and typed as they are emitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from serde.errors import ConversionError, show_attribute
from serde.ir import dim_expr
from serde.ir.builder import Builder, Op, Operand, normalize_attribute
from serde.ir.graph import IR_OPSET, DType, Node, Tensor, Value
from serde.spec import (
    canonicalize,
    composites,
    folding,
    inference,
    schema,
    shape_functions,
    simplify,
    weight_origins,
)
from serde.spec.expressions import Expressions
from serde.spec.memo import memoize, number_attributes
from serde.spec.static_shapes import SHAPES, are_possible
from serde.spec.traits import AXES_OPERANDS

# Operators whose operands' contents or makers decide what they come to.
BY_CONTENTS = frozenset({*simplify.RULES, *AXES_OPERANDS, *shape_functions.SHAPE_FUNCTION_OPS})


class TypedCall(NamedTuple):
    """An operator with canonical operands and attributes and inferred types: a node to be."""

    operator: schema.Operator
    inputs: tuple[Value | None, ...]
    attrs: Mapping[str, Any]
    types: Sequence[inference.Type | None]
    shape_data: tuple[Any, ...] | None = None

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.operator.name

    def with_inputs(self, inputs: Sequence[Value | None]) -> TypedCall:
        """The same call of other operands."""
        return TypedCall(self.operator, tuple(inputs), self.attrs, self.types, self.shape_data)

    def refine(self, results: Any) -> Any:
        """Results of a rule, with what inference knew of the types of the call's own outputs."""
        if len(self.types) == 1 and isinstance(results, tuple):
            results = results[0]
        values = results if isinstance(results, tuple) else (results,)
        for value, known in zip(values, self.types, strict=False):
            if value is None or known is None or value.tensor is not None:
                continue
            value.dtype = value.dtype or known.dtype
            if value.shape is None or (known.shape is not None and None in value.shape):
                value.shape = known.shape
        return results


class OnnxBuilder(Expressions):
    """A builder for ONNX operators: checks names, writes defaults out, folds, infers types.

    ``for_training``: what only training needs, as Dropout, stays, unless a reader leaves it out.
    ``keeps_weights``: what is computed of arrays that are trained is not folded.
    """

    def __init__(self, name: str, opset: int = IR_OPSET, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self.for_training: bool = outer.for_training if isinstance(outer, OnnxBuilder) else True
        self.keeps_weights: bool = isinstance(outer, OnnxBuilder) and outer.keeps_weights
        self._makers: dict[Value, Node] = {}
        self._outer = outer if isinstance(outer, OnnxBuilder) else None
        self._calls: dict[Any, TypedCall] = self._outer._calls if self._outer else {}
        self._weights: dict[Value, str] = self._outer._weights if self._outer else {}

    def __getitem__(self, op: str) -> Op:
        schema.operator(op, self.current_opset)
        return super().__getitem__(op)

    @property
    def is_inner(self) -> bool:
        """Whether this grows a subgraph."""
        return self._outer is not None

    @property
    def current_opset(self) -> int:
        """The opset whose operators can be emitted now."""
        return self.opset

    def producer(self, value: Value) -> Node | None:
        """The node, of this graph or one around it, that computes ``value``."""
        node = self._makers.get(value)
        return self._outer.producer(value) if node is None and self._outer is not None else node

    def maker(self, value: Value | None, *ops: str) -> Node | None:
        """The node of the standard that computes ``value``, if it is one of ``ops``."""
        node = self.producer(value) if value is not None else None
        return node if node is not None and node.op in ops and not node.domain else None

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Append a node of the standard, or find that none is needed."""
        call = self.resolve(op, inputs, attrs, outputs)
        return self.append(call) if isinstance(call, TypedCall) else call

    def resolve(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """The result of an operator that needs no node; otherwise the node to append, typed."""
        if op in SHAPES:
            return self._resolve_by_rule(op, inputs, attrs, outputs)
        key = self._key(op, inputs, attrs, outputs)
        result = None if key is None else self._calls.get(key)
        if result is not None:
            return result.with_inputs(inputs)
        result = self._resolve(op, inputs, attrs, outputs)
        if key is not None and isinstance(result, TypedCall):
            result = result._replace(attrs=MappingProxyType(result.attrs))
            memoize(self._calls, key, lambda: result)
        return result

    def _resolve_by_rule(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Resolve an operator whose shape a rule tells; all but that is alike for other sizes."""
        key = self._signature(op, inputs, attrs) if outputs == 1 else None
        if key is None:
            return self._resolve(op, inputs, attrs, outputs)
        call = self._calls.get(key)
        if call is not None:
            shape = SHAPES[op]([v.shape for v in inputs], call.attrs)
            if shape is not None and are_possible(shape):
                types = (inference.Type(call.types[0].dtype, shape),)  # type: ignore[union-attr]
                return TypedCall(call.operator, tuple(inputs), call.attrs, types)
        result = self._resolve(op, inputs, attrs, outputs)
        if call is None and isinstance(result, TypedCall) and result.inputs == tuple(inputs):
            full = MappingProxyType(result.attrs)
            shape = SHAPES[op]([v.shape for v in inputs], full)
            is_told = result.types == ((inputs[0].dtype, shape, ()),) and not result.shape_data
            if is_told and not canonicalize.looks_at_sizes(op, attrs):
                memoize(self._calls, key, lambda: result._replace(attrs=full))
        return result

    def _signature(self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any]) -> Any:
        """What calls of an operator have in common that differ in sizes alone, if they may be."""
        if op in BY_CONTENTS:
            return None
        key: list[Any] = [op, self.current_opset]
        is_constant = True
        for v in inputs:
            if not isinstance(v, Value) or v.shape is None or v.container:
                return None
            if v.tensor is None:
                if v.shape_data is not None:
                    return None
                is_constant = False
            key += (v.dtype, len(v.shape), v.tensor is None)
        number = None if is_constant else number_attributes(attrs)
        return None if number is None else (number, *key)

    def _key(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """What ``resolve`` depends on; None where that is more than inference looks at."""
        if op in BY_CONTENTS or not inputs or inputs[-1] is None:
            return None
        is_constant = True
        for value in inputs:
            if value is not None:
                if not isinstance(value, Value) or value.shape_data is not None:
                    return None
                is_constant = is_constant and value.tensor is not None
        number = None if is_constant else number_attributes(attrs)
        if number is None:
            return None
        return (op, self.current_opset, outputs, number, *inference.input_keys(op, inputs))

    def _resolve(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        operator = schema.operator(op, self.current_opset)
        attributes = {k: normalize_attribute(v) for k, v in attrs.items() if v is not None}
        if unknown := sorted(attributes.keys() - operator.attributes):
            raise TypeError(
                f"{op} has no attribute {', '.join(unknown)} at opset {self.current_opset}"
            )
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        while operands and operands[-1] is None:
            operands.pop()
        if not operator.takes(len(operands)):
            raise ConversionError(
                f"{op} takes no {len(operands)} inputs at opset {self.current_opset}"
            )
        read = tuple(canonicalize.canonicalize_operands(self, op, operands))
        full = canonicalize.complete_attributes(operator, read, attributes)
        if outputs == 1 and (result := simplify.simplify(self, op, read, full)) is not None:
            return result
        types = inference.infer(operator, self.current_opset, read, full, outputs)
        axis = full.get("axis", 0)
        is_kept = self.keeps_weights and weight_origins.computes_weight(op, read, types[0], axis)
        known = None if is_kept else folding.fold(op, self.current_opset, read, full, types)
        if known is not None:
            results = self._emit_folded(op, read, known)
            if self.for_training and op in weight_origins.FOLLOWED:
                origins_of_each = weight_origins.follow(op, read, axis, known)
                for value, origins in zip(results, origins_of_each, strict=True):
                    value.origins = origins
            return results[0] if outputs == 1 else results
        elements = dim_expr.infer_shape_data(op, read, full) if outputs == 1 else None
        if elements is not None and all(isinstance(e, int) for e in elements) and (
            _places_elements(types[0].shape)
        ):  # fmt: skip
            return self._emit_shape_data(op, elements, types[0])
        return TypedCall(operator, read, full, types, elements)

    def append(self, call: TypedCall) -> Any:
        """Append the node of a call; return its output, or a tuple of several."""
        results = self._append(call.op, call.inputs, call.attrs, len(call.types))
        for value, type_ in zip(results, call.types, strict=True):
            if type_ is not None:
                value.dtype, value.shape, value.container = type_
        results[0].shape_data = call.shape_data
        if len(results) == 1:
            self._makers[results[0]] = self.nodes[-1]
            return results[0]
        self._makers.update(dict.fromkeys(results, self.nodes[-1]))
        return results

    def keep(self, node: Node, inputs: tuple[Value | None, ...]) -> tuple[Value, ...]:
        """Take a node over as it is."""
        results = super().keep(node, inputs)
        if node.domain == composites.DOMAIN:
            composites.infer_types(self.nodes[-1])
        self._makers.update(dict.fromkeys(results, self.nodes[-1]))
        return results

    def take_over(self, inner: OnnxBuilder) -> None:
        """Append the nodes that a builder of a subgraph has made."""
        self.nodes += inner.nodes
        self._makers.update(inner._makers)

    def foreign(
        self, domain: str, op: str, inputs: Sequence[Value | None], attrs: Mapping[str, Any],
        outputs: int = 1,
    ) -> tuple[Value, ...]:  # fmt: skip
        """Append a node of another domain; its outputs have no type yet."""
        attributes = {k: normalize_attribute(v) for k, v in attrs.items() if v is not None}
        return self._append(op, tuple(inputs), attributes, outputs, domain)

    @contextmanager
    def keeping_weights(self) -> Iterator[None]:
        """Fold nothing that is computed of trained arrays within the block."""
        before, self.keeps_weights = self.keeps_weights, True
        try:
            yield
        finally:
            self.keeps_weights = before

    def composite(
        self, op: str, inputs: Sequence[Value | None], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:  # fmt: skip
        """Append a composite operator; its results have types."""
        count = len(composites.SHAPES[op](inputs, attrs))
        results = self.foreign(composites.DOMAIN, op, inputs, attrs, count)
        composites.infer_types(self.nodes[-1])
        return results

    def stem(self, op: str) -> str:
        """What a value that ``op`` makes is called, but for the number behind it."""
        return f"{self._sources[0].name}/{op}" if self._sources else op

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over, and remember its name for what is made of it."""
        adopted = super().adopt(constant)
        self._weights[adopted] = constant.name
        return adopted

    def _emit_folded(
        self, op: str, read: tuple[Value | None, ...], known: tuple[Tensor, ...]
    ) -> tuple[Value, ...]:
        """Constants computed from constants, called after the one weight among them."""
        named = [self._weights[v] for v in read if v in self._weights]
        stem = f"{named[0]}/{op}" if len(named) == 1 else self.stem(op)
        results = tuple(self.const(t, name=stem) for t in known)
        if len(named) == 1:
            self._weights.update(dict.fromkeys(results, named[0]))
        return results

    def _emit_shape_data(self, op: str, elements: tuple[Any, ...], type_: Any) -> Value:
        array = np.array(elements, (type_.dtype or DType.INT64).numpy)
        if all(isinstance(d, int) for d in type_.shape):
            if math.prod(type_.shape) != array.size:
                raise ConversionError(f"{op} of {array.size} elements gives {list(type_.shape)}")
            array = array.reshape(type_.shape)
        return self.const(array, name=self.stem(op))

    def _operand(self, operator: Any, index: int, inputs: Sequence[Operand]) -> Value | None:
        """Promote a Python literal to a constant of the type the schema ties it to."""
        value = inputs[index]
        if value is None or isinstance(value, Value):
            return value
        if isinstance(value, (np.ndarray, np.generic, Tensor)):
            return self.const(value)
        formal = operator.input(index)
        tied = (
            v.dtype
            for i, v in enumerate(inputs)
            if isinstance(v, Value) and operator.input(i).tie == formal.tie
        )
        dtype = next((d for d in tied if d is not None), None)
        data = np.asarray(list(value) if isinstance(value, range) else value)
        if dtype is None and (data.dtype.kind == "i" or data.size == 0):
            dtype = DType.INT64
        elif dtype is None and data.dtype.kind == "f":
            dtype = DType.FLOAT32
        if dtype is not None and dtype.kind in "iub" and data.dtype.kind == "f" and data.size:
            raise ConversionError(
                f"{operator.name} ties {show_attribute(value)} to {dtype.value} elements"
            )
        return self.const(data, dtype)


def _places_elements(shape: Any) -> bool:
    """Whether a shape says how its elements are laid out."""
    return shape is not None and (len(shape) < 2 or all(isinstance(d, int) for d in shape))
