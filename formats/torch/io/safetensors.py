"""Weights in the safetensors form.

Eight bytes with the length of a JSON object, little-endian; the object, which has element type,
shape and place of each array by name; and the arrays' bytes, row-major. Source: the format section
of https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from serde.errors import MalformedFile
from serde.io.atomic_write import Sources
from serde.io.named_file import stat_open
from serde.io.tensor_bytes import pack
from serde.ir.graph import DType, Tensor

CODES = {
    DType.FLOAT64: "F64", DType.FLOAT32: "F32", DType.FLOAT16: "F16", DType.BFLOAT16: "BF16",
    DType.INT64: "I64", DType.INT32: "I32", DType.INT16: "I16", DType.INT8: "I8",
    DType.UINT64: "U64", DType.UINT32: "U32", DType.UINT16: "U16", DType.UINT8: "U8",
    DType.BOOL: "BOOL",
}  # fmt: skip
LENGTH, LONGEST = 8, 100 << 20  # bytes of the length, and that the object may have
ALIGNMENT = 8  # bytes that the length of the object is a multiple of


def write(
    arrays: Mapping[str, Tensor], metadata: Mapping[str, str], sources: Sources, out: BinaryIO
) -> None:
    """Write ``arrays``; those that lie in a file are copied from it.

    ``metadata`` goes to ``__metadata__``, where other writers of the form put the further names of
    arrays that a model holds twice. Large elements come first, so that each array begins at a
    multiple of its elements' size.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.bits)
    header: dict[str, object] = {"__metadata__": {"format": "pt", **metadata}}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [start, end]}  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    out.write(struct.pack("<Q", len(text)) + text)
    for _, tensor in ordered:
        if tensor.where is not None:
            sources.copy(tensor.where, out)
        else:
            out.write(pack(tensor.load(), tensor.dtype).tobytes())


def read_header(file: BinaryIO, path: Path) -> Mapping[str, Any]:
    """The object at the beginning of an open file.

    Raises:
        MalformedFile: for a file that is not of this form.
    """
    size = stat_open(file).st_size
    length = int.from_bytes(file.read(LENGTH), "little")
    if size < LENGTH or length > min(size - LENGTH, LONGEST):
        raise MalformedFile(path, "it is not of the safetensors form, or cut short")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise MalformedFile(path, f"its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise MalformedFile(path, "its header is no JSON object")
    return header
