"""Write what live MXNet's registry says of every forward operator.

    python -m tests.mxnet.make_registry

``tests/data/mxnet_registry.json`` holds per operator its other names, its operands, whether their
number is open, and its attributes with the type and default MXNet's documentation states;
``formats/mxnet/ops/aliases.py`` the other names alone, ``formats/mxnet/ops_without_attributes.py`` the operators
that take any attribute. ``test_signatures.py`` compares the files.
"""

from __future__ import annotations

import ctypes
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.mxnet_live import MXNET_VERSION, live_mxnet, registered_ops

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "data" / "mxnet_registry.json"
ALIASES = ROOT / "formats" / "mxnet" / "ops" / "aliases.py"
HEADER = '''"""Names under which MXNet registers an operator a second time.

Written by tests/mxnet/make_registry.py.
"""

from __future__ import annotations

ALIASES = {  # the name rules are registered under: its other names
'''
LENIENT = ROOT / "formats" / "mxnet" / "ops_without_attributes.py"
LENIENT_HEADER = '''"""Operators without parameters in MXNet's code: it loads them with any attribute, and ignores it.

MXNet refuses an attribute it does not know of every other operator.
Written by tests/mxnet/make_registry.py.
"""

from __future__ import annotations

LENIENT = frozenset(
    """
'''
OPERANDS = ("NDArray-or-Symbol", "NDArray", "Symbol", "Symbol or Symbol[]")
Strings = ctypes.POINTER(ctypes.c_char_p)


def is_forward(name: str) -> bool:
    """Whether an operator occurs in the graphs of models."""
    return "backward" not in name and name != "_grad_add"


def registry() -> dict[str, Any]:
    """The forward operators of live MXNet by the name they are registered under first."""
    found: dict[str, Any] = {}
    for name in filter(is_forward, registered_ops()):
        canonical, entry = describe(name)
        entry = found.setdefault(canonical, entry)
        if name != canonical:
            entry.setdefault("aliases", []).append(name)
    return dict(sorted(found.items()))


def describe(name: str) -> tuple[str, dict[str, Any]]:
    """The first name of an operator, and its operands and attributes."""
    base = live_mxnet().base
    handle, count = ctypes.c_void_p(), ctypes.c_uint()
    real, text, variadic, returned = (ctypes.c_char_p() for _ in range(4))
    names, types, notes = Strings(), Strings(), Strings()
    base.check_call(base._LIB.NNGetOpHandle(name.encode(), ctypes.byref(handle)))
    outputs = (real, text, count, names, types, notes, variadic, returned)
    info = base._LIB.MXSymbolGetAtomicSymbolInfo
    base.check_call(info(handle, *map(ctypes.byref, outputs)))
    listed = [(names[i].decode(), types[i].decode()) for i in range(count.value)]
    operands = [n for n, t in listed if t.removesuffix("[]") in OPERANDS or t in OPERANDS]
    entry: dict[str, Any] = {"operands": operands}
    if variadic.value or any(t.endswith("[]") for n, t in listed if n in operands):
        entry["variadic"] = True
    entry["attributes"] = {n: t for n, t in listed if n not in operands}
    return real.value.decode(), {k: v for k, v in entry.items() if v}


def takes_any_attribute(op: str) -> bool:
    """Whether live MXNet loads a symbol in which the operator has an attribute it does not know."""
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": op, "name": "op", "inputs": [[0, 0, 0]], "attrs": {"no_such_attribute": "1"}},
    ]
    version = {"mxnet_version": ["int", MXNET_VERSION]}
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": version})
    mx = live_mxnet()
    try:
        mx.sym.load_json(text)
    except mx.MXNetError:
        return False
    return True


def as_lenient(found: Mapping[str, Any]) -> str:
    """The module of the operators that take any attribute."""
    names = " ".join(filter(takes_any_attribute, found))
    lines = textwrap.wrap(names, 95, break_long_words=False, break_on_hyphens=False)
    return LENIENT_HEADER + "".join(f"    {line}\n" for line in lines) + '    """.split()\n)\n'


def as_json(found: Mapping[str, Any]) -> str:
    """The registry, one operator a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def as_aliases(found: Mapping[str, Any]) -> str:
    """The module of the other names, as ruff formats it."""
    lines = []
    for name, entry in found.items():
        names = " ".join(entry.get("aliases", ()))
        line = f'    "{name}": "{names}",\n'
        if len(line) > 101:
            first, *rest = textwrap.wrap(names, 80)
            parts = [f'        "{first}"', *(f'        " {part}"' for part in rest)]
            line = f'    "{name}": ' + "(\n" + "\n".join(parts) + "\n    ),\n"
        lines += [line] if names else []
    return HEADER + "".join(lines) + "}\n"


if __name__ == "__main__":
    FILE.write_text(as_json(registry()))
    ALIASES.write_text(as_aliases(registry()))
    LENIENT.write_text(as_lenient(registry()))
