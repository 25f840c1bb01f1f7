"""The same model and options give the same bytes, in any process and with any hash seed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import serde
from testing.fuzz import samples
from testing.onnx_live import DIGITS

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {
    "t.onnx": {}, "old.onnx": {"opset": 9}, "apart.onnx": {"external_data": "always"},
    "t.relay": {}, "t.json": {}, "t-symbol.json": {}, "tensorrt.onnx": {"profile": "tensorrt"},
}  # fmt: skip


def convert_all(folder: Path) -> dict[str, str]:
    """The hashes of all files that the samples become."""
    sources = {"digits": DIGITS, **write_samples(folder)}
    hashes = {}
    for name, source in sources.items():
        for target, options in TARGETS.items():
            out = folder / name / target
            out.parent.mkdir(exist_ok=True)
            try:
                files = serde.convert(source, out, **options).files
            except serde.SerdeError as error:
                hashes[f"{name}/{target}"] = type(error).__name__
            else:
                for file in map(Path, files):
                    hashes[f"{name}/{file.name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return hashes


def write_samples(folder: Path) -> dict[str, Path]:
    """A few models of ONNX and of Relay, with functions, loops and shape arithmetic."""
    places = {}
    for at, data in enumerate(samples.of("onnx")):
        places[f"onnx{at}"] = folder / f"{at}.onnx"
        places[f"onnx{at}"].write_bytes(data)
    for at, data in enumerate(samples.of("relay-text")):
        places[f"relay{at}"] = folder / f"{at}.relay"
        places[f"relay{at}"].write_bytes(data)
    return places


@pytest.fixture(scope="module")
def hashes(tmp_path_factory):
    """Those of this process; of two conversions one after the other."""
    first, second = (convert_all(tmp_path_factory.mktemp("same")) for _ in range(2))
    assert first == second
    return first


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_another_process_writes_the_same_bytes(seed, hashes, tmp_path):
    code = (
        "import json, sys; from pathlib import Path; from tests.io import test_same_bytes as t; "
        "print(json.dumps(t.convert_all(Path(sys.argv[1]))))"
    )
    proc = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True,
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    )  # fmt: skip
    assert json.loads(proc.stdout) == hashes


def test_most_of_the_samples_are_converted(hashes):
    written = [name for name, digest in hashes.items() if len(digest) == 64]
    assert len(written) > 60, hashes
