"""Recurrent layers that read each other are one module, whatever is done with their states."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.bridges.torch import TorchWorker
from testing import networks
from tests.torch.torch_live import why_not

STEPS, SAMPLES, FEATURES, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
BEGINS = ("none", "cut", "separate")
FINALS = ("none", "last", "each", "joined")
FORMS = [(op, ways, "cut", "joined") for op in GATES for ways in (1, 2)] + [
    ("LSTM", 2, begin, final) for begin in BEGINS for final in FINALS
]

needs_torch = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    """One process for all modules."""
    return TorchWorker()


def make_layers(
    op: str, ways: int = 1, begin: str = "none", final: str = "none", rates=(), layers: int = 3,
    lengths=(),
) -> onnx.ModelProto:  # fmt: skip
    """Layers on top of each other; ``rates`` are those of Dropouts between them.

    ``lengths`` are the operands that tell the lengths of sequences, one after the other.
    """
    generator = np.random.default_rng(7)
    nodes, arrays, inputs = [], [], {"x": (STEPS, SAMPLES, FEATURES)}
    states = ["h", "c"] if op == "LSTM" else ["h"]
    outputs = {"y": (STEPS, SAMPLES, ways * HIDDEN)}

    def constant(name: str, array: np.ndarray) -> str:
        arrays.append(numpy_helper.from_array(array, name))
        return name

    def draw(name: str, *shape: int) -> str:
        return constant(name, generator.standard_normal(shape, np.float32) / 2)

    constant("axis", np.array([1]))
    constant("flat", np.array([0, 0, -1]))
    if begin == "cut":
        inputs |= dict.fromkeys(states, (layers * ways, SAMPLES, HIDDEN))
        for state in states:
            parts = [f"{state}{at}" for at in range(layers)]
            nodes.append(helper.make_node("Split", [state], parts, axis=0))
    elif begin == "separate":
        names = [f"{state}{at}" for state in states for at in range(layers)]
        inputs |= dict.fromkeys(names, (ways, SAMPLES, HIDDEN))
    inputs |= dict.fromkeys(lengths, (SAMPLES,))
    x, width = "x", FEATURES
    for at in range(layers):
        rows = GATES[op] * HIDDEN
        operands = [
            x,
            draw(f"w{at}", ways, rows, width),
            draw(f"r{at}", ways, rows, HIDDEN),
            draw(f"b{at}", ways, 2 * rows),
            lengths[at % len(lengths)] if lengths else "",
        ]
        operands += [f"{state}{at}" for state in states] if begin != "none" else []
        finals = [f"{state}_n{at}" for state in states]
        attrs = {"linear_before_reset": 1} if op == "GRU" else {}
        way = "bidirectional" if ways == 2 else "forward"
        nodes.append(helper.make_node(op, operands, [f"all{at}", *finals], hidden_size=HIDDEN,
                                      direction=way, **attrs))  # fmt: skip
        x = "y" if at == layers - 1 else f"y{at}"
        if ways == 2:
            nodes += [helper.make_node("Transpose", [f"all{at}"], [f"turned{at}"], perm=[0, 2, 1, 3]),
                      helper.make_node("Reshape", [f"turned{at}", "flat"], [x])]  # fmt: skip
        else:
            nodes.append(helper.make_node("Squeeze", [f"all{at}", "axis"], [x]))
        if at < len(rates):
            rate = constant(f"rate{at}", np.float32(rates[at]))
            nodes.append(helper.make_node("Dropout", [x, rate], [f"dropped{at}"]))
            x = f"dropped{at}"
        width = ways * HIDDEN
        if final == "each" or (final == "last" and at == layers - 1):
            outputs |= dict.fromkeys(finals, (ways, SAMPLES, HIDDEN))
    if final == "joined":
        for state in states:
            parts = [f"{state}_n{at}" for at in range(layers)]
            nodes.append(helper.make_node("Concat", parts, [f"{state}_n"], axis=0))
            outputs[f"{state}_n"] = (layers * ways, SAMPLES, HIDDEN)
    types = dict.fromkeys(lengths, TensorProto.INT32)
    ends = [[helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), s)
             for n, s in end.items()] for end in (inputs, outputs)]  # fmt: skip
    graph = helper.make_graph(nodes, "layers", *ends, arrays)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def list_modules(source: Path) -> list[str]:
    """The constructors of recurrent modules in a source."""
    return re.findall(r"nn\.(?:LSTM|GRU|RNN)\([^)]*\)", source.read_text())


@needs_torch
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))
def test_states_are_those_of_one_module(form, worker, tmp_path: Path) -> None:
    model = make_layers(*form)
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    (module,) = list_modules(tmp_path / "n.py")
    assert "num_layers=3" in module
    generator = np.random.default_rng(1)
    feeds = {
        v.name: generator.standard_normal(
            [d.dim_value for d in v.type.tensor_type.shape.dim], np.float32
        )
        for v in model.graph.input
    }
    session = onnxruntime.InferenceSession(model.SerializeToString())
    got = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
    for actual, expected in zip(got, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@needs_torch
@pytest.mark.parametrize("form", FORMS[::2], ids=lambda form: "-".join(map(str, form)))
@pytest.mark.parametrize(("lengths", "modules"), [(("n",), 1), (("n", "m"), 3)])
def test_sequences_of_several_lengths_are_packed(
    form, lengths, modules, worker, tmp_path: Path
) -> None:
    """They are one module where they are packed alike, as ``nn.LSTM`` makes such layers."""
    model = make_layers(*form, lengths=lengths, rates=[0.25, 0.25])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    assert len(list_modules(tmp_path / "n.py")) == modules
    assert (tmp_path / "n.py").read_text().count("pack_padded_sequence(") == modules
    generator = np.random.default_rng(1)
    feeds = {
        v.name: generator.standard_normal(
            [d.dim_value for d in v.type.tensor_type.shape.dim], np.float32
        )
        for v in model.graph.input
    }
    feeds |= {name: np.roll([5, 2, 3], at).astype("i4") for at, name in enumerate(lengths)}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, feeds)
    got = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
    for actual, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_nothing_is_packed_for_export(op: str, tmp_path: Path) -> None:
    model = make_layers(op, layers=1, lengths=("n",))
    serde.convert(model, tmp_path / "n.py", to_format="torch", exportable=True)
    assert "pack_padded_sequence" not in (tmp_path / "n.py").read_text()


@pytest.mark.parametrize(
    ("rates", "options"),
    [
        ([], [""]),
        ([0.25, 0.25], ["num_layers=3, dropout=0.25"]),
        ([0.5, 0.5], ["num_layers=3, dropout=0.5"]),
        ([0.25, 0.75], ["num_layers=2, dropout=0.25", "6, 6"]),
        ([0.25], ["num_layers=2, dropout=0.25", "6, 6"]),
    ],
)
def test_dropout_between_layers_is_an_option(rates, options, tmp_path: Path) -> None:
    serde.convert(make_layers("LSTM", rates=rates), tmp_path / "n.py", to_format="torch")
    modules = list_modules(tmp_path / "n.py")
    assert len(modules) == len(options)
    assert all(option in module for option, module in zip(options, modules, strict=True))


def test_a_state_that_the_next_layer_begins_with_keeps_them_apart(tmp_path: Path) -> None:
    model = make_layers("LSTM", layers=2)
    first, second = (n for n in model.graph.node if n.op_type == "LSTM")
    first.output[:] = ["all0", "h", "c"]
    second.input.extend(["h", "c"])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    assert len(list_modules(tmp_path / "n.py")) == 2


@pytest.mark.parametrize("name", ["lstm_ntc_2", "lstm_bidirectional", "rnn_tanh_2"])
def test_mxnets_dropout_between_layers_stays(name: str, tmp_path: Path) -> None:
    network = networks.build(name)  # its layers have a rate of 0.1
    symbol, _ = networks.export(network, tmp_path)
    shapes = networks.shapes(network)
    serde.convert(symbol, tmp_path / "n.py", inputs=shapes)
    (module,) = list_modules(tmp_path / "n.py")
    assert "dropout=0.1" in module
    serde.convert(symbol, tmp_path / "t.onnx", inputs=shapes, training=True)
    layers = [n.op_type for n in onnx.load(tmp_path / "t.onnx").graph.node]
    first, second = (at for at, op in enumerate(layers) if op in GATES)
    assert "Dropout" in layers[first:second]
    serde.convert(symbol, tmp_path / "n.onnx", inputs=shapes)
    assert "Dropout" not in [n.op_type for n in onnx.load(tmp_path / "n.onnx").graph.node]


@needs_torch
def test_a_state_that_a_branch_reads_before_keeps_them_apart(worker, tmp_path: Path) -> None:
    model = make_layers("RNN", layers=2)
    bodies = [
        helper.make_graph([helper.make_node(op, ["h_n0"], [op])], op,
                          [], [helper.make_tensor_value_info(op, TensorProto.FLOAT, None)])
        for op in ("Neg", "Abs")
    ]  # fmt: skip
    choice = helper.make_node("If", ["go"], ["z"], then_branch=bodies[0], else_branch=bodies[1])
    nodes = [*model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([nodes[0], choice, *nodes[1:]])
    shape = (1, SAMPLES, HIDDEN)
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, shape))
    model.graph.input.append(helper.make_tensor_value_info("go", TensorProto.BOOL, ()))
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    assert len(list_modules(tmp_path / "n.py")) == 2
    x = np.random.default_rng(1).standard_normal((STEPS, SAMPLES, FEATURES), np.float32)
    feeds = {"x": x, "go": np.array(True)}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    got = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
    for actual, expected in zip(got, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@needs_torch
def test_projected_layers_are_one_module(worker, tmp_path: Path) -> None:
    """Beside these, tests/torch/test_training.py has those of MXNet."""
    program = Path(__file__).parents[1] / "data/pt2/projected.pt2"
    serde.convert(program, tmp_path / "n.py")
    (module,) = list_modules(tmp_path / "n.py")
    assert all(option in module for option in ("num_layers=2", "bidirectional=True", "proj_size=2"))
    with np.load(program.with_suffix(".npz")) as arrays:
        inputs, outputs = (
            [arrays[n] for n in arrays.files if n.startswith(k)] for k in ("in", "out")
        )
    (got,) = worker.run(str(tmp_path / "n.py"), inputs)
    np.testing.assert_allclose(got, outputs[0], rtol=0, atol=1e-6)
