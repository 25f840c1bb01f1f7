"""The commands that concern backends: ``partition`` and ``check --backend``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serde.cli.context import DONE, FAILED
from serde.cli.options import (
    SOURCE,
    DocumentedCommand,
    add_isolation,
    add_option,
    add_options,
    add_read_options,
    claim_output,
    list_backends,
)
from serde.cli.printing import print_line, print_lines
from serde.cli.show import show_not_compared, show_verification
from serde.cli.streams import with_local_models
from serde.errors import UsageError
from serde.io.command_files import active_files
from serde.plugins import STANDARD, remainder_formats
from serde.plugins.command_options import PartitionOptions

if TYPE_CHECKING:
    from serde.verification import Verification


def check_for_backend(
    source: str, shown: str, backend: str, as_json: bool, options: dict[str, Any]
) -> None:  # fmt: skip
    """Print what a backend takes of a model, by operator."""
    from serde.backends.partition import check_backend

    report = check_backend(source, backend, **options)
    if as_json:
        rows = [{**asdict(r), "operators": list(r.operators), "reasons": r.reasons}
                for r in report.rows]  # fmt: skip
        document = {
            "source": shown, "backend": report.backend, "share_of_nodes": report.share_of_nodes,
            "share_of_multiply_adds": report.share_of_multiply_adds, "operators": rows,
            "parts": report.parts, "missing": [m._asdict() for m in report.missing],
        }  # fmt: skip
        print_lines(json.dumps(document, indent=2))
        return
    print_lines(str(replace(report, source=shown)))


@click.command(cls=DocumentedCommand)
@SOURCE
@add_option("-o", "--output", "folder", required=True, metavar="DIR", help="The folder to write.")
@add_option("--backend", required=True, metavar="NAME", choices=list_backends, is_open=True,
            help="What takes the parts: a name, `opset N`, or a TOML file.",
            details="See [partition-a-model.md](../how-to/partition-a-model.md).")  # fmt: skip
@add_read_options()
@add_option("--remainder", default=STANDARD, show_default=True, choices=remainder_formats,
            help="The format of what the backend does not take.")  # fmt: skip
@add_options(PartitionOptions)
@add_option("--svg", metavar="FILE", help="Draw the parts.")
@add_option("--verify", is_flag=True, help="Run the parts and the source and compare them.")
@add_option("--data", metavar="NPZ", help="The inputs to verify with; random if left out.",
            details="Implies `--verify`.")  # fmt: skip
@add_option("--runtime", "runtimes", multiple=True, metavar="ROLE=NAME",
            help="Where parts run, for --verify: accelerator=onnxruntime, remainder=mxnet.",
            )  # fmt: skip
@add_isolation
@click.pass_context
@with_local_models("source")
def partition(
    context: click.Context, /, source: str, shown: Mapping[str, str], folder: str, backend: str,
    remainder: str, svg: str | None, verify: bool, data: str | None, runtimes: tuple[str, ...],
    debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Cut SOURCE into the parts that a backend takes and the remainder."""
    from serde.backends.partition import partition as cut_model
    from serde.backends.svg import is_picture, write_picture

    if svg:
        claim_output(svg, is_picture, "picture of serde")
    active_files().enter(data or "")  # it is read when the parts are written
    kwargs = {k: v for k, v in options.items() if v is not None}
    kwargs["format"] = kwargs.pop("from_format", None)
    named = parse_runtimes(runtimes)
    split = cut_model(source, backend, **kwargs)
    form = kwargs.pop("format")
    done: list[Verification] = []

    def verify_new(place: Path) -> None:
        from serde.backends.verify import verify_parts

        done.append(verify_parts(
            source, split.graph, place, runtimes=named, data=data, reading=kwargs, from_format=form
        ))  # fmt: skip

    is_verified = verify or data is not None
    if named and not is_verified:
        raise UsageError("--runtime says where parts run to verify them: give --verify too")
    manifest = split.save(folder, remainder, verify_new if is_verified else None)
    if svg:
        write_picture(split, svg)
    print_line(f"{shown[source]} → {folder}: {split.summary}")
    for part in manifest.parts:
        print_line(f"  {part}")
    for verification in done:
        show_verification(verification)
        show_not_compared(verification, True)
        context.exit(DONE if verification.ok else FAILED)


def parse_runtimes(pairs: tuple[str, ...]) -> dict[str, str]:
    """Runtimes by role or part, of ``ROLE=NAME``."""
    runtimes = {}
    for pair in pairs:
        role, equals, name = pair.partition("=")
        if not (role and equals and name):
            raise click.BadParameter(f"{pair!r} is not ROLE=NAME")
        runtimes[role] = name
    return runtimes


@click.group()
def backend() -> None:
    """Descriptions of backends: TOML files."""


@backend.command(cls=DocumentedCommand)
@click.argument("file", metavar="FILE")
@add_option("--debug", is_flag=True, help="Show where an error came from.")
@click.pass_context
def check(context: click.Context, /, file: str, debug: bool) -> None:
    """Tell what is wrong in a description, line by line, or what it says.

    FILE may be the name of one that comes with serde.
    """
    from serde.backends.description import DESCRIPTIONS, check_description, documented_names

    is_name = file in documented_names() and not Path(file).exists()
    description, problems = check_description(
        DESCRIPTIONS / f"{file}.toml" if is_name else Path(file)
    )
    for reason, place in problems:
        print_line(f"{file}{place and f', {place}'}: {reason}")
    if description is None:
        context.exit(FAILED)
    target = description.target
    others = sorted(target.rewrites.rules.keys() - (target.supports or {}).keys())
    print_line(f"{file}: {target.name} has {len(target.supports or ())} operators of opset "
               f"{target.opset}; as such are written: {', '.join(others) or 'none'}")  # fmt: skip
