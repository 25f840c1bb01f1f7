"""Equations of Einsum: the labels of their axes, the sizes those have, and broadcasting.

The standard broadcasts the axes of ``...`` only. NumPy and ONNX Runtime broadcast every axis of
size 1, and so does the IR; an axis of which that is known has no label in another operand there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import Any

from serde.errors import require
from serde.ir.graph import Dim, Shape, Value

Labels = tuple[str, ...]


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output; the axes of ``...`` are labelled by number."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    require(len(terms) == len(ranks), f"{equation!r} is for {len(terms)} operands")
    counts = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    fits = all(n >= 0 if "..." in t else n == 0 for n, t in zip(counts, terms, strict=True))
    require(fits, f"{equation!r} is not for operands of rank {', '.join(map(str, ranks))}")
    widest = max((n for n, t in zip(counts, terms, strict=True) if "..." in t), default=0)

    def labels(term: str, count: int) -> Labels:
        head, dots, tail = term.partition("...")
        middle = [str(i) for i in range(widest - count, widest)] if dots else []
        return (*head, *middle, *tail)

    operands = [labels(t, n) for t, n in zip(terms, counts, strict=True)]
    if arrow:
        output = labels(right, widest)
    else:
        letters = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        output = (*(str(i) for i in range(widest)), *letters)
    known = {label for operand in operands for label in operand}
    complete = len(set(output)) == len(output) and known.issuperset(output)
    require(complete, f"the output of {equation!r} repeats a label, or has one of no operand")
    return operands, output


def broadcast_size(a: Dim, b: Dim) -> Dim:
    """The size of two axes that broadcast; None where it is either's."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) else None


def label_sizes(terms: Sequence[Labels], shapes: Sequence[Shape]) -> dict[str, Dim]:
    """The size of each label, all operands broadcast.

    Raises:
        ConversionError: where two sizes of a label are different numbers, none of them 1.
    """
    sizes: dict[str, Dim] = {}
    first: dict[str, tuple[int, int]] = {}  # a number other than 1, and the operand that has it
    for at, (labels, shape) in enumerate(zip(terms, shapes, strict=True)):
        sizes_of_term: dict[str, Dim] = {}
        for label, size in zip(labels, shape, strict=True):
            other = sizes_of_term.setdefault(label, size)
            equal = other == size or not isinstance(other, int) or not isinstance(size, int)
            require(equal, f"axes {label!r} of input {at} have the sizes {other} and {size}")
            sizes_of_term[label] = size if isinstance(size, int) else other
        for label, size in sizes_of_term.items():
            if isinstance(size, int) and size != 1:
                number, where = first.setdefault(label, (size, at))
                require(
                    number == size,
                    f"axis {label!r} has the size {number} in input {where} and {size} in "
                    f"input {at}",
                )
            sizes[label] = broadcast_size(sizes[label], size) if label in sizes else size
    return sizes


def infer_shape(equation: str, inputs: Sequence[Value | None]) -> Shape | None:
    """The shape of the output, None where a rank is unknown."""
    shapes = [None if v is None else v.shape for v in inputs]
    known = [s for s in shapes if s is not None]
    if len(known) < len(shapes):
        return None
    terms, output = parse_equation(equation, [len(s) for s in known])
    sizes = label_sizes(terms, known)
    return tuple(sizes[label] for label in output)


def without_broadcasting(g: Any, inputs: Sequence[Value], equation: str) -> Value | None:
    """The same sum where no axis of size 1 broadcasts; None where none is known to do.

    A sum of one operand that changes nothing is the operand.
    """
    if any(v.shape is None for v in inputs):
        return None
    shapes = [v.shape or () for v in inputs]
    terms, output = parse_equation(equation, [len(s) for s in shapes])
    sizes = label_sizes(terms, shapes)
    if terms == [output]:
        return inputs[0]
    operands, rest = [], []
    factors: list[Value] = []
    for x, labels, shape in zip(inputs, terms, shapes, strict=True):
        pairs = list(zip(labels, shape, strict=True))
        drop = [i for i, (label, size) in enumerate(pairs) if size == 1 and sizes[label] != 1]
        x = g.Squeeze(x, drop) if drop else x
        kept = tuple(label for i, label in enumerate(labels) if i not in drop)
        if drop and not kept:
            factors.append(x)
            continue
        operands.append(x)
        rest.append(kept)
    if rest == terms:
        return None
    letters = _as_letters([*rest, output])
    if letters is None:
        return None
    terms_ = ["".join(letters[label] for label in labels) for labels in [*rest, output]]
    total = g.Einsum(*operands, equation=f"{','.join(terms_[:-1])}->{terms_[-1]}")
    for factor in factors:
        total = g.Mul(total, factor)
    return total  # type: ignore[no-any-return]


def _as_letters(terms: Sequence[Labels]) -> Mapping[str, str] | None:
    """A letter for each label; None where there are not enough."""
    labels = {label: None for term in terms for label in term}
    free = [c for c in ascii_letters if c not in labels]
    numbers = [label for label in labels if not label.isalpha()]
    if len(numbers) > len(free):
        return None
    return {label: label for label in labels} | dict(zip(numbers, free, strict=False))
