"""``serde bench``: how long models take, and how much memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from serde.cli.options import DocumentedCommand, add_option, give, parse_by_name
from serde.cli.printing import print_line, print_lines
from serde.cli.streams import with_local_models
from serde.io.gc_pause import resume_collector
from serde.passes.cut_inputs import parse_spec


@click.command(cls=DocumentedCommand)
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
@add_option("--data", metavar="NPZ",
            help="The inputs, by their names in the first model; random if left out.")  # fmt: skip
@add_option("--input", "inputs", metavar="NAME=DIMS[:dtype]", multiple=True,
            callback=lambda c, p, values: parse_by_name(map(parse_spec, values)),
            help="An input's shape in the first model, where its file leaves it open.",
            details="May be given several times.")  # fmt: skip
@add_option("--params", metavar="FILE", help="The parameters of the first, if not beside it.")
@add_option(
    "--seed", type=click.IntRange(0), default=0, metavar="N", help="The seed of random inputs."
)
@add_option("--seconds", type=click.FloatRange(min=0), default=5.0, metavar="N", show_default=True,
            help="How long to measure.", details="7 rounds are measured at least.")  # fmt: skip
@add_option("--threads", type=click.IntRange(min=1), default=1, metavar="N", show_default=True,
            help="How many threads each framework has, up to the machine's cores.")  # fmt: skip
@add_option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@add_option("--debug", is_flag=True, help="Show where an error came from.")
@with_local_models("models")
@resume_collector()
def bench(
    models: tuple[str, ...], shown: Mapping[str, str], debug: bool, as_json: bool, **options: Any
) -> None:
    """Measure the time and memory of MODELS, of any formats, each in its framework.

    Partitioned models are among them: each part in its runtime.

    They run on the same inputs, in turn, each in a process of its own. Ratios are to the first.
    """
    from serde.api.bench import bench as measure

    result = measure(models, **give(**options))
    result = replace(
        result, models=[replace(each, model=shown[each.model]) for each in result.models]
    )
    if as_json:
        print_lines(json.dumps(result.to_dict(), indent=2))
    else:
        for line in result.describe():
            print_line(line)
