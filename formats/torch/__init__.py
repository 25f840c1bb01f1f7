"""PyTorch modules as source code with their weights, written without PyTorch."""

from __future__ import annotations

from pathlib import Path

from serde.io.sniff import HEAD, open_uncharged
from serde.plugins import Deferred, Format
from serde.plugins import options as opts

WRITTEN = "written by serde."


class TorchWriteOptions(opts.WriteOptions):
    """What the source of a PyTorch module is written with."""

    class_name: str | None = opts.option(
        "The name of the class; that of the model if left out.", metavar="NAME"
    )
    names: str | None = opts.option(
        "Members named after the source's layers: short (the default) or as they are (source).",
        choices=("short", "source"),
    )
    flat: bool | None = opts.option(
        "One class, whose modules are not nested.",
        "Otherwise they are nested as the source's names say, and repeated blocks are one class.",
        kind="flag",
    )  # fmt: skip
    inference: bool | None = opts.option(
        "Leave out what only training needs.",
        "Otherwise Dropout stays, and BatchNorm moves its statistics as the source does.",
        kind="flag", is_request=True,
    )  # fmt: skip
    exportable: bool | None = opts.option(
        "Branches and loops are torch.cond and while_loop, which torch.export takes.",
        "Otherwise they are statements of Python.",
        kind="flag", is_request=True,
    )  # fmt: skip


def matches(path: Path) -> bool:
    """Whether the file at ``path`` is a module that serde wrote."""
    if not path.is_file() or path.suffix != ".py":
        return False
    with open_uncharged(path) as file:
        return WRITTEN.encode() in file.readline(HEAD)


FORMAT = Format(
    name="torch",
    title="PyTorch",
    replaces={"onnx2torch": "write the PyTorch module itself (-o net.py, or --to torch)"},
    next_step="load() of {name!r} makes the model",
    runtime="torch",
    read_interface=Deferred(f"{__name__}.interface:read_interface"),
    instead_of_reading="export the module (torch.onnx.export or torch.export.save) and convert "
    "that file",
    suffixes=(".py",),
    matches=matches,
    reading=lambda options: {} if options.get("inference") else {"training": True},
    from_ir=Deferred(f"{__name__}.from_ir:from_ir"),
    encode=Deferred(f"{__name__}.encode:encode"),
    write_options=TorchWriteOptions,
    tables=(Deferred(f"{__name__}.from_ir:writes"),),
)
