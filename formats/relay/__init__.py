"""Relay modules: TVM's text and JSON forms and parameter files, read and written without TVM."""

from __future__ import annotations

from serde.plugins import Deferred, Format
from serde.plugins import options as opts


class RelayReadOptions(
    opts.RuleOptions, opts.RandomOptions, opts.IntegerOptions, opts.ParamsOptions, opts.ReadOptions,
):  # fmt: skip
    """What a Relay module is read with."""

    entry: str | None = opts.option(
        "The function that is the model; main if left out.", flags=("--entry",), metavar="NAME",
        is_run=True,
    )  # fmt: skip
    tvm: str | None = opts.option(
        "The release of TVM that wrote a module, as 0.7, where the file does not tell.",
        "Needed where an operator changed its meaning between releases.", metavar="RELEASE",
        is_run=True,
    )  # fmt: skip


class RelayWriteOptions(opts.FunctionOptions, opts.WriteOptions):
    """What a Relay module is written with."""


FORMAT = Format.in_package(
    __name__,
    name="relay",
    title="Relay",
    next_step={
        ".relay": "tvm.relay.fromtext(open({name!r}).read())",
        ".json": "tvm.ir.load_json(open({name!r}).read())",
    },
    runtime="tvm",
    suffixes=(".relay", ".json"),
    matches=Deferred(f"{__name__}.io.magic:matches"),
    read_options=RelayReadOptions,
    write_options=RelayWriteOptions,
    read_arrays=Deferred("serde.formats.relay.io.params:read_arrays"),
)
