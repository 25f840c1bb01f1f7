"""``serde run``: what a model computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from serde.cli.options import DocumentedCommand, add_option, add_options, claim_output, give
from serde.cli.partition_commands import parse_runtimes
from serde.cli.printing import print_line
from serde.cli.streams import with_local_models
from serde.errors import UsageError
from serde.io.gc_pause import resume_collector
from serde.ir.dtype import DType
from serde.plugins import read_classes, read_formats


@click.command(cls=DocumentedCommand)
@click.argument("source", metavar="MODEL")
@add_option("--data", metavar="NPZ",
            help="The inputs: an array for each name; random if left out.")  # fmt: skip
@add_option("-o", "--output", "target", metavar="NPZ",
            help="The outputs, an array for each name; they are only described if left out.",
            )  # fmt: skip
@add_option("--from", "from_format", choices=read_formats, metavar="FORMAT",
            help="The model's format, where its content does not tell.")  # fmt: skip
@add_option("--runtime", "runtimes", multiple=True, metavar="ROLE=NAME",
            help="Where parts run: accelerator=onnxruntime, remainder=mxnet, or a part by name.",
            details="Those of their formats if left out.")  # fmt: skip
@add_option("--finite", is_flag=True,
            help="Refuse results with infinities or NaN, and name the layer, or the part.",
            )  # fmt: skip
@add_option("--times", is_flag=True, help="Print how long the model, or each part, ran.")
@add_options(*read_classes(), keep=lambda option: option.is_run)
@add_option("--debug", is_flag=True, help="Show where an error came from.")
@with_local_models("source")
@resume_collector()
def run(
    source: str, shown: Mapping[str, str], data: str | None, target: str | None,
    runtimes: tuple[str, ...], finite: bool, times: bool, debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Run MODEL in the framework of its format, or a partitioned one in its runtimes."""
    from serde.backends.runner import has_parts, run_files
    from serde.io.arrays import is_npz

    if target is not None:
        if not target.endswith(".npz"):
            raise UsageError(f"the outputs are an .npz file, and not {target!r}")
        claim_output(target, is_npz, ".npz file")
    named, reading = parse_runtimes(runtimes), give(**options)
    feeds: Any = data
    if data is None:
        from serde.api.bench import make_inputs
        from serde.verification.random_inputs import SEED

        known = {n: v for n, v in reading.items() if n != "from_format"}
        feeds = make_inputs([source], known, SEED)
        if has_parts(source):  # which take no other options
            reading.pop("inputs", None)
        print_line(f"on random inputs, seed {SEED}: --data in.npz gives others", err=True)
    outputs, seconds = run_files(source, feeds, target, named, finite, **reading)
    for name, array in outputs.items():
        if isinstance(array, list):
            print_line(f"  {name}: a sequence of {len(array)}")
        else:
            print_line(f"  {name}: {DType.of(array.dtype).title} {list(array.shape)}")
    for name, duration in seconds.items() if times else ():
        print_line(f"  {name}: {1000 * duration:.1f} ms")
