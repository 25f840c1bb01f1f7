"""The parsers of untrusted bytes by themselves, in memory: thousands of inputs a second."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from serde.ir.budget import within_budget


def parse(reader: str, data: bytes) -> None:
    """Parse ``data`` by one of ``PARSERS``, with the budget of one conversion."""
    with within_budget() as budget:
        budget.add_bytes(len(data))
        PARSERS[reader](data)


@cache
def _place() -> Path:
    """A file in memory, for parsers that map what they read."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="serde-fuzz-", dir=memory if memory.is_dir() else None)
    return Path(folder) / "input"


def _onnx(data: bytes) -> None:
    from serde.formats.onnx.reader import read_model

    _place().write_bytes(data)
    read_model(_place())


def _symbol(data: bytes) -> None:
    from serde.formats.mxnet.io.symbol_json import parse_symbol

    parse_symbol(data)


def _params(data: bytes) -> None:
    from serde.formats.mxnet.io.params import parse_params

    for tensor in parse_params(data, "input").tensors:
        tensor.load()


def _relay_text(data: bytes) -> None:
    from serde.formats.relay.text.parser import parse_text

    parse_text(data)


def _relay_json(data: bytes) -> None:
    from serde.formats.relay.json.reader import parse_json

    parse_json(data)


def _relay_params(data: bytes) -> None:
    from serde.formats.relay.io.params import read_params

    _place().write_bytes(data)
    for tensor in read_params(_place()).values():
        tensor.load()


def _pt2(data: bytes) -> None:
    from serde.formats.pt2.decode import decode

    _place().write_bytes(data)
    for value in decode(_place()).constants():
        assert value.tensor is not None
        value.tensor.load()


def _tflite(data: bytes) -> None:
    from serde.formats.tflite.decode import decode

    _place().write_bytes(data)
    for value in decode(_place()).constants():
        value.array()


PARSERS: dict[str, Callable[[bytes], None]] = {
    "onnx": _onnx,
    "mxnet-symbol": _symbol,
    "mxnet-params": _params,
    "relay-text": _relay_text,
    "relay-json": _relay_json,
    "relay-params": _relay_params,
    "pt2": _pt2,
    "tflite": _tflite,
}
