"""What is no model: one clear error in a moment, little memory, and what was there stays."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import serde
from serde.errors import MalformedFile, SerdeError, UsageError
from serde.formats.mxnet.decode import decode, decode_symbol
from serde.formats.mxnet.io.params import parse_params, read_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import reads, to_ir
from serde.ir import budget
from testing.cpu_limit import limit_cpu
from testing.fuzz import attempts
from testing.mxnet import written
from testing.mxnet.written import (
    array_bytes,
    node,
    npy_bytes,
    npz_bytes,
    params_bytes,
    shape_bytes,
    sparse_members,
    symbol,
    variable,
    zip_bytes,
)

SYMBOL, ARRAYS = written.network()
BEFORE = b"\x08\x08what was there before"  # as a model begins
PARAMS = params_bytes(ARRAYS)
NPZ = npz_bytes(ARRAYS)
SECONDS, BYTES = 1.0, 32 << 20  # that an error may take
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
HTML = b"\n <!DOCTYPE html>\n<html><body>404</body></html>"


@contextmanager
def frugal() -> Iterator[None]:
    """Fail where the block takes much time or memory."""
    tracemalloc.start()
    try:
        with limit_cpu(SECONDS):
            yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < BYTES, f"{peak} bytes"


def flip_byte(data: bytes, at: int, bits: int = 0xFF) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def with_array(raw: bytes) -> bytes:
    """Parameters with one array of the network spoilt."""
    return params_bytes({**ARRAYS, "convolution0_bias": raw})


def huge(*shape: int) -> bytes:
    """An array that claims a shape and holds nothing."""
    head = struct.pack("<Ii", 0xF993FAC9, 0) + shape_bytes(shape)
    return head + written.GPU + struct.pack("<i", 0)


def json_with(**fields: Any) -> str:
    return json.dumps({**json.loads(SYMBOL), **fields})


def rewire(index: int, *links: Any) -> str:
    nodes = json.loads(SYMBOL)["nodes"]
    nodes[index]["inputs"] = [list(link) for link in links]
    return json_with(nodes=nodes)


def sparse_claim(*shape: int) -> bytes:
    values, rows = np.zeros((0, *shape[1:]), "float32"), np.zeros(0, "int64")
    return written.sparse_bytes(1, shape, values, rows)


CONV = 3  # the number of the convolution's node
# What takes the place of the two files: the symbol, the parameters, and what the error says.
BAD: dict[str, tuple[str | bytes, bytes | None, str]] = {
    "symbol empty": (b"", PARAMS, "m-symbol.json: the file is empty"),
    "symbol LFS": (LFS, PARAMS, "m-symbol.json: a Git LFS pointer"),
    "symbol HTML": (HTML, PARAMS, "m-symbol.json: an HTML or XML page"),
    "symbol truncated": (SYMBOL[:500], PARAMS, "line 1 column"),
    "symbol flipped": (flip_byte(SYMBOL.encode(), 2), PARAMS, "m-symbol.json"),
    "symbol of parameters": (PARAMS, PARAMS, "m-symbol.json: MXNet's parameters, not symbol JSON"),
    "symbol of ONNX": (b"\x08\x08\x12\x05serde", PARAMS, "an ONNX model, not symbol JSON"),
    "symbol of zip": (NPZ, PARAMS, "a zip archive, not symbol JSON"),
    "symbol too deep": ('{"nodes": ' + "[" * 100_000, PARAMS, "it nests too deep"),
    "symbol of nothing": ("{}", PARAMS, "$: not symbol JSON: it has no list of nodes"),
    "a cycle": (rewire(CONV, (8, 0), (1, 0), (2, 0)), PARAMS, "a cycle"),
    "a node that is not": (rewire(CONV, (99, 0), (1, 0), (2, 0)), PARAMS, "reads node 99"),
    "an output that is not": (
        rewire(CONV, (0, 0), (1, 7), (2, 0)), PARAMS, "$.nodes[1]: a variable has one output",
    ),
    "outputs without end": (json_with(heads=[[CONV, 1 << 40, 0]]), PARAMS, "is read"),
    "params empty": (SYMBOL, b"", "m-0001.params: the file is empty"),
    "params LFS": (SYMBOL, LFS, "m-0001.params: a Git LFS pointer"),
    "params HTML": (SYMBOL, HTML, "m-0001.params: an HTML or XML page"),
    "params truncated": (SYMBOL, PARAMS[:-300], "m-0001.params, byte"),
    "params cut in a name": (SYMBOL, PARAMS[:-3], "claims a name of"),
    "params of a symbol": (SYMBOL, SYMBOL.encode(), "symbol JSON, not MXNet's parameters"),
    "params of ONNX": (SYMBOL, b"\x08\x08\x12\x05serde", "an ONNX model, not MXNet's parameters"),
    "params of text": (SYMBOL, b"weights", "it does not begin with 0x112"),
    "params flipped": (SYMBOL, flip_byte(PARAMS, 24), "array 0 begins with"),
    "params count": (SYMBOL, flip_byte(PARAMS, 20), "claims 1095216660488 arrays"),
    "a shape too large": (SYMBOL, with_array(huge(1 << 30, 1 << 20)), "needs 4503599627370496"),
    "a shape beyond numbers": (SYMBOL, with_array(huge(*[1 << 62] * 9)), "claims an array of"),
    "sparse too large": (SYMBOL, with_array(sparse_claim(1 << 40, 4)), "max_growth= allows more"),
    "missing": (SYMBOL, params_bytes({}), "8 parameter(s) are missing"),
    "missing file": (SYMBOL, None, "no m-0000.params or the like"),
    "misspelt": (
        SYMBOL, params_bytes({n.replace("0_bias", "0_biass"): a for n, a in ARRAYS.items()}),
        "ignore_extra=",
    ),
    "wrong shape": (SYMBOL, with_array(array_bytes(np.zeros(5, "float32"))), "takes (4)"),
    "zip cut": (SYMBOL, NPZ[:-30], "a zip archive that cannot be read"),
    "zip of text": (SYMBOL, zip_bytes({"x.npy": b"hello"}), "member 'x.npy' is no array"),
    "zip bomb": (
        SYMBOL, zip_bytes({"x.npy": npy_bytes(np.zeros(1 << 26))}), "max_growth= allows more",
    ),
    "zip of objects": (SYMBOL, zip_bytes({"x.npy": npy_bytes(np.zeros(2), "'|O8'")}), "holds O8"),
    "zip of a sparse claim": (
        SYMBOL, zip_bytes(sparse_members(
            "convolution0_bias", "row_sparse", data=np.zeros((0, 9)), shape=[1 << 40, 9],
            indices=np.zeros(0, "int64"))), "max_growth= allows more",
    ),
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Path]:
    """Lay out a model and an older result; give back the prefix."""

    def lay_out(text: str | bytes, params: bytes | None) -> Path:
        raw = text.encode() if isinstance(text, str) else text
        (tmp_path / "m-symbol.json").write_bytes(raw)
        if params is not None:
            (tmp_path / "m-0001.params").write_bytes(params)
        (tmp_path / "out.onnx").write_bytes(BEFORE)
        return tmp_path / "m"

    return lay_out


def is_unchanged(folder: Path) -> bool:
    """Whether the older result is as it was, and nothing new is beside it."""
    known = {"m-symbol.json", "m-0001.params", "out.onnx"}
    left = {p.name for p in folder.iterdir()} - known
    return not left and (folder / "out.onnx").read_bytes() == BEFORE


def test_the_network_itself_is_good(model, tmp_path: Path) -> None:
    serde.convert(model(SYMBOL, PARAMS), tmp_path / "out.onnx")
    assert not is_unchanged(tmp_path)


@pytest.mark.parametrize("case", BAD)
def test_bad(case: str, model, tmp_path: Path) -> None:
    text, params, reason = BAD[case]
    prefix = model(text, params)
    with frugal(), pytest.raises(SerdeError) as caught:
        serde.convert(prefix, tmp_path / "out.onnx")
    assert isinstance(caught.value, MalformedFile)
    message = str(caught.value)
    assert reason in message and (str(tmp_path) in message)
    assert is_unchanged(tmp_path)


@pytest.mark.parametrize("case", ["symbol HTML", "params truncated", "missing", "a cycle"])
def test_the_command_line_says_the_same(case: str, model, tmp_path: Path) -> None:
    text, params, reason = BAD[case]
    command = [sys.executable, "-m", "serde", "convert", str(model(text, params))]
    if not (Path(serde.__file__).parent / "__main__.py").is_file():
        command[1:3] = ["-c", "from serde.cli.commands import main; main()"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out.onnx")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and reason in done.stderr and "Traceback" not in done.stderr
    assert is_unchanged(tmp_path)


def test_an_onnx_file_called_mxnets(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x08\x12\x05serde")
    with pytest.raises(MalformedFile, match="an ONNX model, not symbol JSON"):
        serde.load(path, format="mxnet")


@pytest.mark.parametrize("name", ["", "folder", "nowhere/out.onnx"])
def test_outputs_that_cannot_be(name: str, model, tmp_path: Path) -> None:
    prefix = model(SYMBOL, PARAMS)
    (tmp_path / "folder").mkdir()
    with frugal(), pytest.raises(UsageError):
        serde.convert(prefix, tmp_path / name, to_format="onnx")
    (tmp_path / "folder").rmdir()
    assert is_unchanged(tmp_path)


def bomb(header: bytes) -> bytes:
    """A compressed tar of a kilobyte or so with a gigabyte behind ``header``."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed:
        packed.write(header)
        for _ in range(96):
            packed.write(bytes(1 << 20))
    return out.getvalue()


def header_of(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


ARCHIVES = {
    "claims": (header_of("m-0001.params", 1 << 42), "claims more than a model can hold"),
    "packed claims": (gzip.compress(header_of("a", 1 << 42)), "claims more than a model can hold"),
    "a bomb": (bomb(header_of("m.params", 96 << 20)), "claims more than a model"),
    "a long name": (bomb(header_of("x", 96 << 20, tarfile.GNUTYPE_LONGNAME)), "claims more than a model can hold"),
    "an extended header": (bomb(header_of("x", 96 << 20, tarfile.XHDTYPE)), "claims more than a model can hold"),
    "a negative size": (header_of("a", -512) + bytes(1024), "m.tar"),
    "many members": (b"".join(header_of(f"{i}", 0) for i in range(500)) + bytes(1024), "claims"),
    "cut": (header_of("m-symbol.json", 4096) + b"{", "m.tar"),
    "not packed well": (gzip.compress(header_of("m-symbol.json", 3) + bytes(2048))[:-20], "m.tar"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARCHIVES)
def test_bad_archives(case: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("serde.io.archive.MOST_MEMBERS", 400)
    monkeypatch.setattr(budget, "BYTES", budget.Limit(1 << 26, 64))
    data, reason = ARCHIVES[case]
    path = tmp_path / "m.tar"
    path.write_bytes(data)
    with frugal(), pytest.raises(MalformedFile) as caught:
        serde.load(path)
    assert reason in str(caught.value) and str(path) in str(caught.value)


# Any damage at all: an error of ours, or a model.
examples = settings(
    max_examples=150, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
damage = st.lists(
    st.tuples(st.sampled_from(("flip", "cut", "insert", "zero")), st.integers(0, 1 << 20),
              st.integers(1, 255)), min_size=1, max_size=4,
)  # fmt: skip


def spoil(data: bytes, steps: list[tuple[str, int, int]]) -> bytes:
    for kind, at, value in steps:
        at %= len(data) or 1
        if kind == "flip" and data:
            data = flip_byte(data, at, value)
        elif kind == "zero":
            data = data[:at] + bytes(8) + data[at + 8 :]
        elif kind == "insert":
            data = data[:at] + bytes([value]) + data[at:]
        else:
            data = data[:at] if value < 128 else data[:at] + data[at + value :]
    return data


def attempt(read: Callable[[], Any]) -> None:
    """Read what may be damaged: only errors of ours may come of it."""
    try:
        read()
    except SerdeError as error:
        assert str(error)


LAYOUTS = {name: params_bytes(ARRAYS, name) for name in written.LAYOUTS} | {
    "list": params_bytes(list(ARRAYS.values())),
    "sparse": params_bytes({"x": written.sparse_bytes(
        2, (3, 2), np.ones(3, "float32"), np.array([0, 1, 1, 3]), np.array([1, 0, 1]))}),
    "deflated": NPZ,
    "stored": npz_bytes(ARRAYS, zipfile.ZIP_STORED),
    "sparse npz": zip_bytes(sparse_members("x", "row_sparse", data=np.ones((2, 2)), shape=[3, 2],
                                           indices=np.array([0, 2]))),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damaged_parameters(layout: str, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "m.params"

    @examples
    @given(damage)
    def run(steps: list[tuple[str, int, int]]) -> None:
        data = spoil(LAYOUTS[layout], steps)
        path.write_bytes(data)
        attempt(lambda: [t.load() for t in read_params(path).tensors])
        attempt(lambda: [t.load() for t in parse_params(data, "memory").tensors])

    run()


def convert(folder: Path, text: bytes, params: bytes = PARAMS) -> None:
    (folder / "m-symbol.json").write_bytes(text)
    (folder / "m-0001.params").write_bytes(params)
    attempt(lambda: to_ir(decode(folder / "m-symbol.json")))


def test_damaged_symbols(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("damaged")

    @examples
    @given(damage)
    def run(steps: list[tuple[str, int, int]]) -> None:
        convert(folder, spoil(SYMBOL.encode(), steps))

    run()


# What stands in the JSON of a damaged or hostile symbol.
odd = st.sampled_from([
    None, True, 0, 1, 2, -1, 3, 7, 1 << 31, 10**30, 0.5, "", "x", "None", "(0, 0)", "(1, -1)",
    "(2147483647, 2147483647)", "[1]", "1e400", "nan", "-5", "99999999999999999999", [], {}, [[]],
    [[0, 0, 0]], [[2, 0]], {"kernel": "(0, 0)"}, {"nodes": []}, "Convolution", "null", "Flatten",
    "relu", "tvm_op", "SliceChannel", "_zeros", "RNN", "\ud800",
])  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(
        value if isinstance(value, list) else ()
    )  # fmt: skip
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


PLACES = list(places(json.loads(SYMBOL)))


def test_symbols_with_odd_values(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("odd")

    @settings(examples, max_examples=400)
    @given(st.lists(st.tuples(st.sampled_from(PLACES), odd), min_size=1, max_size=3))
    def run(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
        raw = json.loads(SYMBOL)
        for path, value in changes:
            *outer, last = path
            inside = raw
            try:
                for key in outer:
                    inside = inside[key]
                inside[last] = value
            except (TypeError, KeyError, IndexError):
                continue  # what it stood in was changed before
        convert(folder, json.dumps(raw).encode())

    run()


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_damaged_archives(mode: str, tmp_path_factory) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in (("m-symbol.json", SYMBOL.encode()), ("m-0001.params", PARAMS)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    path = tmp_path_factory.mktemp("damaged") / "m.tar"

    @examples
    @given(damage)
    def run(steps: list[tuple[str, int, int]]) -> None:
        path.write_bytes(spoil(out.getvalue(), steps))
        attempt(lambda: serde.load(path))

    run()


def test_large_graphs_are_read_in_a_moment() -> None:
    count = 10_000
    text = symbol([variable("data"), *(node("relu", f"r{i}", [i]) for i in range(count))])
    with limit_cpu(count * 500e-6):  # a quadratic reader takes minutes
        graph = decode_symbol(parse_symbol(text), None, "m")
    assert len(graph.nodes) == count


def test_a_compressed_archive_is_inflated_a_few_times_only(tmp_path, monkeypatch):
    """However many members there are whose format has to be looked at."""
    from serde.io.gzip_stream import GzipStream

    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as tar:
        for number in (*range(300), *reversed(range(300))):  # the later of one name counts
            member = tarfile.TarInfo(f"f{number}")
            member.size = 16
            tar.addfile(member, io.BytesIO(bytes(16)))
    backwards = []
    seek = GzipStream.seek

    def counting(self, offset):
        backwards.append(offset < self.tell())
        return seek(self, offset)

    monkeypatch.setattr(GzipStream, "seek", counting)
    with pytest.raises(SerdeError):
        serde.load(tmp_path / "m.tar.gz")
    assert sum(backwards) < 10


@pytest.mark.parametrize("count", [1, 2, 3])
def test_operands_of_too_few_axes_are_refused_with_the_layer(tmp_path, count):
    """Of every operator: no rule says what Python does of a shape that it takes apart."""
    names = [f"x{i}" for i in range(count)]
    nodes = [{"op": "null", "name": n, "inputs": []} for n in names]
    refused = 0
    for op in reads.rules:
        layer = {"op": op, "name": "layer", "inputs": [[i, 0, 0] for i in range(count)]}
        symbol = {"nodes": [*nodes, layer], "arg_nodes": [*range(count)], "heads": [[count, 0, 0]]}
        (tmp_path / "m-symbol.json").write_text(json.dumps(symbol))
        try:
            serde.load(tmp_path / "m-symbol.json", inputs=dict.fromkeys(names, ()))
        except serde.SerdeError as error:
            assert "IndexError" not in str(error) and "to unpack" not in str(error), (op, error)
            if "operands of so many axes" in str(error):
                refused += 1
                assert "layer" in str(error) and "Give the shapes it takes (inputs=)" in str(error)
    assert refused


def test_operands_that_are_not_there_are_refused_of_every_operator(tmp_path):
    nodes = [written.node("null", "x", []), written.node("null", "w", []),
             written.node("FullyConnected", "fc", [0, 1], num_hidden=2, no_bias=True)]  # fmt: skip
    (tmp_path / "m-0000.params").write_bytes(params_bytes({"arg:w": np.ones((2, 3), np.float32)}))
    refused = 0
    for op in reads.rules:
        layer = written.node(op, "layer", [])
        (tmp_path / "m-symbol.json").write_text(written.symbol([*nodes, layer]))
        try:
            serde.load(tmp_path / "m-symbol.json", inputs={"x": (4, 3)}, ignore_extra=True)
        except serde.SerdeError as error:
            refused += 1
            assert attempts.smell(error) is None, (op, error)
    assert refused
