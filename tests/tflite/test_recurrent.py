"""Recurrent layers are sequence operators or loops that compute what ONNX Runtime does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.onnx.reader import decode
from serde.formats.tflite.from_ir import from_ir
from serde.legalize.convert import raise_to_ir
from testing.onnx_live import run as run_onnx
from tests.tflite.litert_live import VARIABLE, run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SEQUENCE = {"LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM", "RNN": "UNIDIRECTIONAL_SEQUENCE_RNN"}
INPUT, HIDDEN = 3, 4


def layer(kind: str, steps=5, batch=2, operands="wrb", is_open=False, is_batch_open=False, **attrs):
    """A model of one layer, whose states are inputs, and its arrays."""
    rng = np.random.default_rng(steps)
    ways = 2 if attrs.get("direction") == "bidirectional" else 1
    gates, layout = GATES[kind] * HIDDEN, attrs.get("layout", 0)
    state = [batch, ways, HIDDEN] if layout else [ways, batch, HIDDEN]
    shapes = {
        "x": [batch, steps, INPUT] if layout else [steps, batch, INPUT], "w": [ways, gates, INPUT],
        "r": [ways, gates, HIDDEN], "b": [ways, 2 * gates], "h": state, "c": state,
        "p": [ways, 3 * HIDDEN], "l": [batch],
    }  # fmt: skip
    arrays = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    arrays["l"] = np.asarray([steps, max(steps - 2, 1)], np.int32)[:batch]
    names = ["x", *(k if k in operands else "" for k in "wrblhcp")]
    names = names[: 8 if kind == "LSTM" else 6]
    fed = [k for k in names if k and k in "xhcl"]
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=HIDDEN, **attrs)
    opened = {"x": ["T", *shapes["x"][1:]]} if is_open else {}
    if is_batch_open:
        at = {"x": 0, "h": 0, "c": 0} if layout else {"x": 1, "h": 1, "c": 1}
        opened = {k: [*shapes[k][:n], "N", *shapes[k][n + 1 :]] for k, n in at.items()}
    inputs = [
        helper.make_tensor_value_info(
            k, TensorProto.INT32 if k == "l" else TensorProto.FLOAT, opened.get(k, shapes[k])
        )
        for k in fed
    ]
    held = [numpy_helper.from_array(arrays[k], k) for k in names if k and k not in fed]
    results = [helper.make_tensor_value_info(k, TensorProto.FLOAT, None) for k in outputs]
    graph = helper.make_graph([node], "g", inputs, results, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return raise_to_ir(decode(model)), {k: arrays[k] for k in fed}


# A layer, and the operator that is written; None for its steps.
LAYERS = {
    **{f"{kind} of {steps} steps": (layer(kind, steps), SEQUENCE.get(kind))
       for kind in GATES for steps in (1, 2, 7, 20)},
    **{f"{kind}, {direction}": (layer(kind, direction=direction, operands="wrbhc"),
                                SEQUENCE.get(kind))
       for kind in GATES for direction in ("reverse", "bidirectional")},
    **{f"{kind}, states": (layer(kind, batch=3, operands="wrbhc"), SEQUENCE.get(kind))
       for kind in GATES},
    **{f"{kind}, no bias": (layer(kind, operands="wr"), SEQUENCE.get(kind)) for kind in GATES},
    **{f"{kind}, clip": (layer(kind, clip=0.5), None) for kind in GATES},
    **{f"{kind}, lengths": (layer(kind, operands="wrblhc"), None) for kind in GATES},
    "LSTM, peepholes": (layer("LSTM", operands="wrbhcp"), SEQUENCE["LSTM"]),
    "LSTM, peepholes, both": (
        layer("LSTM", operands="wrbp", direction="bidirectional"), SEQUENCE["LSTM"]),
    "LSTM, coupled": (layer("LSTM", input_forget=1), None),
    "LSTM, other activations": (
        layer("LSTM", activations=["HardSigmoid", "Tanh", "Softsign"]), None),
    "RNN, Relu": (layer("RNN", activations=["Relu"]), SEQUENCE["RNN"]),
    "RNN, Relu and Tanh": (
        layer("RNN", activations=["Relu", "Tanh"], direction="bidirectional"), SEQUENCE["RNN"]),
    "RNN, Sigmoid": (layer("RNN", activations=["Sigmoid"]), None),
    "GRU, linear": (layer("GRU", linear_before_reset=1), None),
    "GRU of 100 steps": (layer("GRU", 100, direction="bidirectional", operands="wrbh"), "WHILE"),
    "LSTM of 100 steps, clip": (layer("LSTM", 100, clip=1.0, operands="wrbhcl"), "WHILE"),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", LAYERS)
def test_layers_compute_what_onnx_runtime_does(name, worker, tmp_path: Path) -> None:
    (graph, feeds), op = LAYERS[name]
    path = tmp_path / "m.tflite"
    serde.save(graph, path)
    written = from_ir(graph).operators()
    assert op in written if op else written.isdisjoint({*SEQUENCE.values(), "WHILE"})
    again = serde.load(path)
    for scale in (1, -2):
        scaled = {k: a if k == "l" else a * np.float32(scale) for k, a in feeds.items()}
        expected = run_onnx(graph, scaled)
        for got in (*run_both(worker, path, [*scaled.values()]), run_onnx(again, scaled)):
            for actual, wanted in zip(got, expected, strict=True):
                assert actual.shape == wanted.shape
                np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5)


@needs_litert
@pytest.mark.parametrize("kind", GATES)
def test_layers_with_the_batch_first(kind: str, worker, tmp_path: Path) -> None:
    options = {"direction": "bidirectional", "operands": "wrbhc"}
    graph, feeds = layer(kind, layout=1, **options)
    plain, _ = layer(kind, **options)  # the same arrays; ONNX Runtime has no layout=1
    serde.save(graph, tmp_path / "m.tflite")
    turned = {k: a.swapaxes(0, 1) for k, a in feeds.items()}
    y, *last = run_onnx(plain, turned)
    expected = [y.transpose(2, 0, 1, 3), *(v.swapaxes(0, 1) for v in last)]
    for got in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
        for actual, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5)


TWICE = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType as Kinds
for kernels in (Kinds.BUILTIN, Kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
    model = Interpreter(sys.argv[1], experimental_op_resolver_type=kernels)
    model.allocate_tensors()
    results = []
    for _ in range(2):
        for at, detail in enumerate(model.get_input_details()):
            draws = np.random.default_rng(at)
            model.set_tensor(detail["index"], draws.standard_normal(detail["shape"], np.float32))
        model.invoke()
        results.append([model.get_tensor(d["index"]).tobytes() for d in model.get_output_details()])
    print(results[0] == results[1])
"""


@needs_litert
@pytest.mark.parametrize("kind", SEQUENCE)
@pytest.mark.parametrize("operands", ["wrb", "wrbhc"])
def test_each_run_begins_anew(kind: str, operands: str, tmp_path: Path) -> None:
    """Variables hold what they are set to in each run; nobody has to reset them."""
    graph, _ = layer(kind, operands=operands, direction="bidirectional")
    serde.save(graph, tmp_path / "m.tflite")
    path = {"PYTHONPATH": os.path.abspath(os.environ[VARIABLE])} if VARIABLE in os.environ else {}
    done = subprocess.run(
        [sys.executable, "-c", TWICE, str(tmp_path / "m.tflite")], capture_output=True, text=True,
        cwd="/", env={**os.environ, **path}, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True"]


@needs_litert
@pytest.mark.parametrize("kind", SEQUENCE)
def test_a_length_by_name_stays_open(kind: str, worker, tmp_path: Path) -> None:
    graph, feeds = layer(kind, operands="wrbhc", direction="bidirectional", is_open=True)
    serde.save(graph, tmp_path / "m.tflite")
    for steps in (1, 6, 3):
        x = np.random.default_rng(steps).standard_normal((steps, 2, INPUT)).astype(np.float32)
        fed = {**feeds, "x": x}
        for got in run_both(worker, tmp_path / "m.tflite", [*fed.values()]):
            for actual, wanted in zip(got, run_onnx(graph, fed), strict=True):
                np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5)


@needs_litert
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("operands", ["wrb", "wrbhc"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", SEQUENCE)
def test_a_batch_by_name_stays_open(
    kind: str, direction: str, operands: str, layout: int, worker, tmp_path: Path
) -> None:
    form = {"operands": operands, "direction": direction, "layout": layout, "is_batch_open": True}
    graph, _ = layer(kind, **form)
    assert SEQUENCE[kind] in from_ir(graph).operators()
    serde.save(graph, tmp_path / "m.tflite")
    reference, _ = layer(kind, **{**form, "layout": 0})
    for batch in (1, 3, 2):
        arrays = layer(kind, batch=batch, **form)[1]
        first = arrays
        if layout:  # which ONNX Runtime does not compute
            first = {k: a.swapaxes(0, 1) for k, a in arrays.items()}
        expected = run_onnx(reference, first)
        if layout:
            rows, *last = expected
            expected = [rows.transpose(2, 0, 1, 3), *(a.swapaxes(0, 1) for a in last)]
        for got in run_both(worker, tmp_path / "m.tflite", [*arrays.values()]):
            for actual, right in zip(got, expected, strict=True):
                np.testing.assert_allclose(actual, right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("linear", [0, 1])
def test_steps_share_their_weights(linear: int, tmp_path: Path) -> None:
    sizes = []
    for steps in (2, 40):
        graph, _ = layer("GRU", steps, linear_before_reset=linear)
        written = from_ir(graph)
        constants = {v for n in written.nodes for v in n.inputs if v is not None and v.tensor}
        sizes.append(sum(v.tensor.size for v in constants if v.rank == 2))
    assert sizes[0] == sizes[1]
