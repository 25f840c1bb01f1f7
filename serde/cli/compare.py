"""``serde compare``: two models on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from serde.cli.context import DONE, FAILED, NOT_COMPARED
from serde.cli.options import (
    DEBUG,
    PATH,
    DocumentedCommand,
    add_declared,
    add_option,
    add_options,
    parse_by_name,
    with_report,
)
from serde.cli.printing import print_lines
from serde.cli.show import save_report, show_not_compared, show_verification
from serde.cli.streams import with_local_models
from serde.io.gc_pause import resume_collector
from serde.passes.cut_inputs import parse_spec
from serde.plugins import read_classes, read_formats
from serde.plugins.command_options import ToleranceOptions
from serde.plugins.options import Option, merge_options

OTHER = "other_"  # begins the names of options of SECOND
DECLARED = ("other_inputs", "other_params", "other_format")


def tells_files(option: Option) -> bool:
    """Whether it tells what of a model's files is meant, beside those declared here."""
    return option.is_run and option.name not in ("inputs", "params")


def add_other_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that tell what of the files of SECOND is meant."""
    for option in reversed(merge_options(read_classes()).values()):
        if tells_files(option):
            flag = option.all_flags[0].removeprefix("--")
            help = f"--{flag} of SECOND."
            other = replace(option, flags=(f"--other-{flag}",), help=help, details="")
            other.name = f"{OTHER}{option.name}"
            command = add_declared(other)(command)
    return command


@click.command(cls=DocumentedCommand)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@add_option("--layers/--no-layers", default=True,
            help="Compare the layers that both models have, as well.")  # fmt: skip
@add_option("--input", "inputs", metavar="NAME=DIMS[:dtype]", multiple=True,
            callback=lambda c, p, values: parse_by_name(map(parse_spec, values)),
            help="An input's shape in FIRST, where its file leaves it open.",
            details="May be given several times.")  # fmt: skip
@add_option("--other-input", "other_inputs", metavar="NAME=DIMS[:dtype]", multiple=True,
            callback=lambda c, p, values: parse_by_name(map(parse_spec, values)),
            help="An input's shape in SECOND, likewise.")  # fmt: skip
@add_option("--params", metavar="FILE", help="The parameters of FIRST, if not beside it.")
@add_option("--other-params", metavar="FILE", help="The parameters of SECOND, likewise.")
@add_option("--data", metavar="NPZ",
            help="The inputs, by their names in SECOND; random if left out.")  # fmt: skip
@add_option(
    "--seed", type=click.IntRange(0), default=0, metavar="N", help="The seed of random inputs."
)
@add_option("--from", "from_format", choices=read_formats, metavar="FORMAT",
            help="The format of FIRST, where its content does not tell.")  # fmt: skip
@add_option("--other-from", "other_format", choices=read_formats, metavar="FORMAT",
            help="The format of SECOND, likewise.")  # fmt: skip
@add_options(*read_classes(), keep=tells_files)
@add_other_options
@add_options(ToleranceOptions)
@add_option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@with_report
@DEBUG
@click.pass_context
@with_local_models("first", "second")
@resume_collector()
def compare(
    context: click.Context, /, first: str, second: str, shown: Mapping[str, str], debug: bool,
    as_json: bool, report_path: str | None, **options: Any,
) -> None:  # fmt: skip
    """Run FIRST and SECOND, of any formats, on the same inputs and compare them.

    Exits with 0 where all outputs agree, 1 where one differs, 4 where nothing could be compared.
    """
    from serde.api.model_comparison import compare as compare_models

    names = [n for n in options if n.startswith(OTHER) and n not in DECLARED]
    other = {n.removeprefix(OTHER): options.pop(n) for n in names}
    report = compare_models(first, second, other=other, **options)
    report.first, report.second = shown[first], shown[second]
    verification = report.verification
    saved = save_report(report, report_path, "the models are compared")
    if as_json:
        print_lines(report.to_json())
    else:
        show_verification(verification)
        show_not_compared(verification, shown=True)
    code = NOT_COMPARED if not verification.done else DONE if verification.ok else FAILED
    context.exit(code or saved)
