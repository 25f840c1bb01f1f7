"""Programs with many writes to one tensor, and to views of it."""

from __future__ import annotations

import itertools

import pytest

import serde
from serde.errors import ConversionError
from testing.cpu_limit import limit_cpu

from .test_decode import change_member, edit

VIEW, WRITE, TURN, BACK = "view", "relu_", "unsqueeze_", "squeeze_.dim"
MORE = {
    VIEW: {"size": {"as_ints": [1, 3]}}, TURN: {"dim": {"as_int": 0}}, BACK: {"dim": {"as_int": 0}},
}  # fmt: skip


def make_program(tmp_path, steps):
    """A program whose steps are an operator and the place of what it reads: 0 is the input."""
    names = ["x", *(f"v{k}" for k in range(len(steps)))]

    def change(tree):
        graph, signature = tree["graph_module"]["graph"], tree["graph_module"]["signature"]
        meta = graph["tensor_values"][graph["inputs"][0]["as_tensor"]["name"]]
        meta["sizes"], meta["strides"] = ([{"as_int": n} for n in ns] for ns in ((1, 3), (3, 1)))
        graph["tensor_values"] = dict.fromkeys(names, meta)
        graph["inputs"] = [{"as_tensor": {"name": "x"}}]
        graph["outputs"] = [{"as_tensor": {"name": names[-1]}}]
        graph["nodes"] = [
            {"target": f"torch.ops.aten.{op}", "name": name, "metadata": {},
             "inputs": [{"name": key, "arg": arg, "kind": 1} for key, arg in {
                 "self": {"as_tensor": {"name": names[at]}}, **MORE.get(op, {})}.items()],
             "outputs": [{"as_tensor": {"name": name}}]}
            for name, (op, at) in zip(names[1:], steps, strict=True)
        ]  # fmt: skip
        signature["input_specs"] = [{"user_input": {"arg": graph["inputs"][0]}}]
        signature["output_specs"] = [{"user_output": {"arg": graph["outputs"][0]}}]
        tree["graph_module"]["module_call_graph"] = []
        tree["range_constraints"] = {}

    return change_member(tmp_path, "leaky", "models/model.json", edit(change))


@pytest.mark.parametrize("steps", [
    [(WRITE, k) for k in range(1500)],
    [(VIEW, k) for k in range(1500)] + [(WRITE, 1500)],
    [*itertools.chain(*(((VIEW, 0), (WRITE, 2 * k + 1)) for k in range(700)))],
    [(BACK if k % 2 else TURN, 0) for k in range(1500)],
], ids=["one tensor", "a view of views", "many views", "turns"])  # fmt: skip
def test_work_grows_with_the_program(steps, tmp_path):
    with limit_cpu(5):
        graph = serde.load(make_program(tmp_path, steps))
    assert len(graph.nodes) <= 2 * len(steps)


@pytest.mark.parametrize("steps", [
    [(VIEW, k) for k in range(500)] + [(WRITE, 500)] * 500,
    [(VIEW, k) for k in range(500)] + [(WRITE, 0), ("relu", 500)] * 500,
], ids=["writes", "reads"])  # fmt: skip
def test_a_graph_out_of_proportion_is_refused(steps, tmp_path):
    with limit_cpu(5), pytest.raises(ConversionError, match="clone views before the writes"):
        serde.load(make_program(tmp_path, steps))
