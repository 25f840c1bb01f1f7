"""The Array API on arrays that are computed at once: each call is traced and run in ONNX Runtime.

``ARRAY_API_TESTS_MODULE=conformance.array_api_eager`` names this module to the tests of the
standard (data-apis/array-api-tests).
"""

from __future__ import annotations

import operator
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import serde
from serde.bridges import onnxruntime as runtime
from serde.errors import UsageError
from serde.frontends.numpy import namespace

__array_api_version__ = "2024.12"
MEMORY = Path("/dev/shm")
FOLDER = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
# What takes and gives no arrays, or makes them of numbers.
PLAIN = frozenset("finfo iinfo isdtype result_type can_cast from_dlpack".split())
HERE = ("cpu",)


class Array:
    """An array with numbers; what is done with it is traced."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.asarray(numbers)

    dtype = property(lambda self: self.numbers.dtype)
    shape = property(lambda self: self.numbers.shape)
    ndim = property(lambda self: self.numbers.ndim)
    size = property(lambda self: self.numbers.size)
    device = property(lambda self: "cpu")
    T = property(lambda self: call(np.transpose, (self,), {}))
    mT = property(lambda self: call(np.matrix_transpose, (self,), {}))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        if device != "cpu" or stream is not None:
            raise ValueError(f"Unsupported device: {device!r}")
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"no version {api_version}")
        return sys.modules[__name__]

    def __dlpack__(
        self, /, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: Any = None,
    ) -> Any:  # fmt: skip
        return self.numbers.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> Any:
        return self.numbers.__dlpack_device__()

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __int__(self) -> int:
        return int(self.numbers)

    def __float__(self) -> float:
        return float(self.numbers)

    def __complex__(self) -> complex:
        return complex(self.numbers)

    def __index__(self) -> int:
        return operator.index(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Array({self.numbers!r})"

    def __getitem__(self, key: Any, /) -> Any:
        return call(operator.getitem, (self, key), {})

    def __setitem__(self, key: Any, value: Any, /) -> None:
        def assign(x: Any, key: Any, value: Any) -> Any:
            y = x.copy()
            y[key] = value
            return y

        self.numbers = call(assign, (self, key, value), {}).numbers


def _method(function: Any, swap: bool = False) -> Any:
    def method(self: Array, *others: Any) -> Any:
        if not all(isinstance(o, (Array, int, float, complex)) for o in others):
            return NotImplemented
        return call(function, (*others, self) if swap else (self, *others), {})

    return method


def _in_place(function: Any) -> Any:
    def apply(x: Any, y: Any) -> Any:
        z = x.copy()
        return function(z, y)

    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, int, float, complex)):
            return NotImplemented
        self.numbers = call(apply, (self, other), {}).numbers
        return self

    return method


# Whose operators differ from NumPy's.
OWN = {"floordiv": namespace.floor_divide}
for _name in ("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift").split():
    _function = OWN.get(_name) or getattr(operator, f"__{_name}__")
    setattr(Array, f"__{_name}__", _method(_function))
    setattr(Array, f"__r{_name}__", _method(_function, True))
    _change = OWN.get(_name) or getattr(operator, f"__i{_name}__")
    setattr(Array, f"__i{_name}__", _in_place(_change))
for _name in ("eq ne lt le gt ge neg pos abs invert").split():
    setattr(Array, f"__{_name}__", _method(getattr(operator, f"__{_name}__")))
Array.__hash__ = None  # type: ignore[assignment]


def _map(thing: Any, change: Any) -> Any:
    """Arguments or results with something else for each leaf."""
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(_map(t, change) for t in thing))
    if isinstance(thing, (list, tuple)):
        return type(thing)(_map(t, change) for t in thing)
    if isinstance(thing, dict):
        return {k: _map(v, change) for k, v in thing.items()}
    if isinstance(thing, slice):
        return slice(*(_map(t, change) for t in (thing.start, thing.stop, thing.step)))
    return change(thing)


def call(function: Any, args: Any, kwargs: Any) -> Any:
    """Trace a call, run its graph, and give arrays."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree: list[Any] = []
    _map((args, kwargs), lambda t: arrays.append(t.numbers) if isinstance(t, Array) else None)

    def run(*xs: Any) -> Any:
        rest = iter(xs)
        operands, named = _map((args, kwargs), lambda t: next(rest) if isinstance(t, Array) else t)
        result = function(*operands, **named)
        leaves: list[Any] = []
        _map(result, lambda t: leaves.append(t) if t is not None else None)
        tree.append(result)
        return tuple(leaves)

    try:
        graph = serde.trace(run, *arrays)
    except UsageError:
        if tree and not _leaves(tree[0]):
            return tree[0]  # no arrays: nothing to run
        raise
    path = Path(FOLDER.name) / "call.onnx"
    serde.save(graph, path)
    feeds = {f"xs_{i}": a for i, a in enumerate(arrays)}
    outputs = iter(runtime.run(path, {v.name: feeds[v.name] for v in graph.inputs}))
    return _map(tree[0], lambda t: Array(next(outputs)) if t is not None else None)


def _leaves(thing: Any) -> list[Any]:
    leaves: list[Any] = []
    _map(thing, leaves.append)
    return leaves


def _has_array(thing: Any) -> bool:
    flags: list[bool] = []
    _map(thing, lambda t: flags.append(isinstance(t, Array)))
    return any(flags)


def _wrap(function: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if function.__name__ in PLAIN:
            result = function(*_map(args, _numbers), **_map(kwargs, _numbers))
            return Array(result) if isinstance(result, np.ndarray) else result
        if _has_array((args, kwargs)):
            return call(function, args, kwargs)
        result = function(*args, **kwargs)
        return _map(result, lambda t: Array(t) if isinstance(t, (np.ndarray, np.generic)) else t)

    wrapper.__name__ = function.__name__
    wrapper.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return wrapper


def _signature(function: Any) -> Any:
    import inspect

    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _numbers(thing: Any) -> Any:
    return thing.numbers if isinstance(thing, Array) else thing


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    """An array of numbers, sequences of them, or an array."""
    if isinstance(obj, Array) and (dtype is None or dtype == obj.dtype):
        return Array(obj.numbers.copy()) if copy else obj
    if isinstance(obj, Array):
        return call(np.astype, (obj, dtype), {})  # type: ignore[no-any-return]
    return Array(np.asarray(_map(obj, _numbers), dtype=dtype))


class _Extension(ModuleType):
    """``linalg`` and ``fft``: NumPy's functions, wrapped."""

    def __init__(self, name: str, module: Any) -> None:
        super().__init__(name)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        member = getattr(self._module, name)
        return _wrap(member) if callable(member) and not isinstance(member, type) else member


linalg = _Extension("linalg", np.linalg)
fft = _Extension("fft", namespace.fft)
# ONNX has no operators on complex numbers.
LACKING = frozenset({"complex64", "complex128", "cdouble", "csingle"})
TYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64").split()


class _Info:
    """What ``__array_namespace_info__`` tells."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        return {"real floating": np.dtype("f8"), "complex floating": np.dtype("c16"),
                "integral": np.dtype("i8"), "indexing": np.dtype("i8")}  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        return {n: np.dtype(n) for n in TYPES
                if kind is None or np.isdtype(np.dtype(n), kind if isinstance(kind, str)
                                              else tuple(kind))}  # fmt: skip

    def devices(self) -> list[str]:
        return ["cpu"]


__array_namespace_info__ = _Info


def __getattr__(name: str) -> Any:
    if name in LACKING or name.startswith("__"):
        raise AttributeError(f"no {name} here")
    member = getattr(namespace, name)
    if isinstance(member, type) or not callable(member):
        return member
    return _wrap(member)
