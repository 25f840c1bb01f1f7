"""Write what each release of MXNet from 1.5 on brought to the registry.

    python -m tests.mxnet.make_releases FOLDER …

Each folder is where a release is installed (``pip install --no-deps --target FOLDER mxnet==1.6.0``);
the newest is the one that imports anyway. ``formats/mxnet/release_data.py`` holds the operators,
attributes and values of attributes a release has and the one before it has not.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = ROOT / "formats" / "mxnet" / "release_data.py"
HEADER = '''"""What releases of MXNet brought that those before them lack: forward operators by the names they
are saved under, attributes, and the values that attributes of a choice take (``double``: numbers
of 64 bits).

Written by tests/mxnet/make_releases.py from the registries of: {}.
"""

from __future__ import annotations

'''
ASK = (
    "import json\n"
    "from tests.mxnet.make_registry import registry\n"
    "from tests.mxnet_live import live_mxnet\n"
    "print(json.dumps([live_mxnet().__version__, registry()]))"
)
Registry = Mapping[str, Any]
Brought = dict[str, list[str]]


def registry_of(folder: str | None) -> tuple[str, Registry]:
    """A release and its registry, asked in a process of its own."""
    places = [*([folder] if folder else []), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], check=True, capture_output=True, text=True, env=environment
    )
    version, found = json.loads(done.stdout.splitlines()[-1])
    return version, found


def things(found: Registry, names: Mapping[str, Sequence[str]]) -> set[str]:
    """All there is of a registry: ``op``, ``op.attribute`` and ``op.attribute=value``.

    ``names`` are the names the newest release saves operators under, with their other names.
    """
    every = {a: entry for n, entry in found.items() for a in (n, *entry.get("aliases", ()))}
    has = set()
    for name in (n for n in names if n in every):
        has.add(name)
        for attribute, kind in every[name].get("attributes", {}).items():
            has.add(f"{name}.{attribute}")
            has.update(f"{name}.{attribute}={value}" for value in choices(kind))
    return has


def choices(kind: str) -> list[str]:
    """The values an attribute of a choice takes; ``double`` for numbers of 64 bits."""
    listed = re.match(r"\{(.*?)\}", kind)
    if listed is None:
        return ["double"] * kind.startswith("double")
    return [v.strip().strip("'") for v in listed[1].split(",")]


def brought(registries: Sequence[tuple[str, Registry]]) -> Iterator[tuple[str, list[str]]]:
    """Each release after the first, and what it has that the one before has not."""
    newest = registries[-1][1]
    names = {n: entry.get("aliases", ()) for n, entry in newest.items()}
    has = [things(found, names) for _, found in registries]
    for at in range(1, len(registries)):
        new = has[at] - has[at - 1]
        plain = {t for t in new if not any(part in new for part in parents(t))}
        yield registries[at][0].rpartition(".")[0], sorted(plain)


def parents(thing: str) -> Iterator[str]:
    """What an attribute is of, and a value."""
    op, dot, attribute = thing.partition(".")
    if dot:
        yield op
        if "=" in attribute:
            yield f"{op}.{attribute.partition('=')[0]}"


def as_module(releases: Sequence[str], found: Mapping[str, Sequence[str]]) -> str:
    """The module, as ruff formats it."""
    lines = [HEADER.format(", ".join(releases)), "BROUGHT = {\n"]
    for release, things_ in found.items():
        rows = textwrap.wrap(" ".join(things_), 86, break_long_words=False, break_on_hyphens=False)
        lines.append(f'    "{release}": (\n')
        lines += [f'        "{row} "\n' for row in rows[:-1]] + [f'        "{rows[-1]}"\n']
        lines.append("    ),\n")
    return "".join(lines) + "}\n"


if __name__ == "__main__":
    asked = sorted(
        (registry_of(folder) for folder in (*sys.argv[1:], None)),
        key=lambda pair: [int(n) for n in pair[0].split(".")],
    )
    FILE.write_text(as_module([version for version, _ in asked], dict(brought(asked))))
