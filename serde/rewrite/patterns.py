"""Rewrites of a node together with its neighbours, and the one walk that applies them.

A rule looks at a node, at what makes its operands and at what reads its results::

    patterns = Patterns()

    @patterns("Add")
    def fold_bias(near: Neighbours, node: Node) -> Node | None:
        for x, b in orders(node):
            conv = near.sole_maker(node, x, "Conv")
            if conv is not None and len(conv.inputs) == 2 and is_bias(b):
                return merge(conv, node, inputs=(*conv.inputs, b))
        return None
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from serde.ir.graph import Call, Graph, Node, Source, Value
from serde.ir.map_nodes import map_bodies
from serde.ir.replace_uses import exchange_values, replace_inputs

Rule = Callable[["Neighbours", Node], "Node | Sequence[Node] | Value | None"]
T = TypeVar("T")


class Patterns:
    """Rules by the operator of the last node that they merge, all of one ``domain``.

    Where operators are ``required``, graphs that have none of them stay as they are.
    """

    def __init__(self, *required: str, domain: str = "") -> None:
        self._required, self._domain = frozenset(required), domain
        self._rules: dict[str, list[Rule]] = defaultdict(list)

    def __call__(self, *ops: str) -> Callable[[Rule], Rule]:
        """Register the decorated rule for nodes of ``ops``.

        It returns the node that computes the same results, or several of which the last does; or
        the value that the first result equals, which counts where no other is read; None where it
        does not apply. What it returns must not match again for ever.
        """

        def register(rule: Rule) -> Rule:
            for op in ops:
                self._rules[op].append(rule)
            return rule

        return register

    def apply(self, graph: Graph) -> Graph:
        """Return ``graph``, its subgraphs too, with the rules applied until none matches.

        Nodes are visited in their order, those of subgraphs after the node that they are of. The
        rules are asked about the result of a rule again. A node of which nothing reads a result
        any more goes.
        """
        for ops in (self._rules, self._required):
            if ops and graph.operators().isdisjoint(ops):
                return graph
        return _walk(graph, self._rules, Neighbours(graph, self._domain))


def _walk(graph: Graph, rules: Mapping[str, Sequence[Rule]], near: Neighbours) -> Graph:
    nodes: list[Node] = []
    is_same = True
    for node in graph.nodes:
        new = near.update(node)
        if new.op not in rules and not new.graphs():
            is_same = is_same and new is node
            nodes.append(new)
            continue
        rewritten = _rewrite(new, rules, near)
        if rewritten and rewritten[-1].graphs():
            last = map_bodies(
                rewritten[-1], lambda b: _walk(b, rules, Neighbours(b, near.domain, near))
            )
            rewritten[-1] = near.put(rewritten[-1], last)
        is_same = is_same and rewritten == [node]
        nodes += rewritten
    if is_same:
        return graph
    dead = near.dead
    done = replace(graph, nodes=tuple([node for node in nodes if node not in dead]))
    return exchange_values(done, near.renamed) if near.renamed else done


def _rewrite(node: Node, rules: Mapping[str, Sequence[Rule]], near: Neighbours) -> list[Node]:
    """The nodes in place of ``node``; none where a value stands for its result."""
    before: list[Node] = []
    while node.domain == near.domain:
        for rule in rules.get(node.op, ()):
            new = rule(near, node)
            if isinstance(new, Value):
                if near.dissolve(node, new):
                    return before
            elif new is not None:
                *first, last = [new] if isinstance(new, Node) else new
                near.exchange(node, *first, last)
                before, node = before + first, last
                break
        else:
            break
    return [*before, node]


class Neighbours:
    """Who makes and who reads the values of a graph, as it is while the walk goes on.

    They are listed when a rule first asks. ``outer`` are the neighbours in the graph around. Makers
    and readers that are asked for by operators are those of ``domain``.
    """

    def __init__(self, graph: Graph, domain: str = "", outer: Neighbours | None = None) -> None:
        self.graph, self._outer = graph, outer
        self.domain: str = domain if outer is None else outer.domain
        self.dead: set[Node] = set() if outer is None else outer.dead
        self.renamed: dict[Value, Value] = {}  # results that take the place of an output
        self._instead: dict[Value, Value] = {} if outer is None else outer._instead
        self._found: dict[Any, Any] = {}

    def find(self, analysis: Callable[[Graph], T]) -> T:
        """What a function finds in the graph as it came, where it is called once."""
        if analysis not in self._found:
            self._found[analysis] = analysis(self.graph)
        return self._found[analysis]  # type: ignore[no-any-return]

    @cached_property
    def uses(self) -> Counter[Value]:
        """How often each value is read; reads from subgraphs and by the outputs count."""
        return self.graph.uses() if self._outer is None else self._outer.uses

    @cached_property
    def makers(self) -> dict[Value, Node]:
        """The node that computes a value, but for those of subgraphs."""
        return {v: node for node in self.graph.nodes for v in node.outputs}

    @cached_property
    def readers(self) -> Mapping[Value, dict[Node, None]]:
        """The nodes that read a value, each once, but for those of subgraphs."""
        readers: dict[Value, dict[Node, None]] = defaultdict(dict)
        for node in [self.makers[n.outputs[0]] if n.outputs else n for n in self.graph.nodes]:
            for v in {v for v in node.inputs if v is not None} if node not in self.dead else ():
                readers[self._instead.get(v, v)][node] = None
        return readers

    def maker(self, value: Value | None, *ops: str) -> Node | None:
        """The node of the domain that computes ``value``, if it is one of ``ops``."""
        node = self.makers.get(value) if value is not None else None
        is_found = node is not None and node.op in ops and node.domain == self.domain
        return node if is_found else None

    def sole_maker(
        self, reader: Node, value: Value | None, *ops: str, crosses_calls: bool = False
    ) -> Node | None:
        """The same, if only ``reader`` reads the value, once, in the same functions or any."""
        node = self.maker(value, *ops)
        if node is None or value is None or self.uses[value] != 1:
            return None
        return node if crosses_calls or calls_of(node) == calls_of(reader) else None

    def sole_reader(self, node: Node, *ops: str) -> Node | None:
        """The node of the domain that alone reads the first result of ``node``.

        None if it is none of ``ops``, or in a subgraph.
        """
        value = node.outputs[0]
        readers = self.readers.get(value, ())
        if self.uses[value] != 1 or len(readers) != 1:
            return None
        (reader,) = readers
        return reader if reader.domain == self.domain and reader.op in ops else None

    def update(self, node: Node) -> Node:
        """``node``, reading the values that stand for others."""
        if not self._instead:
            return node
        return self.put(node, replace_inputs(node, self._instead))

    def exchange(self, node: Node, *new: Node) -> None:
        """Take the nodes ``new`` in place of ``node``."""
        self.uses.update(value for n in new for value in _reads(n))
        self.put(node, *new)
        self._release(node)

    def dissolve(self, node: Node, value: Value) -> bool:
        """Whether ``value`` could be read in place of the one result of ``node`` that is read.

        An output of the graph keeps its name: the node that computes ``value`` computes it instead,
        if there is one, unless that is an output too.
        """
        (result, *others), outputs = node.outputs, self.graph.outputs
        if any(self.uses[v] for v in others):
            return False
        if result in outputs:
            if value not in self.makers or value in outputs or value in self.renamed:
                return False
            self.renamed[value] = result
        self._instead[result] = value
        self.uses[value] += self.uses.pop(result, 0)
        self.dead.add(node)
        if "readers" in self.__dict__:
            self.readers[value].update(self.readers.get(result, {}))
        self._release(node)
        return True

    def put(self, node: Node, *new: Node) -> Node:
        """Enter ``new`` in place of ``node`` as makers and readers; return the last."""
        if new != (node,):
            self.makers.update((v, n) for n in new for v in n.outputs)
            self._put_reader(node, *new)
        return new[-1]

    def _put_reader(self, node: Node, *new: Node) -> None:
        if "readers" in self.__dict__:
            for v in {v for n in (node, *new) for v in n.inputs if v is not None}:
                readers = self.readers[v]
                readers.pop(node, None)
                readers.update((n, None) for n in new if v in n.inputs)

    def _release(self, node: Node) -> None:
        """Count the reads of a node that goes, and of those that go with it, no more."""
        gone = [node]
        while gone:
            node = gone.pop()
            self._put_reader(node)
            for value in _reads(node):
                self.uses[value] -= 1
                maker = None if self.uses[value] else self._find_maker(value)
                if maker is not None and not any(self.uses[v] for v in maker.outputs):
                    self.dead.add(maker)
                    gone.append(maker)

    def _find_maker(self, value: Value) -> Node | None:
        """The node that computes a value, here or in a graph around."""
        maker = self.makers.get(value)
        return self._outer._find_maker(value) if maker is None and self._outer else maker


def _reads(node: Node) -> Iterable[Value]:
    bodies = chain.from_iterable(body.uses().elements() for body in node.graphs())
    return chain([v for v in node.inputs if v is not None], bodies)


def merge(first: Node, last: Node, **changes: Any) -> Node:
    """``first`` with changes, in place of ``last``: its outputs, and the sources of both."""
    return replace(first, outputs=last.outputs, sources=join_sources(first, last), **changes)


def join_sources(*nodes: Node) -> tuple[Source, ...]:
    """The sources of all nodes, each once."""
    return tuple(dict.fromkeys(source for node in nodes for source in node.sources))


def orders(node: Node) -> Sequence[tuple[Value | None, Value | None]]:
    """Both orders of the operands of a sum or a product; none where one is a number."""
    if len(node.inputs) < 2:
        return ()
    a, b = node.inputs
    return (a, b), (b, a)


def calls_of(node: Node) -> set[tuple[Call, ...]]:
    """The functions of the source that a node is part of."""
    return {s.calls for s in node.sources}
