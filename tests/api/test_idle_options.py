"""Options that change nothing: each is told, but those that ask for no change."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import serde
from serde.errors import SerdeError
from serde.plugins import format_of, get_format, read_classes, written_formats
from serde.plugins.options import merge_options
from testing.onnx_live import model_of

SHAPE = {"x": (2, 4)}
RELAY = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 4), float32]) {\n  tanh(%x)\n}\n'
SYMBOL = {
    "nodes": [{"op": "null", "name": "x", "inputs": []},
              {"op": "tanh", "name": "y", "inputs": [[0, 0, 0]]}],
    "arg_nodes": [0], "heads": [[1, 0, 0]],
}  # fmt: skip
# Those that ask for no change: what may be read, and what the result is to be, which it is already.
LIMITS = {"copy", "ignore_extra", "match_params", "max_growth", "params", "strict_paths"}
PARTS = {"entry", "epoch", "inputs", "outputs", "signature", "tvm"}
STATES = {"class_name", "external_data", "flat", "functions", "ir_version", "metadata", "mxnet",
          "names", "opset", "profile", "provenance", "rename", "tflite", "write_epoch"}  # fmt: skip
# A value of each option that finds nothing in the model below.
VALUES = {
    "channels_last": ["all"], "custom_domain": "my", "custom_outputs": {"y": (2, 4)}, "exportable": True,
    "cut_inputs": ["x"], "edits": {}, "dequantize": True, "fold_batchnorm": True, "fp16": True,
    "fp16_io": True, "fp16_keep": ["Conv"], "fp32": True, "hash_weights": True,
    "inference": True, "int8_weights": True, "integers": "qdq", "keep_domain": ["my.domain"],
    "kernels": "plain", "nms": "none", "random": "onnx", "rebatch": 2, "set_inputs": {"x": 1.0},
    "skip": ["make_gemms"], "static": {"N": 3}, "training": True, "weights": "int8",
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of("g (float[2,4] x) => (float[2,4] y) { y = Tanh(x) }"), "m.onnx")
    Path("m-symbol.json").write_text(json.dumps(SYMBOL))
    Path("m.relay").write_text(RELAY)
    serde.convert("m.onnx", "m.tflite")


def convert(source, target, **options):
    """The bytes of the files that a conversion writes, and its notes."""
    shape = {"inputs": SHAPE} if source == "m-symbol.json" else {}
    report = serde.convert(source, f"out/{target}", **shape, **options)
    return [Path(f).read_bytes() for f in sorted(report.files)], report.notes


@pytest.mark.parametrize("name", written_formats())
@pytest.mark.parametrize("source", ["m.onnx", "m-symbol.json", "m.relay", "m.tflite"])
def test_an_option_that_changes_nothing_says_so(source, name):
    Path("out").mkdir()
    target = f"m{get_format(name).suffixes[0]}"
    classes = format_of(Path(source)).read_options, get_format(name).write_options
    declared = {n: o for n, o in merge_options(classes).items() if o.kind != "object"}
    plain, known = convert(source, target)
    for option in declared.keys() - LIMITS - PARTS - STATES:
        try:
            files, notes = convert(source, target, **{option: VALUES[option]})
        except SerdeError:
            continue  # which says why
        assert files != plain or [n for n in notes if n not in known], option


def test_every_option_is_a_limit_a_part_a_state_or_has_a_value():
    classes = [*read_classes(), *(get_format(n).write_options for n in written_formats())]
    names = {n for n, o in merge_options(classes).items() if o.kind != "object"}
    assert names == LIMITS | PARTS | STATES | VALUES.keys()


def test_an_option_that_changes_something_is_not_told():
    text = "g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {1,2}>"
    onnx.save(model_of(f"{text} {{ p = MatMul(x, w) y = Add(p, b) }}"), "linear.onnx")
    report = serde.convert("linear.onnx", "kept.onnx", skip=["make_gemms"])
    assert report.operators == {"MatMul": 1, "Add": 1} and not report.notes
    assert serde.check("linear.onnx", skip=["make_gemms"]).notes == []
    (note,) = serde.check("linear.onnx", skip=["merge_slices"]).notes
    assert note == "skip= had no effect: the model has nothing that it would change"
