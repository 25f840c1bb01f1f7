"""The facade: the names users call, and what each refuses."""

from __future__ import annotations

import inspect
import os
import pkgutil
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde import pipeline
from serde.api import live_objects
from serde.errors import InvalidGraph, UnknownFormat, UsageError
from serde.formats.onnx.writer import to_proto
from testing.onnx_live import ir_of, model_of, run

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


class TestLoadAndSave:
    def test_a_graph_is_loaded_checked_and_saved(self, source, tmp_path):
        graph = serde.load(source, inputs={"x": (2, 3)}, outputs=["z"])
        assert [v.name for v in graph.outputs] == ["z"] and graph.inputs[0].shape == (2, 3)
        assert serde.save(graph, tmp_path / "b.onnx", opset=13) == [str(tmp_path / "b.onnx")]
        assert onnx.load(tmp_path / "b.onnx").opset_import[0].version == 13

    def test_the_default_opset_is_17(self, source, tmp_path):
        serde.save(serde.load(source), tmp_path / "b.onnx")
        assert onnx.load(tmp_path / "b.onnx").opset_import[0].version == 17

    def test_a_profile(self, tmp_path):
        """Importers that lack an operator get simpler ones."""
        body = "g (float[2,3] x) => (float[2,3] y) { y = Celu (x) }"
        serde.save(ir_of(body), tmp_path / "b.onnx", profile="relax")
        assert "Celu" not in {n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node}

    def test_a_format_by_name(self, source, tmp_path):
        assert serde.save(serde.load(source, format="onnx"), tmp_path / "b", format="onnx")
        with pytest.raises(UnknownFormat, match="no format is called 'caffe'"):
            serde.load(source, format="caffe")

    def test_a_graph_a_caller_broke_is_never_written(self, source, tmp_path):
        from dataclasses import replace

        graph = serde.load(source)
        with pytest.raises(InvalidGraph, match="before it is computed"):
            serde.save(replace(graph, nodes=graph.nodes[::-1]), tmp_path / "b.onnx")
        assert not (tmp_path / "b.onnx").exists()

    def test_nor_is_one_a_format_made(self, monkeypatch, source):
        from dataclasses import replace

        from serde.plugins import Format, get_format

        onnx_format = get_format("onnx")

        def spoil(graph):
            return replace(onnx_format.to_ir(graph), opset=3)

        monkeypatch.setattr(
            pipeline, "format_of",
            lambda path: Format("onnx", (".onnx",), onnx_format.matches, onnx_format.decode, spoil),
        )  # fmt: skip
        with pytest.raises(InvalidGraph):
            serde.load(source)

    @pytest.mark.parametrize(
        ("call", "why"),
        [
            (
                lambda s: serde.load(s, epoch=3),
                "onnx takes no option epoch= here; it takes keep_domain=, rules=, strict_paths=",
            ),
            (lambda s: serde.load(s, params="p"), "onnx takes no option params="),
            (
                lambda s: serde.save(serde.load(s), s + ".onnx", write_epoch=1),
                "onnx takes no option write_epoch=",
            ),
            (lambda s: serde.save(serde.load(s), s + ".txt"), "end it with one of"),
        ],
    )
    def test_options_nobody_takes_are_refused(self, source, call, why):
        with pytest.raises(UsageError, match=why):
            call(source)

    def test_options_left_at_none_are_not_given(self, source):
        assert serde.load(source, epoch=None, params=None)


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


def test_import_reads_what_load_does(source):
    imported = serde.import_(source, "onnx", to="graph", outputs=["y"])
    assert str(imported) == str(serde.load(source, outputs=["y"]))
    with pytest.raises(serde.UsageError, match="nothing makes 'torch' of a model; there is mxnet"):
        serde.import_(source, "onnx", to="torch")


def test_loading_does_not_keep_the_collector_still(source):
    import gc

    assert gc.isenabled()
    serde.load(source)
    with pytest.raises(serde.SerdeError):
        serde.load(source + ".missing")
    assert gc.isenabled()


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


def test_a_graph_saved_twice_is_the_same(source):
    graph = serde.load(source)
    text = str(graph)
    for _ in range(2):
        (y, z) = run(graph, {"x": np.float32([[1, -1, 0]])}, 13)
        assert y.tolist() == [[1, 0, 0]] and z.tolist() == [[-1, 0, 0]]
    assert str(graph) == text and to_proto(graph).graph.node
