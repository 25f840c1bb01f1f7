"""Sizes by name that may not be any number, as where a graph was made for a batch of 1.

Inference compares sizes by name with nothing: a ``Concat`` of ``N*300`` rows with 300 converts, and
fails at every batch but one. Here shapes are inferred again with numbers for the names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from serde.errors import ConversionError, Problem, SerdeError, Unconvertible, UsageError
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Graph, Node
from serde.passes.batch.request import find_batch_axes, read_request
from serde.passes.change_batch import ANOTHER, dimension_names, fix_dimensions, rebatch
from serde.passes.cut_inputs import spec_of
from serde.spec.follow_sizes import follow_sizes
from serde.spec.required_sizes import find_required_sizes
from serde.spec.schema import operator

# Sides of images and lengths: numbers with many divisors, 2**6 among them.
LARGE, LARGER = 20160, 2882880
TRIALS = ANOTHER, LARGE, LARGER
LEAST_TRIALS = 100  # of sizes, in any graph
MOST_NODES = 10_000  # that are tried in more
SMALL = range(1, 17)  # numbers that models are made for
NUMBER = re.compile(r"\d+")


class FixedSize(NamedTuple):
    """A name whose size may not be any number, and a node that takes few.

    ``number`` is the only one for a batch; None where that is not known.
    """

    name: str
    number: int | None
    problem: Problem

    @property
    def reason(self) -> str:
        """The node, and what is the matter with it."""
        node, op = self.problem.names[0], self.problem.op
        return f"{node!r} ({op}) takes few numbers for the size {self.name}"


def settle_fixed_sizes(graph: Graph, inlined: Graph, inputs: Mapping[str, Any] | None) -> Graph:
    """Return an IR graph whose batches by name may be any number.

    Batches are taken out of the graph, if they can be (``rebatch``); ``inlined`` is the graph
    without functions. A batch of which one number above 1 is right, and that is not in ``inputs``,
    as callers give them, is that number. Notes tell of it, and of other names that take few.
    Other sizes that operands require to be a number are that.

    Raises:
        UsageError: where a batch is given a name in ``inputs``, and cannot be another number.
    """
    graph, inlined = fix_required_sizes(graph, inlined)
    specs = (spec_of(name, spec) for name, spec in (inputs or {}).items())
    requested = {d for spec in specs for d in spec.shape or () if isinstance(d, str)}
    for fixed in find_fixed_sizes(inlined):
        is_requested = fixed.name in requested
        if fixed.number is None or (fixed.number == 1 and not is_requested):  # it may be broadcast
            note = f"{fixed.reason}: give one (--input)"
            graph = replace(graph, notes=(*graph.notes, note))
            continue
        known = fix_dimensions(inlined, {fixed.name: fixed.number})
        try:
            settled = rebatch(known, fixed.name)
            note = f"made for batches of {fixed.number}: takes any number {fixed.name} of samples"
        except SerdeError:
            example = _show_inputs(inlined, fixed.name, fixed.number)
            if is_requested:
                raise UsageError(f"{fixed.reason}: give one, as in --input {example}") from None
            settled, note = known, f"{fixed.name} is {fixed.number}: {fixed.reason}"
        notes = graph.notes if is_requested else (*graph.notes, note)
        graph = inlined = replace(settled, notes=notes)
    return graph


def fix_batch(graph: Graph, batch: Any) -> Graph:
    """Return an IR graph with a number for a batch by name, where the graph takes one alone.

    ``batch`` is what ``rebatch`` is called with next, which takes the number out of constants.
    """
    old = find_batch_axes(graph, read_request(batch)).size
    if not isinstance(old, str):
        return graph
    numbers = [f.number for f in find_fixed_sizes(graph) if f.name == old and f.number]
    return fix_dimensions(graph, {old: numbers[0]}) if numbers else graph


def fix_required_sizes(graph: Graph, inlined: Graph) -> tuple[Graph, Graph]:
    """Both graphs with numbers for the sizes by name that operands of a node require to be these.

    Not for batches, nor where two nodes require different numbers. A note tells of each.
    """
    names = dimension_names(graph) - find_batches(graph)
    required: dict[str, tuple[int, Node]] = {}
    for node in inlined.nodes if names else ():
        if node.domain:
            continue
        for name, size in find_required_sizes(operator(node.op), node.inputs, node.attrs):
            if name in names and required.setdefault(name, (size, node))[0] != size:
                names.remove(name)
    sizes = {name: size for name, (size, _) in required.items() if name in names}
    if not sizes:
        return graph, inlined
    first = ((name, size, required[name][1]) for name, size in sorted(sizes.items()))
    notes = (f"{name} is {n}: {node.name!r} ({node.op}) takes no other" for name, n, node in first)
    try:
        fixed = replace(fix_dimensions(graph, sizes), notes=(*graph.notes, *notes))
        return fixed, fixed if inlined is graph else fix_dimensions(inlined, sizes)
    except (ConversionError, Unconvertible):  # another node requires something else
        return graph, inlined


def find_batches(graph: Graph) -> set[Any]:
    """The first sizes of the inputs."""
    return {v.shape[0] for v in graph.inputs if v.shape}


def find_fixed_sizes(graph: Graph) -> list[FixedSize]:
    """The names of sizes for which a graph without functions takes no two numbers far apart.

    Of names that would take long to try, the first.
    """
    names = sorted(dimension_names(graph))
    batches = find_batches(graph)
    trial = {n: ANOTHER if n in batches else LARGE for n in names}
    if follow_sizes(graph, trial) is not None:
        return []
    rules = Trials(graph, lambda sizes: follow_sizes(graph, sizes) is None)
    if next(rules.search(names), None) is None or not _find_problem(graph, trial):
        return []
    inference = Trials(graph, lambda sizes: _find_problem(graph, sizes) is not None)
    sizes = (_find_fixed_size(inference, name, name in batches) for name in inference.search(names))
    return [fixed for fixed in sizes if fixed is not None]


class Trials:
    """Trials of sizes in a graph, fewer in a large one: a file has as many names as it likes."""

    def __init__(self, graph: Graph, fails: Callable[[Mapping[str, int]], bool]) -> None:
        self.graph, self._fails = graph, fails
        self.remaining = max(LEAST_TRIALS, MOST_NODES // (len(graph.nodes) + 1))

    def fails(self, names: Sequence[str], number: int) -> bool:
        """Whether the graph does not take a number for all names."""
        self.remaining -= 1
        return self._fails(dict.fromkeys(names, number))

    def search(self, names: Sequence[str]) -> Iterator[str]:
        """The names that fail, found by halves: of names that pass together, each one does."""
        ahead = [names]
        while ahead and self.remaining > 0:
            group = ahead.pop()
            if not group or not all(self.fails(group, number) for number in TRIALS):
                continue
            half = len(group) // 2
            if half:
                ahead += group[half:], group[:half]
            else:
                yield group[0]


def _find_fixed_size(trials: Trials, name: str, is_batch: bool) -> FixedSize | None:
    problem = _find_problem(trials.graph, {name: ANOTHER})
    if problem is None:
        return None
    near = sorted({*SMALL, *_find_numbers(trials.graph, problem)}) if is_batch else ()
    right = [n for n in near if not trials.fails([name], n)]
    if right and not all(trials.fails([name], right[0] * n) for n in (5, 7)):
        return None  # multiples are right
    return FixedSize(name, right[0] if len(right) == 1 else None, problem)


def _find_numbers(graph: Graph, problem: Problem) -> Iterator[int]:
    """Numbers that sizes by name could have to be, by the values that a node reads and makes."""
    node = next((n for n in graph.nodes if n.name in problem.names and n.op == problem.op), None)
    values = [] if node is None else [v for v in (*node.inputs, *node.outputs) if v is not None]
    dims = {d for v in values for d in (*(v.shape or ()), *(shape_data_of(v) or ()))}
    texts = (d for d in dims if isinstance(d, str))
    factors = {1, *(int(n) for text in texts for n in NUMBER.findall(text))} - {0}
    for size in (d for d in dims if isinstance(d, int)):
        yield from (size // factor for factor in factors if size >= factor)


def _find_problem(graph: Graph, sizes: Mapping[str, int]) -> Problem | None:
    """Why the graph cannot have these sizes, if it cannot."""
    if follow_sizes(graph, sizes) is not None:
        return None
    try:
        fix_dimensions(graph, sizes)
    except Unconvertible as error:
        return error.problems[0]
    except ConversionError as error:
        return Problem("graph", {}, str(error), ("graph",))
    return None


def _show_inputs(graph: Graph, name: str, number: int) -> str:
    """The inputs with the number in place of the name, as the command line takes them."""
    texts = []
    for value in graph.inputs:
        if value.shape is not None and name in value.shape:
            sizes = (number if d == name else "?" if d is None else d for d in value.shape)
            texts.append(f"{value.name}={','.join(map(str, sizes))}")
    return " ".join(texts)
