"""Writes weights in the safetensors form.

Eight bytes with the length of a JSON object, little-endian; the object, which has element type,
shape and place of each array by name; and the arrays' bytes, row-major. Source: the format section
of https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import BinaryIO

from serde.io.atomic_write import Sources
from serde.io.tensor_bytes import pack
from serde.ir.graph import DType, Tensor

CODES = {
    DType.FLOAT64: "F64", DType.FLOAT32: "F32", DType.FLOAT16: "F16", DType.BFLOAT16: "BF16",
    DType.INT64: "I64", DType.INT32: "I32", DType.INT16: "I16", DType.INT8: "I8",
    DType.UINT64: "U64", DType.UINT32: "U32", DType.UINT16: "U16", DType.UINT8: "U8",
    DType.BOOL: "BOOL",
}  # fmt: skip
ALIGNMENT = 8  # bytes that the length of the object is a multiple of


def write(
    arrays: Mapping[str, Tensor], shared: Mapping[str, str], sources: Sources, out: BinaryIO
) -> None:
    """Write ``arrays``; those that lie in a file are copied from it.

    ``shared`` are further names of arrays: they go to ``__metadata__``, as other writers of the
    form do for arrays that a model holds twice. Wide elements come first, so that each array begins
    at a multiple of its elements' size.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.bits)
    header: dict[str, object] = {"__metadata__": {"format": "pt", **shared}}
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
