"""The profile onnxruntime: products of integers by kernels that are exact on each processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import serde
from serde.formats.onnx.consumers.onnxruntime import integer_kernels
from testing.mxnet.int8 import needs_exact_int8
from testing.onnx_live import LEVELS, PLAIN, model_of, run_at
from tests.passes.test_int8_weights import model

DRAWS = np.random.default_rng(0)
CONV = "q, s, z, {w}, s, wz, s, z"
TWO_LAYERS = f"""
    g (float[N,6,9,8] x, float[1] unused) => (float[A,B,C,D] y, uint8[E,F,G,H] first) {{
        q = QuantizeLinear(x, s, z)
        first = QLinearConv<pads = [1, 1, 1, 1]>({CONV.format(w="w")})
        d = DequantizeLinear(first, s, z)
        f = Conv<pads = [1, 1, 1, 1]>(d, filters)
        r = QuantizeLinear(f, s, z)
        second = QLinearConv<pads = [1, 1, 1, 1]>({CONV.format(w="v").replace("q,", "r,")})
        y = DequantizeLinear(second, s, z)
    }}
"""


def two_layers() -> onnx.ModelProto:
    """A convolution of floats between two of integers."""
    source = model_of(TWO_LAYERS, 17, 8)
    constants = {
        "s": np.float32(0.05), "z": np.uint8(128), "wz": np.uint8(128),
        "w": DRAWS.integers(1, 256, (6, 6, 3, 3)).astype(np.uint8),
        "v": DRAWS.integers(1, 256, (4, 6, 3, 3)).astype(np.uint8),
        "filters": DRAWS.standard_normal((6, 6, 3, 3), np.float32),
    }  # fmt: skip
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    source.graph.initializer.extend(tensors)
    return source


def convert(source: onnx.ModelProto, folder: Path, **options) -> onnx.ModelProto:
    onnx.save(source, folder / "source.onnx")
    serde.convert(folder / "source.onnx", folder / "made.onnx", profile="onnxruntime", **options)
    new_model = onnx.load(folder / "made.onnx")
    onnx.checker.check_model(new_model, full_check=True)
    return new_model


def choices(model: onnx.ModelProto) -> list[dict[str, onnx.GraphProto]]:
    """The branches of each node that chooses, by name."""
    nodes = [n for n in model.graph.node if n.op_type == "If"]
    return [{a.g.name: a.g for a in n.attribute} for n in nodes]


def tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The constants of a model and of the branches."""
    bodies = [graph for branches in choices(model) for graph in branches.values()]
    return [t for graph in (model.graph, *bodies) for t in graph.initializer]


def saturate(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as it runs where the product that is tested is not what it has to be."""
    changed, expected = onnx.ModelProto(), 255 * 127 * integer_kernels.DEPTH
    changed.CopyFrom(model)
    arrays = [(t, numpy_helper.to_array(t)) for t in tensors(changed)]
    (tested,) = [t for t, array in arrays if array.shape == () and array == expected]
    tested.CopyFrom(numpy_helper.from_array(np.int32(expected + 1), tested.name))
    return changed


def assert_same(got, expected) -> None:
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@needs_exact_int8
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("op", ["MatMulInteger", "QLinearConv", "QLinearMatMul"])
def test_both_branches_compute_the_same(op, by_channel, tmp_path):
    source, feeds = model(op, by_channel=by_channel)
    new_model = convert(source, tmp_path)
    (branches,) = choices(new_model)
    places = {"MatMulInteger": 1, "QLinearConv": 3, "QLinearMatMul": 3}
    types = {t.name: t.data_type for t in tensors(new_model)}
    weights = {n: types[g.node[0].input[places[op]]] for n, g in branches.items()}
    assert weights == {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
    for level in LEVELS:
        expected = run_at(level, source, feeds)
        assert_same(run_at(level, new_model, feeds), expected)
        assert_same(run_at(level, saturate(new_model), feeds), expected)


@needs_exact_int8
def test_the_weights_of_int8_are_those_that_run(tmp_path):
    source, feeds = model("MatMulInteger")
    new_model = convert(source, tmp_path)
    (weights,) = [
        t for t in tensors(new_model) if list(t.dims) == [30, 8] and t.name.endswith("/int8")
    ]
    weights.raw_data = bytes(len(weights.raw_data))
    (expected,) = run_at(PLAIN, source, feeds)
    (got,) = run_at(PLAIN, new_model, feeds)
    assert expected.any() and not got.any()
    assert_same(run_at(PLAIN, saturate(new_model), feeds), [expected])


@pytest.mark.parametrize("samples", [2, 0])
def test_convolutions_of_floats_stay_outside(samples, tmp_path):
    source = two_layers()
    new_model = convert(source, tmp_path)
    assert len(choices(new_model)) == 2
    assert [n.op_type for n in new_model.graph.node].count("Conv") == 1
    x = DRAWS.standard_normal((samples, 6, 9, 8), np.float32)
    x[:1, 0, 0, 0] = np.nan  # of the element that is read for the choice
    feeds = {"x": x, "unused": np.zeros(1, np.float32)}
    for level in LEVELS:
        for each in (new_model, saturate(new_model)):
            assert_same(run_at(level, each, feeds), run_at(level, source, feeds))


def test_names_are_unique(tmp_path):
    new_model = convert(two_layers(), tmp_path)
    graphs = [new_model.graph, *(g for branches in choices(new_model) for g in branches.values())]
    values = [o for g in graphs for n in g.node for o in n.output]
    names = [n.name for g in graphs for n in g.node]
    assert len(values) == len(set(values)) and len(names) == len(set(names))
    assert [o.name for o in new_model.graph.output] == ["y", "first"]


def test_files_are_read_with_the_exact_weights(tmp_path):
    source = two_layers()
    convert(source, tmp_path)
    serde.convert(tmp_path / "made.onnx", tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    types = {t.name: t.data_type for t in again.graph.initializer}
    layers = [n for n in again.graph.node if n.op_type == "QLinearConv"]
    assert {types[n.input[3]] for n in layers} == {TensorProto.UINT8}
    values = [{o for n in m.graph.node for o in n.output} for m in (source, again)]
    assert values[0] == values[1]
    feeds = {
        "x": DRAWS.standard_normal((2, 6, 9, 8), np.float32),
        "unused": np.zeros(1, np.float32),
    }
    assert_same(run_at(PLAIN, again, feeds), run_at(PLAIN, source, feeds))


def test_written_again_they_are_the_same(tmp_path):
    new_model = convert(two_layers(), tmp_path)
    again = convert(new_model, tmp_path)
    assert again.graph.node == new_model.graph.node


def test_other_targets_have_no_choice(tmp_path):
    convert(two_layers(), tmp_path)
    serde.convert(tmp_path / "made.onnx", tmp_path / "again.onnx", profile="openvino")
    assert not choices(onnx.load(tmp_path / "again.onnx"))


@pytest.mark.parametrize("name", ["layer", integer_kernels.LAYER])
def test_other_conditions_are_read_as_they_are(name, tmp_path):
    text = """g (bool c, float[2] x) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                   else_branch = e () => (float[2] b) { b = Abs(x) }>
    }"""
    source = model_of(text)
    (node,) = source.graph.node
    node.name = name
    for attribute in node.attribute:
        attribute.g.name = "int8" if attribute.name == "then_branch" else "uint8"
    onnx.save(source, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node] == ["If"]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (model("QLinearConv")[0], {"int8_weights": True}),
        (model("QLinearConv", zero=127)[0], {}),
        (model("MatMulInteger", constant=False)[0], {}),
        (model("ConvInteger")[0], {}),
    ],
    ids=["weights of int8 on request", "another zero point", "weights fed", "ConvInteger"],
)
def test_others_have_no_choice(source, options, tmp_path):
    assert not choices(convert(source, tmp_path, **options))


def test_a_note_counts_the_products(tmp_path):
    onnx.save(two_layers(), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="onnxruntime")
    assert [n for n in report.notes if "twice" in n] == [integer_kernels.NOTE.format(count=2)]
