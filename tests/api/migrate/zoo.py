"""Models of a migration, as its tests write them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fsspec
import numpy as np
import onnx
import pytest

from serde.api.migrate import child, job
from testing.onnx_live import DIGITS, model_of

GOOD = "g (float[N,3] x) => (float[N,3] y) { y = Softmax(x) }"
UNKNOWN = (
    "g (float[N,3] x) => (float[N,3] y) { a = Foo(x)\n b = Foo(x)\n c = Bar(x)\n y = Sum(a, b, c) }"
)


def write_model(path, body=GOOD, opset=13):
    """Write a model of ONNX, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model_of(body, opset, 7), path)
    return path


def write_digits(folder):
    """Write the example of MXNet into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, folder)


def write_onnx(path="in/m.onnx", value=1.0, location="weights.bin"):
    """Write a model of ONNX whose weights are in a file beside it."""
    body = "g (float[N,300] x) => (float[N,2] y) { y = MatMul(x, w) }"
    model = model_of(body, 13, 7)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full((300, 2), value, "f"), "w"))
    onnx.save(model, path, save_as_external_data=True, location=location)


def statuses(report):
    """What became of each model, by its file's name."""
    return {Path(r.source).name: r.status for r in report.rows}


@pytest.fixture
def zoo(tmp_path):
    """Models of two formats in folders, broken ones, and files that are no models."""
    write_digits(tmp_path / "zoo" / "mx")
    write_model(tmp_path / "zoo" / "a.onnx")
    write_model(tmp_path / "zoo" / "sub" / "a.onnx")
    write_model(tmp_path / "zoo" / "foo.onnx", UNKNOWN)
    (tmp_path / "zoo" / "broken.onnx").write_bytes(b"\x08\x07no model")
    (tmp_path / "zoo" / "config.json").write_text('{"learning_rate": 1}')
    (tmp_path / "zoo" / "notes.txt").write_text("nothing")
    return tmp_path / "zoo"


@pytest.fixture
def in_this_process(monkeypatch):
    """Convert in the process of the test, which takes less time than one for each model."""

    def run(command, seconds, *, text, env, apart):
        order = json.loads(text)
        Path(order["answer"]).write_text(json.dumps(child.carry_out(order)))
        return 0, ""

    monkeypatch.setattr(job, "run_child", run)


@pytest.fixture
def in_empty_folder(monkeypatch, tmp_path):
    """Work in a folder that has but a folder ``in`` for models."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


@pytest.fixture
def bucket(zoo):
    """The models at URLs."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    for path in zoo.rglob("*"):
        if path.is_file():
            system.pipe_file(f"/bucket/{path.relative_to(zoo)}", path.read_bytes())
    yield system
    system.store.clear()
