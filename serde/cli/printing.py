"""Where the commands print: names of models and files reach no terminal as they are.

A name may hold what a terminal obeys: it would clear the screen, write into the clipboard, or show
a verdict that nobody gave. All that is printed goes through ``print_line``, which escapes it.
"""

from __future__ import annotations

from contextlib import suppress

import click

from serde.errors import escape_controls

LOST = (OSError, ValueError, AttributeError)  # of streams that are full, closed, or of no kind


class Styled(str):
    """Text with the codes of a colour, escaped already."""

    __slots__ = ()


def style(text: str, colour: str) -> Styled:
    """Text in a colour, on terminals that have it."""
    return Styled(click.style(escape_controls(text), fg=colour))


def join_parts(*parts: str) -> str:
    """Parts of a line as one text, all escaped but those in a colour."""
    return "".join(p if isinstance(p, Styled) else escape_controls(p) for p in parts)


def print_line(*parts: str, err: bool = False) -> None:
    """Print a line of parts, to the standard error output where ``err`` says so.

    A command goes on where that is full or closed, and its exit code tells how it ends.
    """
    with suppress(*(LOST if err else ())):
        click.echo(join_parts(*parts), err=err)


def print_lines(text: str, err: bool = False) -> None:
    """Print text of several lines: JSON, or a listing whose names are escaped already."""
    for line in text.split("\n"):
        print_line(line, err=err)
