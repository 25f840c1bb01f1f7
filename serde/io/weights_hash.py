"""A SHA-256 over a model's weights, to tell later whether they are still those it was written with.

It tells of a damaged or exchanged file of external data. It is no signature: who can rewrite the
model as well can write another hash into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from serde.errors import MalformedFile
from serde.io.tensor_bytes import bytes_of, open_part
from serde.ir.graph import DType, FileSlice, Graph, Tensor

KEY = "serde.weights.sha256"  # in a model's metadata
CHUNK = 1 << 18  # bytes


def weights_hash(graph: Graph) -> str:
    """The hash of a graph's constants, those of subgraphs included, in the order of their names.

    Of each it takes name, element type, shape and bytes, as ONNX stores them. Weights that lie in
    files are read in pieces.
    """
    import hashlib

    total = hashlib.sha256()
    for value in sorted(graph.constants(), key=lambda v: v.name):
        assert value.tensor is not None
        head = json.dumps([value.name, value.tensor.dtype.value, value.tensor.shape]).encode()
        total.update(len(head).to_bytes(8, "little") + head)
        for piece in _pieces(value.tensor):
            total.update(piece)
    return total.hexdigest()


def _pieces(tensor: Tensor) -> Iterator[Any]:
    if tensor.dtype is DType.STRING:
        for text in tensor.load().ravel().tolist():
            raw = text if isinstance(text, bytes) else str(text).encode()
            yield len(raw).to_bytes(8, "little") + raw
    elif tensor.where is not None:
        yield from _read(tensor.where, tensor)
    else:
        yield bytes_of(tensor)


def _read(where: FileSlice, tensor: Tensor) -> Iterator[Any]:
    """Bytes of a file as ``pack`` would give them: truth is 1, what fills the last byte 0."""
    left = where.nbytes
    with open_part(where) as file:
        file.seek(where.offset)
        while left:
            piece = file.read(min(CHUNK, left))
            if not piece:
                raise MalformedFile(where.path, "it became shorter while it was read")
            left -= len(piece)
            if tensor.dtype is DType.BOOL:
                piece = (np.frombuffer(piece, np.uint8) != 0).tobytes()
            used = tensor.size * tensor.dtype.bits % 8
            if used and not left:
                piece = piece[:-1] + bytes([piece[-1] & ((1 << used) - 1)])
            yield piece
