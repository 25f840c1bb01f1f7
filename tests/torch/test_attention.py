"""Attention becomes one call of PyTorch, from the operator and from what it is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from tests.torch.torch_live import why_not

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
INPUTS = "float[2,3,5,8] q, float[2,3,7,8] k, float[2,3,7,8] v, float[2,1,5,7] m, bool[2,1,5,7] s"
TURN = "t = Transpose<perm = [0, 1, 3, 2]>(k) "
FORMS = {  # what is between the products and the softmax
    "scaled": TURN + "c = Constant<value_float = 0.3>() a = MatMul(q, t) b = Mul(a, c) "
    "w = Softmax(b) y = MatMul(w, v)",
    "unscaled": TURN + "a = MatMul(q, t) w = Softmax(a) y = MatMul(w, v)",
    "both scaled, and a mask": TURN + "c = Constant<value_float = 0.59460355>() r = Mul(q, c) "
    "u = Mul(t, c) a = MatMul(r, u) b = Add(m, a) w = Softmax<axis = 3>(b) y = MatMul(w, v)",
    "hidden": TURN + "c = Constant<value_float = 2.8284271>() n = Constant<value_float = -1e9>() "
    "a = MatMul(q, t) b = Div(a, c) d = Where(s, b, n) w = Softmax(d) y = MatMul(w, v)",
    "hidden before and after": TURN + "z = Constant<value_float = 0.0>() "
    "n = Constant<value_float = -1e30>() a = MatMul(q, t) d = Where(s, a, n) x = Softmax(d) "
    "w = Where(s, x, z) y = MatMul(w, v)",
}  # fmt: skip
OTHERS = {  # that are no attention of PyTorch's
    "another axis": TURN + "a = MatMul(q, t) w = Softmax<axis = 2>(a) y = MatMul(w, v)",
    "hardly hidden": TURN + "n = Constant<value_float = -2.0>() a = MatMul(q, t) "
    "d = Where(s, a, n) w = Softmax(d) y = MatMul(w, v)",
    "weights that are read": TURN + "a = MatMul(q, t) w = Softmax(a) x = MatMul(w, v) "
    "e = ReduceMax<keepdims = 0>(w) y = Add(x, e)",
}  # fmt: skip

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    """One process for all modules."""
    return TorchWorker()


@pytest.mark.parametrize("name", [*FORMS, *OTHERS])
def test_it_computes_what_onnx_runtime_does(name: str, worker, tmp_path: Path) -> None:
    body = (FORMS | OTHERS)[name]
    model = onnx.parser.parse_model(f"{HEAD}g ({INPUTS}) => (float[2,3,5,8] y) {{ {body} }}")
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    calls = (tmp_path / "n.py").read_text().count("F.scaled_dot_product_attention")
    assert calls == (name in FORMS)
    generator = np.random.default_rng(5)
    shapes = {"q": (2, 3, 5, 8), "k": (2, 3, 7, 8), "v": (2, 3, 7, 8), "m": (2, 1, 5, 7)}
    feeds = {n: generator.standard_normal(shape, np.float32) for n, shape in shapes.items()}
    feeds["s"] = generator.random((2, 1, 5, 7)) < 0.7
    feeds["s"][0, 0, 2] = False  # nothing is seen from one place
    session = onnxruntime.InferenceSession(model.SerializeToString())
    read = {i.name for i in session.get_inputs()}
    (expected,) = session.run(None, {n: a for n, a in feeds.items() if n in read})
    (got,) = worker.run(str(tmp_path / "n.py"), [feeds[n] for n in "qkvms"])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
