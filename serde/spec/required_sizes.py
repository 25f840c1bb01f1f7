"""Sizes by name that have to be a number, as other operands of a node say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from serde.ir.graph import Dim, Value
from serde.spec.node_checks import (
    CHECKS,
    WORDS,
    Call,
    Check,
    axes_of,
    gemm_features,
    matmul_features,
    sizes_of,
    templates_of,
)
from serde.spec.schema import Operator


def find_required_sizes(
    operator: Operator, inputs: Sequence[Value | None], attrs: Mapping[str, Any]
) -> Iterator[tuple[str, int]]:
    """The names of sizes of a node's operands that have to be numbers, as others say, and these.

    Not those that may be 1 as well, which is repeated.
    """
    call = Call(operator, inputs, attrs)
    pairs: list[tuple[Dim, Dim]] = []
    if (check := CHECKS.get(operator.name)) is not None:
        pairs += _pair_sizes(call, check)
    if (shared := SHARED.get(operator.name)) is not None:
        pairs += shared(call)
    for a, b in pairs:
        name, size = (a, b) if isinstance(a, str) else (b, a)
        if isinstance(name, str) and isinstance(size, int):
            yield name, size


def _pair_sizes(call: Call, check: Check) -> Iterator[tuple[Dim, Dim]]:
    """The names that operands have for the letters of templates, with the letters' numbers."""
    factors, templates = check.factors(call), templates_of(call, check)
    numbers = {name: size for name, size in factors.items() if name in WORDS}
    for at, template in enumerate(templates):
        numbers |= {letter: size for letter, size, _ in sizes_of(call, at, template, factors)}
    for at, template in enumerate(templates):
        for axis, size in axes_of(call, at, template):
            if axis in numbers:
                yield size, numbers[axis]


def _gemm_sizes(call: Call) -> Iterator[tuple[Dim, Dim]]:
    """The features of both matrices, and the sizes of the product where C has more than one."""
    a, b, c = (call.shape(at) for at in range(3))
    yield from gemm_features(call)
    if c is not None and a is not None and b is not None and len(a) == len(b) == 2:
        sides = b[0 if call.attrs.get("transB") else 1], a[1 if call.attrs.get("transA") else 0]
        yield from ((d, n) for d, n in zip(sides, reversed(c), strict=False) if n != 1)


def _normalized_sizes(call: Call) -> Iterator[tuple[Dim, Dim]]:
    """Sizes of the data where parameters have more than one number, both aligned at the end."""
    for at in range(1, len(call.inputs)):
        pairs = zip(reversed(call.shape(0) or ()), reversed(call.shape(at) or ()), strict=False)
        yield from ((size, count) for size, count in pairs if isinstance(count, int) and count > 1)


def _concatenated_sizes(call: Call) -> Iterator[tuple[Dim, Dim]]:
    """The sizes of operands along the axes that they are not put together along."""
    shapes = [call.shape(at) for at in range(len(call.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if any(len(shape) != len(known[0]) for shape in known):
        return
    for axis, sizes in enumerate(zip(*known, strict=True)):
        if axis != call.attrs["axis"] % len(known[0]):
            number = next((d for d in sizes if isinstance(d, int)), None)
            yield from ((d, number) for d in sizes)


SHARED: Mapping[str, Callable[[Call], Iterable[tuple[Dim, Dim]]]] = {
    "Concat": _concatenated_sizes,
    "Gemm": _gemm_sizes,
    "LayerNormalization": _normalized_sizes,
    "MatMul": matmul_features,
    "MatMulInteger": matmul_features,
    "PRelu": _normalized_sizes,
    "RMSNormalization": _normalized_sizes,
}
