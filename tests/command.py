"""The ``serde`` command, run in the process of a test, and what it is run on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from serde.cli.commands import main

SERDE = [sys.executable, "-m", "serde"]  # in a process of its own


def invoke(arguments: Iterable[Any], extra: Mapping[str, Any]) -> Result:
    """Run the command here."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], **extra)
    assert "Traceback" not in result.output
    return result


def run_command(*arguments: Any, **extra: Any) -> tuple[int, str, str]:
    """Run the command here; its exit code, output and errors."""
    result = invoke(arguments, extra)
    return result.exit_code, result.stdout, result.stderr


def show_command(*arguments: Any, **extra: Any) -> tuple[int, str]:
    """Run the command here; its exit code and what a terminal would show."""
    result = invoke(arguments, extra)
    return result.exit_code, result.output


def list_files() -> list[str]:
    """The files in this folder, but for those of the example."""
    return sorted(p.name for p in Path().iterdir() if not p.name.startswith(("digits", "test")))


def write_unknown_operators() -> str:
    """A symbol of three unknown operators in two groups, a known one that sets an unsupported
    attribute, and one that reads a failure."""

    def node(op: str, name: str, attrs: Any = None, reads: int = 0) -> dict[str, Any]:
        return {"op": op, "name": name, "inputs": [[reads, 0, 0]], "attrs": attrs or {}}

    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        node("NoSuchOp", "n1", {"a": "1"}),
        node("AlsoNone", "n2", reads=1),
        node("NeitherThis", "n3", {"k": "x"}),
        node("LRN", "lrn", {"nsize": "5", "new_attribute": "7"}),
        node("relu", "r", reads=3),
    ]
    heads = [[i, 0, 0] for i in (2, 4, 5)]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads,
                       "attrs": {"mxnet_version": ["int", 10901]}})  # fmt: skip
    Path("odd-symbol.json").write_text(text)
    return "odd-symbol.json"
