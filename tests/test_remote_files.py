"""Models at URLs, from Python."""

from __future__ import annotations

import hashlib
from pathlib import Path

import fsspec
import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError, UsageError
from testing.archives import pack
from testing.onnx_live import model_of

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
MODEL = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8).SerializeToString()


@pytest.fixture
def bucket():
    system = fsspec.filesystem("memory")
    system.pipe_file("/models/a.onnx", MODEL)
    yield system
    system.rm("/models", recursive=True)


def test_a_model_is_fetched_and_stored(bucket):
    report = serde.convert("memory://models/a.onnx", "memory://models/b.onnx", verify=True)
    assert (report.source, report.target) == ("memory://models/a.onnx", "memory://models/b.onnx")
    assert report.verification.done and report.files == ["memory://models/b.onnx"]
    about = report.provenance.describe()
    assert about["call"].startswith("serde.convert('memory://models/a.onnx', 'memory://models/b.")
    assert about["source"] == [{"path": "memory://models/a.onnx", "bytes": len(MODEL),
                                "sha256": hashlib.sha256(MODEL).hexdigest()}]  # fmt: skip
    assert [f["path"] for f in about["result"]] == ["memory://models/b.onnx"]
    assert bucket.cat_file("/models/b.onnx")


@pytest.mark.parametrize(
    "name, content, is_replaced",
    [
        ("b.tflite", b"notes", False),
        ("b.py", b"print('mine')", False),
        ("b.onnx", MODEL, True),
        ("b.tflite", b"", True),
        ("b.tflite", b"\0\0\0\0TFL3" + b"\0" * 5000, True),
    ],
)
def test_no_file_of_another_kind_is_replaced(name, content, is_replaced, bucket):
    bucket.pipe_file(f"/models/{name}", content)
    if is_replaced:
        assert serde.convert("memory://models/a.onnx", f"memory://models/{name}").files
    else:
        with pytest.raises(UsageError, match=f"^memory://models/{name} is there, and is no model"):
            serde.convert("memory://models/a.onnx", f"memory://models/{name}")
    assert (bucket.cat_file(f"/models/{name}") != content) == is_replaced or content == MODEL


@pytest.mark.parametrize("place", ["memory://models", DIGITS.as_uri(), str(DIGITS)])
def test_a_prefix_names_a_symbol_and_its_parameters(place, bucket, tmp_path):
    for name in ("digits-symbol.json", "digits-0010.params"):
        bucket.pipe_file(f"/models/{name}", (DIGITS / name).read_bytes())
    report = serde.convert(f"{place}/digits", tmp_path / "d.onnx", inputs={"data": (2, 1, 8, 8)})
    assert report.source.endswith("/digits") and report.parameters > 20_000


def test_one_of_several_is_named(bucket):
    bucket.pipe_file("/models/c.onnx", MODEL)
    with pytest.raises(UsageError, match=r"holds 2 models: name one of them: a\.onnx, c\.onnx"):
        serde.convert("memory://models", "memory://models/b.onnx")


def test_a_broken_one_is_called_by_its_name(bucket):
    bucket.pipe_file("/models/a.onnx", MODEL[:9])
    with pytest.raises(MalformedFile, match=r"^a\.onnx"):
        serde.convert("memory://models/a.onnx", "memory://models/b.onnx")


@pytest.mark.parametrize(
    ("typed", "meant"), [("s3x", "s3"), ("htps", "https"), ("memry", "memory")]
)
def test_a_protocol_that_is_misspelt_is_told_with_one_that_may_be_meant(typed, meant):
    with pytest.raises(UsageError, match=rf"{typed}; did you mean .*{meant}"):
        serde.convert(f"{typed}://models/a.onnx", "b.onnx")


def test_a_place_that_nothing_can_be_written_to_is_told(bucket, monkeypatch):
    def refuse(*arguments, **options):
        raise RuntimeError("501: no uploads")

    monkeypatch.setattr(type(bucket), "put_file", refuse)
    with pytest.raises(SerdeError, match=r"^memory://models/b.onnx: it cannot be written: .*501"):
        serde.convert("memory://models/a.onnx", "memory://models/b.onnx")


@pytest.fixture
def parts(tmp_path, bucket):
    """A model in three parts at a URL."""
    graph = serde.load(model_of(PARTED, 17, 8))
    serde.partition(graph, write_backend(tmp_path)).save(tmp_path / "p")
    bucket.put(str(tmp_path / "p"), "/models/p", recursive=True)
    return "memory://models/p"


PARTED = "g (float[2,3] x) => (float[2,3] y) { t = Relu(x) u = Sin(t) y = Relu(u) }"
X = np.float32([[1, -2, 3], [0, 4, -5]])


def write_backend(folder):
    path = folder / "r.toml"
    path.write_text('name = "r"\nopset = 17\n[[operators]]\nnames = ["Relu"]\n')
    return path


def test_a_model_in_parts_is_run_at_its_url(parts):
    for place in (parts, f"{parts}/"):
        outputs = serde.run(place, {"x": X})
        np.testing.assert_allclose(outputs["y"], np.maximum(np.sin(np.maximum(X, 0)), 0), rtol=1e-6)


def test_a_part_that_is_gone_or_another_is_told(parts, bucket):
    bucket.pipe_file("/models/p/accelerator_1.onnx", MODEL)
    with pytest.raises(
        MalformedFile, match="'accelerator_1.onnx' is another file than was written"
    ):
        serde.run(parts, {"x": X})
    bucket.rm_file("/models/p/accelerator_1.onnx")
    with pytest.raises(MalformedFile, match="nothing at this URL"):
        serde.run(parts, {"x": X})


def test_a_manifest_of_something_else_is_passed_over(bucket):
    bucket.pipe_file("/models/manifest.json", b'{"kind": "app"}')
    assert serde.load("memory://models").inputs[0].name == "x"


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_a_file_at_a_url_is_taken_by_its_place_and_by_its_name(
    protocol, is_named, tmp_path, bucket
):  # fmt: skip
    """Also where the model is none, a graph or at a URL itself."""
    file = write_backend(tmp_path)
    bucket.pipe_file("/models/r.toml", file.read_bytes())
    bucket.pipe_file("/models/bad.toml", b'name = "bad"\n')
    url = {"file": file.as_uri(), "memory": "memory://models/r.toml"}[protocol]
    for source in ("memory://models/a.onnx", serde.load("memory://models/a.onnx")):
        split = (serde.partition(source, backend=url) if is_named
                 else serde.partition(source, url))  # fmt: skip
        assert split.backend.name == "r"
        with pytest.raises(SerdeError, match=r"^bad\.toml: the key 'opset' is missing"):
            serde.partition(source, "memory://models/bad.toml")


def test_a_partition_at_a_url_of_this_machine_is_a_folder(tmp_path, bucket):
    graph = serde.load("memory://models/a.onnx")
    bucket.pipe_file("/models/r.toml", write_backend(tmp_path).read_bytes())
    split = serde.partition(graph, backend="memory://models/r.toml")
    split.save((tmp_path / "q").as_uri())
    assert (tmp_path / "q" / "manifest.json").is_file()
    with pytest.raises(UsageError, match="a partition is a folder of this machine, not at a URL"):
        split.save("memory://models/q")


def test_a_model_in_an_archive_at_a_url_is_named(bucket):
    bucket.pipe_file("/models/zoo.zip", pack({"a/m.onnx": MODEL, "b/m.onnx": MODEL}, "zip"))
    with pytest.raises(UsageError, match="holds 2 models: name a model in it: zoo.zip:a/m.onnx, "):
        serde.load("memory://models/zoo.zip")
    url = "memory://models/zoo.zip:b/m.onnx"
    report = serde.convert(url, "memory://models/b.onnx")
    assert report.source == url and [f.path for f in report.provenance.source] == [url]
    assert len(serde.load(url).nodes) == 1
