"""Keywords of functions, made of declared options: their signatures, and what is told of them.

A message names an option as the command spells it, ``--input``. Who calls a function reads the name
of the argument instead, ``inputs=``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, get_annotations, signature
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from serde.errors import SerdeError, UnknownArgument, UsageError, flags_are_known, suggest
from serde.ir.graph import Graph
from serde.plugins import read_classes, write_classes
from serde.plugins.command_options import (
    ImageOptions,
    MigrateOptions,
    PartitionOptions,
    ToleranceOptions,
    VerifyOptions,
)
from serde.plugins.options import Option, merge_options

# A flag, and the word behind it without the punctuation of the sentence.
FLAG = re.compile(
    r"(?<![\w-])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])(?:([ =])([^\s()]*[^\s().,;:?!])?)?"
)
REPEATED = re.compile(r"\b(\w+)=\{([^{}]*)\} \1=\{")  # an option that is given twice
# What the command spells in one way, and functions in several.
ARGUMENTS = {"--from": ("from_format", "format"), "--to": ("to_format", "to", "format"),
             "--verify-strict": ("verify",), "--other-input": ("other_inputs",),
             "--other-params": ("other_params",), "--other-from": ("other_format",)}  # fmt: skip
MOST_NAMED = 12  # arguments in a message
A_PATH = (str, os.PathLike), "the path of a file"
# What parameters of these annotations are given, and what a message calls it.
ARGUMENT_TYPES: dict[Any, tuple[Any, str]] = {
    "Graph": (Graph, "a Graph, as serde.load(path) returns it,"),
    "Path_": A_PATH,
    "str | os.PathLike[str]": A_PATH,
}
Classes = Callable[[], Iterable[type]]  # those that declare the options of a function
Keep = Callable[[Option], bool]  # which of them it has
Function = TypeVar("Function", bound=Callable[..., Any])


class OptionSignature(Signature):
    """The signature of a function and its options, which are listed when they are asked for.

    The formats, which declare options too, are loaded only then.
    """

    classes: Classes = tuple
    keep: Keep = staticmethod(lambda option: True)

    def replace(self, **changes: Any) -> Signature:  # type: ignore[override]
        """A plain signature of the same parameters, options too, with changes."""
        parameters = [*self.parameters.values()]
        plain = Signature(parameters, return_annotation=self.return_annotation)
        return plain.replace(**changes)

    @property
    def takes_options(self) -> bool:
        """Whether there are options beside the parameters."""
        return self.classes is not tuple

    @property
    def parameters(self) -> MappingProxyType[str, Parameter]:
        """The parameters by name, those of options last."""
        named = {n: p for n, p in super().parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
        return MappingProxyType(named | {
            n: p for n, p in list_keywords(self.classes(), self.keep).items() if n not in named
        })  # fmt: skip


def list_keywords(
    classes: Iterable[type], keep: Keep = lambda option: True
) -> dict[str, Parameter]:
    """A parameter for each option that classes declare, of those to ``keep``."""
    bases = [base for each in classes for base in reversed(each.__mro__)]
    types = {name: kind for base in bases for name, kind in get_annotations(base).items()}
    return {
        n: Parameter(n, Parameter.KEYWORD_ONLY, default=option.default, annotation=types[n])
        for n, option in merge_options(bases).items()
        if keep(option)
    }


def with_options(
    classes: Classes = tuple, keep: Keep = lambda option: True
) -> Callable[[Function], Function]:
    """Give a function the options that classes declare, beside its parameters, as keywords.

    It gets those to ``keep``. Its signature shows them; others are refused, and messages name
    arguments.
    """

    def decorate(function: Function) -> Function:
        plain = signature(function)
        parameters = [*plain.parameters.values()]
        checked = {p.name: p.annotation for p in parameters if p.annotation in ARGUMENT_TYPES}
        names = [p.name for p in parameters]
        declared = {p.name for p in parameters if p.kind is not Parameter.VAR_KEYWORD}
        shown = OptionSignature(parameters, return_annotation=plain.return_annotation)
        shown.classes, shown.keep = classes, keep

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if not declared >= keywords.keys():
                check_keywords(function.__name__, keywords, shown.parameters)
            if any(isinstance(value, np.generic) for value in keywords.values()):
                keywords = {n: _to_python(v, shown.parameters[n]) for n, v in keywords.items()}
            for name, value in (*zip(names, arguments, strict=False), *keywords.items()):
                if name in checked:
                    _check_argument(function.__name__, name, value, checked[name])
            if flags_are_known.get():
                return function(*arguments, **keywords)
            try:
                return respell(function(*arguments, **keywords), declared)
            except SerdeError as error:
                respell(error, declared)
                raise

        cast(Any, call).__signature__ = shown
        return cast(Function, call)

    return decorate


def _to_python(value: Any, parameter: Parameter) -> Any:
    """A scalar of NumPy as Python's own, but for a parameter that takes arrays."""
    is_plain = isinstance(value, np.generic) and parameter.annotation != "Any"
    return value.item() if is_plain else value


def _check_argument(function: str, name: str, value: Any, annotation: str) -> None:
    """Refuse what is no graph, or no path, where a parameter is declared as one.

    Raises:
        UsageError: telling what it takes.
    """
    kinds, what = ARGUMENT_TYPES[annotation]
    if not isinstance(value, kinds):
        shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
        raise UsageError(f"{function}() takes {what} as {name}, and not {shown}")


def check_keywords(function: str, keywords: Iterable[str], known: Mapping[str, Parameter]) -> None:
    """Refuse keywords that a function does not have.

    Raises:
        UnknownArgument: naming the one that may be meant.
    """
    unknown = [n for n in keywords if n not in known]
    if unknown:
        flags = {f[2:].replace("-", "_"): n for f, n in list_flags(known).items() if n in known}
        words = {**flags, **{n: n for n in known}}
        few = [*known][:MOST_NAMED]
        more = " and the options of docs/reference/cli.md" if len(known) > MOST_NAMED else ""
        hint = suggest(unknown[0], words) or f"; it takes {', '.join(few)}{more}"
        for stage, classes in (("load", read_classes), ("save", write_classes)):
            if unknown[0] in merge_options(classes()):
                hint = f"; it is one of {stage}() and convert()"
        raise UnknownArgument(f"{function}() has no argument {unknown[0]!r}{hint}")


def list_classes() -> list[type]:
    """The classes of all options."""
    every = VerifyOptions, ToleranceOptions, ImageOptions, PartitionOptions, MigrateOptions
    return [*read_classes(), *write_classes(), *every]


def list_flags(known: Iterable[str] = ()) -> dict[str, str]:
    """The arguments by the flags of the command, those of a function where it has its own."""
    names = {flag: o.name for flag, o in _options_by_flag().items()}
    for flag, arguments in ARGUMENTS.items():
        names[flag] = next((n for n in arguments if n in known), arguments[0])
    return names


def _options_by_flag() -> dict[str, Option]:
    return {flag: o for o in merge_options(list_classes()).values() for flag in o.all_flags}


def respell(thing: Any, known: Iterable[str] = ()) -> Any:
    """What a function returns or raises, whose messages name the arguments of Python."""

    def change(text: str) -> str:
        if "--" not in text:
            return text
        names, options = list_flags(known), _options_by_flag()
        text, count = FLAG.sub(lambda m: _respell_flag(m, names, options), text), 1
        while count:
            text, count = REPEATED.subn(r"\1={\2, ", text)
        return text

    if isinstance(thing, Graph):
        notes = tuple(map(change, thing.notes))
        return thing if notes == thing.notes else replace(thing, notes=notes)
    if hasattr(thing, "respell"):
        thing.respell(change)
    return thing


def _respell_flag(
    match: re.Match[str], names: Mapping[str, str], options: Mapping[str, Option]
) -> str:
    """A flag as an argument, with the value behind it where that is one."""
    flag, space, word = match.groups()
    if flag not in names:
        return match[0]
    option = options.get(flag)
    value = None if option is None or space != " " else _show_value(option, word)
    if value is not None:
        return f"{names[flag]}={value}"
    return f"{names[flag]}={'' if space == '=' else space or ''}{word or ''}"


def _show_value(option: Option, word: str) -> str | None:
    """What the command takes as a value, as Python writes it; None for other words."""
    name, equals, text = word.partition("=")
    if option.kind == "integer" and word.isdigit():
        return word
    if word in option.list_choices():
        return repr(word)
    if not equals or option.kind not in ("types", "sizes", "batch"):
        return None
    parts = [p if p.isdigit() else repr(p) for p in re.split("[,:]", text)]
    parts = ["None" if option.kind == "batch" and p == "'none'" else p for p in parts]
    is_tuple = option.kind == "types" or len(parts) > 1
    shown = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if is_tuple else parts[0]
    return f"{{{name!r}: {shown}}}"
