"""MXNet models: symbol JSON and parameter files, read and written without MXNet."""

from __future__ import annotations

from serde.plugins import Deferred, Format

from .io.discover import matches

FORMAT = Format(
    name="mxnet",
    suffixes=("-symbol.json",),
    claims=matches,
    decode=Deferred("serde.formats.mxnet.decode:decode"),
    to_ir=Deferred("serde.formats.mxnet.to_ir:to_ir"),
    from_ir=Deferred("serde.formats.mxnet.from_ir:from_ir"),
    encode=Deferred("serde.formats.mxnet.io.symbol_writer:encode"),
    options={
        "decode": frozenset({"params", "epoch", "ignore_extra", "match_params", "outputs"}),
        "to_ir": frozenset(
            {
                "rules",
                "random",
                "custom_domain",
                "custom_outputs",
                "nms",
                "integers",
                "dequantize",
                "outputs",
                "missing_weights",
                "kernels",
            }
        ),
        "from_ir": frozenset({"mxnet"}),
        "encode": frozenset({"mxnet", "write_epoch"}),
    },
    tables=(
        Deferred("serde.formats.mxnet.to_ir:reads"),
        Deferred("serde.formats.mxnet.from_ir:writes"),
    ),
    check_target=Deferred("serde.formats.mxnet.io.symbol_writer:check_target"),
)
