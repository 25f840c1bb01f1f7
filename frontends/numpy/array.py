"""The traced array: to the user's code an array, to the recorder a value of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.graph import DType, Value, show_shape
from serde.spec.schema import ELEMENT_CODES

from . import hooks
from .number import TracedNumber, make_number
from .recorder import CONTROL_FLOW, Recorder, Traced, refuse

Array = np.ndarray[Any, Any]
# By what C extensions ask an array for its memory.
MEMORY = frozenset(
    "__array_interface__ __array_struct__ __dlpack__ __dlpack_device__ __buffer__".split()
)
FEW = 8  # numbers of a shape, and the like
TYPES = {np.dtype(d.value): d for d in DType if d.kind in "biuf" and hasattr(np, d.value)}


class TracedArray(Traced, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the recorded run.

    A view (``x[1:]``, ``x.T``) knows its ``base``: what is written to the one is seen in the other.
    ``derive`` makes the view's value anew, ``write_back`` gives the base a new one. An array that
    ``np.zeros`` and the like made is local; it holds numbers until a traced value is written to it.
    """

    __slots__ = (
        "__weakref__", "_array", "_base_version", "_value", "base", "derive", "is_input", "key",
        "rec", "scope", "version", "write_back",
    )  # fmt: skip

    def __init__(
        self, rec: Recorder, value: Value | None, array: Array | None = None, is_input: bool = False
    ) -> None:
        self.rec, self._value, self._array, self.is_input = rec, value, array, is_input
        self.scope = rec.builders[-1]
        self.version = 0
        self.base: TracedArray | None = None
        self._base_version = 0
        self.derive: Callable[[TracedArray], TracedArray] | None = None
        self.write_back: Callable[[TracedArray, TracedArray], None] | None = None
        self.key: Any = None

    # What it holds

    @property
    def value(self) -> Value:
        """The value of the graph."""
        if self.base is not None:
            self._follow_base()
        if self._value is None:
            assert self._array is not None
            return make_constant(self.rec, self._array)
        return self._value

    def _follow_base(self) -> None:
        """Take a view's value from its base again, where that was written to since."""
        assert self.base is not None and self.derive is not None
        self.base.current()
        if self._base_version != self.base.version:
            fresh = self.derive(self.base)
            self._value, self._array = fresh._value, fresh._array
            self._base_version = self.base.version
            self.version += 1

    def current(self) -> TracedArray:
        """Itself, up to date with its base."""
        if self.base is not None:
            self._follow_base()
        return self

    @property
    def array(self) -> Array | None:
        """The numbers, where it holds numbers."""
        return self.current()._array

    @property
    def numbers(self) -> Array | None:
        """The numbers, where it holds numbers or is a small constant of the graph."""
        value = self.current()._value
        if value is None:
            return self._array
        return value.tensor.load() if value.tensor is not None else None

    def as_view(
        self, base: TracedArray, derive: Callable[[TracedArray], TracedArray],
        write_back: Callable[[TracedArray, TracedArray], None] | None, key: Any = None,
    ) -> TracedArray:  # fmt: skip
        """Make it a view of ``base``, the first time it is made."""
        if self is base:
            self = TracedArray(base.rec, base._value, base._array)
        if self.base is None:
            self.base, self.derive, self.write_back, self.key = base, derive, write_back, key
            self._base_version = base.current().version
        return self

    def replace(self, new: TracedArray) -> None:
        """Hold what ``new`` holds from now on, and give it to the base."""
        if self.is_input:
            refuse("assignment", "the array is the caller's own", "Change a copy of it: x.copy()")
        if self.scope is not self.rec.g:
            refuse("assignment", "the array was made outside of this branch or loop body",
                   "Return the new array from the function")  # fmt: skip
        if self.base is not None:
            if self.write_back is None:
                raise ValueError("assignment destination is read-only")
            self.write_back(self.base, new)
            self._base_version = self.base.version
        self._value, self._array = new._value, new._array
        self.version += 1

    # Type and shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        if self._value is None:
            assert self._array is not None
            return self._array.dtype
        return self._value.type.numpy

    @property
    def dims(self) -> tuple[int | str | None, ...]:
        """The shape, named sizes by their names, unknown ones as None."""
        if self._value is None:
            assert self._array is not None
            return self._array.shape
        return self._value.ranked_shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.dims)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape: numbers, and traced numbers for sizes that are no numbers yet."""
        return tuple(d if isinstance(d, int) else self.size_of(i) for i, d in enumerate(self.dims))

    def size_of(self, axis: int) -> Any:
        """The size along an axis that counts from the front."""
        dim = self.dims[axis]
        if isinstance(dim, int):
            return dim
        with self.rec.operation("shape") as g:
            return make_number(self.rec, g.Shape(self.value, start=axis, end=axis + 1))

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for dim in self.shape:
            total = total * dim
        return total

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where the array is, as the Array API asks."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> TracedArray:
        """Itself: there is one device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"Unsupported device: {device!r}")
        return self

    def __repr__(self) -> str:
        if self.array is not None:
            return f"traced {self._array!r}"
        return f"<traced {self.dtype}{show_shape(self.dims)}>"

    # What needs numbers now

    def leak(self, what: str, advice: str = "") -> Any:
        """Refuse to give numbers."""
        refuse(what, "the values are known when the model runs, and not while the code is traced",
               advice or "Keep to NumPy functions of arrays")  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if (known := self.numbers) is not None:
            return np.array(known, dtype)
        return self.leak("np.asarray")

    def __bool__(self) -> bool:
        if (known := self.numbers) is not None:
            return bool(known)
        advice = f"For a decision that data make, {CONTROL_FLOW}"
        return self.leak("if or while", advice)

    def _number(self, kind: Any) -> Any:
        if (known := self.numbers) is not None:
            return kind(known)
        if any(isinstance(d, int) and d != 1 for d in self.dims):
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self.leak(kind.__name__)

    def __float__(self) -> float:
        return self._number(float)

    def __int__(self) -> int:
        return self._number(int)

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        if (known := self.numbers) is not None:
            return known.__index__()
        return self.leak("index", "np.take or x[i] with an array i take traced indices")

    def item(self, *args: Any) -> Any:
        """The one element as a Python number, where it is a constant."""
        return self.leak("item") if self.numbers is None else self.numbers.item(*args)

    def tolist(self) -> Any:
        """The elements as Python numbers, where they are constants."""
        return self.leak("tolist") if self.numbers is None else self.numbers.tolist()

    def __len__(self) -> int:
        dims = self.dims
        if not dims:
            raise TypeError("len() of unsized object")
        if isinstance(dims[0], int):
            return dims[0]
        advice = "Use x.shape[0], or give the dimension a number"
        return self.leak("len", advice)

    def __iter__(self) -> Iterator[Any]:
        if not self.dims:
            raise TypeError("iteration over a 0-d array")
        if not isinstance(self.dims[0], int):
            self.leak("iteration", f"The first size has no number: {CONTROL_FLOW}")
        return (self[i] for i in range(self.dims[0]))

    def __contains__(self, item: Any) -> Any:
        return bool((self == item).any())

    __hash__ = None

    # NumPy's protocols

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return hooks.namespace

    def __getitem__(self, key: Any) -> Any:
        return hooks.get_item(self, key)

    def __setitem__(self, key: Any, new: Any) -> None:
        hooks.set_item(self, key, new)

    def __getattr__(self, name: str) -> Any:
        if name in hooks.PROPERTIES:
            return hooks.PROPERTIES[name](self)
        method = hooks.METHODS.get(name)
        if method is not None:
            return lambda *args, **options: method(self, *args, **options)
        if name in MEMORY:
            raise AttributeError(f"a traced array has no {name}: the values are known when the "
                                 "model runs. Keep to NumPy functions of arrays")  # fmt: skip
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'TracedArray' object has no attribute {name!r}")
        return refuse(f"ndarray.{name}", "this method cannot be traced")

    def __copy__(self) -> TracedArray:
        return TracedArray(self.rec, self.value)

    def __deepcopy__(self, memo: Any) -> TracedArray:
        return TracedArray(self.rec, self.value)

    def __divmod__(self, other: Any) -> Any:
        return np.divmod(self, other)


def make_constant(rec: Recorder, array: Any) -> Value:
    """A constant of the graph; one for each number, and for a few of them."""
    array = np.asarray(array)
    try:
        if array.size > FEW:
            return rec.g.const(array.copy() if array.base is not None or array.flags.writeable
                               else array)  # fmt: skip
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in rec.constants:
            rec.constants[key] = rec.g.const(array)
        return rec.constants[key]
    except ConversionError:
        refuse("constant", f"ONNX has no arrays of the element type {array.dtype}")


def find_recorder(*things: Any) -> Recorder:
    """The recorder of the first traced thing among arguments, at any depth of lists."""
    stack = list(reversed(things))
    while stack:
        thing = stack.pop()
        if isinstance(thing, (TracedArray, TracedNumber)):
            return thing.rec
        if isinstance(thing, (list, tuple)):
            stack.extend(reversed(thing))
        elif isinstance(thing, dict):
            stack.extend(reversed(list(thing.values())))
        elif isinstance(thing, slice):
            stack.extend((thing.step, thing.stop, thing.start))
        elif (rec := getattr(thing, "rec", None)) is not None and isinstance(rec, Recorder):
            return rec
    raise TypeError("nothing among the arguments is traced")


def has_traced(thing: Any) -> bool:
    """Whether a traced thing is among arguments, at any depth."""
    try:
        find_recorder(thing)
    except TypeError:
        return False
    return True


def as_array(thing: Any, rec: Recorder | None = None, dtype: Any = None) -> TracedArray:
    """Anything an array can be made of as a traced array: lists of traced scalars are stacked."""
    if isinstance(thing, TracedArray):
        return thing.current() if dtype is None else cast(thing, dtype)
    if isinstance(thing, TracedNumber):
        array = TracedArray(thing.rec, thing.scalar())
        return array if dtype is None else cast(array, dtype)
    if isinstance(thing, (list, tuple)) and has_traced(thing):
        rec = rec or find_recorder(thing)
        items = [as_array(t, rec) for t in thing]
        return as_array(np.stack(items), dtype=dtype)
    if hasattr(thing, "imaginary"):
        refuse("complex", "this function takes no traced complex numbers")
    rec = rec or find_recorder(thing)
    return TracedArray(rec, make_constant(rec, np.asarray(thing, dtype)))


def as_arrays(things: Any) -> list[TracedArray]:
    """Several things, of which one is traced, as traced arrays."""
    rec = find_recorder(things)
    return [as_array(thing, rec) for thing in things]


def cast(x: TracedArray, dtype: Any) -> TracedArray:
    """The array in another element type; itself where it has it."""
    expected = np.dtype(dtype)
    if x.dtype == expected:
        return x
    with x.rec.operation("astype") as g:
        return TracedArray(x.rec, cast_value(g, x.value, expected))


def cast_value(g: Any, value: Value, dtype: np.dtype[Any]) -> Value:
    """A value in another element type, as NumPy converts it."""
    expected = TYPES.get(dtype)
    if expected is None:
        refuse("astype", f"a traced array cannot have the element type {dtype}")
    if value.dtype is expected:
        return value
    return g.Cast(value, to=ELEMENT_CODES[expected])


def sizes_value(rec: Recorder, sizes: Sequence[Any]) -> Value:
    """A shape tensor of numbers and traced numbers."""
    parts: list[Any] = []
    for size in sizes:
        if isinstance(size, TracedArray):
            size = to_number(size)
        if isinstance(size, TracedNumber):
            parts.append(size.value)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(int(size.__index__()))
        else:
            parts.append([int(size.__index__())])
    if not parts:
        return make_constant(rec, np.zeros(0, np.int64))
    values = [make_constant(rec, np.array(p, np.int64)) if isinstance(p, list) else p
              for p in parts]  # fmt: skip
    if len(values) == 1:
        return values[0]
    return rec.g.Concat(*values, axis=0)


def to_number(x: TracedArray) -> Any:
    """A traced array of one element as a number of Python: what ``int(x)`` or ``x.item()`` is."""
    if (known := x.numbers) is not None:
        return known.item()
    with x.rec.operation("int") as g:
        if x.dtype.kind == "f":
            value = g.Cast(g.Reshape(x.value, []), to=ELEMENT_CODES[DType.FLOAT64])
        else:
            value = g.Reshape(g.Cast(x.value, to=ELEMENT_CODES[DType.INT64]), [1])
        return make_number(x.rec, value)
