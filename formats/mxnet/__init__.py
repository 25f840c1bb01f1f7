"""MXNet models: symbol JSON and parameter files, read and written without MXNet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde.plugins import Deferred, Format
from serde.plugins.options import (
    IntegerOptions,
    ParamsOptions,
    RandomOptions,
    ReadOptions,
    RuleOptions,
    WriteOptions,
    option,
)

from .io.discover import matches


class MxnetReadOptions(RuleOptions, RandomOptions, IntegerOptions, ParamsOptions, ReadOptions):
    """What an MXNet model is read with. ``missing_weights="infer"`` is for checks."""

    epoch: int | None = option(
        "Which epoch's parameters; the last if left out.", kind="integer", least=0, is_run=True
    )
    match_params: bool | None = option(
        "Pair arrays and variables of other names by kind, shape and order.",
        "For files of Gluon's `save_parameters`. Arrays and variables of one kind (weight, bias, "
        "…) are paired one by one, if their shapes fit, in the order in which the numbers in names "
        "(`dense0`, `dense1`) say that blocks were made, and in which blocks of other names fit "
        "the file's. Where several orders of such blocks fit, it is refused. Every pair is "
        "printed, and a note tells where the order of use fits as well: compare outputs with the "
        "block's own (`--data`, `--expected`), as `--verify` runs MXNet on the arrays as they were "
        "paired. `-model.json` of `HybridBlock.save` needs no guess.",
        kind="flag", is_run=True,
    )  # fmt: skip
    nms: str | None = option(
        "Whether a detector ends with its suppression (full, the default) or with all boxes.",
        "With `none` the model ends with the boxes and scores that its last suppression would "
        "choose from.",
        choices=("full", "none"),
    )  # fmt: skip
    kernels: str | None = option(
        "Whose results, where MXNet's kernels disagree: onednn (the default) or plain.",
        "`onednn`: those of MXNet as it is released; `plain`: those of a build without oneDNN, or "
        "with `MXNET_MKLDNN_ENABLED=0`. [mxnet-kernels.md](../results/mxnet-kernels.md) lists the "
        "operators.",
        choices=("onednn", "plain"), is_run=True, is_request=True,
    )  # fmt: skip
    custom_domain: str | None = option(
        "Keep operators MXNet does not define, in this ONNX domain.",
        "`Custom` operators are among them. In Python, `rules` converts them.", metavar="NAME",
        is_request=True,
    )  # fmt: skip
    custom_outputs: Mapping[str, Any] | None = option(
        "The shape of the output of an operator kept in the custom domain.",
        "Needed where later layers depend on it. In Python, `custom_outputs`.",
        kind="types", flags=("--custom-output",),
    )  # fmt: skip
    missing_weights: str | None = option(
        "Weights of which no file was found.", kind="object", choices=("refuse", "infer")
    )


class MxnetWriteOptions(WriteOptions):
    """What an MXNet model is written with."""

    mxnet: str | None = option(
        "The MXNet to write for: 1.2 to 2.0; 1.9.1 if left out.",
        "What the release lacks is written in operators that it has, or refused; "
        "[mxnet-releases.md](../results/mxnet-releases.md) tells what each makes of the node tests "
        "of ONNX and of MXNet's own operators.",
        metavar="RELEASE", is_checked=True,
    )  # fmt: skip
    write_epoch: int | None = option(
        "The epoch of MXNet's parameter file.",
        "It ends the file's name: `model-0010.params`. Where a later one lies beside the result, "
        "MXNet would load that instead: this is refused before any work is done.",
        kind="integer", least=0, default=0,
    )  # fmt: skip


FORMAT = Format.in_package(
    __name__,
    name="mxnet",
    title="MXNet",
    next_step="mxnet.model.load_checkpoint({stem!r}, {write_epoch})",
    runtime="mxnet",
    suffixes=("-symbol.json",),
    matches=matches,
    read_options=MxnetReadOptions,
    write_options=MxnetWriteOptions,
    encode=Deferred("serde.formats.mxnet.io.symbol_writer:encode"),
    check_target=Deferred("serde.formats.mxnet.io.symbol_writer:check_target"),
    read_arrays=Deferred("serde.formats.mxnet.io.params:read_arrays"),
)
