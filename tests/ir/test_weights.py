"""The numbers of a graph: found wherever they are, measured, and their size in words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from serde import api
from serde.ir.weights import BINS, find_weights, measure, show_size
from testing.onnx_live import model_of


def weights_of(model, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")
    graph, _ = api.read(tmp_path / "m.onnx")
    return {v.name: v.tensor.size for v in find_weights(graph)}


def test_initializers_constant_nodes_and_lists(tmp_path):
    model = model_of(
        "g (float[N,3] x) => (float[N,4] y) <float[3,4] w = {0,1,2,3,4,5,6,7,8,9,10,11}>"
        "{ b = Constant<value = float[4] {1,2,3,4}>()\n c = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()\n"
        "  d = Constant<value_ints = [4, 4]>()\n m = MatMul(x, w)\n n = Add(m, b)\n y = Add(n, c) }",
        13,
    )
    assert weights_of(model, tmp_path) == {"w": 12, "b": 4, "c": 4, "d": 2}


def test_subgraphs_at_any_depth(tmp_path):
    def body(name, nodes, inner):
        value = helper.make_tensor_value_info(name, 1, [2])
        weight = numpy_helper.from_array(np.ones(2, np.float32), f"{name}_w")
        return helper.make_graph([*nodes, helper.make_node("Add", ["x", f"{name}_w"], [name])]
                                 if inner is None else nodes, name, [], [value],
                                 [] if inner is not None else [weight])  # fmt: skip

    then, other = body("t", [], None), body("e", [], None)
    inner = helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other)
    outer = body("i", [inner], "i")
    last = body("o", [helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones((2,), np.float32))),
                      helper.make_node("Add", ["x", "k"], ["o"])], "o")  # fmt: skip
    top = helper.make_node("If", ["c"], ["y"], then_branch=outer, else_branch=last)
    graph = helper.make_graph(
        [top], "g",
        [helper.make_tensor_value_info("c", 9, []), helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", 1, [2])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert weights_of(model, tmp_path) == {"t_w": 2, "e_w": 2, "k": 2}


def test_functions(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float[2] x) => (float[2] y) { y = own.f(x) }
    <domain: "own", opset_import: ["" : 17]> f (a) => (b) { k = Constant<value = float[2] {1, 2}>()
      b = Add(a, k) }"""
    assert weights_of(onnx.parser.parse_model(text), tmp_path) == {"k": 2}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8, np.int64, bool,
                                   ml_dtypes.bfloat16, ml_dtypes.int4])  # fmt: skip
def test_statistics_are_those_of_numpy(dtype):
    array = np.random.default_rng(0).integers(0, 2 if dtype is bool else 7, (300, 7)).astype(dtype)
    wide = array.astype(np.float64)
    found = measure(array)
    measures = found.least, found.largest, found.mean, found.deviation
    np.testing.assert_allclose(measures, [wide.min(), wide.max(), wide.mean(), wide.std()])
    assert (found.zeros, found.not_finite) == ((wide == 0).sum(), 0)
    assert found.histogram == tuple(np.histogram(wide, BINS)[0])


def test_numbers_that_are_not_finite_are_counted():
    found = measure(np.array([1, np.nan, -np.inf, 3, 0], np.float32))
    assert (found.least, found.largest, found.zeros, found.not_finite) == (0, 3, 1, 2)
    assert str(found) == "min 0, max 3, mean 1.333, std 1.247, 1 zeros, 2 not finite"


EXTREME = np.finfo(np.float64)
RANGES = {  # of numbers so far from 0, from one another or so close that bins have no float64 edges
    "the largest integer": np.array([2**63 - 1] * 3),
    "large and next to each other": np.array([2.0**60, 2.0**60 + 256]),
    "the whole range": np.array([EXTREME.min, 0, EXTREME.max]),
    "the least": np.array([0, EXTREME.smallest_subnormal]),
    "equal": np.full(5, -7, np.float16),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.filterwarnings("error")
def test_any_range_has_a_histogram(name):
    array = RANGES[name]
    found = measure(array)
    assert (found.least, found.largest) == (float(array.min()), float(array.max()))
    assert sum(found.histogram) == array.size and found.least <= found.mean <= found.largest
    assert found.deviation / 2 <= found.largest / 2 - found.least / 2


def test_large_arrays_are_measured_in_parts(monkeypatch):
    array = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    whole = measure(array)
    monkeypatch.setattr("serde.ir.weights.CHUNK", 64)
    parts = measure(array)
    assert parts.histogram == whole.histogram and sum(parts.histogram) == 1000
    np.testing.assert_allclose(parts[:4], whole[:4], rtol=1e-12)


@pytest.mark.parametrize("array", [np.zeros(0, np.float32), np.array(["a"], object),
                                   np.array([1j]), np.array([np.nan])])  # fmt: skip
def test_others_have_none(array):
    assert measure(array) is None


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (86_888, "86.9 KB"), (999_000, "999.0 KB"),
     (1_000_000, "1.0 MB"), (2.5e9, "2.5 GB")],
)  # fmt: skip
def test_sizes(nbytes, text):
    assert show_size(nbytes) == text
