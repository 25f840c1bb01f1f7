"""Relay modules: TVM's text and JSON forms and parameter files, read and written without TVM."""

from __future__ import annotations

from serde.plugins import Format

from . import decode, encode, from_ir, target, to_ir
from .io.discover import claims
from .rules import reads

__all__ = ["FORMAT"]

FORMAT = Format(
    name="relay",
    suffixes=(".relay", ".json"),
    claims=claims,
    decode=decode.decode,
    to_ir=to_ir.to_ir,
    from_ir=from_ir.from_ir,
    encode=encode.encode,
    options={
        "decode": frozenset({"params", "entry", "ignore_extra", "tvm"}),
        "to_ir": frozenset({"rules", "random"}),
        "from_ir": frozenset({"functions"}),
    },
    tables=(reads, target.writes),
)
