"""Files of tables that users write: TOML, JSON, or YAML where PyYAML is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.io.command_files import active_files
from serde.io.sniff import read_regular
from serde.io.toml import LONG_NUMBER, TOO_LONG, read_toml

MOST_BYTES = 1 << 24
KINDS = ".toml, .json, .yaml or .yml"


def read_tables(path: str) -> Mapping[str, Any]:
    """The tables of a file by name, by its suffix.

    Raises:
        UsageError: for another suffix. MalformedFile: for a file that is not what it says.
    """
    parsers: dict[str, Callable[[str], Any]] = {
        ".json": json.loads, ".yaml": _parse_yaml, ".yml": _parse_yaml
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


def _parse_yaml(text: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        reason = "YAML needs PyYAML: pip install pyyaml, or write TOML or JSON"
        raise MissingDependency(reason) from error
    if LONG_NUMBER.search(text):
        raise ValueError(TOO_LONG)
    return yaml.safe_load(text)
