"""Decisions and loops that data make: ``cond``, ``while_loop`` and ``scan``.

Outside of a traced function they do in Python what they say. Branches and bodies are functions;
they may use arrays of the code around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.ir.builder import ensure_distinct_outputs
from serde.ir.graph import DType, Graph, Shape, Value, show_shape

from .numpy.array import TracedArray, as_array, find_recorder, has_traced, to_number
from .numpy.core import slice_axis
from .numpy.environment import has_contents
from .numpy.number import TracedNumber
from .numpy.recorder import Recorder, refuse

MOST_ROUNDS = 4  # of recording a body until the shapes it carries do not change
Leaves = list[Any]


def flatten(tree: Any) -> Leaves:
    """The arrays of nested tuples, lists and dicts, in order."""
    if isinstance(tree, Mapping):
        return [leaf for key in tree for leaf in flatten(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in flatten(item)]
    return [] if tree is None else [tree]


def unflatten(like: Any, leaves: Sequence[Any]) -> Any:
    """Arrays nested as those of ``like``."""
    rest = iter(leaves)

    def build(tree: Any) -> Any:
        if isinstance(tree, Mapping):
            return {key: build(tree[key]) for key in tree}
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return type(tree)(*map(build, tree))
        if isinstance(tree, (tuple, list)):
            return type(tree)(map(build, tree))
        return None if tree is None else next(rest)

    return build(like)


def _structure(tree: Any) -> Any:
    return unflatten(tree, [0] * len(flatten(tree)))


def _find_recorder(*things: Any, functions: Sequence[Callable[..., Any]]) -> Recorder | None:
    """The recorder at work: that of an argument, or of an array that a function captures."""
    cells = [c.cell_contents for f in functions for c in getattr(f, "__closure__", None) or ()
             if has_contents(c)]  # fmt: skip
    for thing in (*things, *cells):
        if has_traced(thing):
            return find_recorder(thing)
    return None


def _record(rec: Recorder, name: str, function: Callable[[], Any]) -> tuple[Any, list[Value], Any]:
    """Record a subgraph: what the function returns, its leaves as values, and the builder."""
    with rec.body(name) as g:
        tree = function()
        leaves = [as_array(leaf, rec).value for leaf in flatten(tree)]
        return tree, leaves, g


def cond(
    predicate: Any, true_function: Callable[..., Any], false_function: Callable[..., Any],
    *operands: Any,
) -> Any:  # fmt: skip
    """What ``true_function(*operands)`` returns where the predicate holds, else the other one's.

    Both return arrays of the same element types and ranks, nested alike.

    Raises:
        TraceError: where they do not.
    """
    rec = _find_recorder(predicate, operands, functions=(true_function, false_function))
    known = predicate.numbers if isinstance(predicate, TracedArray) else predicate
    if rec is None or (known is not None and not isinstance(known, TracedNumber)):
        return (true_function if known else false_function)(*operands)
    test_value = _test(rec, "cond", predicate)
    branches, trees, types = [], [], []
    for name, function in (("then", true_function), ("else", false_function)):
        tree, values, g = _record(rec, name, partial(function, *operands))
        with rec.operation("cond"):
            branches.append(g.build(ensure_distinct_outputs(g, values)))
        trees.append(tree)
        types.append([(v.dtype, v.shape) for v in values])
    _require_alike("serde.cond", "the branches", [*map(_structure, trees)], types)
    with rec.operation("cond") as g:
        outs = g.If(test_value, then_branch=branches[0], else_branch=branches[1],
                    outputs=len(types[0]))  # fmt: skip
    results = outs if isinstance(outs, tuple) else (outs,)
    for value, (_, a), (_, b) in zip(results, *types, strict=True):
        value.shape = merge_shapes(a, b)
    return unflatten(trees[0], [TracedArray(rec, v) for v in results])


def merge_shapes(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of a value that has one of two."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _require_alike(function: str, what: str, trees: Sequence[Any], types: Sequence[Any]) -> None:
    """Refuse results that are nested differently, or of other element types or ranks."""
    if trees[0] != trees[1]:
        refuse(function, f"{what} return results that are nested differently")
    for (dtype, shape), (other, another) in zip(*types, strict=True):
        if dtype is not other:
            refuse(function, f"{what} return {dtype.value} and {other.value}", "Cast one of them")
        if len(shape or ()) != len(another or ()):
            refuse(function, f"{what} return shapes {show_shape(shape)} and {show_shape(another)}")


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], initial: Any) -> Any:
    """``state = initial; while condition(state): state = body(state)``, and the last state.

    A state is an array, or arrays nested in tuples, lists and dicts. It keeps its element types
    and ranks; sizes may change.
    """
    rec = _find_recorder(initial, functions=(condition, body))
    if rec is None:
        state = initial
        while condition(state):
            state = body(state)
        return state
    start = [as_array(leaf, rec) for leaf in flatten(initial)]
    shapes = [x.dims for x in start]
    first = _test(rec, "while_loop", condition(unflatten(initial, start)))
    for _ in range(MOST_ROUNDS):
        graph, types = _record_loop(rec, condition, body, initial, start, shapes)
        wider = [merge_shapes(s, t[1]) for s, t in zip(shapes, types, strict=True)]
        if wider == shapes:
            break
        shapes = wider
    with rec.operation("while_loop") as g:
        outs = g.Loop(None, first, *(x.value for x in start), body=graph, outputs=len(start))
    return _loop_results(rec, outs, initial, shapes)


def _loop_results(rec: Recorder, outs: Any, like: Any, shapes: Sequence[Any]) -> Any:
    results = outs if isinstance(outs, tuple) else (outs,)
    for value, shape in zip(results, shapes, strict=False):
        value.shape = shape
    return unflatten(like, [TracedArray(rec, v) for v in results])


def _test(rec: Recorder, operation: str, test: Any) -> Value:
    with rec.operation(operation):
        array = as_array(test, rec, bool)
        return (array.reshape(()) if array.ndim else array).value


def _declare(rec: Recorder, g: Any, name: str, x: TracedArray, shape: Any) -> TracedArray:
    dtype = DType.of(x.dtype)
    return TracedArray(rec, g.input(g.names.fresh(name), dtype, shape))


def _record_loop(
    rec: Recorder, condition: Any, body: Any, like: Any, start: Sequence[TracedArray],
    shapes: Sequence[Any],
) -> tuple[Graph, list[Any]]:  # fmt: skip
    with rec.body("body") as g:
        g.input(g.names.fresh("iteration"), DType.INT64, ())
        g.input(g.names.fresh("going"), DType.BOOL, ())
        states = [_declare(rec, g, "state", x, s) for x, s in zip(start, shapes, strict=True)]
        tree = body(unflatten(like, states))
        state = [as_array(leaf, rec) for leaf in flatten(tree)]
        types = [(DType.of(x.dtype), x.dims) for x in state]
        expected = [(DType.of(x.dtype), x.dims) for x in start]
        _require_alike("serde.while_loop", "the body and the initial state",
                       [_structure(tree), _structure(like)], [types, expected])  # fmt: skip
        test = _test(rec, "while_loop", condition(unflatten(like, state)))
        with rec.operation("while_loop"):
            outputs = ensure_distinct_outputs(g, [test, *(x.value for x in state)])
        return g.build(outputs), types


def scan(
    function: Callable[..., Any], initial: Any, sequence: Any = None, length: Any = None,
    reverse: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Carry a state along the first axis of arrays, and stack what each step gives.

    Args:
        function: ``(state, element) -> (state, result)``.
        initial: the first state, an array or arrays nested in tuples, lists and dicts.
        sequence: arrays whose elements along the first axis are given one by one; None gives None
            ``length`` times.
        length: the number of steps, where there is no sequence.
        reverse: begin at the end of the sequence; results stand where their elements do.

    Returns:
        The last state, and the results stacked.
    """
    rec = _find_recorder(initial, sequence, length, functions=(function,))
    arrays = flatten(sequence)
    if not arrays and length is None:
        raise UsageError("serde.scan takes a sequence or a length")
    if rec is None:
        return _scan_now(function, initial, sequence, length, reverse)
    start = [as_array(leaf, rec) for leaf in flatten(initial)]
    items = [as_array(leaf, rec) for leaf in arrays]
    items = [slice_axis(x, 0, None, None, -1) for x in items] if reverse else items
    count = items[0].size_of(0) if items else to_number(as_array(length, rec))
    shapes = [x.dims for x in start]
    for _ in range(MOST_ROUNDS):
        graph, types, tree = _record_scan(rec, function, initial, sequence, start, items, shapes)
        wider = [merge_shapes(s, t[1]) for s, t in zip(shapes, types, strict=True)]
        if wider == shapes:
            break
        shapes = wider
    with rec.operation("scan") as g:
        trips = count.scalar() if isinstance(count, TracedNumber) else g.const(np.int64(count))
        outputs = len(graph.outputs) - 1
        outs = g.Loop(trips, None, *(x.value for x in start), body=graph, outputs=outputs)
    results = outs if isinstance(outs, tuple) else (outs,)
    dim = count.dim if isinstance(count, TracedNumber) else count
    stacked = results[len(start) :]
    for value, inner in zip(stacked, graph.outputs[1 + len(start) :], strict=True):
        value.shape = (dim, *(inner.shape or ()))
    last = _loop_results(rec, results[: len(start)], initial, shapes)
    stacks = [TracedArray(rec, v) for v in stacked]
    stacks = [slice_axis(x, 0, None, None, -1) for x in stacks] if reverse else stacks
    return last, unflatten(tree, stacks)


def _scan_now(
    function: Any, initial: Any, sequence: Any, length: Any, reverse: bool
) -> tuple[Any, Any]:
    arrays = [np.asarray(a) for a in flatten(sequence)]
    count = len(arrays[0]) if arrays else int(length)
    state, results, tree = initial, [], None
    for at in range(count)[::-1] if reverse else range(count):
        state, tree = function(state, unflatten(sequence, [a[at] for a in arrays]))
        results.append(flatten(tree))
    results = results[::-1] if reverse else results
    stacked = [np.stack(column) for column in zip(*results, strict=True)]
    return state, unflatten(tree, stacked)


def _record_scan(
    rec: Recorder, function: Any, like: Any, sequence: Any, start: Sequence[TracedArray],
    items: Sequence[TracedArray], shapes: Sequence[Any],
) -> tuple[Graph, list[Any], Any]:  # fmt: skip
    with rec.body("body") as g:
        at = TracedArray(rec, g.input(g.names.fresh("iteration"), DType.INT64, ()))
        going = g.input(g.names.fresh("going"), DType.BOOL, ())
        states = [_declare(rec, g, "state", x, s) for x, s in zip(start, shapes, strict=True)]
        with rec.operation("scan"):
            elements = [TracedArray(rec, g.Gather(x.value, at.value, axis=0)) for x in items]
        result = function(unflatten(like, states), unflatten(sequence, elements))
        if not isinstance(result, tuple) or len(result) != 2:
            refuse("serde.scan", "the function has to return a state and a result")
        tree, stacked = result
        state = [as_array(leaf, rec) for leaf in flatten(tree)]
        types = [(DType.of(x.dtype), x.dims) for x in state]
        expected = [(DType.of(x.dtype), x.dims) for x in start]
        _require_alike("serde.scan", "the function and the initial state",
                       [_structure(tree), _structure(like)], [types, expected])  # fmt: skip
        rows = [as_array(leaf, rec) for leaf in flatten(stacked)]
        with rec.operation("scan"):
            values = [going, *(x.value for x in state), *(x.value for x in rows)]
            return g.build(ensure_distinct_outputs(g, values)), types, _structure(stacked)
