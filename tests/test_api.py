"""The facade: the names users call, and what each refuses."""

from __future__ import annotations

import inspect
import os
import pkgutil
from pathlib import Path

import onnx
import pytest

import serde
from serde.api import live_objects
from serde.errors import UsageError
from testing.onnx_live import model_of

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
BODY = "g (float[N,3] x) => (float[N,3] y, float[N,3] z) { y = Relu(x)\n z = Neg(y) }"


@pytest.fixture
def source(tmp_path):
    onnx.save(model_of(BODY, 11, 6), tmp_path / "a.onnx")
    return str(tmp_path / "a.onnx")


class TestNames:
    def test_import_and_import_with_a_stroke_are_one(self):
        assert getattr(serde, "import") is serde.import_
        assert inspect.unwrap(serde.import_) is inspect.unwrap(live_objects.import_)

    def test_every_public_name_is_there_and_says_what_it_is(self):
        assert sorted(dir(serde)) == sorted(serde.__all__)
        for name in serde.__all__:
            member = getattr(serde, name)
            assert name in dir(serde)
            assert name == "__version__" or inspect.getdoc(member)
        with pytest.raises(AttributeError, match="module 'serde' has no attribute 'nothing'"):
            serde.nothing

    def test_no_module_bears_the_name_of_a_public_function(self):
        """Importing it would put it in the function's place."""
        modules = {module.name for module in pkgutil.iter_modules(serde.__path__)}
        assert not modules & set(serde.__all__)

    def test_the_version_is_that_of_the_package(self):
        from importlib.metadata import version

        assert serde.__version__ == version("serde-hub")


class TestConvert:
    def test_stages_are_told_as_they_begin(self, source, tmp_path):
        stages = []
        report = serde.convert(source, tmp_path / "b.onnx", verify=True, progress=stages.append)
        assert stages == ["read", "convert", "run", "write", "verify"] == list(report.seconds)

    def test_the_report(self, source, tmp_path):
        report = serde.convert(source, tmp_path / "b.onnx", opset=13, external_data="never")
        assert (report.source, report.target) == (source, str(tmp_path / "b.onnx"))
        assert (report.source_format, report.target_format) == ("onnx", "onnx")
        assert report.options["opset"] == 13 and report.options["external_data"] == "never"
        assert report.ok and report.verification is None

    def test_paths_of_any_kind(self, source, tmp_path):
        for make in (str, Path, os.fspath):
            assert serde.convert(make(source), make(str(tmp_path / "b.onnx"))).ok

    def test_an_objects_report_names_its_class(self, tmp_path):
        report = serde.convert(model_of(BODY), tmp_path / "b.onnx")
        assert report.source.endswith("ModelProto") and report.source_format == "onnx"

    def test_rules_of_the_callers_own(self, tmp_path):
        from serde.formats.mxnet.to_ir import reads

        def read_activation(g, x, *, act_type: str):
            return g.Sin(x)

        rules = reads.extend({"Activation": read_activation})
        graph = serde.load(DIGITS, rules=rules)
        assert "Sin" in {n.op for n in graph.nodes} and "Relu" not in {n.op for n in graph.nodes}

    def test_a_failure_leaves_no_file(self, source, tmp_path):
        before = sorted(p.name for p in tmp_path.iterdir())
        with pytest.raises(UsageError):
            serde.convert(source, tmp_path / "b.onnx", outputs=["nothing"])
        assert sorted(p.name for p in tmp_path.iterdir()) == before


class TestCheck:
    def test_problems_without_writing(self, tmp_path):
        onnx.save(
            model_of("g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }"),
            tmp_path / "a.onnx",
        )
        report = serde.check(tmp_path / "a.onnx", opset=19)
        assert not report.ok and [p.op for p in report.problems] == ["StringConcat"]
        assert serde.check(tmp_path / "a.onnx", opset=21).ok
        assert [p.name for p in tmp_path.iterdir()] == ["a.onnx"]

    def test_a_live_object(self):
        report = serde.check(model_of(BODY), to="onnx")
        assert report.ok and report.operators == {"Relu": 1, "Neg": 1}


def test_the_collector_rests_while_models_are_converted_and_works_in_verification(
    source, tmp_path, monkeypatch
):
    import gc

    from serde import verification

    states, run_source = [], verification.run_source
    monkeypatch.setattr(
        verification,
        "run_source",
        lambda *a, **k: states.append(gc.isenabled()) or run_source(*a, **k),
    )
    stages = {}
    progress = lambda stage: stages.setdefault(str(stage), gc.isenabled())
    serde.convert(source, tmp_path / "b.onnx", verify=True, progress=progress)
    assert states == [True] and gc.isenabled()
    assert not any(stages[stage] for stage in ("read", "convert", "write"))
