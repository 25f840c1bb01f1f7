"""Emit nodes one call at a time, typed as they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.geometry import check_sizes
from serde.ir.graph import Attr, Call, DType, Graph, Node, Shape, Source, Tensor, Value

PLAIN = frozenset({int, float, str})
LONGEST_STEM = 256  # letters of a source's name that go into those of new values
MOST_NODES = 20_000  # that one node of the source may become
Operand = Any  # Value | None | scalar | sequence | ndarray


class Op:
    """An operator waiting for its operands; attribute access extends a dotted name."""

    __slots__ = ("_builder", "_name")

    def __init__(self, builder: Builder, name: str) -> None:
        self._builder, self._name = builder, name

    def __getattr__(self, part: str) -> Op:
        return self._builder[f"{self._name}.{part}"]

    def __call__(self, *inputs: Operand, outputs: int = 1, **attrs: Any) -> Any:
        """Emit the operator; return its output, or a tuple where ``outputs`` is not 1."""
        return self._builder.emit(self._name, inputs, attrs, outputs)


class Names:
    """Names in use in a module: every Value gets one of its own.

    ``reserved`` are names the source gave: they go to what bears them there, never to a new value.
    ``most`` is how many there may be.
    """

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.reserved: set[str] = set()
        self.most = sys.maxsize
        self._next: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """``stem`` itself, or with the lowest free number behind it.

        Raises:
            ConversionError: where a small model has grown to a very large one.
        """
        if len(self.used) >= self.most:
            raise ConversionError(
                f"the model grows to more than {self.most:,} values, as where the steps of a "
                "sequence are written out: --max-growth allows 1,024 a MiB"
            )
        stem = stem[:LONGEST_STEM]
        name, number = stem, self._next.get(stem, 1)
        while not name or name in self.used or name in self.reserved:
            name = f"{stem}_{number}"
            number += 1
        self._next[stem] = number
        self.used.add(name)
        return name

    def claim(self, name: str) -> str:
        """``name`` as the source has it, or a fresh one where it is taken."""
        if not name or name in self.used:
            return self.fresh(name or "value")
        self.used.add(name)
        return name

    def relabel(self, value: Value, name: str) -> None:
        """Let ``value`` bear ``name`` from now on, if nothing else does."""
        if name and name != value.name and name not in self.used:
            self.used.discard(value.name)
            self.used.add(name)
            value.name = name


class Builder:
    """Grow a graph in one domain: ``g.Conv(x, w)`` emits a node and returns its output."""

    domain = ""
    identity = "Identity"  # the operator that gives a value a second name

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        self.name, self.opset = name, opset
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.names: Names = outer.names if outer else Names()
        self.notes: dict[tuple[str, str], dict[str, None]] = outer.notes if outer else {}
        self._sources: tuple[Source, ...] = outer._sources if outer else ()
        self._mark = 0  # nodes there were when the present source's first was made

    def child(self, name: str) -> Builder:
        """A builder for a subgraph: names are shared, nodes are its own."""
        return type(self)(name, self.opset, self)

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        container: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare a graph input; one that a rule makes gives way to names of the source.

        Raises:
            ConversionError: where a size is less than 0.
        """
        check_sizes(f"input {name!r}", shape or ())
        name_of = self.names.fresh if name in self.names.reserved else self.names.claim
        self.inputs.append(Value(name_of(name), dtype, shape, container=container))
        return self.inputs[-1]

    def declare(self, value: Value, type_: Any) -> Value:
        """An input for that of another graph, which is of a type here."""
        return self.input(value.name, *type_)

    def const(self, data: Any, dtype: DType | None = None, name: str = "const") -> Value:
        """A constant holding ``data``: a scalar, a sequence, an array or a Tensor.

        Raises:
            ConversionError: where its type does not hold a number.
        """
        if not isinstance(data, Tensor):
            try:
                data = Tensor.of(np.asarray(data, dtype.numpy if dtype else None))
            except OverflowError:
                name = dtype.value if dtype else "int64"
                raise ConversionError(f"comes to a number that {name} does not hold") from None
        return Value(self.names.fresh(name), data.dtype, data.shape, data)

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over from another graph: itself while its name is free."""
        is_used = constant.name in self.names.used or constant.name in self.names.reserved
        if constant.name and not is_used:
            self.names.used.add(constant.name)
            return constant
        name = self.names.fresh(constant.name or "const")
        adopted = Value(name, constant.dtype, constant.shape, constant.tensor)
        adopted.origins = constant.origins
        return adopted

    @contextmanager
    def at(self, *sources: Source) -> Iterator[None]:
        """Record ``sources`` as the origin of every node emitted in the block."""
        before = self.enter(sources)
        try:
            yield
        finally:
            self.leave(before)

    def enter(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """Record ``sources`` as the origin of nodes from now on; return what it was before."""
        before, self._sources, self._mark = self._sources, sources, len(self.nodes)
        return before

    def leave(self, sources: tuple[Source, ...]) -> None:
        """Go back to the origin there was before."""
        self._sources = sources

    def in_call(self, call: Call) -> AbstractContextManager[None]:
        """Record that every node emitted in the block is of ``call`` too."""
        return self.at(*(replace(s, calls=(*s.calls, call)) for s in self._sources))

    def note(self, text: str) -> None:
        """Say of the present source what people should know of its conversion."""
        for source in self._sources[:1]:
            self.notes.setdefault((source.op, text), {})[source.name] = None

    def resume(self) -> None:
        """Count the nodes that the present source becomes anew."""
        self._mark = len(self.nodes)

    def __getattr__(self, op: str) -> Op:
        if op.startswith("_"):
            raise AttributeError(op)
        return self[op]

    def __getitem__(self, op: str) -> Op:
        return Op(self, op)

    def build(self, outputs: Sequence[Value], **fields: Any) -> Graph:
        """The graph grown so far, with ``outputs`` as its results."""
        return Graph(
            self.name,
            tuple(self.inputs),
            tuple(outputs),
            tuple(self.nodes),
            self.domain,
            self.opset,
            **fields,
        )

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Append a node; attributes given as None are unset."""
        operands = tuple(
            [v if v is None or isinstance(v, Value) else self.const(v) for v in inputs]
        )
        attributes = {k: normalize_attribute(v) for k, v in attrs.items() if v is not None}
        results = self._append(op, operands, attributes, outputs)
        return results[0] if outputs == 1 else results

    def keep(self, node: Node, inputs: tuple[Value | None, ...]) -> tuple[Value, ...]:
        """Take ``node`` over from another graph as it is, reading ``inputs`` instead."""
        names = [v.name for v in node.outputs]
        if inputs == node.inputs and self.names.used.isdisjoint(names):  # Values compare as objects
            self.names.used.update(names)
            self.nodes.append(node)
            return node.outputs
        outputs = tuple(
            Value(
                self.names.claim(v.name) if v.name else "",
                v.dtype,
                v.shape,
                None,
                v.shape_data,
                v.container,
            )
            for v in node.outputs
        )
        kept = Node(node.op, inputs, outputs, node.attrs, node.domain, node.name, node.sources)
        self.nodes.append(kept)
        return outputs

    def emit_identity(self, value: Value) -> Value:
        """A new value equal to ``value``, for an output that needs a name of its own."""
        (alias,) = self._append(self.identity, (value,), {}, 1)
        alias.dtype, alias.shape, alias.container = value.dtype, value.shape, value.container
        return alias

    def _append(
        self, op: str, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any], outputs: int,
        domain: str | None = None,
    ) -> tuple[Value, ...]:  # fmt: skip
        if self._sources and len(self.nodes) - self._mark >= MOST_NODES:
            raise ConversionError(f"would become more than {MOST_NODES} nodes")
        stem = f"{self._sources[0].name}/{op}" if self._sources else op
        results = tuple([Value(self.names.fresh(stem)) for _ in range(outputs)])
        domain = self.domain if domain is None else domain
        name = self._sources[0].name if self._sources else results[0].name if results else stem
        frozen = attrs if isinstance(attrs, MappingProxyType) else MappingProxyType(attrs)
        self.nodes.append(Node(op, inputs, results, frozen, domain, name, self._sources))
        return results


def normalize_attribute(value: Any) -> Attr:
    """An attribute as the IR holds it: tuples for sequences, Python numbers for NumPy's."""
    if type(value) in PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, (list, tuple, range)):
        return tuple([v if type(v) in PLAIN else normalize_attribute(v) for v in value])
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    return value  # type: ignore[no-any-return]


def set_type(value: Value, dtype: DType | None, shape: Shape | None) -> Value:
    """``value``, made inside a rule, with its type told to what reads it."""
    value.dtype, value.shape = dtype, shape
    return value


def ensure_distinct_outputs(builder: Builder, outputs: Iterable[Value]) -> list[Value]:
    """Outputs of the graph being built, each a value of its own that a node of it computes."""
    free = {v for node in builder.nodes for v in node.outputs}
    values: list[Value] = []
    for value in outputs:
        values.append(value if value in free else builder.emit_identity(value))
        free.discard(value)
    return values
