"""What the signals that end a command wait for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
# Whoever sends a signal again while files are removed would leave them.
FINISHED_FIRST: set[CodeType] = {vars(weakref.finalize)["_exitfunc"].__func__.__code__}


def finish_first(function: Function) -> Function:
    """Let signals that end a command wait until the function is done, which takes moments."""
    FINISHED_FIRST.add(function.__code__)
    return function
