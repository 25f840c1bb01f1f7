"""Rules with the attributes of other rules: of what older releases, or integers, do otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from inspect import Signature, signature
from typing import Any

Function = Callable[..., Any]


def with_attributes_of(
    rule: Function, leave_out: Collection[str] = ()
) -> Callable[[Function], Function]:
    """Let a function with ``**attrs`` declare the attributes of ``rule``, and take all of them.

    Those that the function declares itself are its own; those to ``leave_out`` it does not have.
    """
    declared = {p.name: p for p in _parameters(rule) if p.kind is p.KEYWORD_ONLY}

    def decorate(function: Function) -> Function:
        parameters = {p.name: p for p in _parameters(function) if p.kind is not p.VAR_KEYWORD}
        operands = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
        attributes = [parameters.get(n, p) for n, p in declared.items() if n not in leave_out]
        attributes += [
            p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n not in declared
        ]
        shared = [p for p in attributes if p.name not in parameters]
        defaults = {p.name: p.default for p in shared if p.default is not p.empty}

        @wraps(function)
        def read(*operands: Any, **attrs: Any) -> Any:
            return function(*operands, **{**defaults, **attrs})

        read.__signature__ = Signature([*operands, *attributes])  # type: ignore[attr-defined]
        return read

    return decorate


def _parameters(function: Function) -> Any:
    return signature(function, eval_str=True).parameters.values()
