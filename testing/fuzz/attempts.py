"""One attempt at reading and converting an untrusted file, and what it may come to.

Used by the tests here and by the long run, ``conformance/fuzz.py``.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import serde
from serde.errors import SerdeError
from serde.plugins import format_names
from testing.fuzz import samples

SECONDS = 5.0  # that an attempt may take
MEMORY = 2 << 30  # bytes of address space beyond what is in use
LEAST_SECONDS = 3.0  # of processor time, on a machine that others use
PARSED_PER_SECOND, CONVERTED_PER_SECOND = 50_000, 5000  # bytes of an input
OPSETS = (7, 9, 11, 13, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28)
SMELL = re.compile(r"fails with (\w+): ")


class Broken(AssertionError):
    """An attempt ended in what no file may bring about."""


class TooSlow(BaseException):
    """The time is up; no ``except Exception`` stops it."""


def attempt(reader: str, data: bytes, folder: Path) -> SerdeError | None:
    """Read and convert ``data``; return the refusal if there was one.

    Raises:
        Broken: where files were left behind, or it took too long.
        Exception: whatever went wrong otherwise.
    """
    home = Path(tempfile.mkdtemp(dir=folder))
    limit = max(SECONDS, allowed_seconds(len(data), CONVERTED_PER_SECOND))
    start = time.process_time()
    try:
        with alarm(limit):
            READERS[reader](data, home)
        refusal = None
    except SerdeError as error:
        refusal = error
        if left := sorted(p.name for p in home.iterdir() if not p.name.startswith("model")):
            raise Broken(f"left behind by a failure: {left}") from error
    except TooSlow:
        raise Broken(f"takes more than {limit:g} seconds") from None
    finally:
        shutil.rmtree(home)
    took = time.process_time() - start
    if took > 2 * limit:  # inside a library, where no alarm is heard
        raise Broken(f"took {took:.0f} seconds")
    return refusal


def allowed_seconds(size: int, bytes_per_second: int) -> float:
    """The processor time that an input of ``size`` bytes may take."""
    return LEAST_SECONDS + size / bytes_per_second


def smell(refusal: SerdeError | None) -> str | None:
    """The exception that a refusal only wraps, where it does: it tells a user little."""
    match = SMELL.search(str(refusal)) if refusal is not None else None
    return match[1] if match else None


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the block after ``seconds`` at work, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def limited_memory(more: int = MEMORY) -> Iterator[None]:
    """Let the block take ``more`` bytes of address space at most, where the system can tell."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _choice(data: bytes, choices: tuple[Any, ...]) -> Any:
    return choices[zlib.crc32(data) % len(choices)]


def _onnx(data: bytes, home: Path) -> None:
    from serde.formats.onnx.reader import read_model
    from serde.formats.onnx.repair import repair

    model, out = home / "model.onnx", home / "out.onnx"
    model.write_bytes(data)
    with suppress(SerdeError):
        repair(model, out)
        out.unlink()
    serde.convert(model, out, from_format="onnx", opset=_choice(data, OPSETS))
    str(read_model(out))


def _symbol(data: bytes, home: Path) -> None:
    (home / "model-symbol.json").write_bytes(data)
    (home / "model-0000.params").write_bytes(samples.mxnet_params())
    _mxnet(home / "model-symbol.json", data, home)


def _params(data: bytes, home: Path) -> None:
    (home / "model-symbol.json").write_bytes(samples.mxnet_symbol())
    (home / "model-0000.params").write_bytes(data)
    for tensor in read_params(home / "model-0000.params"):
        tensor.load()
    _mxnet(home / "model-symbol.json", data, home)


def read_params(path: Path) -> Iterator[Any]:
    """The tensors of an MXNet parameter file, whatever they are called."""
    from serde.formats.mxnet.io.params import read_params

    yield from read_params(path).tensors


def _archive(data: bytes, home: Path) -> None:
    (home / "model.tar.gz").write_bytes(data)
    _mxnet(home / "model.tar.gz", data, home)


def _mxnet(source: Path, data: bytes, home: Path) -> None:
    serde.convert(
        source, home / "out.onnx", from_format="mxnet", opset=_choice(data, OPSETS),
        ignore_extra=True,
    )  # fmt: skip


def _relay_text(data: bytes, home: Path) -> None:
    from serde.formats.relay.text.parser import read_text

    _relay(home / "model.relay", data, home, read_text)


def _relay_json(data: bytes, home: Path) -> None:
    from serde.formats.relay.json.reader import read_json

    _relay(home / "model.json", data, home, read_json)


def _relay(path: Path, data: bytes, home: Path, read: Callable[[Path], Any]) -> None:
    from serde.formats.relay.ast_walk import post_order

    path.write_bytes(data)
    for function in read(path).functions.values():
        for expression in post_order(function):
            if hasattr(expression, "tensor"):
                expression.tensor.load()
    if "relay" in format_names():
        serde.convert(path, home / "out.onnx", from_format="relay", opset=_choice(data, OPSETS))


def _relay_params(data: bytes, home: Path) -> None:
    from serde.formats.relay.io.params import read_params

    (home / "model.params").write_bytes(data)
    for tensor in read_params(home / "model.params").values():
        tensor.load()


def _pt2(data: bytes, home: Path) -> None:
    (home / "model.pt2").write_bytes(data)
    serde.convert(
        home / "model.pt2", home / "out.onnx", from_format="pt2", opset=_choice(data, OPSETS)
    )


def _tflite(data: bytes, home: Path) -> None:
    (home / "model.tflite").write_bytes(data)
    graph = serde.load(home / "model.tflite", format="tflite")
    serde.save(graph, home / "out.onnx", opset=_choice(data, OPSETS))


READERS: dict[str, Callable[[bytes, Path], None]] = {
    "onnx": _onnx,
    "mxnet-symbol": _symbol,
    "mxnet-params": _params,
    "mxnet-archive": _archive,
    "relay-text": _relay_text,
    "relay-json": _relay_json,
    "relay-params": _relay_params,
    "pt2": _pt2,
    "tflite": _tflite,
}
