"""What TVM's importer of ONNX into Relax takes, and the tables that keep a graph to it."""

from __future__ import annotations

from collections.abc import Callable

from serde.ir.graph import DType, Node, Value
from serde.legalize.recasting import recasting_table

OPSET = 17  # at which the importer was measured
STAGE = "ir → relax"
UNTOLD = "the sizes "  # begins what is said of dynamic sizes
recasts = recasting_table(STAGE)
Misfit = Callable[[Node], "str | None"]
misfits: dict[str, list[Misfit]] = {}
TYPES = frozenset(
    {DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BOOL}
    | {DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def refuses(*ops: str) -> Callable[[Misfit], Misfit]:
    """Register a function that tells why a node of ``ops``, at ``OPSET``, is not taken."""

    def register(function: Misfit) -> Misfit:
        for op in ops:
            misfits.setdefault(op, []).append(function)
        return function

    return register


def misfit(value: Value) -> str | None:
    """Why there is no such tensor: of what it is made, or what is not known of it."""
    if value.wrap:
        return f"{value.name!r} is {' of '.join(value.wrap)}"
    if value.dtype is None:
        return f"{value.name!r} holds elements of unknown type"
    if value.dtype not in TYPES:
        held = "strings" if value.dtype is DType.STRING else f"{value.dtype.value} elements"
        return f"{value.name!r} holds {held}"
    if value.shape is None:
        return f"{value.name!r} is of unknown rank: give its shape"
    if 0 in value.shape:
        return f"{value.name!r} holds no elements"
    return None
