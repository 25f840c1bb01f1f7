"""The tables of docs/reference/cli.md, made of the program's options.

``python -m serde.cli.reference docs/reference/cli.md`` makes them again. A table stands between
``<!-- options of NAME -->`` and ``<!-- end -->``; the rest of the page is written by hand. NAME is
a command, or ``reading`` for what the three that read a model share.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from serde.cli.commands import main
from serde.cli.options import DocumentedOption

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
    if isinstance(option.type, click.Choice):
        parts.append(f"One of {', '.join(f'`{c}`' for c in option.type.choices)}.")
    if option.show_default:
        parts.append(f"{option.default} if left out.")
    if option.required:
        parts.append("Required.")
    parts += [f"Its old name `{flag}` still works, with a notice." for flag in option.old_flags]
    return " ".join(filter(None, parts))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(with_tables(place.read_text(encoding="utf-8")), encoding="utf-8")
