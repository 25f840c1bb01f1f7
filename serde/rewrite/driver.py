"""The driver: one run of a rule table over a graph and its subgraphs, the only loop over nodes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Iterator, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from serde.errors import ConversionError, Problem, SerdeError, Unconvertible, locate_error
from serde.io.user_code import Terminated, describe_exit
from serde.ir.budget import BYTES, active_budget
from serde.ir.builder import Builder, ensure_distinct_outputs
from serde.ir.graph import Graph, Node, Source, Value, show_shape
from serde.ir.printer import list_first
from serde.ir.replace_uses import exchange_values
from serde.rewrite import subgraphs
from serde.rewrite.subgraphs import Body
from serde.spec.inference import UNKNOWN, Type

SHOWN = 8  # outputs named in a message
TRIALS = 64  # bodies rewritten again because what was taken for granted of their inputs is not so
# What stands for each value; None where the node that makes it could not be converted.
Env = MutableMapping[Value, "Value | None"]


class Table(Protocol):
    """What the driver asks of a table of rules."""

    name: str

    def apply(self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]) -> Any:
        """The values that stand for the outputs of a node."""

    def refusal(self, node: Node) -> ConversionError | None:
        """Why no rule takes the node, whatever its operands."""

    def bodies(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> Container[str]:  # fmt: skip
        """The attributes of a node that its rule takes as a ``Body``."""

    def configuration(self, node: Node) -> Any:
        """The attributes that tell one use of the operator from another."""


def rewrite(table: Table, graph: Graph, builder: Builder, is_function: bool = False) -> Graph:
    """Rewrite a graph, or the body of a function, by the rules of a table.

    Raises:
        Unconvertible: with all nodes no rule takes.
    """
    return _Rewriting(table).run(graph, builder, is_function)


def _notes(builder: Builder) -> Iterator[str]:
    """What rules said of nodes, once for all nodes of an operator."""
    for (op, text), names in builder.notes.items():
        few = ", ".join(map(repr, list(names)[:SHOWN])) + (", …" if len(names) > SHOWN else "")
        yield f"{op} ×{len(names)} ({few}) {text}"


class _Rewriting:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.problems: dict[tuple[str, str, str], Problem] = {}
        self.failed: dict[tuple[str, str, str], list[str]] = {}
        self.trials = 0
        self.kept: set[Value] = set()  # results of nodes of the source that are taken over
        self.domain = ""  # of the vocabulary that is rewritten

    def run(self, graph: Graph, builder: Builder, is_function: bool) -> Graph:
        self.domain = graph.domain
        names = _names(graph)
        builder.names.reserved.update(names)
        builder.names.reserved.update(v.name for v in graph.outputs if v.tensor is not None)
        count = len(names) + sum(len(_names(f.body)) for f in graph.functions)
        builder.names.most = active_budget().limit_values(count)
        done = self.body(graph, builder, {} if is_function else None)
        if self.problems:
            issues = [replace(p, names=tuple(self.failed[key])) for key, p in self.problems.items()]
            raise Unconvertible(self.table.name, issues)
        done = replace(
            done, functions=graph.functions, metadata=graph.metadata, imports=graph.imports,
            arrays=graph.arrays, notes=(*graph.notes, *_notes(builder)),
        )  # fmt: skip
        _refuse_growth(graph, done)
        return done

    def body(
        self, graph: Graph, builder: Builder, outer: Env | None = None, types: Sequence[Type] = ()
    ) -> Graph:
        env: Env = ChainMap({}, outer) if outer else {}
        for at, v in enumerate(graph.inputs):
            type_ = subgraphs.complete_type(v, types[at] if types else UNKNOWN)
            builder.names.reserved.discard(v.name)  # it is the source's, and used from now on
            env[v] = builder.declare(v, type_)
        for node in graph.nodes:
            self.node(node, builder, env)
        outputs = [self.output(v, builder, env) for v in graph.outputs]
        renamed: dict[Value, Value] = {}
        outputs = self.name_outputs(graph, builder, outputs, renamed, outer is not None)
        return exchange_values(builder.build(outputs), renamed)

    def node(self, node: Node, builder: Builder, env: Env) -> None:
        sources = node.sources or (Source(self.table.name, node.op, node.name),)
        mark = len(builder.nodes)
        try:
            inputs = node.inputs
            if inputs:
                get = env.get
                inputs = tuple([v and (get(v) or self.operand(v, builder, env)) for v in inputs])
            around = builder.enter(sources)
            try:
                results = self.apply(node, inputs, builder, env)
                if results is node.outputs:
                    pass
                elif _is_bound(node, results):
                    env[node.outputs[0]] = results[0]
                else:
                    self.bind(node, builder, results, mark, env)
            except (OSError, Terminated):  # a disk that fails is no matter of the node
                raise
            except SystemExit as error:
                raise locate_error(
                    ConversionError(describe_exit(error)), self.table.name, sources[0]
                ) from error
            except Exception as error:
                raise locate_error(  # noqa: B904  (has a cause)
                    error, self.table.name, sources[0], map(_describe_operand, inputs)
                )
            finally:
                builder.leave(around)
            if results is node.outputs:
                for value in node.outputs:
                    env[value] = value
                self.kept.update(node.outputs)
        except _DependsOnFailure:
            refusal = self.table.refusal(node)
            if refusal is not None:
                self.report(node, refusal)
            env.update((v, None) for v in node.outputs)
        except ConversionError as error:
            self.report(node, error)
            env.update((v, None) for v in node.outputs)

    def apply(
        self, node: Node, inputs: tuple[Value | None, ...], builder: Builder, env: Env
    ) -> tuple[Value | None, ...]:
        """What stands for the outputs of a node."""
        if node.graphs():
            branch = subgraphs.constant_branch(node, inputs)
            if branch is not None:
                return self.inline_body(env, branch, builder, ())
            node = self.with_bodies(node, inputs, builder, env)
        return self.table.apply(node, builder, inputs)  # type: ignore[no-any-return]

    def operand(self, value: Value, builder: Builder, env: Env) -> Value:
        if value in env:
            operand = env[value]
            if operand is None:
                raise _DependsOnFailure
            return operand
        if value.tensor is None:
            raise ConversionError(f"reads {value.name!r}, which nothing before it computes")
        const = env[value] = builder.adopt(value)
        return const

    def output(self, value: Value, builder: Builder, env: Env) -> Value:
        try:
            return self.operand(value, builder, env)
        except _DependsOnFailure:
            return value

    def with_bodies(
        self, node: Node, inputs: tuple[Value | None, ...], builder: Builder, env: Env
    ) -> Node:
        """The node with its subgraphs rewritten, or handed to a rule that does it."""
        if not any(isinstance(a, Graph) for a in node.attrs.values()):
            return node
        placed = self.table.bodies(node, builder, inputs)
        bodies: dict[str, Any] = {
            name: Body(graph, partial(self.inline_body, env))
            if name in placed
            else self.type_fixpoint(
                node, graph, subgraphs.infer_entry_types(node, graph, inputs), builder, env
            )
            for name, graph in node.attrs.items()
            if isinstance(graph, Graph)
        }
        return replace(node, attrs=MappingProxyType({**node.attrs, **bodies}))

    def type_fixpoint(
        self, node: Node, graph: Graph, types: list[Type], builder: Builder, env: Env
    ) -> Graph:
        """A body whose inputs are of the types that enter it, as far as all turns leave them so."""
        same = [subgraphs.complete_type(v, t) == subgraphs.complete_type(v, UNKNOWN)
                for v, t in zip(graph.inputs, types, strict=True)]  # fmt: skip
        while not all(same):
            before = dict(self.problems), {k: list(v) for k, v in self.failed.items()}
            names = builder.names.used.copy()
            done = self.body(graph, builder.child(graph.name), env, types)
            later = subgraphs.infer_next_types(node, types, done)
            if all(s or a == b for s, a, b in zip(same, types, later, strict=True)):
                return done
            builder.names.used, (self.problems, self.failed) = names, before
            self.trials += 1
            types = later if self.trials < TRIALS else [t._replace(shape=None) for t in later]
        return self.body(graph, builder.child(graph.name), env, types)

    def inline_body(
        self, outer: Env, graph: Graph, builder: Builder, operands: Sequence[Value]
    ) -> tuple[Value, ...]:
        """Rewrite a subgraph's nodes into ``builder``, its inputs standing for ``operands``."""
        pairs = zip(graph.inputs, operands, strict=True)
        env: Env = ChainMap(dict(pairs), outer)  # type: ignore[arg-type]
        for node in graph.nodes:
            self.node(node, builder, env)
        return tuple([self.operand(v, builder, env) for v in graph.outputs])

    def bind(
        self, node: Node, builder: Builder, results: tuple[Value | None, ...], mark: int, env: Env
    ) -> None:
        """Enter what a rule returned, named after the outputs it stands for."""
        if len(results) < len(node.outputs):
            used = [repr(v.name) for v in node.outputs[len(results) :]]
            raise ConversionError(f"output {list_first(used, SHOWN)} has no equivalent")
        emitted = builder.nodes[mark:]
        if len(node.outputs) == 1 and emitted and emitted[-1].outputs == results:
            fresh = set(results)
        else:
            fresh = {v for n in emitted for v in n.outputs}
        for old, new in zip(node.outputs, results, strict=False):
            if new is None:
                continue
            env[old] = new
            if new is old:
                continue
            if new.tensor is None:
                _complete_type(new, old)
            if new in fresh:
                fresh.discard(new)
                builder.names.relabel(new, old.name)

    def name_outputs(
        self, graph: Graph, builder: Builder, outputs: list[Value], renamed: dict[Value, Value],
        is_inner: bool,
    ) -> list[Value]:  # fmt: skip
        """Give the outputs the source's names, each a value of its own that a node computes.

        An output of the whole model that is an input there, or another output again, stays it.
        ``renamed`` gets the source's own values that are to have another name, and what takes
        their place.
        """
        inputs, kept = set(graph.inputs), set(builder.inputs)
        results: dict[Value, Value] = {}
        for old, new in zip(graph.outputs, outputs, strict=True):
            if not is_inner and old in inputs and new in kept and new.name == old.name:
                results[old] = new
        pairs = [(a, b) for a, b in zip(graph.outputs, outputs, strict=True) if a not in results]
        if not is_inner:
            pairs = list(dict(pairs).items())
        values = ensure_distinct_outputs(builder, [new for _, new in pairs])
        for (old, _), new in zip(pairs, values, strict=True):
            named = new
            if new in self.kept and new.name != old.name:
                named = renamed[new] = replace(new)
            _complete_type(named, old)
            builder.names.relabel(named, old.name)
        if is_inner:
            return values
        results.update((old, new) for (old, _), new in zip(pairs, values, strict=True))
        return [results[old] for old in graph.outputs]

    def operator_of(self, node: Node) -> str:
        """The operator as problems name it; of another domain, with that."""
        return node.op if node.domain == self.domain else node.qualified_op

    def report(self, node: Node, error: ConversionError) -> None:
        attrs = self.table.configuration(node)
        op = self.operator_of(node)
        key = (op, repr(attrs), error.reason)
        self.problems.setdefault(key, Problem(op, attrs, error.reason, (), error.stage))
        names = self.failed.setdefault(key, [])
        names.append(error.source.name if error.source else node.name)


def _is_bound(node: Node, results: tuple[Value | None, ...]) -> bool:
    """Whether there is one result, of the name and with all that is known of what it stands for."""
    if len(results) != 1 or len(node.outputs) != 1 or (new := results[0]) is None:
        return False
    old = node.outputs[0]
    is_typed = new.shape is not None and new.dtype is not None and new.tensor is None
    return is_typed and new.name == old.name and old.shape_data is None


def _complete_type(new: Value, old: Value) -> None:
    """Let a result have what is known of the value it stands for."""
    if new.dtype is None:
        new.dtype, new.container = old.dtype, old.container
    if new.shape is None:
        new.shape = old.shape
    if new.shape_data is None:
        new.shape_data = old.shape_data


def _refuse_growth(before: Graph, after: Graph) -> None:
    """Refuse weights out of all proportion to those there were: a small file could fill a disk."""
    now = sum(v.tensor.nbytes for v in after.constants() if v.tensor)
    most = active_budget().most_bytes
    if now <= most:
        return
    was = sum(v.tensor.nbytes for v in before.constants() if v.tensor)
    if now > most + BYTES.growth * was:
        raise ConversionError(f"{was} bytes of weights grow to {now}")


def _describe_operand(value: Value | None) -> str:
    """The type and the shape of an operand."""
    if value is None:
        return "none"
    return f"{value.dtype.title if value.dtype else 'unknown type'} {show_shape(value.shape)}"


def _names(graph: Graph) -> list[str]:
    """What inputs and results are called, those of subgraphs included."""
    names = [v.name for v in graph.inputs]
    for node in graph.all_nodes():
        names += [v.name for v in node.outputs]
        names += [v.name for body in node.graphs() for v in body.inputs]
    return names


class _DependsOnFailure(SerdeError):
    """The node reads the output of one that could not be converted."""


def again(builder: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Emit a node anew, so that what is known now is folded and inferred.

    What was computed of constants alone stays so where a source trains them.
    """
    if node.domain:
        return builder.keep(node, inputs)
    call = node.op, inputs, node.attrs, len(node.outputs)
    if not node.inputs or any(v is not None and v.tensor is None for v in node.inputs):
        return builder.emit(*call)
    with builder.keeping_weights():
        return builder.emit(*call)
