"""The tables of rules from the IR to PyTorch, the builder they emit with, and what they share.

A graph of the domain ``torch`` has a node for each expression of the source that is written. Its
operator is what is called, as the source spells it: ``F.relu``, ``torch.cat``, ``nn.Conv2d``, a
method with a dot before it (``.reshape``), an infix operator (``+``), or ``[]`` for an index.
``args`` and the other attributes hold the arguments, with a ``Slot`` where an operand goes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from serde.errors import require
from serde.ir.builder import Builder, Op
from serde.ir.builder import set_type as set_type
from serde.ir.dim_expr import SIGNS, shape_data_of
from serde.ir.graph import Dim, DType, Node, Tensor, Value
from serde.legalize.target import legalization_table
from serde.rewrite.writer_table import WriterTable
from serde.spec import composites
from serde.spec.weight_origins import cut, disorder, origins_of

from . import sizes

DOMAIN = "torch"
TYPES = frozenset(
    {DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BOOL, DType.UINT8}
    | {DType(f"int{bits}") for bits in (8, 16, 32, 64)}
)
STORED = TYPES | {DType.UINT16, DType.UINT32, DType.UINT64}  # it holds these, and moves them


class Slot(NamedTuple):
    """Stands, among the arguments of a call, for one of the node's operands."""

    operand: int


class ListOf(NamedTuple):
    """Arguments that are written as a list."""

    items: tuple[Any, ...]


class WhileTrained(NamedTuple):
    """An argument that is ``value`` while the module is trained, and 0 elsewhere."""

    value: float


class Module(NamedTuple):
    """What a node that calls a module declares of it, as its attribute ``module``.

    ``args`` and ``options`` are arguments of its constructor; ``parameters`` are the names of what
    the last operands of the node hold. ``wrapper`` is what is called with the module, if anything.
    """

    args: tuple[Any, ...]
    options: Mapping[str, Any]
    parameters: tuple[str, ...]
    wrapper: str = ""


writes = WriterTable("ir → torch", "PyTorch", ("", composites.DOMAIN))
# Operators PyTorch has not, or not in such a form, as operators of the IR that it has.
legalizations = legalization_table("ir → torch")


class TorchBuilder(Builder):
    """Grows a graph of expressions: ``t.F.relu(x)``, ``t[".reshape"](x, (2, -1))``."""

    domain = DOMAIN
    identity = "alias"

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self._sizes: dict[tuple[Value, int], Value] = {}
        self.origins: dict[Value, Value] = outer.origins if isinstance(outer, TorchBuilder) else {}
        self.makers: dict[Value, Node] = {}
        self._scope: TorchBuilder | None = outer if isinstance(outer, TorchBuilder) else None
        # Whether torch.export is to take branches and loops.
        self.exportable: bool = self._scope is not None and self._scope.exportable
        self.for_training: bool = self._scope is None or self._scope.for_training
        self._elements: dict[Value, sizes.Elements] = self._scope._elements if self._scope else {}

    def __getitem__(self, op: str) -> Op:
        return Op(self, op)

    def maker(self, value: Value, op: str) -> Node | None:
        """The node of this graph that computes ``value``, if it is a call of ``op``."""
        node = self.makers.get(value)
        return node if node is not None and node.op == op else None

    def _append(self, *call: Any, **options: Any) -> tuple[Value, ...]:
        results = super()._append(*call, **options)
        node = self.nodes[-1]
        for value in results:
            self.makers[value] = node
        if node.op in sizes.RULES:
            self._follow_sizes(node)
        return results

    def _follow_sizes(self, node: Node) -> None:
        operands = [None if v is None else self._elements.get(v) for v in node.inputs]
        if node.op != "torch.tensor" and all(e is None for e in operands):
            return
        for at, value in enumerate(node.inputs):
            if value is not None and operands[at] is None:
                operands[at] = sizes.elements_of_constant(value)
        options = {name: _fill(value, operands) for name, value in node.attrs.items()}
        args = options.pop("args", operands)  # a second name has operands only
        elements = sizes.follow_elements(node.op, args, options)
        if elements is not None:
            self._elements[node.outputs[0]] = elements

    def emit(
        self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Append a call; operands may stand anywhere among the arguments."""
        operands: list[Value] = []
        args = tuple([_take_operands(a, operands) for a in inputs])
        options = {k: _take_operands(v, operands) for k, v in attrs.items() if v is not None}
        results = self._append(op, tuple(operands), {"args": args, **options}, outputs)
        return results[0] if outputs == 1 else results

    def module(
        self, op: str, inputs: Sequence[Value], args: Sequence[Any] = (), outputs: int = 1,
        parameters: Mapping[str, Value | None] = MappingProxyType({}), call: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        """Append a call of a module of the class ``op`` that is constructed with ``args``.

        ``parameters`` are its arrays by name; ``call`` has the arguments of the call where they are
        not just ``inputs``. Options that are None are left out; the element type is the arrays'.
        """
        operands: list[Value] = []
        called = tuple([_take_operands(a, operands) for a in (inputs if call is None else call)])
        arrays = {name: value for name, value in parameters.items() if value is not None}
        if arrays:
            options["dtype"] = name_type(next(iter(arrays.values())))
        set_options = {name: v for name, v in options.items() if v is not None}
        module = Module(tuple(args), MappingProxyType(set_options), tuple(arrays))
        operands += arrays.values()
        results = self._append(op, tuple(operands), {"args": called, "module": module}, outputs)
        return results[0] if outputs == 1 else results

    def size(self, x: Value, axis: int) -> int | Value:
        """The size of an axis: a number, or a value that is a Python integer."""
        dim = x.ranked_shape[axis]
        if isinstance(dim, int):
            return dim
        key = (x, axis)
        if key not in self._sizes:
            self._sizes[key] = size = self["size"](x, axis)
            self._elements[size] = np.asarray(size, object)
        return self._sizes[key]

    def device(self) -> Value | None:
        """Where the inputs are, for tensors that are made there; None without any."""
        inputs = self._inputs_in_scope()
        return self["device"](inputs[0]) if inputs else None

    def find_size(self, dim: Dim, *operands: Value) -> int | Value | None:
        """The size that ``dim`` says, from the shapes of operands or inputs; None if unknown."""
        if isinstance(dim, int) or dim is None:
            return dim
        for value in (*operands, *self._inputs_in_scope()):
            if value.shape is not None and dim in value.shape:
                return self.size(value, value.shape.index(dim))
        try:
            parsed = ast.parse(dim, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return None
        return self._evaluate(parsed, operands) if isinstance(parsed, ast.BinOp) else None

    def _evaluate(self, tree: ast.expr, operands: Sequence[Value]) -> int | Value | None:
        match tree:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return self.find_size(name, *operands)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in SIGNS:
                a, b = self._evaluate(left, operands), self._evaluate(right, operands)
                infix = {"/": "//"}.get(SIGNS[type(sign)], SIGNS[type(sign)])
                return None if a is None or b is None else self[infix](a, b)
        return None

    def _inputs_in_scope(self) -> list[Value]:
        outer = self._scope._inputs_in_scope() if self._scope else []
        return [*self.inputs, *outer]

    def find_sizes(self, shape: Value, *operands: Value) -> tuple[Any, ...] | None:
        """The elements of a shape as sizes, if all are known."""
        elements = self.list_sizes(shape, *operands)
        return None if elements is None or None in elements else tuple(elements)

    def list_sizes(self, shape: Value, *operands: Value) -> list[Any] | None:
        """The elements of a shape as sizes, None for those that are not known."""
        elements, computed = shape_data_of(shape), self._elements.get(shape)
        if computed is None:
            return None if elements is None else [self.find_size(d, *operands) for d in elements]
        known = computed.size * [None] if elements is None else elements
        pairs = zip(known, computed.reshape(-1), strict=True)
        return [self._write_size(c) if (size := self.find_size(d, *operands)) is None else size
                for d, c in pairs]  # fmt: skip

    def _write_size(self, size: Any) -> Any:
        if not isinstance(size, sizes.Computed):
            return size
        return self[size.sign](*map(self._write_size, size.operands))


def name_type(array: Value) -> DType | None:
    """The element type of a module's arrays where it is not PyTorch's default."""
    return None if array.type is DType.FLOAT32 else array.type


def _fill(argument: Any, operands: Sequence[Any]) -> Any:
    """An argument with the elements of operands in their places."""
    if isinstance(argument, Slot):
        return operands[argument.operand]
    if isinstance(argument, ListOf):
        return [_fill(a, operands) for a in argument.items]
    return tuple([_fill(a, operands) for a in argument]) if type(argument) is tuple else argument


def _take_operands(argument: Any, operands: list[Value]) -> Any:
    """An argument with a ``Slot`` for each value in it, which is entered among the operands."""
    if isinstance(argument, Value):
        operands.append(argument)
        return Slot(len(operands) - 1)
    if isinstance(argument, tuple) and not isinstance(argument, (Slot, WhileTrained)):
        return tuple([_take_operands(a, operands) for a in argument])
    if isinstance(argument, slice):
        ends = argument.start, argument.stop, argument.step
        return slice(*[_take_operands(e, operands) for e in ends])
    if isinstance(argument, list):
        return ListOf(tuple([_take_operands(a, operands) for a in argument]))
    return argument


def derive(
    t: TorchBuilder, constant: Value, change: Any, shape: tuple[int, ...], begin: int = 0
) -> Value:
    """A constant of the elements from ``begin`` on in another order: ``change(array)``."""
    tensor = constant.tensor
    require(tensor is not None, f"{constant.name!r} is no constant")
    assert tensor is not None
    load = tensor.load
    changed = Tensor(tensor.dtype, shape, lambda: change(load()))
    value = Value(t.names.fresh(f"{constant.name}.turned"), tensor.dtype, shape, changed)
    value.name_is_original = constant.name_is_original
    value.origins = disorder(cut(origins_of(constant), begin, begin + changed.size))
    t.origins[value] = constant
    return value


def freeze(t: TorchBuilder, value: Value) -> Value:
    """A constant that the source does not train: its statistics."""
    if value.tensor is None:
        return value
    frozen = Value(value.name, value.dtype, value.shape, value.tensor)
    t.origins[frozen] = value
    return frozen
