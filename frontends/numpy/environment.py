"""What the traced function's module sees while it is traced: NumPy and builtins that take sizes.

``np.zeros((n, 3))`` and ``int(h * scale)`` cannot return traced things in Python: NumPy asks for
numbers, ``int`` returns an int. So the names that the module has for NumPy, for its creating
functions and for a few builtins are bound to stand-ins during the run. With arguments that are not
traced these do what the originals do.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast, has_traced, to_number
from .core import full, size_list
from .creation import make_local
from .number import TracedNumber
from .recorder import Recorder

LOCK = threading.RLock()


class _IntType(type):
    """The type of ``int``'s stand-in: an int is an instance of it."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, int) or (isinstance(thing, TracedNumber) and thing.is_int)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, int)


class TracedInt(int, metaclass=_IntType):
    """``int`` that takes traced numbers; to NumPy it is the element type that ``int`` is."""

    dtype = np.dtype(int)

    def __new__(cls, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], TracedNumber):
            return args[0].truncate()
        if len(args) == 1 and isinstance(args[0], TracedArray) and args[0].numbers is None:
            if any(isinstance(d, int) and d != 1 for d in args[0].dims):
                raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
            number = to_number(args[0])
            return number.truncate() if isinstance(number, TracedNumber) else int(number)
        return int(*args, **options)


def _len(thing: Any, /) -> Any:
    """``len`` that gives the size of a traced array by name."""
    if isinstance(thing, TracedArray) and thing.dims:
        return thing.size_of(0)
    return builtins.len(thing)


def _extreme(name: str) -> Callable[..., Any]:
    plain = getattr(builtins, name)

    def choose(*args: Any, **options: Any) -> Any:
        items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        if options or not any(isinstance(i, TracedNumber) for i in items):
            return plain(*args, **options)
        result = items[0]
        for item in items[1:]:
            pair = (result, item) if isinstance(result, TracedNumber) else (item, result)
            if not isinstance(pair[0], TracedNumber):
                result = plain(*pair)
            else:
                result = pair[0].largest(pair[1]) if name == "max" else pair[0].smallest(pair[1])
        return result

    return choose


BUILTINS: dict[str, Any] = {
    "int": TracedInt, "len": _len, "max": _extreme("max"), "min": _extreme("min"),
}  # fmt: skip


def _create(rec: Recorder, number: Any) -> Callable[..., Any]:
    def create(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> Any:
        return make_local(rec, size_list(shape), number, np.dtype(dtype or float))

    return create


def _full(rec: Recorder, shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    sizes = size_list(shape)
    if not has_traced([sizes, fill_value]):
        return TracedArray(rec, None, np.full(tuple(sizes), fill_value, dtype))
    fill = as_array(fill_value, rec)
    expected = np.dtype(dtype) if dtype is not None else fill.dtype
    return TracedArray(rec, full(rec, sizes, cast(fill, expected), expected).value)


def _array(rec: Recorder, thing: Any, dtype: Any = None, **options: Any) -> Any:
    if not has_traced(thing):
        return TracedArray(rec, None, np.array(thing, dtype))
    x = as_array(thing, rec)
    x = x if dtype is None else cast(x, dtype)
    return TracedArray(rec, x._value, x.array)


def _asarray(rec: Recorder, thing: Any, dtype: Any = None, **options: Any) -> Any:
    if not has_traced(thing):
        return np.asarray(thing, dtype, **options)
    x = as_array(thing, rec)
    return x if dtype is None or x.dtype == dtype else cast(x, dtype)


def _arange(rec: Recorder, *args: Any, **options: Any) -> Any:
    if not has_traced(list(args)):
        return np.arange(*args, **options)
    options.pop("device", None)
    return as_array(0, rec).__array_function__(np.arange, (), args, options)


def _eye(rec: Recorder, N: Any, M: Any = None, k: int = 0, dtype: Any = float, **o: Any) -> Any:
    if not has_traced([N, M]):
        return TracedArray(rec, None, np.eye(N, M, k, dtype))
    rows = _arange(rec, N)
    columns = _arange(rec, N if M is None else M)
    return (np.expand_dims(rows, 1) + k == np.expand_dims(columns, 0)).astype(dtype)


def _dispatch(rec: Recorder, function: Any, *args: Any, **options: Any) -> Any:
    """A function of which only a shape is traced."""
    if has_traced([list(args), options]):
        return as_array(0, rec).__array_function__(function, (), args, options)
    return function(*args, **options)


def creators(rec: Recorder) -> dict[Any, Callable[..., Any]]:
    """Stand-ins for the functions that make arrays, by the function."""
    functions: dict[Any, Callable[..., Any]] = {
        np.zeros: _create(rec, 0),
        np.empty: _create(rec, 0),
        np.ones: _create(rec, 1),
        np.full: partial(_full, rec),
        np.array: partial(_array, rec),
        np.asarray: partial(_asarray, rec),
        np.asanyarray: partial(_asarray, rec),
        np.ascontiguousarray: partial(_asarray, rec),
        np.arange: partial(_arange, rec),
        np.eye: partial(_eye, rec),
        np.identity: partial(_eye, rec),
    }
    for function in (np.broadcast_to, np.broadcast_shapes, np.tile, np.pad, np.reshape,
                     np.repeat, np.resize, np.full_like, np.linspace):  # fmt: skip
        functions[function] = partial(_dispatch, rec, function)
    return functions


class NumPy:
    """NumPy as the traced code sees it."""

    def __init__(self, functions: dict[Any, Callable[..., Any]]) -> None:
        self._functions = {f.__name__: creator for f, creator in functions.items()}

    def __getattr__(self, name: str) -> Any:
        function = self._functions.get(name)
        return function if function is not None else getattr(np, name)


def _functions_in(thing: Any) -> list[Any]:
    """The Python functions inside of a method, a partial, a class, or a callable object."""
    thing = getattr(thing, "__func__", None) or getattr(thing, "func", None) or thing
    thing = getattr(thing, "__wrapped__", thing)
    if isinstance(thing, FunctionType):
        return [thing]
    if isinstance(thing, (property, staticmethod, classmethod)):
        inner = getattr(thing, "fget", None) or getattr(thing, "__func__", None)
        return [] if inner is None else _functions_in(inner)
    kind = thing if isinstance(thing, type) else type(thing)
    if _is_foreign(kind.__module__):
        return []
    return [f for member in vars(kind).values() if isinstance(member, MEMBERS)
            for f in _functions_in(member)]  # fmt: skip


MEMBERS = (FunctionType, property, staticmethod, classmethod)


def _is_foreign(module: str | None) -> bool:
    """Whether a module is no user's: of Python, NumPy or serde."""
    root = (module or "builtins").partition(".")[0]
    return (root in sys.stdlib_module_names and root != "__main__") or root in ("numpy", "serde")


def _names_in(code: CodeType) -> set[str]:
    """The names that code reads, that of inner functions too."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _modules_of(things: Sequence[Any]) -> list[dict[str, Any]]:
    """The namespaces of functions, and of those that they call by name, in user's modules."""
    namespaces: dict[int, dict[str, Any]] = {}
    seen: set[int] = set()
    waiting = [f for thing in things for f in _functions_in(thing)]
    while waiting:
        function = waiting.pop()
        if id(function) in seen or _is_foreign(function.__globals__.get("__name__")):
            continue
        seen.add(id(function))
        names = function.__globals__
        namespaces[id(names)] = names
        used = _names_in(function.__code__)
        called = [names[n] for n in used if n in names]
        called += [c.cell_contents for c in function.__closure__ or () if has_contents(c)]
        for module in [m for m in called if isinstance(m, ModuleType)]:
            if not _is_foreign(module.__name__):
                called += [vars(module)[n] for n in used if n in vars(module)]
        waiting += [f for t in called if callable(t) for f in _functions_in(t)]
    return list(namespaces.values())


def has_contents(cell: Any) -> bool:
    """Whether a variable of a closure has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


@contextmanager
def bind_names(rec: Recorder, functions: Sequence[Any]) -> Iterator[None]:
    """Bind the stand-ins in the modules of functions, and of what they call, for the block."""
    stand_ins = creators(rec)
    numpy = NumPy(stand_ins)
    undo: list[tuple[dict[str, Any], str, Any]] = []
    with LOCK:
        try:
            for names in _modules_of(functions):
                for name, thing in list(names.items()):
                    new = numpy if thing is np else _stand_in(stand_ins, thing)
                    if new is not None:
                        undo.append((names, name, thing))
                        names[name] = new
                for name, new in BUILTINS.items():
                    if name not in names:
                        undo.append((names, name, MISSING))
                        names[name] = new
            yield
        finally:
            for names, name, old in reversed(undo):
                if old is MISSING:
                    names.pop(name, None)
                else:
                    names[name] = old


MISSING = object()


def _stand_in(stand_ins: dict[Any, Any], thing: Any) -> Any:
    kinds = (BuiltinFunctionType, FunctionType, type(np.broadcast_to))
    return stand_ins.get(thing) if isinstance(thing, kinds) else None
