"""``serde completion``: the shell's completion of commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click

from serde.cli.options import DocumentedCommand, add_option
from serde.cli.printing import print_line, print_lines

PLACES = {  # where each shell looks for it, below the home folder
    "bash": ".local/share/bash-completion/completions/serde",
    "zsh": ".zfunc/_serde",
    "fish": ".config/fish/completions/serde.fish",
}
ZSH = "zsh reads it if ~/.zshrc has: fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit"


@click.command(cls=DocumentedCommand)
@click.argument("shell", type=click.Choice([*PLACES]))
@add_option("--install", is_flag=True, help="Write it to where the shell looks for it.")
@click.pass_context
def completion(context: click.Context, shell: str, install: bool) -> None:
    """Print the script that completes serde's commands and options in SHELL."""
    from click.shell_completion import get_completion_class

    from serde.io.atomic_write import Replacing

    completer = get_completion_class(shell)
    assert completer is not None  # of the shells that are offered
    script = completer(context.find_root().command, {}, "serde", "_SERDE_COMPLETE").source()
    if not install:
        print_lines(script)
        return
    place = Path.home() / PLACES[shell]
    place.parent.mkdir(parents=True, exist_ok=True)
    with Replacing(os.fspath(place)) as files, files.open(os.fspath(place)) as out:
        out.write(script.encode())
    print_line(f"written to {place}; a new shell has it")
    if shell == "zsh":
        print_lines(ZSH)
