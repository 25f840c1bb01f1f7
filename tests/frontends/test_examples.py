"""The code of ``examples/numpy_code``, traced with sizes by name, against NumPy; and joined to networks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from examples.numpy_code import detection, images, speech
from serde.bridges import onnxruntime as runtime

RNG = np.random.default_rng(5)
TALL = RNG.integers(0, 256, (2, 53, 47, 3)).astype(np.uint8)
WIDE = RNG.integers(0, 256, (1, 45, 70, 3)).astype(np.uint8)
IMAGE = ("N", "H", "W", 3), "uint8"


def floats(*shape):
    return RNG.normal(size=shape).astype("f4")


CASES = {  # a function, its specs, and two sets of inputs of different sizes
    "classify": (images.classify, [IMAGE], [[TALL], [WIDE]]),
    "letterbox": (images.letterbox, [IMAGE], [[TALL], [WIDE]]),
    "yolo": (detection.decode_yolo, [("N", 21, "H", "W")],
             [[floats(2, 21, 4, 5)], [floats(1, 21, 8, 8)]]),
    "ssd": (detection.decode_ssd, [("N", 4, "H", "W"), ("N", 6, "H", "W")],
            [[floats(2, 4, 5, 5), floats(2, 6, 5, 5)], [floats(1, 4, 7, 6), floats(1, 6, 7, 6)]]),
    "mel": (speech.mel_spectrogram, [("N", "T")], [[floats(2, 4000)], [floats(1, 5555)]]),
    "ctc": (speech.decode_ctc, [("N", "T", 5)], [[floats(3, 30, 5)], [floats(1, 41, 5)]]),
    "beam": (speech.step_beam, [("N", "K"), ("N", "K", "V")],
             [[floats(2, 3), floats(2, 3, 11)], [floats(1, 4), floats(1, 4, 7)]]),
}  # fmt: skip


def results_of(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, tuple) else [value]


def assert_close(actual, expected):
    for a, b in zip(actual, results_of(expected), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        wrong = np.abs(a.astype("f8") - b.astype("f8")).max(initial=0)
        assert wrong <= 1e-6 * max(np.abs(b.astype("f8")).max(initial=0), 1), wrong


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_traced_code_equals_numpy(case, optimize, tmp_path):
    function, specs, feeds = CASES[case]
    graph = serde.trace(function, *specs)
    serde.save(graph, tmp_path / "m.onnx")
    run = runtime.prepare(tmp_path / "m.onnx", optimize=optimize)
    for arrays in feeds:
        inputs = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
        assert_close(run(inputs), function(*arrays))


def network(folder, *heads):
    """A symbol of MXNet: a convolution of stride 8, and a 1×1 convolution for each head."""
    folder.mkdir()

    def node(op, name, *inputs, **attrs):
        return {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs], "attrs": attrs}

    nodes = [node("null", "data"), node("null", "conv_weight"),
             node("Convolution", "conv", 0, 1, kernel="(8, 8)", stride="(8, 8)", num_filter="8",
                  no_bias="True")]  # fmt: skip
    arrays = {"arg:conv_weight": floats(8, 3, 8, 8) / 8}
    tops = []
    for at, channels in enumerate(heads):
        nodes.append(node("null", f"head{at}_weight"))
        nodes.append(node("Convolution", f"head{at}", 2, len(nodes) - 1, kernel="(1, 1)",
                          num_filter=str(channels), no_bias="True"))  # fmt: skip
        tops.append([len(nodes) - 1, 0, 0])
        arrays[f"arg:head{at}_weight"] = floats(channels, 8, 1, 1)
    variables = [i for i, n in enumerate(nodes) if n["op"] == "null"]
    symbol = {"nodes": nodes, "arg_nodes": variables, "heads": tops,
              "attrs": {"mxnet_version": ["int", 10901]}}  # fmt: skip
    (folder / "model-symbol.json").write_text(json.dumps(symbol))
    with (folder / "model-0000.params").open("wb") as file:
        np.savez(file, **arrays)
    return serde.load(folder, inputs={"data": ("N", 3, "H", "W")})


@pytest.mark.parametrize(
    ("pre", "heads", "post"),
    [
        (images.letterbox, [21], lambda head: detection.decode_yolo(head)),
        (images.letterbox, [4, 6], lambda a, b: detection.decode_ssd(a, b)),
        (images.classify, [7], lambda head: head.mean((2, 3)).argmax(-1)),
    ],
    ids=["yolo", "ssd", "classifier"],
)
def test_one_file_from_image_to_boxes(pre, heads, post, tmp_path):
    model = network(tmp_path / "net", *heads)
    graph = serde.wrap(model, pre, post, inputs={"image": IMAGE})
    serde.save(graph, tmp_path / "whole.onnx")
    serde.save(model, tmp_path / "net.onnx")
    run = runtime.prepare(tmp_path / "whole.onnx")
    inner = runtime.prepare(tmp_path / "net.onnx")
    for image in (TALL, WIDE):
        expected = post(*inner({"data": pre(image)}))
        assert_close(run({"image": image}), expected)
    assert graph.inputs[0].shape == ("N", "H", "W", 3)


def test_speech_to_labels_in_one_file(tmp_path):
    """A spectrogram, a network that was an ONNX file, and CTC."""
    weight = floats(speech.MELS, 6)
    net = serde.trace(lambda mel: np.swapaxes(mel, 1, 2) @ weight, ("N", speech.MELS, "T"))
    serde.save(net, tmp_path / "net.onnx")
    graph = serde.wrap(tmp_path / "net.onnx", speech.mel_spectrogram, lambda x: speech.decode_ctc(x),
                       inputs={"signal": ("B", "S")})  # fmt: skip
    serde.save(graph, tmp_path / "whole.onnx")
    for signal in (floats(2, 4000), floats(1, 4800)):
        scores = np.swapaxes(speech.mel_spectrogram(signal), 1, 2) @ weight
        outputs = runtime.run(tmp_path / "whole.onnx", {"signal": signal})
        assert_close(outputs, speech.decode_ctc(scores))


def test_beam_search_step_in_one_file(tmp_path):
    """A layer that was a symbol of MXNet, which gives the logits, and the step behind it."""
    weight, bias = floats(11, 6), floats(11)
    nodes = [{"op": "null", "name": n, "inputs": []} for n in ("state", "fc_weight", "fc_bias")]
    attrs = {"num_hidden": "11", "flatten": "False"}
    nodes.append({"op": "FullyConnected", "name": "fc", "attrs": attrs,
                  "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]})  # fmt: skip
    symbol = {"nodes": nodes, "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0]],
              "attrs": {"mxnet_version": ["int", 10901]}}  # fmt: skip
    (tmp_path / "net-symbol.json").write_text(json.dumps(symbol))
    with (tmp_path / "net-0000.params").open("wb") as file:
        np.savez(file, **{"arg:fc_weight": weight, "arg:fc_bias": bias})
    net = serde.load(tmp_path / "net-symbol.json", inputs={"state": ("N", "K", 6)})
    step = serde.trace(speech.step_beam, ("N", "K"), ("N", "K", 11))
    serde.save(serde.compose(net, step, {net.outputs[0].name: "logits"}), tmp_path / "whole.onnx")
    serde.save(net, tmp_path / "net.onnx")
    for rows, beams in ((2, 3), (1, 5)):
        feeds = {"scores_in": floats(rows, beams), "state": floats(rows, beams, 6)}
        (logits,) = runtime.run(tmp_path / "net.onnx", {"state": feeds["state"]})
        np.testing.assert_allclose(logits, feeds["state"] @ weight.T + bias, atol=1e-5)
        outputs = runtime.run(tmp_path / "whole.onnx", feeds)
        assert_close(outputs, speech.step_beam(feeds["scores_in"], logits))
