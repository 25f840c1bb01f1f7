"""Random numbers, drawn anew with each call by PyTorch's generator: a seed makes other numbers."""

from __future__ import annotations

from serde.ir.geometry import Ints
from serde.ir.graph import Value
from serde.spec.schema import ELEMENT_TYPES

from ..target import TorchBuilder, writes
from .elementwise import shorten

SEED = ("seed",)


def scale_numbers(t: TorchBuilder, x: Value, factor: float, offset: float):
    """``x * factor + offset``, without what changes nothing."""
    y = x if factor == 1 else t["*"](x, shorten(factor))
    return t["+"](y, shorten(offset)) if offset else y


@writes("RandomUniform", ignore=SEED)
def write_random_uniform(t: TorchBuilder, *, low: float, high: float, dtype: int, shape: Ints):
    y = t.torch.rand(shape, dtype=ELEMENT_TYPES[dtype], device=t.device())
    return scale_numbers(t, y, high - low, low)


@writes("RandomNormal", ignore=SEED)
def write_random_normal(t: TorchBuilder, *, mean: float, scale: float, dtype: int, shape: Ints):
    y = t.torch.randn(shape, dtype=ELEMENT_TYPES[dtype], device=t.device())
    return scale_numbers(t, y, scale, mean)


@writes("RandomUniformLike", ignore=SEED)
def write_random_uniform_like(
    t: TorchBuilder, x: Value, *, low: float, high: float, dtype: int | None = None
):
    y = t.torch.rand_like(x, dtype=None if dtype is None else ELEMENT_TYPES[dtype])
    return scale_numbers(t, y, high - low, low)


@writes("RandomNormalLike", ignore=SEED)
def write_random_normal_like(
    t: TorchBuilder, x: Value, *, mean: float, scale: float, dtype: int | None = None
):
    y = t.torch.randn_like(x, dtype=None if dtype is None else ELEMENT_TYPES[dtype])
    return scale_numbers(t, y, scale, mean)


@writes("Multinomial", ignore=SEED)
def write_multinomial(t: TorchBuilder, x: Value, *, sample_size: int, dtype: int):
    """Its operand are logarithms of what the probabilities are proportional to."""
    places = t.torch.multinomial(t.torch.softmax(x, dim=1), sample_size, replacement=True)
    return t[".to"](places, ELEMENT_TYPES[dtype])
