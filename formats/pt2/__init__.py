"""Exported programs of PyTorch, ``.pt2`` files, read without PyTorch."""

from __future__ import annotations

from serde.plugins import Deferred, Format
from serde.plugins import options as opts


class Pt2ReadOptions(opts.RuleOptions, opts.RandomOptions, opts.ReadOptions):
    """What an exported program is read with."""


FORMAT = Format(
    name="pt2",
    title="PyTorch exported program",
    next_step="torch.export.load({name!r})",
    suffixes=(".pt2",),
    matches=Deferred(f"{__name__}.io.archive:matches"),
    name_other=Deferred(f"{__name__}.io.archive:name_pickled"),
    decode=Deferred(f"{__name__}.decode:decode"),
    to_ir=Deferred(f"{__name__}.to_ir:to_ir"),
    read_options=Pt2ReadOptions,
    tables=(Deferred(f"{__name__}.to_ir:reads"),),
)
