"""Models whose nodes are merged when ONNX is written, beside what is written of them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.numpy_helper import from_array

import serde
from testing.onnx_live import error, model_of, run_model

W = {"w": (4, 5), "b": (5,), "v": (4, 6), "c": (6,), "r": (1, 5), "o": (3, 1), "e": (1,)}
NORM = {"s": (3,), "t": (3,), "m": (3,), "u": (3,), "f": (3, 1, 1), "k": (2, 3, 3, 3)}
W |= {"w2": (4, 5), "w3": (4, 5)}
HELD = {
    "zeros": np.zeros(4, np.float32), "one": np.float32(1), "flat": np.array([6, 4, 5]),
    "mask": np.tri(4, 5, dtype=np.float32)[None, None], "heads": np.array([1, 6, 4, 5]),
    "mask2": np.stack([np.tri(40, 30, k, np.float32)[None] for k in range(2)]),
    "segments": np.array([6, 1, 20]), "one_axis": np.array([1]), "last_axis": np.array([3]),
    "heads2": np.array([2, 3, 40, 30]), "flat2": np.array([6, 40, 30]),
}  # fmt: skip


def made_of(signature, body, tmp_path, **options):
    """A model, what it is run with, and what is written of it."""
    draws = np.random.default_rng(0)
    model = model_of(f"g {signature} {{ {body} }}", opset=17, ir_version=8)
    nodes = [*model.graph.node]
    nodes += [n for node in nodes for a in node.attribute for n in a.g.node]
    used = {n for node in nodes for n in node.input} - {n for node in nodes for n in node.output}
    held = {n: s for n, s in {**W, **NORM}.items() if n in used}
    for name, shape in held.items():
        array = draws.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(from_array(array, name))
    model.graph.initializer.extend(
        from_array(np.asarray(HELD[n]), n) for n in HELD if n in used
    )  # fmt: skip
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        array = draws.standard_normal(shape)
        is_bool = value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        feeds[value.name] = np.asarray(
            array > 0 if is_bool else array, np.bool_ if is_bool else "f"
        )
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)
    return model, feeds, onnx.load(tmp_path / "b.onnx")


def check_nodes(signature, body, ops, tmp_path):
    """The model is written in these operators, and computes the same."""
    model, feeds, new_model = made_of(signature, body, tmp_path)
    assert sorted(n.op_type for n in new_model.graph.node) == sorted(ops.split())
    check_results(new_model, model, feeds)


def check_results(new_model, model, feeds):
    """Two models compute the same, in ONNX Runtime."""
    for got, expected in zip(run_model(new_model, feeds), run_model(model, feeds), strict=True):
        assert got.shape == expected.shape and error(got, expected) < 1e-6


def list_for_branches(cases):
    """The cases of one output, which the branches of an ``If`` can have."""
    return [n for n, (signature, *_) in cases.items() if signature.split("=>")[1].count("[") == 1]


def check_branches(signature, body, ops, tmp_path):
    """What is merged in a graph is merged in a branch, which reads the inputs from around it."""
    inputs, output = signature.split("=>")
    inputs = f"{inputs.strip()[:-1]}, bool condition)"
    body = (
        f"{output.strip()[1:-1].rsplit(' ', 1)[1]} = If(condition) <"
        f"then_branch = one () => {output} {{ {body} }}, "
        f"else_branch = other () => {output} {{ {body} }}>"
    )
    model, feeds, new_model = made_of(f"{inputs} => {output}", body, tmp_path)
    (branch,) = new_model.graph.node
    for attribute in branch.attribute:
        assert sorted(n.op_type for n in attribute.g.node) == sorted(ops.split())
    check_results(new_model, model, feeds)
