"""Sizes of operands that an operator wants to be the same, which a consumer cannot tell by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serde.ir.graph import Dim, Shape
from serde.legalize.forms.form import STATIC, Call, Form
from serde.spec.einsum_equation import parse_equation

EXACT = frozenset({"BatchNormalization", "Concat"})  # operators that broadcast no size of 1


def find_different(call: Call) -> bool | str:
    """Sizes of operands that have to be one number or one name, and are not; some have none."""
    shapes = [v.shape for v in call.inputs if v is not None and v.shape is not None]
    for sizes in shared_sizes(call, shapes) if len(shapes) == len(call.inputs) else ():
        different = {d for d in sizes if d is not None and (d != 1 or call.op in EXACT)}
        if len(different) > 1 and any(isinstance(d, str) for d in different):
            return " and ".join(sorted(map(str, different)))
    return False


DIFFERENT_SIZES = Form(
    "sizes that are to be the same and have other names", find_different, advice=STATIC
)


def shared_sizes(node: Call, shapes: Sequence[Shape]) -> Iterator[Sequence[Dim]]:
    """The sizes of operands that have to be the same, or 1, axis by axis."""
    if node.op == "BatchNormalization":
        yield [size for shape in (shapes[0][1:2], *shapes[1:]) for size in shape]
    elif node.op == "Concat":
        axis = node.attrs["axis"] % len(shapes[0])  # type: ignore[operator]
        yield from (d for a, d in enumerate(zip(*shapes, strict=False)) if a != axis)
    elif node.op == "Gemm":
        (a, b), c = shapes[:2], shapes[2] if len(shapes) > 2 else ()
        rows, left = a[::-1] if node.attrs.get("transA") else a
        right, columns = b[::-1] if node.attrs.get("transB") else b
        yield left, right
        yield from zip(c[::-1], (columns, rows), strict=False)
    elif node.op == "MatMul":
        yield from zip(*(shape[-3::-1] for shape in shapes), strict=False)
    elif node.op == "Einsum":
        terms = parse_equation(str(node.attrs["equation"]), [len(shape) for shape in shapes])[0]
        pairs = [p for pair in zip(terms, shapes, strict=True) for p in zip(*pair, strict=True)]
        yield from ([d for a, d in pairs if a == label] for label in {a for a, _ in pairs})
