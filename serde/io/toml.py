"""TOML files of bounded size and nesting: a parser takes as long as they are deep, and longer."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile
from serde.io.sniff import read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1 << 18
MOST_NESTED = 16  # arrays and inline tables in each other
MOST_PARTS = 16  # of a dotted key
TOO_LONG = "a number has more than 400 digits"
MOST_ENTRIES = 20_000  # keys, and elements of arrays
# Strings and comments, whose contents are no syntax; one that does not end goes on to the end.
OPAQUE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"""|\Z)?|\'\'\'(?:[^\']|\'(?!\'\'))*(?:\'\'\'|\Z)?'
    r'|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|#[^\n]*',
    re.DOTALL,
)
LONG_NUMBER = re.compile(r"(?<![\w:])\d[\da-fA-Fxob_:]{400,}")  # in any notation
DOTTED = re.compile(rf"(?<![\w-])[\w-]+(?:[ \t]*\.[ \t]*[\w-]+){{{MOST_PARTS}}}")


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its tables.

    Raises:
        MalformedFile: where it is none, or larger or deeper than a description needs.
    """
    try:
        text = read_regular(path, MOST_BYTES).decode()
    except FileNotFoundError:
        raise MalformedFile(path, "there is no such file") from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise MalformedFile(path, f"it is no text: {error}") from error
    if (reason := excess(text)) is not None:
        raise MalformedFile(path, reason)
    try:
        return text, tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, for one
        raise MalformedFile(path, f"not TOML: {error}") from error


def excess(text: str) -> str | None:
    """What a text has more of than is parsed, None where it has little of all."""
    syntax = OPAQUE.sub("s", text)
    if syntax.count("=") + syntax.count(",") + syntax.count("[") > MOST_ENTRIES:
        return f"it has more than {MOST_ENTRIES} entries"
    if DOTTED.search(syntax):
        return f"a key has more than {MOST_PARTS} parts"
    if LONG_NUMBER.search(syntax):
        return TOO_LONG
    depth = 0
    for bracket in re.findall(r"[][{}]", syntax):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_NESTED:
            return f"arrays and tables nest more than {MOST_NESTED} deep"
    return None
