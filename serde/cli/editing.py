"""``serde repair``, ``serde join`` and ``serde wrap``: models made of others."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import click

from serde.cli.options import DEBUG, PATH, SOURCE, TO, DocumentedCommand, add_option
from serde.cli.printing import print_line
from serde.cli.show import show_model
from serde.cli.streams import STREAM, open_target, with_local_models
from serde.errors import UsageError
from serde.io.gc_pause import resume_collector


@click.command(cls=DocumentedCommand)
@SOURCE
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@DEBUG
@with_local_models("source")
def repair(source: str, shown: Mapping[str, str], target: str, debug: bool) -> None:
    """Mend an ONNX file that an old exporter left behind; say what was changed."""
    from serde.pipeline import check_place
    from serde.plugins import format_of

    fmt = format_of(Path(source))
    if fmt.repair is None:
        raise UsageError(f"{fmt.name} files cannot be repaired: convert reads old ones as they are")
    with open_target(target, fmt.name) as path:
        check_place(fmt, path)
        changes = fmt.repair(source, path)
    for change in changes:
        print_line(change, err=target == STREAM)
    print_line(f"{shown[source]} → {target}: {len(changes)} change(s)", err=target == STREAM)


@click.command(cls=DocumentedCommand)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_option("--connect", "links", multiple=True, metavar="OUTPUT=INPUT",
            help="An output of FIRST and the input of SECOND that takes it.",
            details="May be given several times, also for an output of several inputs. Without "
                    "it inputs take the outputs of their names, or the only input the only "
                    "output.")  # fmt: skip
@add_option("--keep", "kept", multiple=True, metavar="OUTPUT",
            help="A connected output that stays an output.")  # fmt: skip
@TO
@DEBUG
@with_local_models("first", "second")
def join(
    first: str, second: str, shown: Mapping[str, str], target: str, to_format: str | None,
    links: tuple[str, ...], kept: tuple[str, ...], debug: bool,
) -> None:  # fmt: skip
    """Write the models FIRST and SECOND, of any formats, as one."""
    import serde

    pairs = [_split_pair(link, "--connect", "boxes=x") for link in links]
    graph = serde.compose(first, second, pairs or None, keep=kept)
    _write(graph, target, target, to_format)


@click.command(cls=DocumentedCommand)
@SOURCE
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_option("--pre", metavar="MODULE:FUNCTION", help="NumPy code whose results are the inputs.",
            details="A file may stand for the module: `prepare.py:scale`. "
                    "The code is run.")  # fmt: skip
@add_option("--post", metavar="MODULE:FUNCTION", help="NumPy code of the outputs.")
@add_option("--pre-input", "specs", multiple=True, metavar="NAME=DIMS[:TYPE]",
            help="The shape and element type of an input of the code before the model.",
            details="Those of the model's input of this name, or of its only one, if left "
                    "out.")  # fmt: skip
@TO
@DEBUG
@with_local_models("source")
@resume_collector()
def wrap(
    source: str, shown: Mapping[str, str], target: str, to_format: str | None, pre: str | None,
    post: str | None, specs: tuple[str, ...], debug: bool,
) -> None:  # fmt: skip
    """Write SOURCE with the Python code before and behind it in the same file."""
    import serde
    from serde.api.source_names import is_remote
    from serde.passes.cut_inputs import parse_spec

    if (here := os.getcwd()) not in sys.path:  # as ``python -m`` has it
        sys.path.insert(0, here)
    inputs = dict(parse_spec(spec) for spec in specs)
    is_path = target != STREAM and not is_remote(target)
    place = os.path.abspath(target) if is_path else target  # the code may change folder
    with redirect_stdout(sys.stderr) if target == STREAM else nullcontext():
        graph = serde.wrap(os.path.abspath(source), pre, post, inputs=inputs)
    _write(graph, target, place, to_format)


def _split_pair(text: str, option: str, example: str) -> tuple[str, str]:
    """The two names of ``A=B``."""
    first, equals, second = text.partition("=")
    if not (first and equals and second):
        raise UsageError(f"{option} {text!r} is not OUTPUT=INPUT, such as {example}")
    return first, second


def _write(graph: Any, target: str, place: str, to_format: str | None) -> None:
    """Write a graph to ``place``, which the user calls ``target``."""
    import serde
    from serde.api.report import Report

    with open_target(place, to_format) as path:
        serde.save(graph, path, format=to_format)
    if target == STREAM:
        return
    report = Report(graph.name, target, "", "")
    report.describe(graph)
    print_line(f"{graph.name} → {target}")
    show_model(report)
