"""Traced complex numbers: a pair of arrays. ONNX has complex types and no operators on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import TracedArray, as_array, find_recorder
from .core import FUNCTIONS, apply_function, name_of
from .recorder import Traced, refuse


class TracedComplex(Traced, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of complex numbers: its real and its imaginary part."""

    __slots__ = ("imaginary", "real")

    def __init__(self, real: Any, imaginary: Any) -> None:
        rec = find_recorder(real, imaginary)
        self.real = as_array(real, rec)
        self.imaginary = as_array(imaginary, rec, self.real.dtype)

    @property
    def rec(self) -> Any:
        """The recorder of both parts."""
        return self.real.rec

    @property
    def imag(self) -> TracedArray:
        """The imaginary part."""
        return self.imaginary

    @property
    def dtype(self) -> np.dtype[Any]:
        """The complex type."""
        return np.result_type(self.real.dtype, np.complex64)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of both parts."""
        return self.real.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.real.ndim

    @property
    def T(self) -> TracedComplex:
        """The axes in reversed order."""
        return TracedComplex(self.real.T, self.imaginary.T)

    def conj(self) -> TracedComplex:
        """The complex conjugate."""
        return TracedComplex(self.real, -self.imaginary)

    conjugate = conj

    def __getitem__(self, key: Any) -> TracedComplex:
        return TracedComplex(self.real[key], self.imaginary[key])

    def __len__(self) -> int:
        return len(self.real)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.real.leak("np.asarray")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in (np.angle, np.real, np.imag, np.real_if_close):
            return OF_COMPLEX[func.__name__](args[0])
        partwise = func.__name__ in PARTWISE
        if func in FUNCTIONS and func.__module__ == "numpy.fft" and not partwise:
            return apply_function(func, args, kwargs)
        if not partwise:
            refuse(name_of(func), "this function takes no traced complex numbers")
        parts = [func(*_take_part(args, name), **_take_part(kwargs, name)) for name in PARTS]
        return _join(parts)

    def reshape(self, *shape: Any) -> TracedComplex:
        """Both parts in another shape."""
        return TracedComplex(self.real.reshape(*shape), self.imaginary.reshape(*shape))

    def sum(self, axis: Any = None, **options: Any) -> Any:
        """The sum of both parts."""
        return np.sum(self, axis, **options)


PARTS = ("real", "imaginary")
# Functions that do the same to both parts.
PARTWISE = frozenset(
    "reshape ravel transpose swapaxes moveaxis expand_dims squeeze concatenate stack vstack hstack "
    "take roll flip broadcast_to sum mean cumsum pad tile repeat split array_split fftshift "
    "ifftshift zeros_like take_along_axis".split()
)


def _take_part(thing: Any, name: str) -> Any:
    """Arguments with one part in place of each complex array."""
    if isinstance(thing, TracedComplex):
        return getattr(thing, name)
    if isinstance(thing, (list, tuple)):
        return type(thing)(_take_part(t, name) for t in thing)
    if isinstance(thing, dict):
        return {k: _take_part(v, name) for k, v in thing.items()}
    if isinstance(thing, np.ndarray) and thing.dtype.kind == "c":
        return thing.real if name == "real" else thing.imag
    return thing


def _join(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], (list, tuple)):
        return type(parts[0])(TracedComplex(*pair) for pair in zip(*parts, strict=True))
    return TracedComplex(*parts)


def split_parts(x: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of anything."""
    if isinstance(x, TracedComplex):
        return x.real, x.imaginary
    if isinstance(x, complex) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "c"):
        return x.real, x.imag
    return x, 0


def _multiply(a: Any, b: Any) -> TracedComplex:
    (x, y), (u, v) = split_parts(a), split_parts(b)
    return TracedComplex(x * u - y * v, x * v + y * u)


def _divide(a: Any, b: Any) -> TracedComplex:
    (x, y), (u, v) = split_parts(a), split_parts(b)
    size = u * u + v * v
    return TracedComplex((x * u + y * v) / size, (y * u - x * v) / size)


def _exp(x: Any) -> TracedComplex:
    real, imaginary = split_parts(x)
    size = np.exp(real)
    return TracedComplex(size * np.cos(imaginary), size * np.sin(imaginary))


def _equal(a: Any, b: Any) -> Any:
    (x, y), (u, v) = split_parts(a), split_parts(b)
    return (x == u) & (y == v)


def _power(a: Any, b: Any) -> Any:
    if not isinstance(b, (int, np.integer)) or b < 1:
        refuse("np.power", "of complex numbers only powers by positive integers are traced")
    result = a
    for _ in range(int(b) - 1):
        result = _multiply(result, a)
    return result


def _matmul(a: Any, b: Any) -> TracedComplex:
    (x, y), (u, v) = split_parts(a), split_parts(b)
    if not np.ndim(y):
        return TracedComplex(x @ u, x @ v)
    if not np.ndim(v):
        return TracedComplex(x @ u, y @ u)
    return TracedComplex(x @ u - y @ v, x @ v + y @ u)


def _partwise(ufunc: Any) -> Any:
    def apply(a: Any, b: Any) -> TracedComplex:
        (x, y), (u, v) = split_parts(a), split_parts(b)
        return TracedComplex(ufunc(x, u), ufunc(y, v))

    return apply


OF_COMPLEX: dict[str, Any] = {
    "add": _partwise(np.add),
    "subtract": _partwise(np.subtract),
    "multiply": _multiply,
    "divide": _divide,
    "matmul": _matmul,
    "power": _power,
    "square": lambda x: _multiply(x, x),
    "negative": lambda x: TracedComplex(-x.real, -x.imaginary),
    "positive": lambda x: x,
    "absolute": lambda x: np.hypot(*split_parts(x)),
    "conjugate": lambda x: x.conj(),
    "exp": _exp,
    "equal": _equal,
    "not_equal": lambda a, b: ~_equal(a, b),
    "isnan": lambda x: np.isnan(x.real) | np.isnan(x.imaginary),
    "isfinite": lambda x: np.isfinite(x.real) & np.isfinite(x.imaginary),
    "angle": lambda x: np.arctan2(x.imaginary, x.real),
    "real": lambda x: x.real,
    "imag": lambda x: x.imaginary,
    "real_if_close": lambda x: x,
}


def apply_complex(ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc of which an operand is complex."""
    rule = OF_COMPLEX.get(ufunc.__name__)
    if rule is None or options:
        refuse(f"np.{ufunc.__name__}", "this ufunc takes no traced complex numbers")
    with find_recorder(list(inputs)).operation(ufunc.__name__):
        return rule(*inputs)
