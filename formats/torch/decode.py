"""Python is not read back."""

from __future__ import annotations

from typing import NoReturn

from serde.errors import UnknownFormat


def decode(path: str) -> NoReturn:
    """Refuse: a program is no model file.

    Raises:
        UnknownFormat: always.
    """
    raise UnknownFormat(
        f"{path} is a Python program, which is not read: export the module "
        "(torch.onnx.export or torch.export.save) and convert that file"
    )


to_ir = decode
