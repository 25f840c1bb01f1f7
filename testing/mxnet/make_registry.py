"""Write what live MXNet's registry says of every forward operator.

    python -m testing.mxnet.make_registry [2]

With ``2`` the registry is that of MXNet 2.0, which runs in ``$SERDE_MXNET``, and the names are
those that differ from MXNet 1.9.1's: ``mxnet_registry_of_2.json`` and ``aliases_of_2.py``.

``tests/data/mxnet_registry.json`` holds per operator its other names, its operands, whether their
number is open, and its attributes with the type and default MXNet's documentation states;
``formats/mxnet/ops/aliases.py`` the other names alone, ``formats/mxnet/ops_without_attributes.py`` the operators
that take any attribute. ``test_signatures.py`` compares the files.
"""

from __future__ import annotations

import ctypes
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from serde.formats.mxnet.bind.op_names import FIRST_ALIASES as ALIASED
from testing.mxnet.releases_live import SECOND, worker
from testing.mxnet_live import MXNET_VERSION, live_mxnet, registered_ops

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "data" / "mxnet_registry.json"
ALIASES = ROOT / "formats" / "mxnet" / "ops" / "aliases.py"
HEADER = '''"""Names under which MXNet registers an operator a second time.

Written by testing/mxnet/make_registry.py.
"""

from __future__ import annotations

# Names that have a prefix in place of another one: both, and what follows them.
FAMILIES = {families}
# Operators whose name is there in title case as well: ``_Greater_Equal``.
TITLED = {titled}
# The same without underscores between the words: ``_GreaterEqualScalar``.
JOINED = {joined}
OTHERS = {{  # the name rules are registered under: its other names
{others}}}
'''
SECOND_FILE = FILE.with_name("mxnet_registry_of_2.json")
SECOND_ALIASES = ALIASES.with_name("aliases_of_2.py")
SECOND_HEADER = '''"""Names of MXNet 2.0's operators, where they are others than MXNet 1.9.1's.

Written by testing/mxnet/make_registry.py.
"""

from __future__ import annotations

# Names that MXNet 1.9.1 has for an operator that another of 2.0 is not.
SECOND_OWN = {own}
# Names that have a prefix in place of another one: both, and what follows them.
SECOND_FAMILIES = {families}
SECOND_OTHERS = {{  # the name rules are registered under: its other names
{others}}}
'''
PREFIXES = ("_sparse_", "_npx_", "_npi_", "")  # of other names
OWN_PREFIXES = ("", "_contrib_", "_")  # of those that rules are registered under
LENIENT = ROOT / "formats" / "mxnet" / "ops_without_attributes.py"
LENIENT_HEADER = '''"""Operators without parameters in MXNet's code: it loads them with any attribute, and ignores it.

MXNet refuses an attribute it does not know of every other operator.
Written by testing/mxnet/make_registry.py.
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
    entries: dict[str, Any] = {}
    for name in filter(is_forward, registered_ops()):
        canonical, entry = describe(name)
        entry = entries.setdefault(canonical, entry)
        if name != canonical:
            entry.setdefault("aliases", []).append(name)
    return dict(sorted(entries.items()))


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


def as_lenient(entries: Mapping[str, Any]) -> str:
    """The module of the operators that take any attribute."""
    names = " ".join(filter(takes_any_attribute, entries))
    lines = textwrap.wrap(names, 95, break_long_words=False, break_on_hyphens=False)
    return LENIENT_HEADER + "".join(f"    {line}\n" for line in lines) + '    """.split()\n)\n'


def as_json(entries: Mapping[str, Any]) -> str:
    """The registry, one operator a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def as_words(words: Sequence[str], indent: int = 0) -> str:
    """Words as a text of several lines, as ruff formats it."""
    lines = textwrap.wrap(" ".join(words), 93 - indent, break_on_hyphens=False)
    if len(lines) == 1 and len(lines[0]) < 70:
        return f'"{lines[0]}"'
    space = " " * (indent + 4)
    parts = [f'{space}"{line} "\n' for line in lines[:-1]] + [f'{space}"{lines[-1]}"\n']
    return "(\n" + "".join(parts) + " " * indent + ")"


def as_families(aliases: dict[str, str]) -> str:
    """The aliases that differ in their prefix, which are taken out of the others."""
    families: dict[tuple[str, str], list[str]] = {}
    for other, own in product(PREFIXES, OWN_PREFIXES):
        stems = [a.removeprefix(other) for a, name in aliases.items()
                 if a.startswith(other) and name == own + a.removeprefix(other) != a]  # fmt: skip
        if len(stems) > 2:
            families[other, own] = sorted(stems)
            for stem in stems:
                del aliases[other + stem]
    rows = (f'    ("{o}", "{n}"): {as_words(stems, 4)},\n' for (o, n), stems in families.items())
    return "{\n" + "".join(rows) + "}"


def as_others(aliases: Mapping[str, str]) -> str:
    """The aliases that follow no rule, by the name they stand for."""
    names: dict[str, list[str]] = {}
    for alias, name in sorted(aliases.items()):
        names.setdefault(name, []).append(alias)
    rows = (f'    "{name}": {as_words(names[name], 4)},\n' for name in sorted(names))
    return "".join(rows)


def as_aliases(entries: Mapping[str, Any]) -> str:
    """The module of the other names, as ruff formats it."""
    aliases = {a: name for name, entry in entries.items() for a in entry.get("aliases", ())}
    titled = [name for a, name in aliases.items() if a == name.title()]
    joined = [name for a, name in aliases.items()
              if a == f"_{name.title().replace('_', '')}" != name.title()]  # fmt: skip
    families = as_families(aliases)
    for name in titled:
        del aliases[name.title()]
    for name in joined:
        del aliases[f"_{name.title().replace('_', '')}"]
    return HEADER.format(
        families=families, titled=as_words(sorted(titled)), joined=as_words(sorted(joined)),
        others=as_others(aliases),
    )  # fmt: skip


def second_registry() -> dict[str, Any]:
    """The forward operators of MXNet 2.0."""
    entries: dict[str, Any] = worker(SECOND).ask("registry")
    return dict(sorted(entries.items()))


def as_second_aliases(entries: Mapping[str, Any]) -> str:
    """The module of the names that differ in MXNet 2.0."""
    own = sorted(n for n in entries if ALIASED.get(n, n) != n)
    names = {n: n if n in own else ALIASED.get(n, n) for n in entries}
    other = {
        alias: names[name]
        for name, entry in sorted(entries.items())
        for alias in entry.get("aliases", ())
        if ALIASED.get(alias, alias) != names[name]
    }
    families = as_families(other)
    return SECOND_HEADER.format(own=json.dumps(own), families=families, others=as_others(other))


def main(arguments: list[str]) -> None:
    """Write the files of the newest release, or those of MXNet 2.0."""
    if arguments == ["2"]:
        SECOND_FILE.write_text(as_json(second_registry()))
        SECOND_ALIASES.write_text(as_second_aliases(second_registry()))
        return
    FILE.write_text(as_json(registry()))
    ALIASES.write_text(as_aliases(registry()))
    LENIENT.write_text(as_lenient(registry()))


if __name__ == "__main__":
    main(sys.argv[1:])
