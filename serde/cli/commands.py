"""The ``serde`` command.

Exit codes: 0 done, 1 cannot convert or verification failed, 2 usage, 3 unreadable input, 4 not
compared under --verify-strict, 5 the system refused (permissions, a full disk).
"""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any

import click

from serde.cli.compare import compare
from serde.cli.completion import completion
from serde.cli.migrate import migrate
from serde.cli.options import (
    ARGUMENTS,
    VERIFICATION,
    RenamingCommand,
    add_isolation,
    add_option,
    add_read_options,
    add_write_options,
    give,
    known_format,
    known_target,
    with_report,
)
from serde.cli.partition_commands import check_for_backend, partition, run
from serde.cli.progress import show_stages
from serde.cli.show import (
    show_conversion,
    show_model,
    show_next_step,
    show_not_compared,
    show_notes,
    show_verification,
)
from serde.errors import MalformedFile, SerdeError, Unconvertible, UnknownFormat, UsageError

DONE, FAILED, USAGE, UNREADABLE, NOT_COMPARED, SYSTEM = range(6)
ASCII = {"→": "->", "×": "x", "…": "...", "≤": "<=", "≥": ">=", "–": "-", "—": "-"}
ENCODING_ERRORS = "serde.ascii"  # the name of the handler below


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Stand in for characters that a stream cannot encode: ASCII, or their escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    shown = (ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text)
    return "".join(shown), error.end


def _make_streams_total() -> None:
    """Let the standard streams take any text, whatever their encoding."""
    codecs.register_error(ENCODING_ERRORS, _to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ENCODING_ERRORS)


class Command(click.Group):
    """The command group: turns every failure into one message and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command on streams that take any text."""
        _make_streams_total()
        if os.environ.get("NO_COLOR"):
            extra["color"] = False
        return super().main(*args, **extra)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, for a process that is to run the command again."""
        context.meta[ARGUMENTS] = [*args]
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if "--debug" in sys.argv:
                import traceback

                traceback.print_exc()
            code, message = explain(error)
            click.echo(f"serde: {message}", err=True)
            context.exit(code)


def explain(error: Exception) -> tuple[int, str]:
    """The exit code and the message of an error."""
    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, (MalformedFile, UnknownFormat)):
        return UNREADABLE, str(error)
    if isinstance(error, SerdeError):
        return FAILED, str(error)
    if isinstance(error, OSError):
        place = error.filename2 or error.filename
        return SYSTEM, f"{place}: {error.strerror}" if place else str(error)
    if isinstance(error, MemoryError):
        return FAILED, "it takes more memory than there is"
    return FAILED, f"internal error: {type(error).__name__}: {error} (--debug shows where)"


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="serde-hub", prog_name="serde")
def main() -> None:
    """Move deep-learning models between MXNet, TVM Relay and ONNX."""


@main.command(cls=RenamingCommand)
@click.argument("source")
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_read_options()
@add_write_options()
@add_option("--to", "to_format", callback=known_format, metavar="FORMAT",
            help="The format to write, where the suffix does not tell.")  # fmt: skip
@add_option("--verify", type=click.Choice(["outputs", "layers"]), alone="outputs",
            group=VERIFICATION, metavar="[layers]",
            help="Run source and result and compare their outputs.",
            details="With `layers`, compare each layer that both have, and name the first that "
                    "differs.")  # fmt: skip
@add_option("--verify-strict", "strict", group=VERIFICATION, is_flag=True,
              help="Verify, and exit with 4 where nothing could be compared.")  # fmt: skip
@add_option("--data", metavar="NPZ", help="The inputs to verify with; random if left out.",
            group=VERIFICATION, details="An array for each name. Implies `--verify`.")  # fmt: skip
@add_option("--expected", group=VERIFICATION, metavar="NPZ",
            help="The source's outputs for them, if it cannot run.",
            details="Implies `--verify`.")  # fmt: skip
@with_report
@add_option("-q", "--quiet", is_flag=True,
            help="Print nothing but errors and failed verifications.")  # fmt: skip
@add_isolation
@click.pass_context
def convert(
    context: click.Context, /, source: str, target: str, quiet: bool, debug: bool,
    report_path: str | None, verify: str | None, strict: bool, **options: Any,
) -> None:  # fmt: skip
    """Convert SOURCE, a file, prefix, folder or archive, to another format."""
    from serde import api

    if report_path and os.path.abspath(report_path) == os.path.abspath(target):
        raise UsageError(f"--report and -o are one file: {target}")
    given = give(**options)
    try:
        with show_stages(quiet) as progress:
            report = api.convert(
                source, target, verify=verify or strict, progress=progress, **given
            )
    except Unconvertible as error:
        if report_path and error.report is not None:
            error.report.save(report_path)
        raise
    if report_path:
        report.save(report_path)
    if not quiet:
        show_conversion(report)
        show_next_step(report)
    found = report.verification
    if found is not None and not (quiet and found.ok):
        show_verification(found, err=quiet)
    if found is not None:
        show_not_compared(found, strict or not quiet)
    code = DONE if report.ok else FAILED
    context.exit(NOT_COMPARED if code == DONE and strict and not found.done else code)


@main.command(cls=RenamingCommand)
@click.argument("source")
@add_read_options()
@add_option(
    "--to",
    default="onnx",
    callback=known_target,
    metavar="FORMAT",
    help="The target format, or a profile: openvino, tensorrt, tract, relax, a plug-in's target.",
)
@add_write_options(only=("opset", "mxnet"))
@add_option("--backend", metavar="NAME",
            help="Tell what a backend takes: a name, `opset N`, or a TOML file.",
            details="See [partition-a-model.md](../how-to/partition-a-model.md).")  # fmt: skip
@add_option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@with_report
@add_isolation
@click.pass_context
def check(
    context: click.Context, /, source: str, debug: bool, as_json: bool, report_path: str | None,
    backend: str | None, **options: Any,
) -> None:  # fmt: skip
    """Tell whether SOURCE converts, with the real converters, writing no model."""
    from serde import api

    if backend is not None:
        only_reading = {k: v for k, v in options.items() if k not in ("to", "opset", "mxnet")}
        only_reading["format"] = only_reading.pop("from_format")
        check_for_backend(source, backend, as_json, give(**only_reading))
        return
    report = api.check(source, **give(**options))
    if report_path:
        report.save(report_path)
    if as_json:
        click.echo(report.to_json())
    elif report.problems:
        total = sum(p.count for p in report.problems)
        click.echo(f"{source}: {total} node(s) cannot be converted to {report.target_format}:")
        for problem in report.problems:
            click.echo(f"  {problem}")
    else:
        click.echo(f"{source}: everything converts to {report.target_format}")
        show_model(report)
        show_notes(report)
    context.exit(DONE if report.ok else FAILED)


@main.command(cls=RenamingCommand)
@click.argument("source")
@add_read_options()
@add_option("--values", is_flag=True, help="List every value: names --outputs takes.")
@add_option("--json", "as_json", is_flag=True, help="Print JSON.")
@add_isolation
def inspect(source: str, debug: bool, values: bool, as_json: bool, **options: Any) -> None:
    """Show what SOURCE holds: inputs, outputs, operators, weights."""
    from serde import api
    from serde.api.report import Report
    from serde.ir.printer import show_value

    given = give(**options)
    graph, name = api.read(source, **given)
    report = Report(source, "", name, "")
    report.describe(graph)
    if as_json:
        click.echo(report.to_json())
        return
    version = graph.metadata.get(f"{name}.version") or (graph.domain or f"opset {graph.opset}")
    click.echo(f"{source}: {name} {version}, {len(graph.nodes)} nodes")
    show_model(report)
    if values:
        for node in graph.nodes:
            click.echo(f"  {node.op}: {', '.join(map(show_value, node.outputs))}")


@main.command(cls=RenamingCommand)
@click.argument("source")
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_option("--debug", is_flag=True, help="Show where an error came from.")
def repair(source: str, target: str, debug: bool) -> None:
    """Mend an ONNX file that an old exporter left behind; say what was changed."""
    from pathlib import Path

    from serde.plugins import format_of

    found = format_of(Path(source))
    if found.repair is None:
        raise UsageError(f"{found.name} files cannot be repaired")
    changes = found.repair(source, target)
    for change in changes:
        click.echo(change)
    click.echo(f"{source} → {target}: {len(changes)} change(s)")


@main.command(cls=RenamingCommand)
@click.argument("first")
@click.argument("second")
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_option("--connect", "links", multiple=True, metavar="OUTPUT=INPUT",
            help="An output of FIRST and the input of SECOND that takes it.",
            details="May be given several times. Without it inputs take the outputs of their "
                    "names, or the only input the only output.")  # fmt: skip
@add_option("--keep", "kept", multiple=True, metavar="OUTPUT",
            help="A connected output that stays an output.")  # fmt: skip
@add_option("--debug", is_flag=True, help="Show where an error came from.")
def join(
    first: str, second: str, target: str, links: tuple[str, ...], kept: tuple[str, ...],
    debug: bool,
) -> None:  # fmt: skip
    """Write the models FIRST and SECOND, of any formats, as one."""
    import serde

    pairs = dict(_split_pair(link, "--connect", "boxes=x") for link in links)
    graph = serde.compose(first, second, pairs or None, keep=kept)
    _write(graph, target)


@main.command(cls=RenamingCommand)
@click.argument("source")
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_option("--pre", metavar="MODULE:FUNCTION", help="NumPy code whose results are the inputs.",
            details="A file may stand for the module: `prepare.py:scale`. "
                    "The code is run.")  # fmt: skip
@add_option("--post", metavar="MODULE:FUNCTION", help="NumPy code of the outputs.")
@add_option("--pre-input", "specs", multiple=True, metavar="NAME=DIMS[:TYPE]",
            help="The shape and element type of an input of the code before the model.",
            details="Those of the model's input of this name, or of its only one, if left "
                    "out.")  # fmt: skip
@add_option("--debug", is_flag=True, help="Show where an error came from.")
def wrap(
    source: str, target: str, pre: str | None, post: str | None, specs: tuple[str, ...],
    debug: bool,
) -> None:  # fmt: skip
    """Write SOURCE with the Python code before and behind it in the same file."""
    import serde
    from serde.passes.cut_inputs import parse_spec

    given = dict(parse_spec(spec) for spec in specs)
    _write(serde.wrap(source, pre, post, inputs=given), target)


def _split_pair(text: str, option: str, example: str) -> tuple[str, str]:
    """The two names of ``A=B``."""
    first, found, second = text.partition("=")
    if not (first and found and second):
        raise UsageError(f"{option} {text!r} is not OUTPUT=INPUT, such as {example}")
    return first, second


def _write(graph: Any, target: str) -> None:
    import serde
    from serde.api.report import Report

    serde.save(graph, target)
    report = Report(graph.name, target, "", "")
    report.describe(graph)
    click.echo(f"{graph.name} → {target}")
    show_model(report)


@main.command("verify-hash", cls=RenamingCommand)
@click.argument("source")
@add_option("--debug", is_flag=True, help="Show where an error came from.")
def verify_hash(source: str, debug: bool) -> None:
    """Tell whether the weights of SOURCE are those it was written with, by --hash."""
    from serde.verification.weights_hash import verify_hash as verified

    click.echo(f"{source}: the weights have SHA-256 {verified(source)}, as written")


@main.command(cls=RenamingCommand)
@add_option(
    "--format",
    "name",
    callback=known_format,
    metavar="FORMAT",
    help="Only this format's operators.",
)
@add_option("--markdown", is_flag=True, help="Print docs/reference/operators.md.")
def ops(name: str | None, markdown: bool) -> None:
    """List the operators each format converts."""
    from serde.cli.operator_table import as_lines, as_markdown

    for line in as_markdown(name) if markdown else as_lines(name):
        click.echo(line)


@main.command(cls=RenamingCommand)
def formats() -> None:
    """List the installed formats and bridges."""
    from serde import api
    from serde.plugins import format_names, get_format

    for name in format_names():
        found = get_format(name)
        ways = "read and written" if found.encode is not None else "read"
        click.echo(f"{name}: {', '.join(found.suffixes)}; {ways}")
    for bridge, format_name in api.bridges().items():
        click.echo(f"bridge {bridge}: live objects, read as {format_name}")


for each in (compare, completion, migrate, partition, run):
    main.add_command(each)
