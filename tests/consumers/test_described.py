"""The rules of Core ML's and QNN's documentation, on the graphs that their profiles write."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.backends.description import get_backend
from serde.pipeline import read
from testing.onnx_live import DIGITS, error, model_of, run_model

PROFILES = ("coreml", "qnn")
LAYERS = """g (float[2,4,6,6] x) => (float[2,3] y) {
    a = BatchNormalization(x, s, s, s, s) b = Conv<kernel_shape = [3,3]>(a, w)
    c = HardSwish(b) d = LayerNormalization<axis = 3>(c, g, g) e = GlobalAveragePool(d)
    f = Flatten(e) h = Gemm<transA = 0, alpha = 0.5>(f, v, k) y = Mish(h) }"""
HELD = {
    "s": np.linspace(0.5, 1, 4, dtype=np.float32), "w": np.ones((5, 4, 3, 3), np.float32) / 9,
    "g": np.ones(4, np.float32), "v": np.ones((5, 3), np.float32), "k": np.zeros(3, np.float32),
}  # fmt: skip


def make_model(body: str, held: dict[str, Any]) -> onnx.ModelProto:
    model = model_of(body, 20)
    model.graph.initializer.extend(from_array(np.asarray(a), n) for n, a in held.items())
    return model


@pytest.mark.parametrize("profile", PROFILES)
def test_every_node_is_one_that_the_documentation_lists(profile, tmp_path):
    onnx.save(make_model(LAYERS, HELD), tmp_path / "a.onnx")
    target = get_backend(profile).target
    for source, shape in ((tmp_path / "a.onnx", None), (DIGITS, {"data": (1, 1, 8, 8)})):
        report = serde.convert(source, tmp_path / "m.onnx", profile=profile, inputs=shape)
        nodes = read(tmp_path / "m.onnx")[0].nodes
        checks = (target.illegal_operator, target.illegal_types, target.illegal_form)
        assert nodes and not any(check(n) for n in nodes for check in checks)
        assert report.ok


DECOMPOSED = {  # operators that a documentation does not list, and what its profile lists
    "Abs": "y = Abs(x)", "Mean": "y = Mean(x, x)", "Min": "z = Neg(x) y = Min(x, z)",
    "ReduceL1": "y = ReduceL1(x)", "ReduceL2": "y = ReduceL2(x)", "ReduceMin": "y = ReduceMin(x)",
    "ReduceSumSquare": "y = ReduceSumSquare(x)", "Selu": "y = Selu(x)",
    "Softplus": "y = Softplus(x)", "Softsign": "y = Softsign(x)",
    "LogSoftmax": "y = LogSoftmax(x)", "SpaceToDepth": "y = SpaceToDepth<blocksize = 2>(x)",
}  # fmt: skip


@pytest.mark.parametrize("op", DECOMPOSED)
@pytest.mark.parametrize("profile", PROFILES)
def test_operators_that_are_not_listed_are_decomposed(profile, op, tmp_path):
    target = get_backend(profile).target
    model = make_model(f"g (float[1,2,4,6] x) => (float y) {{ {DECOMPOSED[op]} }}", {})
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.check(tmp_path / "a.onnx", to=profile)
    if lacking := {p.op for p in report.problems}:
        assert lacking <= {"Abs", "Log", "LogSoftmax"} - target.supports.keys()
        return
    serde.convert(tmp_path / "a.onnx", tmp_path / "m.onnx", profile=profile)
    written = onnx.load(tmp_path / "m.onnx")
    assert {n.op_type for n in written.graph.node} <= target.supports.keys()
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 2, 4, 6)).astype(np.float32) * 20}
    assert error(run_model(written, feeds)[0], run_model(model, feeds)[0]) < 1e-6


def test_numbers_are_kept(tmp_path):
    model = make_model(LAYERS, HELD)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "m.onnx", profile="coreml")
    feeds = {"x": np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float32)}
    (expected,), (actual,) = (
        run_model(model, feeds),
        run_model(onnx.load(tmp_path / "m.onnx"), feeds),
    )
    assert error(actual, expected) < 1e-6


@pytest.mark.parametrize(
    ("profile", "body", "held", "reason"),
    [
        ("coreml", "g (float[1,2,8] x) => (float[1,2,7] y) { y = MaxPool<kernel_shape = [2]>(x) }",
         {}, "rank"),
        ("coreml", "g (float[1,2,4,4] x, float[3] b) => (float[1,3,4,4] y) { y = Conv(x, w, b) }",
         {"w": np.ones((3, 2, 1, 1), np.float32)}, "with computed 'B': 'b'"),
        ("coreml", "g (float[2,3] x) => (float[2,3] y) { y = Hardmax(x) }", {}, "coreml has no"),
        ("coreml", "g (double[2,3] x) => (double[2,3] y) { y = Relu(x) }", {}, "float64"),
        ("qnn", "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", {}, "static shapes only"),
        ("qnn", "g (float[2,3] x) => (float[2,3] y) { y = LpNormalization<p = 1>(x) }", {}, "'p' other than 2: 1"),
    ],
)  # fmt: skip
def test_forms_that_it_excludes(profile, body, held, reason, tmp_path):
    onnx.save(make_model(body, held), tmp_path / "m.onnx")
    problems = [p.reason for p in serde.check(tmp_path / "m.onnx", to=profile).problems]
    assert any(reason in p for p in problems), problems
