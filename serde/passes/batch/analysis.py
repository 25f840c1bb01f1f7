"""Find where the batch lies in each value of a graph, at the batch it was made for.

A value is the same for all samples, or has the batch along one axis. Every operator takes its
operands' places to that of its result by the table of sample axes, or is refused. Where a Reshape
leaves a choice, the most natural place is taken first; a later refusal that depends on it takes
the next. Any places that all operators take are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from serde.errors import ConversionError, Problem, Unconvertible, require
from serde.ir.graph import Graph, Node, Value, show_shape
from serde.passes.batch import bodies, nodes
from serde.passes.batch.places import ONE, Place
from serde.passes.batch.state import ADVICE, Conflict, State

OUTPUT = "Output"  # stands for an operator in messages about outputs
MOST_VISITS = 4_000  # of nodes beside 5 times as many as there are


@dataclass
class Analysis:
    """The places of the batch in a graph.

    Attributes:
        graph: the graph, at the batch it was made for.
        batch: that batch.
        axes: the axes of the inputs that have it.
        outputs: the axes that outputs are to have it along, by name; None for none.
    """

    graph: Graph
    batch: int
    axes: Mapping[Value, int]
    outputs: Mapping[str, int | None] = field(default_factory=dict)
    visits: int = 0

    @cached_property
    def state(self) -> State:
        """What is known of the graph's values."""
        places = {v: Place(axis) for v, axis in self.axes.items()}
        return State(self.batch, self.graph.uses(), places)

    def run(self) -> Analysis:
        """Find all places.

        Raises:
            Unconvertible: with the nodes that do not work sample by sample.
        """
        ambiguous: dict[str, Conflict] = {}
        if self._search(ambiguous):
            return self
        if self.batch == 1:
            del self.state
            self.state.is_thorough = True
            if self._search({}):
                return self
        raise Unconvertible("batch", self.list_problems(ambiguous))

    def _search(self, ambiguous: dict[str, Conflict]) -> bool:
        """Whether places are found that all nodes take; enter the outputs that are ambiguous."""
        state, count = self.state, len(self.graph.nodes)
        self.visits, most = 0, MOST_VISITS + 5 * count
        start: int | None = 0
        while start is not None:
            try:
                for state.start in range(start, count):
                    node = self.graph.nodes[state.start]
                    self.visit(node)
                    self.check_outputs(node.outputs)
                self.expand_outputs()
                return True
            except Conflict as conflict:
                if conflict.node.op == OUTPUT:
                    ambiguous.setdefault(conflict.node.name, conflict)
                start = state.choose_again(conflict.mask) if self.visits < most else None
        return False

    def visit(self, node: Node) -> None:
        """Enter the places of a node's outputs.

        Raises:
            Conflict: where it does not work sample by sample.
        """
        self.visits += 1
        try:
            if node.graphs():
                bodies.place_outputs(self.state, node, self.visit)
            else:
                nodes.place_outputs(self.state, node)
        except ConversionError as error:
            values = [*node.inputs, *(v for body in node.graphs() for v in body.all_values())]
            raise Conflict(node, error, self.state.mask_of(values)) from None

    def list_problems(self, ambiguous: Mapping[str, Conflict]) -> list[Problem]:
        """What every node is refused for where each choice is the most natural.

        Beside that, the outputs whose axis has to be named for another choice.
        """
        del self.state
        conflicts, failed = [], set[Value | None]()
        for node in self.graph.nodes:
            read = {*node.inputs, *(v for body in node.graphs() for v in body.uses())}
            if not failed.isdisjoint(read):
                failed.update(node.outputs)
                continue
            try:
                self.visit(node)
                self.check_outputs(node.outputs)
            except Conflict as conflict:
                conflicts.append(conflict)
                failed.update(node.outputs)
        names = {c.node.name for c in conflicts if c.node.op == OUTPUT}
        return _group_problems([*conflicts, *(c for n, c in ambiguous.items() if n not in names)])

    def check_outputs(self, values: Iterable[Value]) -> None:
        """Refuse outputs of the graph among values that do not have the batch where they had it.

        Raises:
            Conflict: for one.
        """
        for value in values:
            place = self.state.places.get(value) if value in self.ends else None
            try:
                if place is not None:
                    self._check_output(value, place)
            except ConversionError as error:
                node = Node(OUTPUT, (value,), (value,), name=value.name)
                raise Conflict(node, error, self.state.mask_of([value])) from None

    @cached_property
    def ends(self) -> frozenset[Value]:
        """The outputs of the graph."""
        return frozenset(self.graph.outputs)

    def expand_outputs(self) -> None:
        """Have outputs that are one for all samples of the old batch as many as the new one has."""
        unchanged = self.state.places.keys() | set(self.graph.inputs)
        self.state.results[id(self.graph)] = {
            at: Place(self.outputs.get(value.name, 0) or 0)
            for at, value in enumerate(self.graph.outputs)
            if value not in unchanged and self._lacks_batch(value)
        }

    def _lacks_batch(self, value: Value) -> bool:
        """Whether an output that is one for all samples had one for each of the old batch."""
        axis, shape = self.outputs.get(value.name, 0), value.shape
        if axis is None or shape is None or len(shape) <= axis or shape[axis] != self.batch:
            return False
        return self.state.has_equal_samples(value, Place(axis)) and not value.container

    def _check_output(self, value: Value, place: Place) -> None:
        """Refuse an output in which samples are not one behind another, as they were."""
        shape = value.shape
        shown, named = show_shape(shape), value.name in self.outputs
        axis = self.outputs.get(value.name, 0)
        if shape is None or value.container:
            return
        require(place.outer == ONE,
                f"output {value.name!r} of shape {shown} has the batch of {self.batch} "
                f"{place.outer.dim} times along axis {place.axis}. {ADVICE}")  # fmt: skip
        at_axis = not named or place.axis == axis
        require(axis is not None and at_axis,
                f"output {value.name!r} of shape {shown} has the batch along axis {place.axis}. "
                f"Name that axis: --rebatch {value.name}={place.axis}")  # fmt: skip
        others = [i for i, d in enumerate(shape) if d == self.batch and i != place.axis]
        option = f"--rebatch {value.name}={place.axis}"
        along = f"along axis {place.axis}. If that is meant, name it: {option}"
        is_first, mask = place == Place(0), self.state.mask_of([value])
        is_named = named or (place.is_alone and place.axis in set(self.axes.values()))
        behind = place.is_alone or not others
        require(is_named or is_first or (behind and self.state.is_natural(mask)),
                f"output {value.name!r} of shape {shown} may move the batch of {self.batch}: "
                f"samples are {along}")  # fmt: skip
        require(is_named or is_first or shape[0] != self.batch or not mask,
                f"output {value.name!r} of shape {shown} does not keep samples apart along axis 0: "
                f"they are {along}")  # fmt: skip


def describe_problem(node: Node, error: ConversionError) -> Problem:
    """Why a node is refused."""
    name = node.sources[0].name if node.sources else node.name
    return Problem(node.qualified_op, {}, error.reason, (name,), "batch")


def _group_problems(conflicts: Iterable[Conflict]) -> list[Problem]:
    """Problems, one for all nodes of an operator and a reason."""
    grouped: dict[tuple[str, str], Problem] = {}
    for problem in (describe_problem(c.node, c.error) for c in conflicts):
        key = problem.op, problem.reason
        same = grouped.get(key)
        names = (*(same.names if same else ()), *problem.names)
        grouped[key] = replace(problem, names=names)
    return list(grouped.values())
