"""Files of weights in the safetensors form."""

from __future__ import annotations

import io
import json

import numpy as np

from serde.formats.torch.io.safetensors import write
from serde.io.atomic_write import Sources
from serde.ir.graph import DType, Tensor

ARRAYS = {
    "flags": np.array([True, False, True]),
    "bytes": np.arange(5, dtype=np.uint8),
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "long": np.array(7, np.int64),
    "double": np.zeros((0, 3)),
}


def test_the_header_tells_where_each_array_is() -> None:
    out = io.BytesIO()
    with Sources() as sources:
        write({n: Tensor.of(a) for n, a in ARRAYS.items()}, {"tied": "w"}, sources, out)
    data = out.getvalue()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    assert start % 8 == 0
    assert header.pop("__metadata__") == {"format": "pt", "tied": "w"}
    types = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "U8": "u1", "BOOL": "?"}
    ends = []
    for name, array in ARRAYS.items():
        entry = header[name]
        begin, end = entry["data_offsets"]
        assert begin % max(array.itemsize, 1) == 0
        stored = np.frombuffer(data[start + begin : start + end], types[entry["dtype"]])
        np.testing.assert_array_equal(stored.reshape(entry["shape"]), array)
        ends.append(end)
    assert len(data) == start + max(ends)


def test_bfloat16_is_written_as_it_is() -> None:
    array = np.array([1.5, -2], DType.BFLOAT16.numpy)
    out = io.BytesIO()
    with Sources() as sources:
        write({"h": Tensor.of(array)}, {}, sources, out)
    assert out.getvalue().endswith(array.tobytes())
