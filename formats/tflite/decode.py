"""Files of TensorFlow Lite are not read back."""

from __future__ import annotations

from typing import NoReturn

from serde.errors import UnknownFormat


def decode(path: str) -> NoReturn:
    """Refuse: files are written only.

    Raises:
        UnknownFormat: always.
    """
    raise UnknownFormat(f"{path}: files of TensorFlow Lite are written, not read: give the source")


to_ir = decode
