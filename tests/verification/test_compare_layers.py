"""Two models layer by layer: the layer that differs is named, ties are none, formats may differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde import plugins
from serde.bridges import onnxruntime as onnx_bridge
from serde.bridges import tvm as tvm_bridge
from serde.cli.commands import main
from serde.errors import MissingDependency, UsageError
from serde.formats.tflite.decode import decode
from serde.spec.traits import SORTS
from serde.verification import compare_layers as layers_module
from serde.verification.compare_layers import match_layers, values_behind
from serde.verification.compare_models import compare_models
from testing.mxnet_live import live_mxnet
from testing.onnx_live import ir_of, model_of
from tests.tflite.litert_live import why_not

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
SCHEMA = json.loads((ROOT / "docs/reference/report.schema.json").read_text())
CHAIN = """g (float[N,4] x) => (float[N,4] y) <float[4,4] w = {{{w}}}> {{
  a = MatMul(x, w)
  b = Relu(a)
  c = {op}(b)
  y = Tanh(c)
}}"""


def chain(path, op="Sigmoid", scale=1.0, rename=()):
    weights = ", ".join(str(scale * n) for n in np.linspace(-1, 1, 16))
    model = model_of(CHAIN.format(w=weights, op=op), 17, 8)
    for node in model.graph.node:
        node.name = f"layer_{node.output[0]}"
    text = dict(rename)
    for node in model.graph.node:
        node.input[:] = [text.get(n, n) for n in node.input]
        node.output[:] = [text.get(n, n) for n in node.output]
    onnx.save(model, path)
    return str(path)


def test_equal_models_agree_in_every_layer(tmp_path):
    check = compare_models(chain(tmp_path / "a.onnx"), chain(tmp_path / "b.onnx"))
    assert check.ok and check.layers.first is None
    assert [x.value for x in check.layers.layers] == ["a", "b", "c", "y"]
    assert str(check.layers) == "4 layers compared: all agree"


def test_the_first_layer_that_differs_is_named(tmp_path):
    check = compare_models(chain(tmp_path / "a.onnx"), chain(tmp_path / "b.onnx", "Softplus"))
    assert not check.ok and check.layers.first == 2
    layer = check.layers.layers[2]
    assert (layer.op, layer.layer, layer.outcome.passed) == ("Sigmoid", "layer_c", False)
    worst = layer.outcome.worst
    assert worst.value == pytest.approx(np.log1p(np.exp(0)), rel=2) and worst.expected < 1
    text = str(check.layers)
    assert text.startswith("the first layer that differs is 'layer_c' (Sigmoid)")
    assert "element [" in text and "'layer_b' before it agrees; 2 of 4 layers differ" in text


def test_layers_match_by_the_names_of_nodes_where_values_have_others(tmp_path):
    names = {"a": "t1", "b": "t2", "c": "t3"}
    check = compare_models(
        chain(tmp_path / "a.onnx"), chain(tmp_path / "b.onnx", "Softplus", rename=names)
    )
    assert [(x.value, x.other) for x in check.layers.layers][:3] == [*names.items()]
    assert check.layers.first == 2


def test_layers_match_by_recorded_source(tmp_path):
    target = tmp_path / "d.onnx"
    serde.convert(DIGITS, target)
    model = onnx.load(target)
    for node in model.graph.node:  # another tool has renamed all values and nodes
        node.name = ""
        node.input[:] = [f"t_{n}" if n.endswith("_output") else n for n in node.input]
        node.output[:] = [f"t_{n}" if n.endswith("_output") else n for n in node.output]
    model.graph.output[0].name = "t_softmax_output"
    onnx.save(model, target)
    first, second = serde.load(DIGITS), serde.load(target)
    matched = {(m.value.name, m.other.name) for m in match_layers(first, second)}
    assert ("conv1_output", "t_conv1_output") in matched and len(matched) == 12


def test_a_fault_in_a_weight_is_found_against_live_mxnet(tmp_path):
    live_mxnet()
    target = tmp_path / "d.onnx"
    check = serde.convert(DIGITS, target, verify="layers").verification
    assert check.ok and len(check.layers.layers) == 12 and check.layers.first is None
    model = onnx.load(target)
    (node,) = (n for n in model.graph.node if n.name == "bn2")
    for held in model.graph.initializer:
        if held.name == node.input[1]:
            array = onnx.numpy_helper.to_array(held).copy()
            array[3] *= 1.5
            held.CopyFrom(onnx.numpy_helper.from_array(array, held.name))
    onnx.save(model, target)
    check = compare_models(DIGITS, target)
    first = check.layers.layers[check.layers.first]
    assert (first.op, first.layer) == ("BatchNorm", "bn2") and first.outcome.worst.index[1] == 3


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
def test_layers_with_channels_last_are_compared_in_litert(tmp_path):
    first, second = tmp_path / "d.onnx", tmp_path / "d.tflite"
    for path in (first, second):
        serde.convert(DIGITS, path, inputs={"data": (1, 1, 8, 8)})
    for check in (compare_models(first, second), compare_models(second, first)):
        assert check.ok and check.layers.first is None and len(check.layers.layers) == 6
    (weight,) = (v.array() for v in serde.load(first).constants() if v.name == "fc2_bias")
    data = second.read_bytes()
    assert data.count(weight.tobytes()) == 1
    second.write_bytes(data.replace(weight.tobytes(), (weight + 1).tobytes()))
    check = compare_models(first, second)
    assert check.layers.layers[check.layers.first].layer == "fc2"


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
def test_quantized_layers_are_compared_as_they_are_rounded(tmp_path):
    onnx.save(model_of(QUANTIZED, 17, 8), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.tflite")
    assert "FULLY_CONNECTED" in decode(tmp_path / "b.tflite").operators()
    check = compare_models(tmp_path / "a.onnx", tmp_path / "b.tflite")
    inner = {x.value: x.outcome for x in check.layers.layers}
    assert inner["m"].passed and "one quantization step" in inner["m"].reason


QUANTIZED = """g (float[2,4] x) => (float[2,4] y) <float s = {0.05}, int8 z = {3}, int8 o = {0},
  int8[4,4] w = {1,-2,30,4, -5,6,-7,80, 9,-10,11,12, -13,14,15,-16}> {
  q = QuantizeLinear(x, s, z)
  d = DequantizeLinear(q, s, z)
  v = DequantizeLinear(w, s, o)
  m = MatMul(d, v)
  n = QuantizeLinear(m, s, z)
  y = DequantizeLinear(n, s, z)
}"""
SORTED = """g (float[2,8] x) => (float[2,3] v, int64[2,3] i) <int64[1] k = {{3}}> {{
  r = Round(x)
  v0, i = TopK<axis=1, sorted={sorted}>(r, k)
  v = {op}(v0)
}}"""


def test_ties_are_compared_as_sets_with_a_note(tmp_path, monkeypatch):
    """Indices of equal numbers in another order, and what is computed of them."""
    paths = []
    for name in ("a", "b"):
        onnx.save(model_of(SORTED.format(sorted=1, op="Neg"), 17, 8), tmp_path / f"{name}.onnx")
        paths.append(tmp_path / f"{name}.onnx")
    x = np.float32([[1, 5, 5, 5, 0, 0, 0, 0], [7, 3, 3, 2, 1, 0, 0, 0]])
    run = layers_module._run_both

    def swap(first, second, part, feeds, result):
        for match, got, expected in run(first, second, part, feeds, result):
            yield match, got[:, [1, 0, 2]] if match.value.name == "i" else got, expected

    monkeypatch.setattr(layers_module, "_run_both", swap)
    x[1] = x[0]
    layers = compare_models(*paths, data={"x": x}).layers
    (tied,) = (x for x in layers.layers if x.value == "i")
    assert tied.outcome.passed and tied.outcome.reason == "equals stand in another order"
    assert layers.first is None
    x[1] = np.float32([7, 3, 2, 1, 0, 0, 0, 0])  # no ties: the order is wrong
    layers = compare_models(*paths, data={"x": x}).layers
    assert layers.layers[layers.first].value == "i"


def test_values_behind_an_operator():
    graph = ir_of(
        "g (float[8] x) => (float[3] y, float[8] z) <int64[1] k = {3}> "
        "{ v, i = TopK(x, k)\n y = Neg(v)\n z = Neg(x) }"
    )
    assert {v.name for v in values_behind(graph, SORTS)} == {"v", "i", "y"}


class TestInputs:
    def test_a_size_that_one_model_fixes_is_used_for_both(self, tmp_path):
        body = "g (float[{n},4] x) => (float[{n},4] y) {{ y = Relu(x) }}"
        for name, n in (("a", "N"), ("b", 3)):
            onnx.save(model_of(body.format(n=n), 17, 8), tmp_path / f"{name}.onnx")
        for pair in (("a", "b"), ("b", "a")):
            check = compare_models(*(tmp_path / f"{n}.onnx" for n in pair))
            assert check.ok and check.outputs[0].shape == (3, 4)

    def test_other_names_pair_by_place_and_outputs_by_name(self, tmp_path):
        onnx.save(model_of("g (float[2] x, float[2] z) => (float[2] p, float[2] q) "
                           "{ p = Relu(x)\n q = Neg(z) }", 17, 8), tmp_path / "a.onnx")  # fmt: skip
        onnx.save(model_of("g (float[2] x1, float[2] z1) => (float[2] q, float[2] p) "
                           "{ p = Relu(x1)\n q = Neg(z1) }", 17, 8), tmp_path / "b.onnx")  # fmt: skip
        check = compare_models(tmp_path / "a.onnx", tmp_path / "b.onnx")
        assert check.ok and [o.name for o in check.outputs] == ["q", "p"]

    @pytest.mark.parametrize(
        ("other", "reason"),
        [
            (
                "g (float[3] x) => (float[3] y) { y = Relu(x) }",
                "'x' is (2) in the first model and (3)",
            ),
            ("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }", "1 and 2 inputs"),
            (
                "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x)\n z = Neg(x) }",
                "1 and 2 out",
            ),
        ],
    )
    def test_models_that_take_or_give_others_are_refused(self, tmp_path, other, reason):
        body = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
        onnx.save(model_of(body, 17, 8), tmp_path / "a.onnx")
        onnx.save(model_of(other, 17, 8), tmp_path / "b.onnx")
        with pytest.raises(UsageError, match="(?s)") as caught:
            compare_models(tmp_path / "a.onnx", tmp_path / "b.onnx")
        assert reason in str(caught.value)


def test_a_model_without_its_framework_runs_as_onnx_with_a_note(tmp_path, monkeypatch):
    serde.convert(DIGITS, tmp_path / "d.onnx", inputs={"data": (2, 1, 8, 8)})
    serde.convert(tmp_path / "d.onnx", tmp_path / "d.relay")

    def prepare(source, **options):
        raise MissingDependency("no TVM")

    bridge = tvm_bridge.BRIDGE
    without = type(bridge)(**{**vars(bridge), "prepare": prepare})
    running = plugins.get_runtime_bridge
    for module in ("compare_results", "source_runs"):
        monkeypatch.setattr(
            f"serde.verification.{module}.get_runtime_bridge",
            lambda name: without if name == "relay" else running(name),
        )
    for pair in (("d.onnx", "d.relay"), ("d.relay", "d.onnx")):
        check = compare_models(*(tmp_path / n for n in pair))
        assert check.done and check.ok
        assert "d.relay: what runs relay models is not installed" in check.not_compared[0]


def test_a_runtime_of_whole_modules_is_given_shorter_ones(tmp_path, monkeypatch):
    """As TVM is; ONNX Runtime stands in for it here."""
    serde.convert(DIGITS, tmp_path / "d.relay", inputs={"data": (2, 1, 8, 8)})

    def prepare(source, *, params=None, outputs=None):
        assert outputs is None
        serde.convert(source, tmp_path / "run.onnx", params=params)
        return onnx_bridge.prepare(tmp_path / "run.onnx")

    bridge = tvm_bridge.BRIDGE
    standing_in = type(bridge)(**{**vars(bridge), "prepare": prepare})
    for module in ("compare_results", "source_runs"):
        monkeypatch.setattr(
            f"serde.verification.{module}.get_runtime_bridge", lambda name: standing_in
        )
    check = compare_models(tmp_path / "d.relay", tmp_path / "d.relay")  # nothing is replaced
    assert check.ok and check.layers.first is None and len(check.layers.layers) >= 12
    shutil.copy(tmp_path / "d.relay", tmp_path / "e.relay")
    shutil.copy(tmp_path / "d.params", tmp_path / "e.params")
    check = compare_models(tmp_path / "d.relay", tmp_path / "e.relay")
    assert check.ok and check.layers.first is None and len(check.layers.layers) >= 12


class TestCommand:
    def serde(self, *arguments):
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert "Traceback" not in result.output
        return result.exit_code, result.output

    @pytest.mark.parametrize("suffix", ["html", "md", "json"])
    def test_compare_and_its_report(self, tmp_path, suffix):
        a, b = chain(tmp_path / "a.onnx"), chain(tmp_path / "b.onnx", "Softplus")
        report = tmp_path / f"r.{suffix}"
        code, out = self.serde("compare", a, b, "--report", report)
        assert code == 1 and "the first layer that differs is 'layer_c'" in out
        text = report.read_text()
        assert "layer_c" in text or "layer\\_c" in text
        if suffix == "json":
            held = json.loads(text)
            assert held["verification"]["layers"]["first"] == 2 and held["ok"] is False
            jsonschema.validate(
                held["verification"], {"$defs": SCHEMA["$defs"], "$ref": "#/$defs/verification"}
            )
        assert self.serde("compare", a, a, "--no-layers")[0] == 0

    def test_verify_takes_a_word_or_none(self, tmp_path):
        a = chain(tmp_path / "a.onnx")
        for arguments in (
            (a, "--verify", "-o"),
            ("--verify", a, "-o"),
            (a, "--verify=outputs", "-o"),
        ):
            code, out = self.serde("convert", *arguments, tmp_path / "b.onnx")
            assert code == 0 and ": pass" in out and "layers" not in out
        code, out = self.serde("convert", a, "--verify", "layers", "-o", tmp_path / "b.onnx")
        assert code == 0 and "layers: 4 layers compared: all agree" in out
        code, out = self.serde("convert", a, "--verify=layer", "-o", tmp_path / "b.onnx")
        assert code == 2

    def test_a_result_in_the_place_of_its_source_has_no_layers(self, tmp_path):
        a = chain(tmp_path / "a.onnx")
        code, out = self.serde("convert", a, "--verify", "layers", "-o", a)
        assert code == 0 and "the result has replaced its source" in out


def test_nan_that_mxnet_swallows_is_no_fault_of_a_layer(tmp_path):
    """The inputs given tell the shape that the symbol leaves open; NaN reaches its ``relu``."""
    mx = live_mxnet()
    x = mx.sym.var("x")
    mx.sym.Activation(mx.sym.log(x), act_type="relu", name="r").save(f"{tmp_path}/net-symbol.json")
    paths = tmp_path / "net", tmp_path / "net.onnx"
    data = {"x": np.array([[np.nan, -1, 2, np.inf, 0]], np.float32)}
    serde.convert(*paths, inputs={"x": (1, 5)})
    check = serde.compare(*paths, data=data)
    assert check.ok and check.layers.first is None, check
    assert check.layers.not_compared == [
        "r_output: NaN reaches 'r' (Relu), of which runtimes make different numbers"
    ]
    graph = serde.load(paths[1])
    log = next(n for n in graph.nodes if n.op == "Log")
    log.op = "Exp"
    serde.save(graph, paths[1])
    check = serde.compare(*paths, data=data)
    assert not check.ok and check.layers.first == 0
