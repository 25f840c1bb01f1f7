"""Sizes by name that may not be any number."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.errors import UsageError
from serde.passes.fixed_sizes import find_fixed_sizes
from tests.onnx_live import model_of, run_model

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def save(body: str, path, **constants) -> None:
    model = model_of(f"g {body}", 17, 8)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()
    )
    onnx.save(model, path)


def load(body: str, folder, inputs=None, **constants) -> serde.Graph:
    save(body, folder / "a.onnx", **constants)
    return serde.load(folder / "a.onnx", inputs=inputs)


JOINED = "(float[N,4] x) => (float[A,8] y) { y = Concat<axis = 1>(x, c) }"
FOLDED = "(float[N,3,4] x) => (float[A,B] y) { y = Reshape(x, s) }"
SUMS = "(float[N,4] x) => (float[A,4] y) { y = MatMul(w, x) }"
ADDED = "(float[N,4] x) => (float[A,4] y) { y = Add(x, c) }"
SPREAD = "(float[N,4] x) => (float[A,B,4] y) { y = Expand(x, s) }"


@pytest.mark.parametrize(
    "body, constants, numbers",
    [
        (JOINED, {"c": ROWS[:1]}, [1]),
        (JOINED, {"c": ROWS}, [3]),
        (FOLDED, {"s": [2, 12]}, [2]),
        (SUMS, {"w": np.ones((2, 50), np.float32)}, [50]),
        (ADDED, {"c": ROWS}, []),  # one sample is repeated for all rows
        (ADDED, {"c": np.ones((300, 4), np.float32)}, []),
        (SPREAD, {"s": [2, 300, 4]}, []),
    ],
)
def test_a_note_tells_a_batch_of_few_numbers(body, constants, numbers, tmp_path):
    graph = load(body, tmp_path, **constants)
    assert graph.inputs[0].shape[0] == "N"
    op = graph.nodes[-1].op
    assert graph.notes == (f"'y' ({op}) takes few numbers for the size N: give one (--input)",)
    assert [f.number for f in find_fixed_sizes(graph) if f.number] == numbers


@pytest.mark.parametrize(
    "body, constants",
    [
        (JOINED.replace("float[N,4] x)", "float[N,4] x, float[N,4] c)"), {}),
        (FOLDED, {"s": [-1, 12]}),
        (FOLDED, {"s": [-1, 21]}),  # 7 samples, or a multiple
        (FOLDED, {"s": [0, -1]}),
        (  # the first rows of a table, up to 50
            "(float[N,4] x) => (float[A,4] y) { s = Shape<end = 1>(x) t = Slice(c, z, s) "
            "y = Add(x, t) }",
            {"c": np.ones((50, 4), np.float32), "z": [0]},
        ),
        (  # images, which windows have to fit into
            "(float[N,3,H,W] x) => (float[A,B,C,D] y) "
            "{ y = MaxPool<kernel_shape = [40, 40], strides = [32, 32]>(x) }",
            {},
        ),
        (  # and sides that are halved and doubled again
            "(float[N,3,H,W] x) => (float[A,B,C,D] y) { p = MaxPool<kernel_shape = [4, 4], "
            "strides = [4, 4]>(x) r = Resize(p, , c) y = Concat<axis = 1>(x, r) }",
            {"c": np.float32([1, 1, 4, 4])},
        ),
    ],
)
def test_names_that_may_be_several_numbers_stay(body, constants, tmp_path):
    graph = load(body, tmp_path, **constants)
    assert graph.inputs[0].shape[0] == "N" and not graph.notes


def test_other_sizes_are_told(tmp_path):
    body = "(float[N,L,4] x) => (float[A,B,8] y) { y = Concat<axis = 2>(x, c) }"
    with_length = "(float[1,L,4] x) => (float[1,B,8] y) { y = Concat<axis = 2>(x, c) }"
    constants = {"c": np.ones((1, 300, 4), np.float32)}
    graph = load(with_length, tmp_path, **constants)
    assert graph.inputs[0].shape == (1, "L", 4)
    assert graph.notes == ("'y' (Concat) takes few numbers for the size L: give one (--input)",)
    graph = load(body, tmp_path, {"x": ("?", 300, 4)}, **constants)
    assert not graph.notes


def save_symbol(folder, *layers: tuple[str, dict[str, str]]) -> str:
    """The prefix of a symbol of some layers, one behind the other."""
    nodes = [{"op": "null", "name": "data", "inputs": []}]
    for at, (op, attrs) in enumerate(layers):
        nodes.append({"op": op, "name": f"layer{at}", "attrs": attrs, "inputs": [[at, 0, 0]]})
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[len(layers), 0, 0]]})
    (folder / "m-symbol.json").write_text(text)
    return str(folder / "m-symbol.json")


RESHAPE = ("Reshape", {"shape": "(1, 12)"})


def test_a_requested_batch_is_taken_out_of_constants(tmp_path):
    symbol = save_symbol(tmp_path, RESHAPE, ("relu", {}))
    graph = serde.load(symbol, inputs={"data": ("N", 3, 4)})
    assert graph.outputs[0].shape == ("N", 12)
    serde.save(graph, tmp_path / "b.onnx")
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (y,) = run_model(tmp_path / "b.onnx", {"data": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0).reshape(2, 12))


@pytest.mark.parametrize("spec", [("N", 3, 4), (("N", 3, 4), "float32")])
def test_a_requested_batch_that_the_model_mixes_is_refused(spec, tmp_path):
    symbol = save_symbol(tmp_path, ("Reshape", {"shape": "(3, 4)"}), ("softmax", {"axis": "0"}))
    with pytest.raises(UsageError, match="takes few numbers for the size N: .*--input data=1,3,4$"):
        serde.load(symbol, inputs={"data": spec})


def test_a_number_that_is_given_is_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("serde.passes.fixed_sizes.fix_dimensions", None)
    symbol = save_symbol(tmp_path, RESHAPE)
    assert serde.load(symbol, inputs={"data": (1, 3, 4)}).outputs[0].shape == (1, 12)
