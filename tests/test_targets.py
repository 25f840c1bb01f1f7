"""What results are written for: consumers by name, suggestions, and how results are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

import serde
from serde import plugins
from serde.cli.commands import main
from serde.errors import UsageError
from serde.legalize.target import Target
from serde.plugins import targets
from serde.plugins.consumer import Consumer
from serde.plugins.deferred import Deferred


@dataclass(frozen=True)
class Entry:
    """An entry point that is never loaded."""

    name: str
    thing: Any = None
    value: str = "somewhere:TARGET"


@pytest.mark.parametrize("name", ["generic", "relax"])
def test_a_target_with_the_name_of_a_profile_is_refused(monkeypatch, name):
    target = Entry(name)
    entries = plugins._entries
    mine = {"serde.targets": {name: target}}
    monkeypatch.setattr(plugins, "_entries", lambda group: mine.get(group) or entries(group))
    with pytest.raises(UsageError, match=f"target is called '{name}', as a profile of serde's own"):
        targets.get_consumer(name)
    assert targets.get_consumer("tensorrt").title == "TensorRT"
    assert targets.list_profiles()["trt"] == "tensorrt"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("trt", "tensorrt"), ("TensorRT", "tensorrt"), ("ort", "onnxruntime"),
     ("openvine", "openvino"), ("pnnx", "ncnn"), ("npu", "npu-static")],
)  # fmt: skip
def test_the_consumer_that_may_be_meant_is_suggested(name, meant):
    with pytest.raises(
        UsageError, match=f"profile='{name}' is not one of coreml, .*; did you mean {meant}?"
    ):
        targets.get_consumer(name)


@pytest.mark.parametrize("find", [targets.get_consumer, targets.find_target])
def test_a_profile_that_is_no_more_tells_what_to_use(find):
    with pytest.raises(UsageError, match="'onnx2torch' is no profile any more: .*-o net.py"):
        find("onnx2torch")
    assert "onnx2torch" not in targets.list_targets()


@pytest.mark.parametrize(
    "command", ["convert a.onnx -o b.onnx --profile onnx2torch", "check a.onnx --to onnx2torch"]
)
def test_the_command_tells_it_too(command):
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2 and "is no profile any more: write the PyTorch" in result.output


@pytest.mark.parametrize("name", targets.consumer_names())
def test_a_consumer_is_declared_once(name):
    consumer = targets.get_consumer(name)
    assert consumer.name == name and consumer.title
    target = consumer.get_target()
    assert target is None or target.opset == consumer.default_opset()
    opsets = consumer.known_opsets()
    assert opsets is None or consumer.default_opset() in opsets
    fmt = targets.format_of_consumer(name)
    assert "{" not in targets.describe_next_step(fmt.name, f"m{fmt.suffixes[0]}", {"profile": name})


STEPS = {
    ("onnx", "a/m.onnx", None): "onnxruntime.InferenceSession('a/m.onnx')",
    ("onnx", "m.onnx", "tensorrt"): "trtexec --onnx=m.onnx --saveEngine=m.engine",
    ("onnx", "m.onnx", "mnn"): "mnnconvert -f ONNX --modelFile m.onnx --MNNModel m.mnn "
    "--bizCode serde",
    ("onnx", "m.onnx", "ncnn"): "pnnx m.onnx fp16=0",
    ("onnx", "m.onnx", "tract"): "tract.onnx().load('m.onnx')",
    ("onnx", "m.onnx", "npu-static"): "onnxruntime.InferenceSession('m.onnx')",
    ("tflite", "m.tflite", "edgetpu"): "edgetpu_compiler m.tflite",
    ("relay", "m.relay", None): "tvm.relay.fromtext(open('m.relay').read())",
    ("relay", "m.json", None): "tvm.ir.load_json(open('m.json').read())",
    ("mxnet", "m-symbol.json", None): "mxnet.model.load_checkpoint('m', 0)",
}


@pytest.mark.parametrize("case", STEPS, ids=str)
def test_how_a_result_is_run(case):
    fmt, path, profile = case
    options = {} if profile is None else {"profile": profile}
    assert targets.describe_next_step(fmt, path, options) == STEPS[case]


def test_options_of_writing_are_part_of_it():
    shown = targets.describe_next_step("mxnet", "m-symbol.json", {"write_epoch": 7})
    assert shown == "mxnet.model.load_checkpoint('m', 7)"


def test_a_target_of_a_plugin_is_a_consumer():
    target = Target("mine", 17)
    consumer = Consumer.of(target, "mine")
    assert consumer.get_target() is target and consumer.default_opset() == 17
    assert consumer.known_opsets() == range(17, 18) and not consumer.runs_in_onnxruntime
    assert Consumer.of(consumer, "other") is consumer


def test_a_target_is_imported_when_it_is_asked_for():
    consumer = Consumer("mine", target=Deferred("serde.legalize.convert:TENSORS_ONLY"))
    assert consumer.get_target() is serde.legalize.convert.TENSORS_ONLY
    with pytest.raises(ModuleNotFoundError):
        Consumer("mine", target=Deferred("nowhere.to:BE_FOUND")).get_target()


@pytest.mark.parametrize("name", ["onnx", "relax"])
def test_a_target_is_a_format_or_a_consumer(name):
    fmt, profile = targets.find_target(name)
    assert (fmt.name, profile) == ("onnx", None if name == "onnx" else name)
    assert targets.list_targets()["onnx"] == "onnx"
