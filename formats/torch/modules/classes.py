"""Classes of modules: those that differ in numbers only are one class with arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..source import names as naming

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
Replace = Callable[[Any, str], "ast.expr | None"]


@dataclass
class Form:
    """The source of a class, before its name is known; ``constructor`` makes one of it."""

    name: str
    init: list[ast.stmt]
    inputs: list[str]
    body: list[ast.stmt] | None
    constructor: ast.Call | None = None
    is_model: bool = False  # whose name is its own


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
        groups: dict[str, list[Form]] = {}
        for form in forms:
            complete = [_complete(s) for s in form.init]
            form.init = complete
            sketch = _sketch(form) if len(forms) > 1 else ""
            groups.setdefault(sketch, []).append(form)
        for group in groups.values():
            if not self.define_with_arguments(group):
                exact: dict[str, list[Form]] = {}
                for form in group:
                    exact.setdefault(_dump(form), []).append(form)
                for same in exact.values():
                    self.define_with_arguments(same)

    def define_with_arguments(self, group: list[Form]) -> bool:
        """One class for modules that differ in numbers; False where in too many."""
        first = group[0]
        is_one = len(group) == 1  # which has no other numbers
        columns = [] if is_one else list(zip(*map(_list_numbers, group), strict=True))
        arguments = naming.Scope(("self", *first.inputs))
        named: dict[str, str] = {}  # arguments by their values in all modules
        values: dict[str, list[Any]] = {}
        for column in columns:
            numbers = [value for value, _ in column]
            key = repr(numbers)
            if any(repr(n) != repr(numbers[0]) for n in numbers) and key not in named:
                named[key] = arguments.claim(column[0][1])
                values[named[key]] = numbers
        if len(named) > MOST_ARGUMENTS:
            return False
        at = iter(columns)
        read: dict[str, None] = {}  # arguments that forward reads

        def fill(is_body: bool) -> Replace:
            def replace_number(value: Any, name: str) -> ast.expr | None:
                argument = named.get(repr([v for v, _ in next(at)]))
                if argument is None:
                    return None
                if is_body:
                    read[argument] = None
                    return ast.Attribute(ast.Name("self"), argument)
                return ast.Name(argument)

            return replace_number

        init, body = first.init, first.body
        if not is_one:
            init = [_map(s, fill(False)) for s in init]
            body = None if body is None else [_map(s, fill(True)) for s in body]
        init = [_shorten(s) for s in init]
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


def _kind(call: ast.Call) -> str:
    """The kind of a module that a call constructs: ``Conv`` for ``nn.Conv2d``."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="nn"), attr=name):
            return name.rstrip("123d").replace("Transpose", "")
    return ""


def _complete(tree: Any) -> Any:
    """A statement whose constructors have all arguments that may differ."""

    def complete(call: ast.Call) -> ast.Call:
        defaults = DEFAULTS.get(_kind(call), {})
        known = {k.arg: k.value for k in call.keywords}
        filled = {n: known.pop(n, ast.Constant(v)) for n, v in defaults.items()}
        return ast.Call(
            call.func, call.args, [ast.keyword(n, v) for n, v in (filled | known).items()]
        )

    return _map(tree, lambda value, name: None, complete)


def _shorten(tree: Any) -> Any:
    """A statement whose constructors have no arguments that are the defaults."""

    def shorten(call: ast.Call) -> ast.Call:
        is_own = isinstance(call.func, ast.Name)
        defaults = ANY_DEFAULT if is_own else DEFAULTS.get(_kind(call), {})
        args = [k.value for k in call.keywords if is_own and k.arg not in defaults]
        kept = [k for k in call.keywords if (k.arg in defaults or not is_own) and not (
            k.arg in defaults and isinstance(k.value, ast.Constant)
            and repr(k.value.value) == repr(defaults[k.arg or ""]))]  # fmt: skip
        return ast.Call(call.func, [*call.args, *args], kept)

    return _map(tree, lambda value, name: None, shorten)


def _map(
    tree: Any, replace: Replace, change: Callable[[ast.Call], ast.Call] = lambda call: call,
    name: str = "size",
) -> Any:  # fmt: skip
    """A copy of a tree in which ``replace`` has had each number, and ``change`` each call."""
    if isinstance(tree, ast.expr) and (number := _read_number(tree)) is not None:
        return replace(number[0], name) or tree
    if isinstance(tree, ast.Call):
        places = PLACES.get(_kind(tree), ())
        names = [*places, *["size"] * len(tree.args)]
        args = [_map(a, replace, change, n) for a, n in zip(tree.args, names, strict=False)]
        keywords = [ast.keyword(k.arg, _map(k.value, replace, change, k.arg or "size"))
                    for k in tree.keywords]  # fmt: skip
        return change(ast.Call(_map(tree.func, replace, change), args, keywords))
    if isinstance(tree, list):
        return [_map(item, replace, change, name) for item in tree]
    if isinstance(tree, ast.AST):
        fields = {n: _map(v, replace, change, name) for n, v in ast.iter_fields(tree)}
        return type(tree)(**fields)
    return tree


def _read_number(tree: ast.expr) -> tuple[Any] | None:
    """The number that a tree is."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (bool, int, float)):
        return (tree.value,)
    return None


def _statements(form: Form) -> Iterator[ast.stmt]:
    yield from form.init
    yield from form.body or ()


def _list_numbers(form: Form) -> list[tuple[Any, str]]:
    """The numbers of a form in their order, each with what it may be called."""
    numbers: list[tuple[Any, str]] = []

    def note(value: Any, name: str) -> None:
        numbers.append((value, name))

    for statement in _statements(form):
        _map(statement, note)
    return numbers


def _sketch(form: Form) -> str:
    """A form without its numbers: forms that have the same may be one class."""
    parts = [ast.dump(_map(s, lambda value, name: ast.Name("_"))) for s in _statements(form)]
    return "\n".join((form.name, *form.inputs, str(len(form.init)), str(form.body is None), *parts))


def _dump(form: Form) -> str:
    return "\n".join(map(ast.dump, _statements(form)))
