"""What is imported late, so that formats and consumers that are not used cost no time."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any


class Deferred:
    """A function, or another object, at ``module:name``, as entry points spell it."""

    def __init__(self, place: str) -> None:
        self.place = place

    @cached_property
    def value(self) -> Any:
        """What is at the place."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.value(*arguments, **options)
