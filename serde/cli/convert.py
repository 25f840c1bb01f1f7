"""``serde convert``: one model to another format."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import click

from serde.cli.context import DONE, FAILED, NOT_COMPARED
from serde.cli.images import with_images
from serde.cli.options import (
    SOURCE,
    TO,
    DocumentedCommand,
    add_isolation,
    add_option,
    add_options,
    add_read_options,
    add_write_options,
    give,
    with_report,
)
from serde.cli.progress import show_stages
from serde.cli.show import (
    save_report,
    show_conversion,
    show_next_step,
    show_not_compared,
    show_verification,
)
from serde.cli.streams import STREAM, open_source, open_target
from serde.errors import Unconvertible
from serde.io.command_files import active_files
from serde.plugins.command_options import ToleranceOptions, VerifyOptions
from serde.plugins.options import VERIFICATION


@click.command(cls=DocumentedCommand)
@SOURCE
@add_option("-o", "--output", "target", required=True, metavar="FILE", help="The file to write.")
@add_read_options()
@add_write_options()
@TO
@add_options(VerifyOptions)
@add_option("--verify-strict", "strict", group=VERIFICATION, is_flag=True,
            help="Verify, and exit with 4 where nothing could be compared.")  # fmt: skip
@add_options(ToleranceOptions)
@with_images
@with_report
@add_option("-q", "--quiet", is_flag=True,
            help="Print nothing but errors and failed verifications.")  # fmt: skip
@add_isolation
@click.pass_context
def convert(
    context: click.Context, /, source: str, target: str, quiet: bool, debug: bool,
    report_path: str | None, verify: str | None, strict: bool, **options: Any,
) -> None:  # fmt: skip
    """Convert SOURCE, a file, prefix, folder or archive, to another format.

    SOURCE and FILE may be URLs, or - for the standard input and output.
    """
    from serde import api
    from serde.api.source_names import find_path, is_remote, name_source

    if target != STREAM and not is_remote(target):
        active_files().claim_output(find_path(target), may_be_source=True)
    kwargs = give(**options)
    quiet = quiet or target == STREAM
    place = open_target(target, options["to_format"]) if target == STREAM else nullcontext(target)
    try:
        with open_source(source) as local_source, place as path, show_stages(quiet) as progress:
            report = api.convert(
                local_source, path, verify=verify or strict, progress=progress, **kwargs
            )
            name_source(report, local_source, source)
            report.target = target
            if target == STREAM:
                report.files = [STREAM]
                if report.provenance is not None:
                    report.provenance.relocate(os.path.dirname(path), "")
    except Unconvertible as error:
        if error.report is not None:
            save_report(error.report, report_path, "nor is the model converted")
        raise
    saved = save_report(report, report_path, f"the model is: {target}")
    if not quiet:
        show_conversion(report)
        show_next_step(report)
    verification = report.verification
    if verification is not None and not (quiet and verification.ok):
        show_verification(verification, err=quiet)
    if verification is not None:
        show_not_compared(verification, strict or not quiet)
    code = DONE if report.ok else FAILED
    code = NOT_COMPARED if code == DONE and strict and not verification.done else code
    context.exit(code or saved)
