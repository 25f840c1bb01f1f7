"""Keywords of functions, made of declared options: their signatures, and what is told of them.

A message names an option as the command spells it, ``--input``. Who calls a function reads the name
of the argument instead, ``inputs=``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, get_annotations, signature
from types import MappingProxyType
from typing import Any, TypeVar, cast

from serde.errors import SerdeError, UnknownArgument, flags_are_known, suggest
from serde.ir.graph import Graph
from serde.plugins import read_classes, write_classes
from serde.plugins.options import MigrateOptions, PartitionOptions, VerifyOptions, merge_options

FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])=?")
# What the command spells in one way, and functions in several.
ARGUMENTS = {"--from": ("from_format", "format"), "--to": ("to_format", "to", "format"),
             "--verify-strict": ("verify",)}  # fmt: skip
Classes = Callable[[], Iterable[type]]  # those that declare the options of a function
Function = TypeVar("Function", bound=Callable[..., Any])


class OptionSignature(Signature):
    """The signature of a function and its options, which are listed when they are asked for.

    The formats, which declare options too, are loaded only then.
    """

    classes: Classes

    @property
    def takes_options(self) -> bool:
        """Whether there are options beside the parameters."""
        return self.classes is not tuple

    @property
    def parameters(self) -> MappingProxyType[str, Parameter]:
        """The parameters by name, those of options last."""
        own = {n: p for n, p in super().parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
        return MappingProxyType(own | {
            n: p for n, p in list_keywords(self.classes()).items() if n not in own
        })  # fmt: skip


def list_keywords(classes: Iterable[type]) -> dict[str, Parameter]:
    """A parameter for each option that classes declare."""
    bases = [base for each in classes for base in reversed(each.__mro__)]
    types = {name: kind for base in bases for name, kind in get_annotations(base).items()}
    return {
        n: Parameter(n, Parameter.KEYWORD_ONLY, default=option.default, annotation=types[n])
        for n, option in merge_options(bases).items()
    }


def with_options(classes: Classes = tuple) -> Callable[[Function], Function]:
    """Give a function the options that classes declare, beside its parameters, as keywords.

    Its signature shows them; others are refused, and messages name arguments.
    """

    def decorate(function: Function) -> Function:
        plain = signature(function)
        parameters = [*plain.parameters.values()]
        takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
        shown = OptionSignature(parameters, return_annotation=plain.return_annotation)
        shown.classes = classes

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if takes_any:
                check_keywords(function.__name__, keywords, shown.parameters)
            if flags_are_known.get():
                return function(*arguments, **keywords)
            try:
                return respell(function(*arguments, **keywords), shown.parameters)
            except SerdeError as error:
                respell(error, shown.parameters)
                raise

        cast(Any, call).__signature__ = shown
        return cast(Function, call)

    return decorate


def check_keywords(function: str, keywords: Iterable[str], known: Mapping[str, Parameter]) -> None:
    """Refuse keywords that a function does not have.

    Raises:
        UnknownArgument: naming the one that may be meant.
    """
    unknown = [n for n in keywords if n not in known]
    if unknown:
        flags = {f[2:].replace("-", "_"): n for f, n in list_flags(known).items() if n in known}
        words = {**flags, **{n: n for n in known}}
        hint = suggest(unknown[0], words) or f"; it takes {', '.join(known)}"
        for stage, classes in (("load", read_classes), ("save", write_classes)):
            if unknown[0] in merge_options(classes()):
                hint = f"; it is one of {stage}() and convert()"
        raise UnknownArgument(f"{function}() has no argument {unknown[0]!r}{hint}")


def list_classes() -> list[type]:
    """The classes of all options."""
    return [*read_classes(), *write_classes(), VerifyOptions, PartitionOptions, MigrateOptions]


def list_flags(known: Iterable[str] = ()) -> dict[str, str]:
    """The arguments by the flags of the command, those of a function where it has its own."""
    names = {flag: o.name for o in merge_options(list_classes()).values() for flag in o.all_flags}
    for flag, arguments in ARGUMENTS.items():
        names[flag] = next((n for n in arguments if n in known), arguments[0])
    return names


def respell(thing: Any, known: Iterable[str] = ()) -> Any:
    """What a function returns or raises, whose messages name the arguments of Python."""

    def change(text: str) -> str:
        if "--" not in text:
            return text
        names = list_flags(known)
        return FLAG.sub(lambda m: f"{names[m[1]]}=" if m[1] in names else m[0], text)

    if isinstance(thing, Graph):
        notes = tuple(map(change, thing.notes))
        return thing if notes == thing.notes else replace(thing, notes=notes)
    if hasattr(thing, "respell"):
        thing.respell(change)
    return thing
