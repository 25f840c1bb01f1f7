"""The tables of docs/reference/cli.md, made of the program's options.

``python -m serde.cli.reference docs/reference/cli.md`` makes them again. A table stands between
``<!-- options of NAME -->`` and ``<!-- end -->``; the rest of the page is written by hand. NAME is
a command, or ``reading`` for what the three that read a model share.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from serde.cli.commands import main
from serde.cli.options import DocumentedOption
from serde.plugins.targets import consumer_names, get_consumer

TABLE = re.compile(r"(<!-- options of (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
READING = ("convert", "check", "inspect", "partition")  # commands that share options


def with_tables(page: str) -> str:
    """The page with its tables made again."""
    return TABLE.sub(lambda m: m[1] + "".join(f"{row}\n" for row in table(m[2])) + m[3], page)


def table(name: str) -> Iterator[str]:
    """The rows of one table."""
    shared = set.intersection(*({p.name for p in options_of(c)} for c in READING))
    if name == "reading":
        options = [p for p in options_of(READING[0]) if p.name in shared]
    else:
        options = [p for p in options_of(name) if name not in READING or p.name not in shared]
    by_format = any(o.formats for o in options)
    yield "| option | what it does |" + (" formats |" if by_format else "")
    yield "|---|---|" + ("---|" if by_format else "")
    for each in options:
        formats = f" {', '.join(each.formats)} |" if by_format else ""
        yield f"| {_format_usage(each)} | {_description(each)} |{formats}"


def options_of(command: str) -> list[DocumentedOption]:
    """The options of a command, in order."""
    return [p for p in main.commands[command].params if isinstance(p, DocumentedOption)]


def _format_usage(option: DocumentedOption) -> str:
    *first, last = option.opts
    if not option.is_flag:
        last += f" {option.metavar or 'WORD'}"
    return ", ".join(f"`{flag}`" for flag in (*first, last))


def _description(option: DocumentedOption) -> str:
    parts = [option.help or "", option.details]
    if words := option.list_words():
        head = "Known are" if option.is_open else "One of"
        parts.append(f"{head} {', '.join(f'`{word}`' for word in words)}.")
    if option.show_default or option.left_out is not None:
        parts.append(f"{option.default if option.show_default else option.left_out} if left out.")
    if profiles := [n for n in consumer_names() if option.name in get_consumer(n).reading]:
        parts.append(f"{_show_default(option, profiles)} with the profiles {', '.join(profiles)}.")
    if option.required:
        parts.append("Required.")
    return " ".join(filter(None, parts))


def _show_default(option: DocumentedOption, profiles: Sequence[str]) -> str:
    """What consumers' files are read with, where nothing is said."""
    (value,) = {get_consumer(n).reading[str(option.name)] for n in profiles}
    return "The default" if value is True else f"`{value}` is the default"


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(with_tables(place.read_text(encoding="utf-8")), encoding="utf-8")
