"""Files packed with gzip, compared with Python's own reading of them."""

from __future__ import annotations

import gzip
import io
import struct
import zlib

import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.io.gzip_stream import GzipStream
from serde.ir.budget import within_budget
from testing.cpu_limit import limit_cpu

BIG = 20 << 20  # bytes that gzip.GzipFile takes seconds for
NAME, COMMENT, EXTRA = 8, 16, 4  # flags of a header


def make_member(data, flags=0, *fields):
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = engine.compress(data) + engine.flush()
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff" + b"".join(fields)
    return head + body + struct.pack("<II", zlib.crc32(data), len(data))


def open_stream(packed):
    return GzipStream(io.BytesIO(packed), "m.gz", "what is inflated")


def make_streams():
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 9, n).astype("uint8").tobytes() for n in (0, 1, 70_000, 3_000_000)]
    yield gzip.compress(texts[3])
    yield b"".join(map(make_member, texts))
    yield make_member(texts[2], NAME | COMMENT, b"n" * 40_000 + b"\0", b"c\0") + bytes(50_000)
    yield make_member(texts[2]) + bytes(16_384) + make_member(texts[1], EXTRA, b"\2\0ab") + bytes(9)


@pytest.mark.parametrize(
    "packed", [*make_streams()], ids=["one", "several", "long header", "zeros"]
)
def test_streams_are_read_as_python_reads_them(packed):
    expected = gzip.decompress(packed)
    assert open_stream(packed).read() == expected
    ours, theirs = open_stream(packed), gzip.GzipFile(fileobj=io.BytesIO(packed))
    for at in np.random.default_rng(1).integers(0, len(expected) + 9, (20, 2)):
        assert ours.seek(int(at[0])) == theirs.seek(int(at[0])) == ours.tell()
        assert ours.read(int(at[1])) == theirs.read(int(at[1]))


LONG = {
    "name": make_member(b"a", NAME, b"n" * BIG + b"\0"),
    "comment": make_member(b"a", COMMENT, b"c" * BIG + b"\0"),
    "no end": make_member(b"a", NAME, b"n" * BIG)[:BIG],
    "zeros": make_member(b"a") + bytes(BIG),
    "extras": make_member(b"", EXTRA, b"\xff\xff" + bytes(0xFFFF)) * (BIG >> 16),
    "members": make_member(b"a") * (BIG // 21),
}


@pytest.mark.parametrize("name", LONG)
def test_what_holds_nothing_takes_no_time(name):
    refused = {"no end": EOFError, "members": MalformedFile}
    with limit_cpu(1):
        if name in refused:
            with pytest.raises(refused[name]):
                open_stream(LONG[name]).read()
        else:
            assert open_stream(LONG[name]).read() == (b"" if name == "extras" else b"a")


@pytest.mark.parametrize("cut", [1, 9, 12, -1, -5])
def test_a_damaged_stream_is_told(cut):
    packed = gzip.compress(bytes(range(200)))
    for broken in (packed[:cut], packed + b"x", packed[:-6] + b"ab" + packed[-4:]):
        with pytest.raises((EOFError, zlib.error)):
            open_stream(broken).read()


def test_all_that_is_inflated_is_charged():
    with within_budget() as budget:
        stream = open_stream(gzip.compress(bytes(5_000_000)))
        stream.read()
        assert budget.bytes == 5_000_000
        stream.seek(1000)
        assert budget.bytes == 5_001_000
        budget.most_bytes = 6_000_000
        with pytest.raises(MalformedFile, match="proportion"):
            stream.seek(5_000_000)
