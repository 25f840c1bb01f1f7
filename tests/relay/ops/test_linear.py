"""Products of stacks of matrices, some sizes of which are named; in live TVM beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.passes import tidy
from testing.onnx_live import ir_of, model_of, run_model
from testing.relay.tvm_live import run
from tests.onnx.contrib import cases, test_generation

RNG = np.random.default_rng(7)
SIZES = {"N": 3, "L": 1, "S": 6, "K": 4, "T": 5}
PRODUCTS = [  # L is a name of size 1, which is broadcast
    ("3,3,4", "N,4,5"), ("3,3,4", "L,4,5"), ("L,3,4", "3,4,5"), ("N,3,4", "3,4,5"),
    ("L,S,4", "3,4,5"), ("3,2,K", "L,K,5"), ("N,3,K", "3,4,5"), ("N,3,4", "L,4,5"),
    ("1,2,S,4", "1,2,4,5"), ("N,2,S,4", "1,2,4,5"), ("2,2,S,K", "2,2,4,5"),
    ("1,2,2,16", "1,2,16,T"), ("L,2,S,16", "2,2,16,T"), ("N,2,2,16", "L,2,16,T"),
    ("N,1,3,4", "1,1,4,T"), ("1,1,3,4", "1,N,4,T"), ("N,2,S,K", "N,2,K,5"),
    ("N,3,4", "1,N,4,T"), ("S,K", "4,5"), ("3,K", "4,T"), ("2,3,4,5", "1,3,5,T"),
]  # fmt: skip


def run_tvm(graph, feeds):
    """What TVM computes."""
    new_graph = from_ir(tidy(graph))
    module, weights = to_module(new_graph)
    inputs = {v.name: feeds[v.name] for v in new_graph.inputs}
    return run("json", to_json(module), inputs | {n: t.load() for n, t in weights.items()})


@pytest.mark.parametrize("half", [0, 1])
def test_stacks_of_named_sizes(half):
    pairs = PRODUCTS[half::2]
    ends = [f"float[{a}] a{i}, float[{b}] b{i}" for i, (a, b) in enumerate(pairs)]
    nodes = "".join(f"y{i} = MatMul(a{i}, b{i})" for i in range(len(pairs)))
    names = ", ".join(f"y{i}" for i in range(len(pairs)))
    body = f"g ({', '.join(ends)}) => ({names}) {{ {nodes} }}"
    feeds = {
        f"{letter}{i}": RNG.normal(size=parse_shape(text)).astype("float32")
        for i, pair in enumerate(pairs)
        for letter, text in zip("ab", pair, strict=True)
    }
    actual, expected = run_tvm(ir_of(body, 16), feeds), run_model(model_of(body, 16, 8), feeds)
    for pair, a, b in zip(pairs, actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=str(pair))


def parse_shape(text):
    """The shape that a text names."""
    return [SIZES[d] if d in SIZES else int(d) for d in text.split(",")]


@pytest.mark.parametrize("case", [*test_generation.STEPS[::3], test_generation.PROMPTS[9]], ids=str)
def test_attention_to_a_cache(case, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(case.model(), path)
    outputs = run_tvm(serde.load(path), case.feeds)
    cases.compare(outputs, cases.run(case.model(), case.feeds), 1e-5)
