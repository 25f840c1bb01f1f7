"""NaN and infinities on their way to operators of which runtimes make different numbers.

MXNet's ``Activation`` makes 0 of NaN, ONNX Runtime's ``Relu`` NaN; recurrent layers, maxima and
comparisons of either may swallow it. Kernels of products may leave out a factor 0, which makes NaN
of an infinity, and recurrent layers clip it. What follows such an operator is no fault of a
conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import Graph, Node, Value
from serde.spec.number_traits import ADDING_UP, MEANS, PRODUCTS, ROOTS, SUMS, is_elementwise
from serde.spec.traits import CHOOSES, MOVES
from serde.verification.ties import list_upstream

MOST_VALUES = 256  # that are looked at
# Operators that make NaN of NaN, wherever they run.
PROPAGATING = frozenset(
    {*SUMS, *PRODUCTS, *MEANS, *ADDING_UP, *ROOTS, *(MOVES.keys() - CHOOSES)}
    | set("Abs BatchNormalization Concat Cos Div Exp IsInf IsNaN Mul Neg Sin".split())
)
NAN, INFINITY = SPECIAL = "NaN", "an infinity"
Probe = Callable[[Sequence[str]], Sequence[Any]]  # values of a model by name


def find_disputed(
    graph: Graph, value: Value, feeds: Mapping[str, Any], probe: Probe
) -> dict[str, list[Node]]:
    """The operators behind ``value`` whose results may differ by what they are fed.

    They are listed by ``NAN`` and ``INFINITY``, in the order of the graph.
    """
    constants = {v.name for v in graph.constants()}
    readers: dict[str, list[Node]] = {}
    for node in list_upstream(graph, value):
        for operand in node.inputs if any(_is_disputed(node, what) for what in SPECIAL) else ():
            if operand is not None and operand.name and operand.name not in constants:
                readers.setdefault(operand.name, []).append(node)
    names = [*readers][:MOST_VALUES]
    values = {n: feeds[n] for n in names if n in feeds}
    values |= probe_each([n for n in names if n not in feeds], probe)
    disputed: dict[str, list[Node]] = {}
    for name in names:
        for what in list_special(values.get(name)):
            nodes = disputed.setdefault(what, [])
            nodes += [n for n in readers[name] if _is_disputed(n, what) and n not in nodes]
    return {what: nodes for what, nodes in disputed.items() if nodes}


def describe_disputed(disputed: Mapping[str, Sequence[Node]]) -> str:
    """Name the first operator, and what it is fed; empty if there is none."""
    what, nodes = next(iter(disputed.items()), ("", ()))
    if not nodes:
        return ""
    node = nodes[0]
    layer = node.sources[-1].name if node.sources else node.name or node.outputs[0].name
    return f"{what} reaches {layer!r} ({node.op}), of which runtimes make different numbers"


def _is_disputed(node: Node, what: str) -> bool:
    """Whether runtimes make different numbers of NaN, or of infinities, by an operator."""
    if node.domain:
        return True
    if what == NAN:
        return node.op not in PROPAGATING
    return not is_elementwise(node.op) and node.op not in PROPAGATING - {*PRODUCTS, *MEANS}


def find_results(graph: Graph, nodes: Sequence[Node], probe: Probe) -> dict[str, Any]:
    """What nodes make, by name, where a model has it; else what is made of it first."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for operand in node.inputs:
            if operand is not None:
                readers.setdefault(operand, []).append(node)
    results: dict[str, Any] = {}
    waiting, seen = [*nodes], {id(n) for n in nodes}
    while waiting:
        outputs = [v for node in waiting for v in node.outputs if v.name]
        results |= probe_each([v.name for v in outputs], probe)
        lost = (n for v in outputs if v.name not in results for n in readers.get(v, ()))
        waiting = [n for n in lost if id(n) not in seen]
        seen |= {id(n) for n in waiting}
    return results


def probe_each(names: Sequence[str], probe: Probe) -> dict[str, Any]:
    """Values by name; those that a model lacks are left out."""
    if not names:
        return {}
    try:
        return dict(zip(names, probe(names), strict=True))
    except SerdeError:
        middle = len(names) // 2
        if not middle:
            return {}
        return {**probe_each(names[:middle], probe), **probe_each(names[middle:], probe)}


def list_special(value: Any) -> list[str]:
    """What of NaN and infinities a tensor has."""
    array = np.asarray(value) if isinstance(value, np.ndarray) else np.zeros(0)
    if array.dtype.kind not in "fV":
        return []
    numbers = array.astype(np.float64)
    has = {NAN: np.isnan(numbers).any(), INFINITY: np.isinf(numbers).any()}
    return [what for what, is_there in has.items() if is_there]
