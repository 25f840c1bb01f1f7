"""Sizes of random inputs: those that nothing tells fit what they meet."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from serde.errors import UsageError
from serde.ir.graph import DType, Value
from serde.verification import make_random_inputs
from serde.verification.input_sets import input_sets
from testing.onnx_live import ir_of, model_of, run_model, save_model

# Models of inputs with open sizes; the shapes that are drawn.
CASES = {
    "only broadcast": ("(float[N,5] x, float[N,?] m) => (float[N,5] y) { y = Mul(x, m) }",
                       {"x": (2, 5), "m": (2, 1)}),
    "broadcast with a constant": (
        "(float[N,?] x) => (float[N,3] y) <float[1,3] c = {1,2,3}> { y = Mul(x, c) }",
        {"x": (2, 3)}),
    "normalized": (
        """(float[N,?] x) => (float[N,3] y) <float[3] s = {1,2,3}, float[3] b = {1,2,3},
        float[3] m = {1,2,3}, float[3] v = {1,2,3}> { y = BatchNormalization(x, s, b, m, v) }""",
        {"x": (2, 3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_open_sizes_fit(name: str) -> None:
    text, shapes = CASES[name]
    feeds = make_random_inputs(ir_of(f"g {text}"))
    assert {n: x.shape for n, x in feeds.items()} == shapes
    (y,) = run_model(model_of(f"g {text}"), feeds)
    assert np.isfinite(y).all()


def test_sizes_that_do_not_fit_are_told(tmp_path) -> None:
    """MXNet wants operands alike; nothing tells how the two inputs share the columns."""
    from testing.mxnet_live import live_mxnet

    s = live_mxnet().sym
    joined = s.Concat(s.var("a"), s.var("b"), dim=1)
    symbol = s.FullyConnected(joined, num_hidden=3, no_bias=True, name="fc")
    weight = {"fc_weight": np.ones((3, 7), "float32")}
    report = serde.convert(symbol, tmp_path / "m.onnx", params=weight, verify=True,
                           inputs={"a": ("N", None), "b": ("N", None)})  # fmt: skip
    assert not report.verification.done
    statement = report.verification.statement
    assert "inputs={'a': ('DIMS',), 'b': ('DIMS',)} sets" in statement
    report = serde.convert(symbol, tmp_path / "m.onnx", params=weight, verify=True,
                           inputs={"a": ("N", 2), "b": ("N", 5)})  # fmt: skip
    assert report.ok and report.verification.done


class TestRandomInputs:
    def test_indices_are_valid_through_what_passes_them_on(self):
        graph = ir_of(
            "g (float[N,T] a, int64[N] b, float[N,3,H,W] c, bool[2] d, uint8[4] e)"
            "=> (u, v, w, p, q) <float[3,2] t = {0, 1, 2, 3, 4, 5}>"
            "{ i = Cast<to=7>(a)\n u = Gather(t, i)\n v = Gather(t, b)\n"
            "  w = Relu(c)\n p = Not(d)\n q = Identity(e) }"
        )
        feeds = make_random_inputs(graph)
        assert feeds["a"].max() <= 2 and feeds["b"].max() <= 2 and feeds["a"].min() >= 0
        assert {n: (a.shape, str(a.dtype)) for n, a in feeds.items()} == {
            "a": ((2, 8), "float32"), "b": ((2,), "int64"), "c": ((2, 3, 64, 64), "float32"),
            "d": ((2,), "bool"), "e": ((4,), "uint8"),
        }  # fmt: skip

    def test_they_depend_on_the_seed_alone(self):
        graph = ir_of("g (float[N,3] x) => (y) { y = Relu(x) }")
        one, again, other = (make_random_inputs(graph, s)["x"] for s in (1, 1, 2))
        assert np.array_equal(one, again) and not np.array_equal(one, other)

    def test_a_name_has_one_size_throughout(self):
        graph = ir_of("g (float[N,T] x, float[T,N] y) => (z) { z = MatMul(x, y) }")
        feeds = make_random_inputs(graph)
        assert feeds["x"].shape == feeds["y"].shape[::-1]

    @pytest.mark.parametrize("op", ["SequenceMask", "SequenceReverse", "SequenceLast"])
    @pytest.mark.parametrize("steps", [7, "T"])
    def test_lengths_are_those_of_sequences(self, op, steps, tmp_path):
        """MXNet reads outside of its data at others."""
        symbol = {
            "nodes": [
                {"op": "null", "name": "x", "inputs": []},
                {"op": "null", "name": "n", "inputs": []},
                {"op": op, "name": "y", "attrs": {"use_sequence_length": "True"},
                 "inputs": [[0, 0, 0], [1, 0, 0]]},
            ],
            "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
        }  # fmt: skip
        path = tmp_path / "m-symbol.json"
        path.write_text(json.dumps(symbol))
        graph = serde.load(path, inputs={"x": (steps, 40, 3), "n": (40,)})
        feeds = make_random_inputs(graph)
        assert set(feeds["n"]) == set(range(1, feeds["x"].shape[0] + 1))
        changed = {s.name: s.feeds["n"] for s in input_sets(graph, graph, 0)}
        assert all(lengths is changed["normal"] for lengths in changed.values())

    def test_texts_are_drawn_of_a_few(self, tmp_path):
        body = "g (string[40] x) => (string[40] y) { y = Identity(x) }"
        feeds = make_random_inputs(ir_of(body))
        assert feeds["x"].dtype == object and len(set(feeds["x"])) > 3
        source = save_model(tmp_path / "a.onnx", body)
        assert serde.convert(source, tmp_path / "b.onnx", verify=True).verification.done

    def test_complex_numbers_cannot_be_made_up(self):
        graph = ir_of("g (complex64[2] x) => (y) { y = Identity(x) }")
        with pytest.raises(UsageError, match="'x' is complex64, which is not drawn at random"):
            make_random_inputs(graph)
        assert Value("x", DType.STRING).dtype.kind == "S"

    @pytest.mark.parametrize("rows", [0, 2])
    @pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1])
    @pytest.mark.parametrize("dtype", ["float", "int8", "bool", "string"])
    def test_inputs_that_memory_does_not_take_are_refused(self, rows, size, dtype):
        shape = f"{dtype}[{rows},{size}]"
        graph = ir_of(f"g ({shape} x) => ({shape} y) {{ y = Identity(x) }}")
        with pytest.raises(UsageError, match=r"'x' of the shape .* takes more memory than there"):
            make_random_inputs(graph)

    def test_the_environment_tells_how_much_memory_there_is(self, monkeypatch):
        graph = ir_of("g (float[3,1000000] x) => (float[3,1000000] y) { y = Identity(x) }")
        monkeypatch.setenv("SERDE_MAX_MEMORY", "20")
        with pytest.raises(UsageError, match="takes more memory"):
            make_random_inputs(graph)
        monkeypatch.setenv("SERDE_MAX_MEMORY", "30")
        assert make_random_inputs(graph)["x"].shape == (3, 1_000_000)
