"""Constants: how passes make them, and whether values are some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .graph import DType, Tensor, Value


def make_constant(name: str, tensor: Tensor) -> Value:
    """A constant of the contents."""
    return Value(name, tensor.dtype, tensor.shape, tensor)


def make_integers(name: str, numbers: Iterable[Any]) -> Value:
    """A constant list of int64, as of sizes or axes."""
    return make_constant(name, Tensor.of(np.array([*numbers], np.int64)))


def make_lazy_constant(
    name: str, like: Value, shape: tuple[int, ...], load: Callable[[], Any]
) -> Value:
    """A constant of the element type of ``like``, computed when it is read, and rounded once."""
    tensor = Tensor(like.type, shape, lambda: np.asarray(load(), like.type.numpy).reshape(shape))
    return make_constant(name, tensor)


def shift_bytes(tensor: Tensor) -> Tensor:
    """uint8 less 128 as int8, or int8 plus 128 as uint8, computed when they are read."""
    dtype = DType.INT8 if tensor.dtype is DType.UINT8 else DType.UINT8
    shape = tensor.shape
    return Tensor(dtype, shape, lambda: (tensor.load().view(np.uint8) ^ 128).view(dtype.numpy))


def is_constant(values: Iterable[Value | None]) -> bool:
    """Whether all values that are there are constants."""
    return all(v is None or v.tensor is not None for v in values)
