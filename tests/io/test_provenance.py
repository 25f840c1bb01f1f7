"""What results were made of and by: in reports, and in metadata where it is asked for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.io.provenance import FileStamp, describe_call, read_date
from testing.onnx_live import DIGITS, model_of

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/report.schema.json").read_text())


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 13), "a.onnx")


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def provenance_of(report):
    read = json.loads(report.to_json())
    jsonschema.validate(read, SCHEMA)
    return read["provenance"]


class TestReports:
    def test_files_versions_and_opset(self):
        found = provenance_of(serde.convert(DIGITS, "d.onnx", opset=12))
        assert {Path(f["path"]).name: f["sha256"] for f in found["source"]} == {
            name: digest(DIGITS / name) for name in ("digits-symbol.json", "digits-0010.params")
        }
        assert [f["sha256"] for f in found["result"]] == [digest("d.onnx")]
        assert found["opset"] == 12 and found["date"] is None
        assert found["versions"]["serde"] == serde.__version__
        assert found["versions"]["numpy"] == np.__version__

    def test_runtimes_that_ran(self):
        report = serde.convert("a.onnx", "b.onnx", verify=True)
        assert provenance_of(report)["versions"]["onnxruntime"] == onnxruntime.__version__

    def test_the_call_of_python(self):
        call = provenance_of(serde.convert("a.onnx", "b.onnx", opset=11, inputs={"x": (1, 3)}))[
            "call"
        ]
        assert call == "serde.convert('a.onnx', 'b.onnx', opset=11, inputs={'x': (1, 3)})"
        assert provenance_of(serde.check("a.onnx"))["call"] == "serde.check('a.onnx', to='onnx')"

    def test_the_command_as_it_was_typed(self):
        arguments = ["convert", "a.onnx", "-o", "b b.onnx", "--opset", "11", "--report", "r.json"]
        assert CliRunner().invoke(main, arguments).exit_code == 0
        read = json.loads(Path("r.json").read_text())["provenance"]
        assert read["call"] == "serde convert a.onnx -o 'b b.onnx' --opset 11 --report r.json"
        printed = CliRunner().invoke(main, ["check", "a.onnx", "--json"]).output
        assert json.loads(printed)["provenance"]["source"][0]["sha256"] == digest("a.onnx")

    def test_a_source_that_is_replaced_is_hashed_before(self):
        before = digest("a.onnx")
        found = provenance_of(serde.convert("a.onnx", "a.onnx", opset=9))
        assert found["source"][0]["sha256"] == before != digest("a.onnx")
        assert found["result"][0]["sha256"] == digest("a.onnx")

    def test_files_that_changed_since_have_no_hash(self):
        report = serde.convert("a.onnx", "b.onnx")
        Path("b.onnx").write_bytes(b"other")
        assert provenance_of(report)["result"][0]["sha256"] is None

    def test_pages_tell_it(self):
        report = serde.convert("a.onnx", "b.onnx")
        for text in (report.to_html(), report.to_markdown()):
            assert digest("a.onnx") in text and "Provenance" in text

    def test_live_objects_have_no_files(self):
        found = provenance_of(serde.convert(onnx.load("a.onnx"), "b.onnx"))
        assert found["source"] == [] and "ModelProto>" in found["call"]


class TestMetadata:
    def properties(self, path):
        return {p.key: p.value for p in onnx.load(path).metadata_props}

    def test_none_unless_asked_for(self):
        serde.convert("a.onnx", "b.onnx")
        assert not [k for k in self.properties("b.onnx") if k.startswith("serde.")]

    def test_plain_gives_the_same_bytes(self):
        files = []
        for _ in range(2):
            serde.convert("a.onnx", "b.onnx", provenance="plain")
            files.append(Path("b.onnx").read_bytes())
        assert files[0] == files[1]
        held = self.properties("b.onnx")
        assert held["serde.version"] == serde.__version__ and "serde.date" not in held
        (source,) = json.loads(held["serde.source"])
        assert source == {"name": "a.onnx", "bytes": Path("a.onnx").stat().st_size,
                          "sha256": digest("a.onnx")}  # fmt: skip

    def test_the_date_where_it_is_asked_for(self, monkeypatch):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
        report = serde.convert("a.onnx", "b.onnx", provenance="date")
        assert self.properties("b.onnx")["serde.date"] == "1970-01-01T00:00:00Z"
        assert provenance_of(report)["date"] == "1970-01-01T00:00:00Z"

    def test_that_of_the_source_is_not_carried_along(self):
        serde.convert("a.onnx", "b.onnx", provenance="plain")
        serde.convert("b.onnx", "c.onnx")
        assert not [k for k in self.properties("c.onnx") if k.startswith("serde.")]

    def test_graphs_that_are_saved(self):
        serde.save(serde.load("a.onnx"), "b.onnx", provenance="plain")
        assert self.properties("b.onnx")["serde.version"] == serde.__version__

    def test_others_words_and_formats_are_refused(self):
        with pytest.raises(serde.UsageError, match="provenance"):
            serde.convert("a.onnx", "b.onnx", provenance="yes")
        with pytest.raises(serde.UsageError, match="provenance"):
            serde.convert("a.onnx", "b.relay", provenance="plain")


def test_calls_are_short():
    call = describe_call("f", [Path("a"), np.zeros(3)], {"x": [1, (2,)], "long": "y" * 500})
    assert call.startswith("f('a', <numpy.ndarray>, x=[1, (2,)], long='yyy")
    assert len(call) < 300


def test_dates_are_of_now():
    assert read_date().endswith("Z") and read_date() > "2024"


def test_a_stamp_of_a_file_that_is_gone():
    stamp = FileStamp.of("a.onnx")
    Path("a.onnx").unlink()
    assert stamp.hash() is None


TEXTS = {"author": "me = you", "empty": "", "onnx.doc_string": "a model", "onnx.model_version": "7",
         "doc_string/x": "pixels"}  # fmt: skip


def test_texts_of_the_user_are_entered():
    """``coremltools`` has fields for them: what a model is, who made it, what its inputs are."""
    serde.convert("a.onnx", "b.onnx", metadata=TEXTS)
    flags = [part for key, text in TEXTS.items() for part in ("--metadata", f"{key}={text}")]
    assert CliRunner().invoke(main, ["convert", "a.onnx", "-o", "c.onnx", *flags]).exit_code == 0
    serde.save(serde.load("a.onnx"), "d.onnx", metadata=TEXTS)
    serde.convert("b.onnx", "e.onnx", metadata={"author": "others"})  # over what is there
    for name, author in (("b", "me = you"), ("c", "me = you"), ("d", "me = you"), ("e", "others")):
        model = onnx.load(f"{name}.onnx")
        assert {p.key: p.value for p in model.metadata_props} == {"author": author, "empty": ""}
        assert (model.doc_string, model.model_version) == ("a model", 7)
        assert model.graph.input[0].doc_string == "pixels"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"serde.weights.sha256": "0"}, "'serde.weights.sha256' is a key of serde's own"),
        ({"author": 3}, "'author': 3 are no texts"),
        ("author=me", "is not a mapping, such as metadata={'author': 'me'}"),
    ],
)
def test_texts_that_are_none(texts, reason):
    with pytest.raises(serde.UsageError, match=reason):
        serde.convert("a.onnx", "b.onnx", metadata=texts)
    assert not Path("b.onnx").exists()


@pytest.mark.parametrize("word", ["plain", "date"])
def test_names_that_are_no_utf8_are_escaped(word, tmp_path):
    """On Linux the name of a file is any bytes."""
    name = os.fsdecode(b"caf\xe9")
    shutil.copy(DIGITS / "digits-symbol.json", tmp_path / f"{name}-symbol.json")
    shutil.copy(DIGITS / "digits-0010.params", tmp_path / f"{name}-0010.params")
    result = tmp_path / f"{name}.onnx"
    serde.convert(tmp_path / name, result, provenance=word)
    entries = {p.key: p.value for p in onnx.load(result).metadata_props}
    assert r"caf\udce9" in entries["serde.call"]
    assert [f["name"] for f in json.loads(entries["serde.source"])] == [
        f"{name}-0010.params", f"{name}-symbol.json",
    ]  # fmt: skip
