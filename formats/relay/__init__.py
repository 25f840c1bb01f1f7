"""Relay modules: TVM's text and JSON forms and parameter files, read and written without TVM."""

from __future__ import annotations

from serde.plugins import Deferred, Format

from .io.magic import matches

FORMAT = Format(
    name="relay",
    suffixes=(".relay", ".json"),
    claims=matches,
    decode=Deferred("serde.formats.relay.decode:decode"),
    to_ir=Deferred("serde.formats.relay.to_ir:to_ir"),
    from_ir=Deferred("serde.formats.relay.from_ir:from_ir"),
    encode=Deferred("serde.formats.relay.encode:encode"),
    options={
        "decode": frozenset({"params", "entry", "ignore_extra", "tvm"}),
        "to_ir": frozenset({"rules", "random"}),
        "from_ir": frozenset({"functions"}),
    },
    tables=(
        Deferred("serde.formats.relay.to_ir:reads"),
        Deferred("serde.formats.relay.from_ir:writes"),
    ),
)
