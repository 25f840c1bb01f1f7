"""The recording of one run: the builders that are open, and the user's line that is at work."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from serde import errors
from serde.errors import SerdeError
from serde.ir.graph import Source, Value

from . import hooks
from .kernels import TraceBuilder

# Whose lines are not the user's: this front end, NumPy, and what is around and between them.
OWN = (
    os.path.join(os.path.dirname(os.path.abspath(errors.__file__)), ""),
    os.path.join(os.path.dirname(np.__file__), ""), contextlib.__file__, "<__array_", "<frozen ",
)  # fmt: skip
PYTHON = os.path.join(os.path.dirname(contextlib.__file__), "")
PACKAGES = "site-packages", "dist-packages"
UNKNOWN = "?"  # a line that is not known
CONTROL_FLOW = "write serde.cond, serde.while_loop or serde.scan, or np.where"


class TraceError(SerdeError, TypeError):
    """Python code does something with a traced value that no graph can hold."""


@lru_cache(4096)
def is_of_user(path: str) -> bool:
    """Whether a file is neither of this front end, nor of NumPy, nor of Python."""
    if path.startswith(OWN):
        return False
    return not path.startswith(PYTHON) or is_installed(path)


@lru_cache(4096)
def is_installed(path: str) -> bool:
    """Whether a file is of an installed package."""
    return any(folder in path for folder in PACKAGES)


def pick_line(places: Iterable[tuple[str, int | None]]) -> str:
    """``file.py:12``: the first of places, from the innermost, that is the user's own.

    Of an installed package if there is no other.
    """
    place = None
    for path, line in places:
        if is_of_user(path):
            place = place or f"{os.path.basename(path)}:{line}"
            if not is_installed(path):
                return f"{os.path.basename(path)}:{line}"
    return place or UNKNOWN


def find_line() -> str:
    """The innermost line of the user's code that is running."""
    inside = pick_line(_walk_frames(inspect.unwrap(hooks.trace).__code__))
    return inside if inside != UNKNOWN else pick_line(_walk_frames(None))


def _walk_frames(last: Any) -> Iterator[tuple[str, int | None]]:
    """The places of the frames that run, from the innermost to before that of the code ``last``."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not last:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def line_of(error: BaseException) -> str:
    """The innermost line of the user's code that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    return pick_line((f.filename, f.lineno) for f in reversed(frames))


def refuse(what: str, reason: str, advice: str = "") -> NoReturn:
    """Raise a TraceError that names the function, the reason, and the user's line."""
    raise TraceError(f"{find_line()} ({what}): {reason}." + (f" {advice}." if advice else ""))


class Traced:
    """What NumPy calls with an array, a number or a complex array of the recorded run."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return hooks.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return hooks.apply_function(func, args, kwargs)


class Recorder:
    """One run of the user's code: its operators go to the innermost open builder.

    ``place`` is what is recorded for code that is serde's own, in place of a line of the user's.
    """

    def __init__(self, name: str, place: str = "") -> None:
        self.builders, self.place = [TraceBuilder(name)], place
        self.sources: dict[tuple[str, str], Source] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    @property
    def g(self) -> TraceBuilder:
        """The builder of the graph, or of the subgraph, that is recorded now."""
        return self.builders[-1]

    def operation(self, name: str) -> Operation:
        """Record what is emitted in the block as the operation ``name`` of the user's line."""
        return Operation(self, name)

    @contextlib.contextmanager
    def body(self, name: str) -> Iterator[TraceBuilder]:
        """Record a subgraph: a branch, or the body of a loop."""
        child: Any = self.builders[-1].child(name)
        self.builders.append(child)
        try:
            yield child
        finally:
            self.builders.pop()


class Operation:
    """The block of ``Recorder.operation``. One inside another belongs to the outer one."""

    __slots__ = ("_block", "_g", "_name", "_rec")

    def __init__(self, rec: Recorder, name: str) -> None:
        self._rec, self._name = rec, name
        self._block: Any = None

    def __enter__(self) -> TraceBuilder:
        rec = self._rec
        self._g = g = rec.builders[-1]
        if g.is_busy:
            return g
        key = self._name, rec.place or find_line()
        source = rec.sources.get(key)
        if source is None:
            source = rec.sources[key] = Source("python", *key)
        g.is_busy = True
        self._block = g.at(source)
        self._block.__enter__()
        return g

    def __exit__(self, *error: object) -> None:
        if self._block is not None:
            self._g.is_busy = False
            self._block.__exit__(*error)
