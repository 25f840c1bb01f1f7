"""Einsum, as sums, transposes and matrix products."""

from __future__ import annotations

from serde.errors import require
from serde.graph import Value

from . import decomposed
from .common import size, span

Labels = tuple[str, ...]


def parsed(equation: str, ranks: list[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output; the axes of ``...`` are labelled by number."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    require(len(terms) == len(ranks), f"{equation!r} is for {len(terms)} operands")
    spread = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    widest = max((n for n, t in zip(spread, terms, strict=True) if "..." in t), default=0)

    def labels(term: str, count: int) -> Labels:
        head, dots, tail = term.partition("...")
        middle = [str(i) for i in range(widest - count, widest)] if dots else []
        return (*head, *middle, *tail)

    operands = [labels(t, n) for t, n in zip(terms, spread, strict=True)]
    if arrow:
        return operands, labels(right, widest)
    letters = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
    return operands, (*(str(i) for i in range(widest)), *letters)


def diagonal(g, x: Value, labels: Labels):
    """Keep of axes that bear one label the elements where their indices are equal."""
    while len(set(labels)) < len(labels):
        at = next(i for i, label in enumerate(labels) if label in labels[:i])
        to = labels.index(labels[at])
        rows, columns = (
            g.Reshape(span(g, size(g, x, a)), [-1 if i == a else 1 for i in range(x.rank)])
            for a in (to, at)
        )
        x = g.ReduceSum(g.Where(g.Equal(rows, columns), x, 0), [at], keepdims=0)
        labels = labels[:at] + labels[at + 1 :]
    return x, labels


def summed(g, x: Value, labels: Labels, kept: set[str]):
    """Sum over the axes whose label nothing else needs."""
    axes = [i for i, label in enumerate(labels) if label not in kept]
    if not axes:
        return x, labels
    return g.ReduceSum(x, axes, keepdims=0), tuple(label for label in labels if label in kept)


def ordered(g, x: Value, labels: Labels, wanted: Labels):
    return g.Transpose(x, perm=tuple(labels.index(label) for label in wanted))


def product(g, a: Value, a_labels: Labels, b: Value, b_labels: Labels, kept: set[str]):
    """Multiply two operands as matrices; the labels both have and nothing else needs go."""
    shared = [label for label in a_labels if label in b_labels and label in kept]
    inner = [label for label in a_labels if label in b_labels and label not in kept]
    rows = [label for label in a_labels if label not in b_labels]
    columns = [label for label in b_labels if label not in a_labels]
    a = ordered(g, a, a_labels, (*shared, *rows, *inner))
    b = ordered(g, b, b_labels, (*shared, *inner, *columns))
    n = len(shared)
    a_rows, b_columns = g.Shape(a, start=n, end=n + len(rows)), g.Shape(b, start=n + len(inner))
    one = g.ReduceProd(g.Shape(a, start=n + len(rows)), [0], keepdims=1)
    left = g.Reshape(a, g.Concat(g.Shape(a, end=n), [-1], one, axis=0))
    right = g.Reshape(b, g.Concat(g.Shape(b, end=n), one, [-1], axis=0))
    made = g.MatMul(left, right)
    shape = g.Concat(g.Shape(made, start=0, end=n), a_rows, b_columns, axis=0)
    return g.Reshape(made, shape), (*shared, *rows, *columns)


@decomposed(12, "Einsum")
def einsum(g, *operands: Value, equation: str):
    terms, output = parsed(equation, [x.rank for x in operands])
    total: Value | None = None
    labels: Labels = ()
    for i, (x, own) in enumerate(zip(operands, terms, strict=True)):
        later = {label for term in terms[i + 1 :] for label in term} | set(output)
        x, own = diagonal(g, x, own)
        x, own = summed(g, x, own, later | set(labels))
        if total is None:
            total, labels = x, own
            continue
        total, labels = summed(g, total, labels, later | set(own))
        total, labels = product(g, total, labels, x, own, later)
    assert total is not None
    total, labels = summed(g, total, labels, set(output))
    return ordered(g, total, labels, output)
