"""What single nodes do to numbers of float16, by operator, attributes and constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from serde.ir.geometry import axes_of
from serde.ir.graph import DType, Node, Value
from serde.spec.number_traits import SCALING

SMALLEST_NORMAL = 2.0**-14  # below it float16 loses digits
SCALED_DOWN = 1 / 64  # a factor below it brings a large product back
FEW_ADDED = 64  # numbers up to 1024 whose sum float16 has
ACCUMULATING = frozenset({"ScatterElements", "ScatterND"})  # with a reduction


def find_floats(node: Node) -> list[Value]:
    """The operands of float32."""
    return [v for v in node.inputs if v is not None and v.dtype is DType.FLOAT32]


def is_root(node: Node) -> bool:
    """Whether a power makes large numbers ordinary ones; not known of a computed exponent."""
    exponent = node.inputs[1] if len(node.inputs) > 1 else None
    if exponent is None or exponent.tensor is None:
        return True
    return bool((exponent.array() < 1).all())


def is_square(node: Node) -> bool:
    """Whether a node multiplies numbers by themselves."""
    if node.op == "Mul":
        return node.inputs[0] is node.inputs[1]
    exponent = node.inputs[1] if node.op == "Pow" else None
    return exponent is not None and exponent.tensor is not None and bool(
        (exponent.array() == 2).all()
    )  # fmt: skip


def is_training(node: Node) -> bool:
    """Whether a node normalizes by the variance of what it reads."""
    return node.op == "BatchNormalization" and bool(node.attrs.get("training_mode"))


def is_long_mean(node: Node) -> bool:
    """Whether a node adds up so many numbers that float16 may lack their sum."""
    x = node.inputs[0] if node.op == "ReduceMean" else None
    if x is None or x.shape is None:
        return False
    axes: Sequence[int] = range(len(x.shape))
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        if node.inputs[1].tensor is None:
            return True
        axes = axes_of(node.inputs[1].ints(), len(x.shape))
    sizes = [x.shape[a] for a in axes]
    return prod(d if isinstance(d, int) else FEW_ADDED + 1 for d in sizes) > FEW_ADDED


def is_inverse(node: Node) -> bool:
    """Whether a node makes large numbers of small ones."""
    if node.op != "Pow":
        return node.op == "Reciprocal"
    exponent = node.inputs[1]
    return (
        exponent is not None and exponent.tensor is not None and bool((exponent.array() < 0).all())
    )


def is_accumulating(node: Node) -> bool:
    """Whether a node computes with elements that are put to one place."""
    return node.op in ACCUMULATING and node.attrs.get("reduction", "none") != "none"


def find_factor(node: Node) -> float | None:
    """The one constant of a product or quotient."""
    constants = [v for v in find_floats(node) if v.tensor is not None]
    if node.op not in SCALING or len(constants) != 1 or constants[0].tensor.size != 1:  # type: ignore[union-attr]
        return None
    return abs(float(constants[0].array().item()))


def is_small_factor(node: Node) -> bool:
    """Whether a product or quotient with a constant makes large numbers ordinary ones."""
    factor = find_factor(node)
    if not factor:
        return False
    return (1 / factor if node.op == "Div" else factor) <= SCALED_DOWN


def has_tiny_factor(node: Node) -> bool:
    """Whether a factor or divisor is a number that float16 has few digits of."""
    factor = find_factor(node)
    return factor is not None and 0 < factor < SMALLEST_NORMAL
