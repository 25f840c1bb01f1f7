"""Networks as they are trained become those that infer: labels and losses are left out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from serde.bridges import mxnet as bridge
from serde.errors import SerdeError, UsageError
from testing.mxnet.written import node, params_bytes, symbol, variable
from testing.mxnet_live import live_mxnet, run_symbol
from tests.mxnet.label_networks import NETWORKS, Trained, classifier, dense

Arrays = dict[str, np.ndarray]


def arrays_of(net: Trained, sym: Any) -> tuple[Arrays, Arrays]:
    """The network's parameters, and what it is fed with in training."""
    rng = np.random.default_rng(3)
    fed = {n: s for n, s in {**net.inputs, **net.labels}.items() if n in sym.list_inputs()}
    arguments, _, states = sym.infer_shape(**fed)
    shapes = dict(zip(sym.list_arguments(), arguments, strict=True))
    shapes |= dict(zip(sym.list_auxiliary_states(), states, strict=True))
    values = {n: rng.normal(0, 0.5, s).astype("float32") for n, s in shapes.items()}
    for name in values:
        if name in net.integers or name.endswith("label"):
            values[name] = rng.integers(1, 5, shapes[name]).astype("float32")
    if net is NETWORKS["detector"]:
        values["label"] = np.float32([[[1, 0.1, 0.1, 0.6, 0.6]]] * 2)
    return {n: a for n, a in values.items() if n not in fed}, {n: values[n] for n in fed}


@pytest.fixture(params=NETWORKS)
def trained(request) -> Any:
    net = NETWORKS[request.param]
    sym = net.make(live_mxnet().sym)
    return net, sym, *arrays_of(net, sym)


def test_what_infers_is_converted(trained, tmp_path) -> None:
    """No shape of a label is told; the numbers are those of MXNet, by name and by position."""
    net, sym, params, feeds = trained
    expected = run_symbol(sym.tojson(), params, feeds)
    names = [n for n in sym.list_inputs() if n in net.inputs]
    places = range(len(expected)) if net.outputs is None else net.outputs
    path = tmp_path / "m.onnx"
    report = serde.convert(sym, path, params=params, inputs=net.inputs)
    session = onnxruntime.InferenceSession(str(path))
    assert [i.name for i in session.get_inputs()] == names
    assert [o.name for o in session.get_outputs()] == [sym.list_outputs()[at] for at in places]
    got = session.run(None, {n: feeds[n] for n in names})
    for y, at in zip(got, places, strict=True):
        np.testing.assert_allclose(y, expected[at], rtol=1e-4, atol=1e-5)
    notes = [n for n in report.notes if n.startswith("left out")]
    unread = [n for n in sym.list_inputs() if n in net.labels]
    lost = [n for at, n in enumerate(sym.list_outputs()) if at not in places]
    assert all(any(f"'{n}'" in note for note in notes) for n in (*unread, *lost))
    assert bool(notes) == bool(unread or lost)


@pytest.mark.parametrize("to", ["m-symbol.json", "m.relay"])
def test_other_targets_have_the_same_ends(trained, to, tmp_path) -> None:
    net, sym, params, _ = trained
    report = serde.convert(sym, tmp_path / to, params=params, inputs=net.inputs)
    assert [i["name"] for i in report.inputs] == [n for n in sym.list_inputs() if n in net.inputs]
    assert len(report.outputs) == len(net.outputs or sym.list_outputs())


@pytest.mark.parametrize("name", ["flattened_label", "siamese", "detector", "two_heads"])
def test_a_conversion_is_verified(name, tmp_path) -> None:
    net = NETWORKS[name]
    sym = net.make(live_mxnet().sym)
    params, feeds = arrays_of(net, sym)
    data = {n: feeds[n] for n in net.inputs}
    report = serde.convert(
        sym, tmp_path / "m.onnx", params=params, inputs=net.inputs, verify=True, data=data
    )
    assert report.verification.done and report.ok
    assert len(report.verification.outputs) == len(net.outputs or sym.list_outputs())


@pytest.mark.parametrize("name", [n for n, net in NETWORKS.items() if net.labels])
def test_shapes_of_labels_may_be_told(name, tmp_path) -> None:
    """As Module and MXNet's exporter are told all of them."""
    net = NETWORKS[name]
    sym = net.make(live_mxnet().sym)
    params, feeds = arrays_of(net, sym)
    graph = serde.load(sym, params=params, inputs={**net.inputs, **net.labels})
    names = [v.name for v in graph.inputs]
    assert names == [n for n in sym.list_inputs() if n in net.inputs]
    path = str(tmp_path / "m.onnx")
    for inputs in (names, [n for n in sym.list_inputs() if n in feeds]):
        bridge.export_model(sym, params, [feeds[n].shape for n in inputs], np.float32, path)
        session = onnxruntime.InferenceSession(path)
        shapes = {i.name: tuple(i.shape) for i in session.get_inputs()}
        assert shapes == {n: net.inputs[n] for n in names}


def test_the_number_of_shapes_is_told(tmp_path) -> None:
    sym = NETWORKS["two_heads"].make(live_mxnet().sym)
    params, _ = arrays_of(NETWORKS["two_heads"], sym)
    with pytest.raises(UsageError, match="3 input shapes for 1 inputs: 'data'; its labels.* 'lab"):
        bridge.export_model(sym, params, [(3, 7)] * 3, np.float32, str(tmp_path / "m.onnx"))
    with pytest.raises(UsageError, match="2 input types for 1 inputs: data"):
        bridge.export_model(sym, params, [(3, 7)], [np.float32] * 2, str(tmp_path / "m.onnx"))


@pytest.mark.parametrize("name, layer", [("siamese", "loss"), ("text_reader", "ctc"),
                                         ("metrics", "truth"), ("own_loss", "loss")])  # fmt: skip
def test_outputs_that_are_named_stay(name, layer) -> None:
    net = NETWORKS[name]
    sym = net.make(live_mxnet().sym)
    params, feeds = arrays_of(net, sym)
    graph = serde.load(
        sym, params=params, inputs={n: a.shape for n, a in feeds.items()}, outputs=[layer]
    )
    assert [v.name for v in graph.outputs] == [f"{layer}_output"]
    assert "label" in [v.name for v in graph.inputs]


def test_losses_of_other_inputs_are_kept() -> None:
    """MXNet computes them of what it is fed with: only a label tells that they train."""
    net = NETWORKS["triplet"]
    sym = net.make(live_mxnet().sym)
    params, _ = arrays_of(net, sym)
    graph = serde.load(sym, params=params, inputs=net.inputs)
    assert [v.name for v in graph.outputs] == ["x_output", "loss_output"]
    (note,) = (n for n in graph.notes if "'loss_output' is a loss" in n)
    assert "outputs=" in note
    graph = serde.load(sym, params=params, inputs={"anchor": (3, 7)}, outputs=["x"])
    assert [v.name for v in graph.inputs] == ["anchor"]


def test_a_detector_without_its_suppression() -> None:
    net = NETWORKS["detector"]
    sym = net.make(live_mxnet().sym)
    graph = serde.load(sym, params=arrays_of(net, sym)[0], inputs=net.inputs, nms="none")
    assert [v.name for v in graph.inputs] == ["data"]
    assert len(graph.outputs) == 3 and graph.outputs[0].name == "shares_output"


def test_labels_of_a_layer_that_a_rule_reads() -> None:
    """A rule of the caller's gets all operands; a label it does not read goes nevertheless."""
    sym = classifier(live_mxnet().sym, live_mxnet().sym.var("my_label"))
    weights = {"fc_weight": np.ones((5, 7), "float32"), "fc_bias": np.ones(5, "float32")}
    options = {"params": weights, "inputs": {"data": (3, 7), "my_label": (3, 5)}}
    reading = serde.load(sym, rules={"Softmax": lambda g, x, label: g.Sub(x, label)}, **options)
    assert [v.name for v in reading.inputs] == ["data", "my_label"]
    not_reading = serde.load(sym, rules={"SoftmaxOutput": lambda g, x, label: x}, **options)
    assert [v.name for v in not_reading.inputs] == ["data"]
    assert any("'my_label'" in note for note in not_reading.notes)


HEAD = [variable("data"), variable("fc_weight"), variable("fc_bias"),
        node("FullyConnected", "fc", [0, 1, 2], num_hidden=5), variable("softmax_label"),
        node("Custom", "targets", [4], op_type="unheard_of"),
        node("SoftmaxOutput", "softmax", [3, 5])]  # fmt: skip
MORE = [*HEAD, variable("more_weight"), variable("more_bias"), variable("second"),
        node("FullyConnected", "more", [3, 7, 8], num_hidden=2),
        node("Custom", "odd", [10, 9], op_type="unheard_of")]  # fmt: skip
FC = {"fc_weight": np.ones((5, 7), "float32"), "fc_bias": np.ones(5, "float32")}


def save_model(folder, text: str, arrays: Arrays) -> str:
    (folder / "m-symbol.json").write_text(text)
    (folder / "m-0000.params").write_bytes(params_bytes({f"arg:{n}": a for n, a in arrays.items()}))
    return str(folder / "m-symbol.json")


def test_operators_that_only_labels_go_through_are_not_judged(tmp_path) -> None:
    graph = serde.load(save_model(tmp_path, symbol(HEAD), FC))
    assert [(v.name, v.shape) for v in graph.inputs] == [("data", ("N", 7))]
    assert [n.op for n in graph.nodes] == ["Gemm", "Softmax"]


def test_a_loss_of_ones_own(tmp_path) -> None:
    """A custom operator that reads the label of a layer is a loss, unless a rule reads it."""
    centers = node("Custom", "centers", [3, 4], op_type="center_loss")
    both = [*HEAD[:5], node("SoftmaxOutput", "softmax", [3, 4]), centers]
    path = save_model(tmp_path, symbol(both, 5, 6), FC)
    graph = serde.load(path)
    assert [v.name for v in graph.outputs] == ["softmax_output"]
    assert [v.name for v in graph.inputs] == ["data"]
    known = {"Custom:center_loss": lambda g, x, label: g.Sub(x, g.Unsqueeze(label, [1]))}
    graph = serde.load(path, rules=known, inputs={"softmax_label": (3,)})
    assert [v.name for v in graph.outputs] == ["softmax_output", "centers_output"]
    graph = serde.load(path, custom_domain="mine", inputs={"softmax_label": (3,)})
    assert [n.op for n in graph.nodes] == ["Gemm", "Softmax", "center_loss"]
    sizes = [*HEAD[:4], variable("sizes"), node("Custom", "boxes", [3, 4], op_type="boxes")]
    with pytest.raises(SerdeError, match="Custom"):  # nothing tells that this is a loss
        serde.load(save_model(tmp_path, symbol(sizes, 3, 5), FC), inputs={"sizes": (2,)})


# Arrays of a layer that the named output does not depend on: none, and some of another shape.
WRONG = {"more_weight": np.ones((9, 9), "float32"), "more_bias": np.ones(9, "float32")}


@pytest.mark.parametrize("arrays", [{}, WRONG], ids=["missing", "misshapen"])
def test_outputs_are_cut_before_anything_is_judged(arrays, tmp_path) -> None:
    path = save_model(tmp_path, symbol(MORE, 6, 11), {**FC, **arrays})
    with pytest.raises(SerdeError):
        serde.load(path)
    graph = serde.load(path, outputs=["fc"])
    assert [(v.name, v.shape) for v in graph.inputs] == [("data", ("N", 7))]
    assert [v.name for v in graph.outputs] == ["fc_output"]


def test_statistics_of_a_penalty() -> None:
    """The layer that trains sparse codes reads its moving average in training alone."""
    s = live_mxnet().sym
    sym = s.IdentityAttachKLSparseReg(dense(s, s.var("data"), 5, "fc"), name="sparse")
    graph = serde.load(sym, params=FC)
    assert [v.name for v in graph.inputs] == ["data"] and graph.nodes[0].op == "Gemm"
    assert graph.notes[0] == "left out: input 'sparse_moving_avg', read only to train"


def test_sizes_of_inputs_that_are_cut_off(tmp_path) -> None:
    """They are accepted with a note: a training script passes all of them."""
    path = save_model(tmp_path, symbol(MORE, 6, 11), FC)
    inputs = {"data": ("B", 7), "softmax_label": ("L",), "second": ("M", 2), "other_label": (3,)}
    graph = serde.load(path, outputs=["fc"], inputs=inputs, static={"B": 3, "L": 4, "M": 5})
    assert [(v.name, v.shape) for v in graph.inputs] == [("data", (3, 7))]
    assert list(graph.notes) == [
        "the model has no input 'other_label': its shape is not used",
        "left out: input 'softmax_label', 'more_weight', 'more_bias', 'second', on which no output "
        "that was named depends",
        "no input that is kept has the dimension L",
        "no input that is kept has the dimension M",
    ]
    with pytest.raises(UsageError, match="no input 'fc_weight'"):
        serde.load(path, outputs=["fc"], inputs={"fc_weight": (5, 7)})
    with pytest.raises(UsageError, match="no dimension is called Q"):
        serde.load(path, outputs=["fc"], inputs=inputs, static={"Q": 3})


def test_names_of_sizes_of_a_label() -> None:
    sym = classifier(live_mxnet().sym)
    inputs = {"data": ("B", 7), "softmax_label": ("L",)}
    graph = serde.load(sym, params=FC, inputs=inputs, static={"B": 3, "L": 4})
    assert [(v.name, v.shape) for v in graph.inputs] == [("data", (3, 7))]
    assert graph.notes[-1] == "no input that is kept has the dimension L"


def test_the_plug_in_for_ctc(tmp_path) -> None:
    """WarpCTC, which stock builds of MXNet do not have, is a softmax in inference."""
    nodes = [*HEAD[:5], node("Reshape", "row", [4], shape="(-1,)"),
             node("Cast", "whole", [5], dtype="int32"),
             node("WarpCTC", "ctc", [3, 6], label_length=4, input_length=2)]  # fmt: skip
    graph = serde.load(save_model(tmp_path, symbol(nodes), FC))
    assert [(v.name, v.shape) for v in graph.inputs] == [("data", ("N", 7))]
    assert [n.op for n in graph.nodes] == ["Gemm", "Softmax"]
    assert any(note.startswith("WarpCTC ×1 ('ctc')") for note in graph.notes)


def test_a_detector_of_the_time_before_mxnet_had_its_operators(tmp_path) -> None:
    """They have the same attributes and results under shorter names, and the same label."""
    net = NETWORKS["detector"]
    sym = net.make(live_mxnet().sym)
    params, feeds = arrays_of(net, sym)
    old = sym.tojson().replace('"_contrib_MultiBox', '"MultiBox')
    assert old.count('"MultiBox') == 3
    path = str(tmp_path / "m.onnx")
    serde.convert(save_model(tmp_path, old, params), path, inputs=net.inputs)
    got = onnxruntime.InferenceSession(path).run(None, {"data": feeds["data"]})
    expected = run_symbol(sym.tojson(), params, feeds)
    for y, at in zip(got, net.outputs or (), strict=True):
        np.testing.assert_allclose(y, expected[at], rtol=1e-4, atol=1e-5)


def test_an_unbound_label_of_a_saved_training_symbol(tmp_path) -> None:
    """The layer of Module, saved: its label is asked for by nothing, in old files as well."""
    sym = classifier(live_mxnet().sym, live_mxnet().sym.Reshape(live_mxnet().sym.var("label"),
                                                                shape=(-1,)))  # fmt: skip
    old = json.loads(sym.tojson())
    for entry in old["nodes"]:
        entry["param"] = entry.pop("attrs", {})
    del old["attrs"]
    graph = serde.load(save_model(tmp_path, json.dumps(old), FC))
    assert [v.name for v in graph.inputs] == ["data"]


def test_many_outputs() -> None:
    """Every layer of a deep network as an output, beside a head with a label."""
    s = live_mxnet().sym
    layers = [dense(s, s.var("data"), 5, "fc")]
    for _ in range(300):
        layers.append(s.relu(layers[-1]))
    head = s.SoftmaxOutput(layers[-1], s.Flatten(s.var("label")), name="softmax")
    graph = serde.load(s.Group([*layers, head]), params=FC)
    assert len(graph.outputs) == 302 and [v.name for v in graph.inputs] == ["data"]
