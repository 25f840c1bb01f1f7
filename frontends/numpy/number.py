"""Sizes that have names, and Python numbers computed from them.

Such a number behaves as a Python int or float does in NumPy: it takes the element type of the array
it meets. It has no value while the code is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.dim_expr import combine, shape_data_of
from serde.ir.graph import Dim, DType, Value
from serde.spec.schema import ELEMENT_CODES

from . import hooks
from .recorder import CONTROL_FLOW, Recorder, Traced, refuse

INT64, FLOAT64 = ELEMENT_CODES[DType.INT64], ELEMENT_CODES[DType.FLOAT64]


def make_number(rec: Recorder, value: Value) -> Any:
    """A Python number where ``value``, of one element, is a constant; else a TracedNumber."""
    if value.tensor is not None:
        return value.array().reshape(-1)[0].item()
    return TracedNumber(rec, value)


def _refuse_as(what: str) -> Any:
    """A method of ``TracedNumber`` that would need its value."""
    return lambda self, *args, **options: self._leak(what)


def _make_operators(sign: str) -> tuple[Any, Any]:
    """The methods of ``TracedNumber`` for an operator, and for that with exchanged operands."""
    return (lambda self, other: self._apply(sign, other),
            lambda self, other: self._apply(sign, other, True))  # fmt: skip


def _make_comparison(ufunc: np.ufunc) -> Any:
    """The method of ``TracedNumber`` for a comparison."""
    return lambda self, other: self._compare(ufunc, other)


class TracedNumber(Traced):
    """An int (a tensor of one int64) or a float (a float64 without axes) of the recorded run."""

    __slots__ = ("rec", "value")

    def __init__(self, rec: Recorder, value: Value) -> None:
        self.rec, self.value = rec, value

    @property
    def is_int(self) -> bool:
        """Whether it stands for a Python int."""
        return self.value.dtype is DType.INT64

    @property
    def dim(self) -> Dim:
        """The size as shapes have it: an expression of names, or None."""
        known = shape_data_of(self.value) if self.is_int else None
        return known[0] if known and len(known) == 1 else None

    def scalar(self) -> Value:
        """The number as a tensor without axes."""
        if not self.is_int:
            return self.value
        with self.rec.operation("int") as g:
            return g.Squeeze(self.value, [0])

    def __repr__(self) -> str:
        return str(self.dim) if self.dim is not None else f"<{'int' if self.is_int else 'float'}>"

    # What needs a number now

    def _leak(self, what: str) -> Any:
        size = f"the size {self.dim}" if self.dim is not None else "the number"
        refuse(what, f"{size} is known when the model runs, and not while the code is traced",
               f"Give the dimension a number, or {CONTROL_FLOW}")  # fmt: skip

    __index__ = _refuse_as("index")
    __bool__ = _refuse_as("bool")
    __float__ = _refuse_as("float")
    __int__ = _refuse_as("int")
    __array__ = _refuse_as("np.asarray")

    # Arithmetic of Python numbers

    def _operands(self, other: Any, floats: bool) -> tuple[Value, Value] | None:
        pair = []
        for x in (self, other):
            if isinstance(x, TracedNumber):
                value = x.scalar() if floats or not x.is_int else x.value
            elif isinstance(x, (bool, int)) and not floats:
                value = self.rec.g.const([int(x)], DType.INT64)
            elif isinstance(x, (bool, int, float)):
                value = self.rec.g.const(float(x), DType.FLOAT64)
            else:
                return None
            pair.append(self.rec.g.Cast(value, to=FLOAT64) if floats else value)
        return pair[0], pair[1]

    def _apply(self, sign: str, other: Any, swap: bool = False) -> Any:
        if isinstance(other, (np.integer, np.floating)):
            as_array = hooks.as_array
            pair = (other, as_array(self)) if swap else (as_array(self), other)
            return UFUNCS[sign](*pair)
        is_float = isinstance(other, float) or not self.is_int or sign == "/" or (
            isinstance(other, TracedNumber) and not other.is_int
        )  # fmt: skip
        with self.rec.operation(f"int {sign}") as g:
            pair = self._operands(other, is_float)
            if pair is None:
                return NotImplemented
            a, b = reversed(pair) if swap else pair
            return make_number(self.rec, _emit(g, sign, a, b, is_float))

    __add__, __radd__ = _make_operators("+")
    __sub__, __rsub__ = _make_operators("-")
    __truediv__, __rtruediv__ = _make_operators("/")
    __floordiv__, __rfloordiv__ = _make_operators("//")
    __mod__, __rmod__ = _make_operators("%")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (tuple, list)):
            self._leak("repetition of a list")
        return self._apply("*", other)

    __rmul__ = __mul__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __pow__(self, other: Any) -> Any:
        if self.is_int and isinstance(other, int) and 0 <= other <= 8:
            result: Any = 1
            for _ in range(other):
                result = self * result
            return result
        return self._apply("**", float(other) if isinstance(other, int) else other)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.largest(-self)

    def largest(self, other: Any) -> Any:
        """What ``max`` of the two is."""
        number = self._apply("max", other)
        return np.maximum(hooks.as_array(self), other) if number is NotImplemented else number

    def smallest(self, other: Any) -> Any:
        """What ``min`` of the two is."""
        number = self._apply("min", other)
        return np.minimum(hooks.as_array(self), other) if number is NotImplemented else number

    def truncate(self) -> Any:
        """What ``int`` of it is."""
        return self if self.is_int else self._round_to_int("Identity")

    def _round_to_int(self, op: str) -> Any:
        if self.is_int:
            return self
        with self.rec.operation(op.lower()) as g:
            integer = g.Cast(g[op](self.value), to=INT64)
            return make_number(self.rec, g.Unsqueeze(integer, [0]))

    def __floor__(self) -> Any:
        return self._round_to_int("Floor")

    def __ceil__(self) -> Any:
        return self._round_to_int("Ceil")

    def __trunc__(self) -> Any:
        return self.truncate()

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return self._round_to_int("Round")
        return self if self.is_int else (self * 10.0**digits).__round__() / 10.0**digits

    # Comparisons

    def _compare(self, ufunc: Any, other: Any) -> Any:
        as_array = hooks.as_array
        is_same = isinstance(other, TracedNumber) and self.dim is not None and self.dim == other.dim
        if is_same:
            return bool(ufunc(0, 0))
        if not isinstance(other, (int, float, np.number, TracedNumber)):
            return NotImplemented
        return ufunc(as_array(self), as_array(other) if isinstance(other, TracedNumber) else other)

    __eq__ = _make_comparison(np.equal)
    __ne__ = _make_comparison(np.not_equal)
    __lt__ = _make_comparison(np.less)
    __le__ = _make_comparison(np.less_equal)
    __gt__ = _make_comparison(np.greater)
    __ge__ = _make_comparison(np.greater_equal)

    def __hash__(self) -> int:
        return id(self)


UFUNCS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide,
    "%": np.remainder, "**": np.power, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def _emit(g: Any, sign: str, a: Value, b: Value, is_float: bool) -> Value:
    """Emit the arithmetic of two numbers of one type."""
    plain = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "**": "Pow", "max": "Max"}
    plain["min"] = "Min"
    if sign in plain:
        return g[plain[sign]](a, b)
    if is_float:
        quotient = g.Floor(g.Div(a, b))
        return quotient if sign == "//" else g.Sub(a, g.Mul(quotient, b))
    if sign == "%":
        return g.Mod(a, b)
    return floor_divide_sizes(g, a, b)


def floor_divide_sizes(g: Any, a: Value, b: Value) -> Value:
    """A quotient rounded down. ONNX rounds towards zero, which differs for negative numbers."""
    known = shape_data_of(a), shape_data_of(b)
    dims = [k[0] if k and len(k) == 1 else None for k in known]
    if dims[0] is not None and "-" not in str(dims[0]) and isinstance(dims[1], int) and dims[1] > 0:
        return g.Div(a, b)
    quotient = g.Div(g.Sub(a, g.Mod(a, b)), b)
    if quotient.tensor is None:
        quotient.shape_data = (combine("/", dims[0], dims[1]),)
    return quotient
