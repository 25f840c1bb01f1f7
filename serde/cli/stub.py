"""The public names for type checkers and editors, ``serde/__init__.pyi``, made of the code.

``python -m serde.cli.stub serde/__init__.pyi`` makes it again. Functions show their options; those
of formats that plug-ins bring are any others.
"""

from __future__ import annotations

import builtins
import collections.abc
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import Parameter, ismodule
from pathlib import Path
from typing import Any

import serde
from serde.plugins.keywords import OptionSignature

PUBLIC: Mapping[str, str] = vars(serde)["_PUBLIC"]
HEADER = '"""The public names, for type checkers; made by ``python -m serde.cli.stub``."""\n\n'
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def make_stub() -> str:
    """The text of the file."""
    modules: dict[str, str] = {}  # of the names that annotations use
    public, functions = {}, []
    for name, module in sorted(PUBLIC.items()):
        function = getattr(import_module(module), name)
        shown = getattr(function, "__signature__", None)
        if not isinstance(shown, OptionSignature) or not shown.takes_options:
            public[name] = module
            continue
        functions.append(show_function(name, shown))
        kinds = [*(p.annotation for p in shown.parameters.values()), shown.return_annotation]
        for used in WORD.findall(" ".join(kinds)):
            if used not in public and not hasattr(builtins, used):
                modules.setdefault(used, find_home(used, vars(import_module(function.__module__))))
    others = {n: m for n, m in modules.items() if n not in PUBLIC}
    imports = "\n".join(show_imports(others, public))
    return f"{HEADER}{imports}\n\n__version__: str\n\n" + "".join(functions)


def find_home(name: str, scope: Mapping[str, Any]) -> str:
    """The module that a name in an annotation is of; none for a module itself."""
    thing = scope.get(name)
    if ismodule(thing):
        return ""
    for module in (collections.abc, typing):
        if hasattr(module, name):
            return module.__name__
    return str(getattr(thing, "__module__", "")) if isinstance(thing, type) else scope["__name__"]


def show_imports(others: Mapping[str, str], public: Mapping[str, str]) -> Iterator[str]:
    """The lines that import names."""
    yield from (f"import {name}" for name, module in sorted(others.items()) if not module)
    for of_serde in (False, True):
        by_module = {m: sorted(n for n in others if others[n] == m) for m in others.values() if m}
        lines = [(m, f"from {m} import {', '.join(names)}") for m, names in by_module.items()]
        lines += [(module, f"from {module} import {n} as {n}") for n, module in public.items()]
        chosen = sorted(line for line in lines if line[0].startswith("serde.") == of_serde)
        yield from (line for _, line in chosen)
        yield from () if of_serde else ("",)


def show_function(name: str, shown: OptionSignature) -> str:
    """A function with its options as keywords."""
    lines, is_keyword = [f"def {name}("], False
    for parameter in shown.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            lines.append("    *,")
            is_keyword = True
        lines.append(f"    {parameter.name}: {parameter.annotation}{show_default(parameter)},")
    return "\n".join([*lines, "    **options: Any,", f") -> {shown.return_annotation}: ...\n"])


def show_default(parameter: Parameter) -> str:
    """The default of a parameter, in words of Python where it has some."""
    if parameter.default is parameter.empty:
        return ""
    if isinstance(parameter.default, str):
        return f' = "{parameter.default}"'
    is_plain = isinstance(parameter.default, (bool, int, float, type(None)))
    return f" = {parameter.default!r}" if is_plain else " = ..."


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(make_stub(), encoding="utf-8")
