"""Einsum, as sums, transposes and matrix products."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.einsum_equation import Labels, parse_equation

from . import decomposition
from .common import count_range, size

MOST_OPERANDS = 256  # written out; NumPy takes 64


def diagonal(g, x: Value, labels: Labels):
    """Keep of axes that bear one label the elements where their indices are equal."""
    while len(set(labels)) < len(labels):
        at = next(i for i, label in enumerate(labels) if label in labels[:i])
        to = labels.index(labels[at])
        rows, columns = (
            g.Reshape(count_range(g, size(g, x, a)), [-1 if i == a else 1 for i in range(x.rank)])
            for a in (to, at)
        )
        x = g.ReduceSum(g.Where(g.Equal(rows, columns), x, 0), [at], keepdims=0)
        labels = labels[:at] + labels[at + 1 :]
    return x, labels


def sum_labels(g, x: Value, labels: Labels, kept: set[str]):
    """Sum over the axes whose label nothing else needs."""
    axes = [i for i, label in enumerate(labels) if label not in kept]
    if not axes:
        return x, labels
    return g.ReduceSum(x, axes, keepdims=0), tuple(label for label in labels if label in kept)


def transpose_labels(g, x: Value, labels: Labels, expected: Labels):
    return g.Transpose(x, perm=tuple(labels.index(label) for label in expected))


def expand_axes(g, x: Value, labels: Labels, other: Value, other_labels: Labels, inner: Labels):
    """Expand axes ``inner`` of ``x`` to the sizes ``other`` has: theirs may be 1 at run time."""
    sources = {}  # axes of x, and those of the other operand that tell their size
    for label in inner:
        at, to = labels.index(label), other_labels.index(label)
        dim = x.ranked_shape[at]
        if dim is None or (isinstance(dim, str) and dim != other.ranked_shape[to]):
            sources[at] = size(g, other, to)
    if not sources:
        return x
    one = g.const([1], DType.INT64)
    return g.Expand(x, g.Concat(*(sources.get(i, one) for i in range(x.rank)), axis=0))


def multiply_operands(g, a: Value, a_labels: Labels, b: Value, b_labels: Labels, kept: set[str]):
    """Multiply two operands as matrices; the labels both have and nothing else needs go."""
    shared = [label for label in a_labels if label in b_labels and label in kept]
    inner = tuple(label for label in a_labels if label in b_labels and label not in kept)
    rows = [label for label in a_labels if label not in b_labels]
    columns = [label for label in b_labels if label not in a_labels]
    expanded = expand_axes(g, a, a_labels, b, b_labels, inner)
    b = expand_axes(g, b, b_labels, a, a_labels, inner)
    a = expanded
    a = transpose_labels(g, a, a_labels, (*shared, *rows, *inner))
    b = transpose_labels(g, b, b_labels, (*shared, *inner, *columns))
    n, counts = len(shared), (len(rows), len(columns))
    left = as_matrices(g, a, n, len(rows), len(inner))
    right = as_matrices(g, b, n, len(inner), len(columns))
    total = g.MatMul(left, right)
    if max(counts) > 1:
        a_rows, b_columns = g.Shape(a, start=n, end=n + counts[0]), g.Shape(b, start=n + len(inner))
        shape = g.Concat(g.Shape(total, start=0, end=n), a_rows, b_columns, axis=0)
        return g.Reshape(total, shape), (*shared, *rows, *columns)
    single = [n + i for i, count in enumerate(counts) if count == 0]
    return g.Squeeze(total, single), (*shared, *rows, *columns)


def as_matrices(g, x: Value, batch: int, rows: int, columns: int):
    """``x`` with one axis for ``rows`` axes after those of the batch, and one for the rest."""
    if max(rows, columns) > 1:
        start = batch + rows
        size_of_columns = g.ReduceProd(g.Shape(x, start=start), [0], keepdims=1)
        return g.Reshape(x, g.Concat(g.Shape(x, end=batch), [-1], size_of_columns, axis=0))
    return g.Unsqueeze(x, [batch + i for i, count in enumerate((rows, columns)) if count == 0])


@decomposition(12, "Einsum")
def einsum(g, *operands: Value, equation: str):
    count = len(operands)
    require(
        count <= MOST_OPERANDS,
        f"an Einsum of {count} operands. Multiply {MOST_OPERANDS} at a time, in several of them",
    )
    terms, output = parse_equation(equation, [x.rank for x in operands])
    total: Value | None = None
    labels: Labels = ()
    for i, (x, letters) in enumerate(zip(operands, terms, strict=True)):
        later = {label for term in terms[i + 1 :] for label in term} | set(output)
        x, letters = diagonal(g, x, letters)
        x, letters = sum_labels(g, x, letters, later | set(labels))
        if total is None:
            total, labels = x, letters
            continue
        total, labels = sum_labels(g, total, labels, later | set(letters))
        total, labels = multiply_operands(g, total, labels, x, letters, later)
    assert total is not None
    total, labels = sum_labels(g, total, labels, set(output))
    return transpose_labels(g, total, labels, output)
