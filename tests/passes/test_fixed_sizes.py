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
from testing.cpu_limit import limit_cpu
from testing.onnx_live import model_of, run_model

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
    "body, constants",
    [
        (ADDED, {"c": ROWS}),  # one sample is repeated for all rows
        (ADDED, {"c": np.ones((300, 4), np.float32)}),
        (SPREAD, {"s": [2, 300, 4]}),
    ],
)
def test_a_note_tells_a_batch_of_few_numbers(body, constants, tmp_path):
    graph = load(body, tmp_path, **constants)
    assert graph.inputs[0].shape[0] == "N"
    op = graph.nodes[-1].op
    assert graph.notes == (f"'y' ({op}) takes few numbers for the size N: give one (inputs=)",)
    assert not [f.number for f in find_fixed_sizes(graph) if f.number]


@pytest.mark.parametrize(
    "body, constants, number",
    [(JOINED, {"c": ROWS}, 3), (SUMS, {"w": np.ones((2, 50), np.float32)}, 50)],
)
def test_the_only_number_of_a_batch_is_taken(body, constants, number, tmp_path):
    graph = load(body, tmp_path, **constants)
    assert graph.inputs[0].shape[0] == number
    op = graph.nodes[-1].op
    assert graph.notes == (f"N is {number}: 'y' ({op}) takes few numbers for the size N",)
    with pytest.raises(UsageError, match=rf"inputs={{'x': \({number}, 4\)}}$"):
        load(body, tmp_path, {"x": ("N", 4)}, **constants)


def test_a_batch_of_1_may_be_broadcast_and_is_not_taken(tmp_path):
    graph = load(JOINED, tmp_path, c=ROWS[:1])
    assert graph.inputs[0].shape[0] == "N"
    assert graph.notes == ("'y' (Concat) takes few numbers for the size N: give one (inputs=)",)


def test_a_constant_of_one_sample_is_expanded_to_the_batch(tmp_path):
    graph = load(JOINED, tmp_path, {"x": ("N", 4)}, c=ROWS[:1])
    assert graph.inputs[0].shape[0] == graph.outputs[0].shape[0] == "N"


def test_a_batch_in_constants_is_taken_out(tmp_path):
    graph = load(FOLDED, tmp_path, s=[2, 12])
    assert graph.inputs[0].shape[0] == graph.outputs[0].shape[0] == "N"
    assert graph.notes == ("made for batches of 2: takes any number N of samples",)
    serde.save(graph, tmp_path / "b.onnx")
    x = np.random.default_rng(1).standard_normal((5, 3, 4)).astype(np.float32)
    (y,) = run_model(tmp_path / "b.onnx", {"x": x})
    np.testing.assert_array_equal(y, x.reshape(5, 12))


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
    body = "(float[N,L,4] x) => (float[N,12] y) { y = Reshape(x, s) }"
    graph = load(body.replace("N", "1"), tmp_path, s=[1, 12])
    assert graph.inputs[0].shape == (1, "L", 4)
    assert graph.notes == ("'y' (Reshape) takes few numbers for the size L: give one (inputs=)",)
    graph = load(body, tmp_path, {"x": ("?", 3, 4)}, s=[-1, 12])
    assert not graph.notes


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    "body, constants, size",
    [
        ("(float[N,L,5] x) => (float[A,B,C] y) { y = Conv<group = 2>(x, w) }", {"w": ones(4, 3, 2)}, 6),
        ("(float[N,L,5] x) => (float[A,B,C] y) { y = ConvTranspose(x, w) }", {"w": ones(4, 3, 2)}, 4),
        ("(float[N,L,5] x) => (float[A,B,C] y) { y = InstanceNormalization(x, w, w) }", {"w": ones(3)}, 3),
        ("(float[N,L] x) => (float[A,B] y) { y = MatMul(x, w) }", {"w": ones(4, 3)}, 4),
        ("(float[N,L] x) => (float[A,B] y) { y = Gemm<transB = 1>(x, w) }", {"w": ones(4, 3)}, 3),
        ("(float[N,L] x) => (float[A,B] y) { y = Concat<axis = 0>(w, x) }", {"w": ones(4, 3)}, 3),
        ("(float[N,L] x) => (float[A,B] y) { z = Relu(x) y = Concat<axis = 0>(w, z) }", {"w": ones(4, 3)}, 3),
    ],
)  # fmt: skip
def test_sizes_that_operands_require_are_numbers(body, constants, size, tmp_path):
    graph = load(body, tmp_path, **constants)
    assert graph.inputs[0].shape[:2] == ("N", size)
    op = graph.nodes[-1].op
    assert graph.notes == (f"L is {size}: 'y' ({op}) takes no other",)


def test_sizes_that_may_be_1_as_well_stay(tmp_path):
    graph = load("(float[N,L] x) => (float[A,B] y) { y = Add(x, c) }", tmp_path, c=ROWS)
    assert graph.inputs[0].shape == ("N", "L")
    contradicting = "(float[N,L,L] x) => (float[A,B,L] y) { z = Conv(x, w) y = MatMul(z, v) }"
    graph = load(contradicting, tmp_path, w=ones(4, 3, 1), v=ones(5, 2))
    assert graph.inputs[0].shape == ("N", "L", "L")


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
    with pytest.raises(
        UsageError, match="takes few numbers for the size N: .*inputs={'data': \\(1, 3, 4\\)}$"
    ):
        serde.load(symbol, inputs={"data": spec})


def test_a_number_that_is_given_is_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("serde.passes.fixed_sizes.fix_dimensions", None)
    symbol = save_symbol(tmp_path, RESHAPE)
    assert serde.load(symbol, inputs={"data": (1, 3, 4)}).outputs[0].shape == (1, 12)


def test_rebatch_takes_the_only_number_out_of_constants(tmp_path):
    """The symbol names no shape: its batch is ``N``, and it takes 6 alone."""
    body = "(float[N,5] x) => (float[6,3,4] y) { h = MatMul(x, w) y = Reshape(h, s) }"
    constants = {"w": np.ones((5, 12), np.float32), "s": [6, 3, 4]}
    save(body, tmp_path / "a.onnx", **constants)
    for batch, size in (("N", "N"), ("M", "M"), (2, 2)):
        graph = serde.load(tmp_path / "a.onnx", rebatch=batch)
        assert graph.inputs[0].shape == (size, 5) and graph.outputs[0].shape == (size, 3, 4)
        assert not graph.notes


def load_many(count, odd, folder):
    """As many inputs with a size by name each; some are joined with a constant of three rows.

    Rules alone do not tell that a graph with a Shape takes any sizes.
    """
    kinds = [f"float[N{i},4] x{i}" for i in range(count)]
    results = [f"float[A{i},8] y{i}" for i in range(count)]
    others = ["c" if i in odd else f"x{i}" for i in range(count)]
    nodes = [f"y{i} = Concat<axis = 1>(x{i}, {other})" for i, other in enumerate(others)]
    body = f"({', '.join(kinds)}) => ({', '.join(results)}, int64[2] s) {{ {' '.join(nodes)} s = Shape(y0) }}"
    return load(body, folder, **({"c": ROWS} if odd else {}))


def test_names_that_take_few_numbers_are_found_among_many(tmp_path):
    graph = load_many(40, {7, 29}, tmp_path)
    shapes = [v.shape[0] for v in graph.inputs]
    assert [i for i, size in enumerate(shapes) if size == 3] == [7, 29] and len({*shapes}) == 39


@pytest.mark.parametrize("odd", [{}, range(160)])
def test_many_names_are_not_tried_one_by_one(odd, tmp_path):
    """A file of 20 KB took half a minute."""
    with limit_cpu(0.5 if not odd else 3):
        graph = load_many(160 if odd else 500, odd, tmp_path)
    assert len({v.shape[0] for v in graph.inputs}) > 100
