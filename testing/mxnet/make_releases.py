"""Write what each release of MXNet from 1.2 on has of the newest 1.x, and how 2.0 calls it.

    SERDE_MXNET=FOLDER python -m testing.mxnet.make_releases

``releases_live.py`` makes the releases' environments; the newest 1.x is the one that imports here.
``formats/mxnet/release_data.py`` holds the operators, attributes and values of attributes of it by
the release that they came with, those that MXNet 2.0 removed, and those that it renamed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from testing.mxnet.make_registry import registry
from testing.mxnet.releases_live import SECOND, WRITTEN, worker

ROOT = Path(__file__).parents[2]
FILE = ROOT / "formats" / "mxnet" / "release_data.py"
NEWEST = "1.9.1"
HEADER = '''"""What releases of MXNet lack of 1.9's: forward operators by the names they are saved under,
attributes, and the values that attributes of a choice take (``double``: numbers of 64 bits).

Written by testing/mxnet/make_releases.py from the registries of:
{}.
"""

from __future__ import annotations

'''
PREFIX = re.compile("^(_np|_npi|_npx|_contrib)_")
Registry = Mapping[str, Any]
Names = Mapping[str, Sequence[str]]


def by_name(entries: Registry) -> dict[str, Any]:
    """The entry of every name, other names included."""
    return {a: entry for n, entry in entries.items() for a in (n, *entry.get("aliases", ()))}


def things(entries: Registry, names: Iterable[str], renamed: Mapping[str, str] = {}) -> set[str]:
    """All there is of a registry: ``op``, ``op.attribute`` and ``op.attribute=value``.

    ``names`` are the names the newest release saves operators under, ``renamed`` those that the
    registry has others for.
    """
    every = by_name(entries)
    has = set()
    for name in names:
        if (entry := every.get(renamed.get(name, name))) is None:
            continue
        has.add(name)
        for attribute, kind in entry.get("attributes", {}).items():
            has.add(f"{name}.{attribute}")
            has.update(f"{name}.{attribute}={value}" for value in choices(kind))
    return has


def choices(kind: str) -> list[str]:
    """The values an attribute of a choice takes; ``double`` for numbers of 64 bits."""
    listed = re.match(r"\{(.*?)\}", kind)
    if listed is None:
        return ["double"] * kind.startswith("double")
    return [v.strip().strip("'") for v in listed[1].split(",")]


def find_renamed(newest: Registry, entries: Registry) -> Iterator[tuple[str, str]]:
    """Operators of the newest release that another registry saves under a name that is alike."""
    for name in newest.keys() - by_name(entries).keys():
        alike = [
            other for other in entries
            if plain(other) == plain(name) and operands(entries[other]) == operands(newest[name])
        ]  # fmt: skip
        prefixed = [other for other in alike if PREFIX.match(other)]
        if len(prefixed) == 1:
            yield name, prefixed[0]


def operands(entry: Mapping[str, Any]) -> Sequence[str]:
    """What an operator calls its operands."""
    names: Sequence[str] = entry.get("operands", ())
    return names


def plain(name: str) -> str:
    """A name without its prefix and its way to divide words."""
    return PREFIX.sub("", name).replace("_", "").lower()


def came_with(has: Mapping[str, set[str]]) -> Iterator[tuple[str, list[str]]]:
    """Each release after the first, and what of the newest the ones from it on have."""
    releases = [*has]
    newest = has[NEWEST]
    for at in range(1, len(releases)):
        later = set.intersection(*(has[r] for r in releases[at:]))
        new = (newest & later) - has[releases[at - 1]]
        yield minor(releases[at]), without_parts(new)


def without_parts(names: set[str]) -> list[str]:
    """Sorted, without attributes of operators and values of attributes that are there too."""
    return sorted(t for t in names if not any(part in names for part in parents(t)))


def minor(release: str) -> str:
    """``1.7`` for 1.7.0.post2."""
    return ".".join(release.split(".")[:2])


def parents(thing: str) -> Iterator[str]:
    """What an attribute is of, and a value."""
    op, dot, attribute = thing.partition(".")
    if dot:
        yield op
        if "=" in attribute:
            yield f"{op}.{attribute.partition('=')[0]}"


def as_module(
    releases: Iterable[str], brought: Mapping[str, Sequence[str]], removed: Sequence[str],
    renamed: Mapping[str, str],
) -> str:  # fmt: skip
    """The module, as ruff formats it."""
    lines = [HEADER.format(", ".join(releases)), "# What came with a release.\nBROUGHT = {\n"]
    for release, names in brought.items():
        rows = [*as_text(names, "        ")]
        one = f'    "{release}": ({rows[0].strip()}),\n'
        lines += [one] if len(rows) == 1 else [f'    "{release}": (\n', *rows, "    ),\n"]
    lines += ["}\n# What MXNet 2.0 has no more.\nREMOVED = (\n", *as_text(removed, "    "), ")\n"]
    lines += ["# What MXNet 2.0 calls otherwise.\nRENAMED = {\n"]
    lines += [f'    "{old}": "{new}",\n' for old, new in renamed.items()]
    return "".join(lines) + "}\n"


def as_text(words: Sequence[str], indent: str) -> Iterator[str]:
    """Lines of a text of words."""
    width = 94 - len(indent)
    rows = textwrap.wrap(" ".join(words), width, break_long_words=False, break_on_hyphens=False)
    yield from (f'{indent}"{row} "\n' for row in rows[:-1])
    yield f'{indent}"{rows[-1]}"\n'


def main() -> None:
    """Ask every release and write the file."""
    newest = registry()
    registries = {r: worker(r).ask("registry") for r in WRITTEN if r != SECOND} | {NEWEST: newest}
    second = worker(SECOND).ask("registry")
    renamed = dict(sorted(find_renamed(newest, second)))
    has = {r: things(its, newest) for r, its in registries.items()}
    removed = without_parts(has[NEWEST] - things(second, newest, renamed))
    FILE.write_text(as_module([*registries, SECOND], dict(came_with(has)), removed, renamed))


if __name__ == "__main__":
    main()
