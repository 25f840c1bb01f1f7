"""Classes of modules: those that differ in numbers only are one class with arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..source import names as naming
from ..source.trees import literal, spell_name

MOST_ARGUMENTS = 8  # of a class
# What the arguments of constructors are called, and the values of those that are left out.
PLACES = {
    "Conv": ("in_channels", "out_channels", "kernel_size"), "BatchNorm": ("channels",),
    "Linear": ("in_features", "out_features"), "GroupNorm": ("groups", "channels"),
    "LayerNorm": ("size",), "Embedding": ("rows", "size"), "PReLU": ("channels",),
    "LSTM": ("input_size", "hidden_size"), "Dropout": ("rate",),
    "GRU": ("input_size", "hidden_size"), "RNN": ("input_size", "hidden_size"),
    "MaxPool": ("kernel_size",), "AvgPool": ("kernel_size",),
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "Conv": {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": True},
    "Linear": {"bias": True}, "BatchNorm": {"eps": 1e-5, "momentum": 0.1},
    "LayerNorm": {"eps": 1e-5, "bias": True},
}  # fmt: skip
ANY_DEFAULT = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": True}


@dataclass
class Form:
    """The source of a class, before its name is known; ``constructor`` makes one of it.

    ``numbers`` are those in it in their order, each with what it may be called. What is the default
    has been left out of one that ``is_short``.
    """

    name: str
    init: list[ast.stmt]
    inputs: list[str]
    body: list[ast.stmt] | None
    constructor: ast.Call | None = None
    is_model: bool = False  # whose name is its own
    is_short: bool = False
    numbers: list[tuple[ast.Constant, str]] = field(default_factory=list)

    def list_values(self) -> str:
        """The values of its numbers: those of one class without arguments have the same."""
        return repr([constant.value for constant, _ in self.numbers])


@dataclass
class Definition:
    """A class as it is written."""

    name: str
    arguments: list[tuple[str, Any]]  # with the values of those that may be left out, or None
    init: list[ast.stmt]
    inputs: list[str]
    body: list[ast.stmt] | None


@dataclass
class Classes:
    """The classes of a model, those that others are made of first."""

    scope: naming.Scope
    definitions: list[Definition] = field(default_factory=list)

    def define(self, forms: Sequence[Form]) -> None:
        """Define the classes of modules that are not made of each other."""
        groups: dict[Any, list[Form]] = {}
        for form in forms:
            groups.setdefault(_sketch(form) if len(forms) > 1 else None, []).append(form)
        for group in groups.values():
            if not self.define_with_arguments(group):
                exact: dict[str, list[Form]] = {}
                for form in group:
                    exact.setdefault(form.list_values(), []).append(form)
                for same in exact.values():
                    self.define_with_arguments(same)

    def define_with_arguments(self, group: list[Form]) -> bool:
        """One class for modules that differ in numbers; False where in too many."""
        first = group[0]
        scope = naming.Scope(("self", *first.inputs))
        named: dict[tuple[str, ...], str] = {}  # arguments by their values in all modules
        values: dict[str, list[Any]] = {}
        arguments: dict[Any, str] = {}  # in place of numbers of the first module
        for column in zip(*(form.numbers for form in group), strict=True):
            numbers = [constant.value for constant, _ in column]
            key = tuple(map(repr, numbers))
            if len(set(key)) == 1:
                continue
            if key not in named:
                named[key] = scope.claim(column[0][1])
                values[named[key]] = numbers
            arguments[column[0][0]] = named[key]
        if len(named) > MOST_ARGUMENTS:
            return False
        read: dict[str, None] = {}  # arguments that forward reads

        def read_argument(name: str) -> ast.expr:
            read[name] = None
            return ast.Attribute(ast.Name("self"), name)

        init, body = first.init, first.body
        if not first.is_short:
            init = [_fill(s, arguments, ast.Name, shorten) for s in init]
        if body is not None and arguments:
            body = [_fill(s, arguments, read_argument) for s in body]
        kept: list[ast.stmt] = [
            ast.Assign([ast.Attribute(ast.Name("self"), n)], ast.Name(n)) for n in read
        ]
        name = first.name if first.is_model else self.scope.claim(first.name)
        needed = [n for n in values if n not in ANY_DEFAULT]
        optional = [n for n in values if n in ANY_DEFAULT]
        listed = [(n, None) for n in needed] + [(n, ANY_DEFAULT[n]) for n in optional]
        self.definitions.append(Definition(name, listed, kept + init, first.inputs, body))
        for place, form in enumerate(group):
            keywords = [
                ast.keyword(n, ast.Constant(values[n][place])) for n in (*needed, *optional)
            ]
            form.constructor = ast.Call(ast.Name(name), [], keywords)
        return True


def construct(
    op: str, args: Sequence[Any], options: Mapping[str, Any], is_short: bool
) -> ast.Call:  # fmt: skip
    """The call that makes a module, with all arguments in which modules of a class may differ.

    One that ``is_short`` is without what is the default.
    """
    defaults = DEFAULTS.get(_kind(op), {})
    complete = {**defaults, **options}
    if is_short:
        complete = {name: value for name, value in complete.items()
                    if name not in defaults or repr(value) != repr(defaults[name])}  # fmt: skip
    keywords = [ast.keyword(name, literal(value)) for name, value in complete.items()]
    return ast.Call(spell_name(op), [literal(a) for a in args], keywords)


@lru_cache(256)
def _kind(name: str) -> str:
    """The kind of module that a class is: ``Conv`` for ``nn.Conv2d``."""
    return name.removeprefix("nn.").rstrip("123d").replace("Transpose", "")


def _kind_of(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name(id="nn"), attr=name):
            return _kind(name)
    return ""


def shorten(call: ast.Call, arguments: Mapping[Any, str]) -> ast.Call:
    """A call that makes a module, without what is the default and not one of ``arguments``."""
    is_own = isinstance(call.func, ast.Name)
    defaults = ANY_DEFAULT if is_own else DEFAULTS.get(_kind_of(call), {})
    args = [k.value for k in call.keywords if is_own and k.arg not in defaults]
    kept = [k for k in call.keywords if (k.arg in defaults or not is_own) and not (
        k.arg in defaults and isinstance(k.value, ast.Constant) and k.value not in arguments
        and repr(k.value.value) == repr(defaults[k.arg or ""]))]  # fmt: skip
    return ast.Call(call.func, [*call.args, *args], kept)


def _fill(
    tree: Any, arguments: Mapping[Any, str], read: Callable[[str], ast.expr],
    change: Callable[[ast.Call, Mapping[Any, str]], ast.Call] = lambda call, _: call,
) -> Any:  # fmt: skip
    """A copy of a tree that reads ``arguments`` instead of numbers, and has changed calls."""
    if isinstance(tree, ast.Constant):
        return read(arguments[tree]) if tree in arguments else tree
    if isinstance(tree, ast.Name) or _is_dotted(tree):
        return tree
    if isinstance(tree, list):
        return [_fill(item, arguments, read, change) for item in tree]
    if isinstance(tree, ast.Call):
        tree = change(tree, arguments)
    fields = {n: _fill(v, arguments, read, change) if isinstance(v, (ast.AST, list)) else v
              for n, v in vars(tree).items()}  # fmt: skip
    return type(tree)(**fields)


def _is_dotted(tree: Any) -> bool:
    """Whether a tree is a name with one dot in it, such as that of a class or a member."""
    return isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name)


def _sketch(form: Form) -> Any:
    """A form without its numbers, which are listed: those that have the same may be one class."""
    init, body = (_list_numbers(part, form.numbers, "size") for part in (form.init, form.body))
    return form.name, tuple(form.inputs), init, body


def _list_numbers(tree: Any, numbers: list[tuple[ast.Constant, str]], name: str) -> Any:
    """A tree without its numbers, as tuples; numbers are called ``name`` or as arguments are."""
    if isinstance(tree, list):
        return tuple([_list_numbers(item, numbers, name) for item in tree])
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (bool, int, float)):
        numbers.append((tree, name))
        return None
    if isinstance(tree, ast.Call):
        places = PLACES.get(_kind_of(tree), ())
        names = [*places, *["size"] * len(tree.args)]
        return (
            _list_numbers(tree.func, numbers, name),
            *[_list_numbers(a, numbers, n) for a, n in zip(tree.args, names, strict=False)],
            *[(k.arg, _list_numbers(k.value, numbers, k.arg or "size")) for k in tree.keywords],
        )
    if isinstance(tree, ast.AST):
        return type(tree), *[_list_numbers(v, numbers, name) for v in vars(tree).values()]
    return tree
