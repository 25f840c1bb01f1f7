"""Files of tables that users write: TOML, JSON, or YAML where PyYAML is installed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.io.command_files import active_files
from serde.io.sniff import read_regular
from serde.io.toml import LONG_NUMBER, MOST_ENTRIES, TOO_LONG, read_toml

MOST_BYTES = 1 << 24
MOST_OF_YAML = 1 << 18  # characters: its parser takes 50 KB in a second
MOST_PARTS = 1_000_000  # of what aliases repeat
MERGE = "tag:yaml.org,2002:merge"  # of a name that tells to take another table's
KINDS = ".toml, .json, .yaml or .yml"


def read_tables(path: str) -> Mapping[str, Any]:
    """The tables of a file by name, by its suffix.

    Raises:
        UsageError: for another suffix. MalformedFile: for a file that is not what it says.
    """
    parsers: dict[str, Callable[[str], Any]] = {
        ".json": _parse_json, ".yaml": _parse_yaml, ".yml": _parse_yaml
    }  # fmt: skip
    active_files().enter(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        return read_toml(Path(path))[1]
    parse = parsers.get(suffix)
    if parse is None:
        raise UsageError(f"{path}: the suffix tells no format of tables: end it with {KINDS}")
    try:
        tables = parse(read_regular(path, MOST_BYTES).decode())
    except FileNotFoundError as error:
        raise MalformedFile(path, "there is no such file") from error
    except (MissingDependency, OSError):
        raise
    except Exception as error:  # each parser has its own
        raise MalformedFile(path, f"not {Path(path).suffix[1:].upper()}: {error}") from error
    if not isinstance(tables, Mapping):
        raise UsageError(f"{path}: give a table for each name")
    return tables


def read_lines(path: str) -> list[str]:
    """The lines of a text that hold anything, without the blanks around it."""
    active_files().enter(path)
    try:
        text = read_regular(path, MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise MalformedFile(path, "there is no such file") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_make_table)


def _make_table(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A table of names and what they have; a name that has two would lose one."""
    table = dict(pairs)
    if len(table) < len(pairs):
        name = next(n for n, count in Counter(n for n, _ in pairs).items() if count > 1)
        raise ValueError(f"{name!r} is there twice")
    return table


def _parse_yaml(text: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        reason = "YAML needs PyYAML: pip install pyyaml, or write TOML or JSON"
        raise MissingDependency(reason) from error
    if LONG_NUMBER.search(text):
        raise ValueError(TOO_LONG)
    if len(text) > MOST_OF_YAML or sum(map(text.count, ",[{\n")) > MOST_ENTRIES:
        raise ValueError(f"it has more than {MOST_ENTRIES} entries, or {MOST_OF_YAML} characters: "
                         "write it as JSON")  # fmt: skip

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Refuses names that are there twice; ``<<`` is no name."""

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            names = [k.value for k, _ in node.value if k.tag != MERGE and isinstance(k.value, str)]
            _make_table([(name, None) for name in names])
            return node

    tables = yaml.load(text, Loader)
    _count(tables, {})
    return tables


def _count(part: Any, counts: dict[int, int]) -> int:
    """How many parts a part has, those that aliases name as often as they do.

    Raises:
        ValueError: where a part is in itself, or there are too many.
    """
    if not isinstance(part, (Mapping, list)):
        return 1
    if id(part) not in counts:
        counts[id(part)] = MOST_PARTS + 1  # until it is known: that of a part in itself
        inner = part.values() if isinstance(part, Mapping) else part
        counts[id(part)] = 1 + sum(_count(p, counts) for p in inner)
    if counts[id(part)] > MOST_PARTS:
        raise ValueError("its aliases repeat too much, or without end")
    return counts[id(part)]
