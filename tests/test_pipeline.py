"""Reading into the IR and writing from it, and the options of both."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import onnx
import pytest

import serde
from serde import pipeline
from serde.errors import InvalidGraph, UnknownFormat, UsageError
from serde.formats.onnx.writer import to_proto
from serde.io.provenance import PREFIX
from serde.io.weights_hash import KEY, weights_hash
from serde.plugins import get_format
from testing.onnx_live import DIGITS, ir_of, model_of, run

BODY = "g (float[N,3] x) => (float[N,3] y, float[N,3] z) { y = Relu(x)\n z = Neg(y) }"


@pytest.fixture
def source(tmp_path):
    onnx.save(model_of(BODY, 11, 6), tmp_path / "a.onnx")
    return str(tmp_path / "a.onnx")


class TestLoadAndSave:
    def test_a_graph_is_loaded_checked_and_saved(self, source, tmp_path):
        graph = serde.load(source, inputs={"x": (2, 3)}, outputs=["z"])
        assert [v.name for v in graph.outputs] == ["z"] and graph.inputs[0].shape == (2, 3)
        assert serde.save(graph, tmp_path / "b.onnx", opset=13) == [str(tmp_path / "b.onnx")]
        assert onnx.load(tmp_path / "b.onnx").opset_import[0].version == 13

    @pytest.mark.parametrize("model", ["-symbol.json", ".relay", ".tflite", ".onnx"])
    @pytest.mark.parametrize("result", ["t.onnx", "t-symbol.json", "t.relay", "t.tflite", "t.py"])
    def test_a_graph_named_after_a_file_whose_name_is_no_utf8(
        self, source, tmp_path, model, result
    ):
        path = os.fsdecode(b"\xff\xe9" + model.encode())
        try:
            serde.convert(source, tmp_path / path, inputs={"x": (2, 3)})
        except OSError as error:  # of a file system of UTF-8
            pytest.skip(str(error))
        serde.convert(tmp_path / path, tmp_path / result, inputs={"x": (2, 3)})
        assert (tmp_path / result).exists()

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
        graph = serde.load(source)
        with pytest.raises(InvalidGraph, match="before it is computed"):
            serde.save(replace(graph, nodes=graph.nodes[::-1]), tmp_path / "b.onnx")
        assert not (tmp_path / "b.onnx").exists()

    def test_nor_is_one_a_format_made(self, monkeypatch, source):
        from serde.plugins import Format

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


def test_loading_does_not_keep_the_collector_still(source):
    import gc

    assert gc.isenabled()
    serde.load(source)
    with pytest.raises(serde.SerdeError):
        serde.load(source + ".missing")
    assert gc.isenabled()


def test_a_graph_saved_twice_is_the_same(source):
    graph = serde.load(source)
    text = str(graph)
    for _ in range(2):
        (y, z) = run(graph, {"x": np.float32([[1, -1, 0]])}, 13)
        assert y.tolist() == [[1, 0, 0]] and z.tolist() == [[-1, 0, 0]]
    assert str(graph) == text and to_proto(graph).graph.node


IDLE = {  # options of reading that do nothing to this model, and what they are called
    "dequantize": ({"dequantize": True}, "dequantize="),
    "fold_batchnorm": ({"fold_batchnorm": True}, "fold_batchnorm="),
    "cut_inputs": ({"cut_inputs": ["x"]}, "cut_inputs="),
}


@pytest.mark.parametrize("name", IDLE)
def test_an_option_that_changes_nothing_is_noted(source, name):
    options, argument = IDLE[name]
    notes = [n for n in serde.load(source, **options).notes if "had no effect" in n]
    assert len(notes) == 1 and notes[0].startswith(argument)


@pytest.mark.parametrize(("options", "why"), [
    ({"fp16": True, "fp32": True}, "exclude each other"),
    ({"fp16": True, "weights": "int8"}, "fp16= is of all weights"),
    ({"fp16_keep": ["Relu"]}, "give fp16= too"), ({"fp16_io": True}, "give fp16= too"),
])  # fmt: skip
def test_precisions_that_contradict_each_other(source, options, why):
    with pytest.raises(UsageError, match=why):
        serde.load(source, **options)


@pytest.mark.parametrize("option", sorted(pipeline.REWRITING))
def test_a_model_as_it_is_takes_no_option_that_rewrites_it(source, option):
    values = {"static": {"N": 1}, "edits": [], "set_inputs": {"x": 1}, "cut_inputs": ["x"],
              "rebatch": 1}  # fmt: skip
    with pytest.raises(UsageError, match=f"takes no option {option}="):
        pipeline.read(source, **{option: values[option]})


def test_the_name_of_a_format(source):
    graph, name = pipeline.read(DIGITS)
    assert name == pipeline.format_name(graph) == pipeline.format_name(DIGITS) == "mxnet"
    assert pipeline.format_name(serde.load(DIGITS)) == "onnx" == pipeline.format_name(source)


def test_a_format_without_a_way_from_the_ir_is_refused():
    onnx_format = get_format("onnx")
    pipeline.refuse_unwritten(onnx_format)
    for missing in ("from_ir", "encode"):
        with pytest.raises(UsageError, match="onnx can be read but not written yet"):
            pipeline.refuse_unwritten(replace(onnx_format, **{missing: None}))


def test_only_what_serde_wrote_of_itself_is_left_out_of_metadata(source):
    graph = replace(serde.load(source), metadata={"author": "me", f"{PREFIX}call": "old"})
    assert pipeline.finish(graph).metadata == {"author": "me"}
    hashed = pipeline.finish(graph, hash_weights=True).metadata
    assert hashed == {"author": "me", KEY: weights_hash(graph)}
