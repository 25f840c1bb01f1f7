"""``export`` and ``import_``: files and objects in the ways MXNet announced."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest

import serde
from serde.errors import UsageError
from testing.onnx_live import DIGITS, model_of

BODY = "g (float[N,3] x) => (float[N,3] y, float[N,3] z) { y = Relu(x)\n z = Neg(y) }"


@pytest.fixture
def source(tmp_path):
    onnx.save(model_of(BODY, 11, 6), tmp_path / "a.onnx")
    return str(tmp_path / "a.onnx")


class TestExport:
    @pytest.mark.parametrize(
        ("name", "target"),
        [("digits-symbol.json", "digits.onnx"), ("digits", "digits.onnx"), (".", ".onnx")],
    )
    def test_a_file_beside_the_source(self, tmp_path, name, target, monkeypatch):
        folder = tmp_path / "model"
        shutil.copytree(DIGITS, folder)
        source = folder if name == "." else folder / name
        path = serde.export(source)
        expected = tmp_path / "model.onnx" if name == "." else folder / target
        assert path == str(expected) and expected.is_file()

    def test_the_source_is_not_written_over_unasked(self, source):
        before = Path(source).read_bytes()
        with pytest.raises(UsageError, match="is the source: name the file to write"):
            serde.export(source, None, "onnx")
        assert Path(source).read_bytes() == before

    def test_a_graph(self, source, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        graph = serde.load(source)
        assert serde.export(graph, None, "onnx", opset=12) == "g.onnx"
        assert onnx.load("g.onnx").opset_import[0].version == 12

    def test_parameters_and_inputs(self, tmp_path):
        path = serde.export(
            DIGITS / "digits-symbol.json", DIGITS / "digits-0010.params", "onnx",
            tmp_path / "d.onnx", inputs={"data": ("N", 1, 8, 8)}, opset=13, external_data="always",
        )  # fmt: skip
        assert path == str(tmp_path / "d.onnx") and (tmp_path / "d.onnx.data").is_file()


def test_import_reads_what_load_does(source):
    imported = serde.import_(source, "onnx", to="graph", outputs=["y"])
    assert str(imported) == str(serde.load(source, outputs=["y"]))
    with pytest.raises(serde.UsageError, match="nothing makes 'torch' of a model; there is mxnet"):
        serde.import_(source, "onnx", to="torch")
