"""The first layer that makes NaN or infinities: of ONNX and MXNet files, as they run."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.verification.run_model import RunnableModel
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of

LARGE = np.float32([[1, 2, 200]])
NEGATIVE = np.float32([[1, -2, 3]])
BODIES = {  # what the model computes, its input, and what is told
    "overflow": ("e = Exp(x)\n y = Neg(e)", LARGE, ["an infinity is 'e' (Exp)"]),
    "root": ("s = Sqrt(x)\n t = Neg(s)\n y = Abs(t)", NEGATIVE, ["NaN is 's' (Sqrt)"]),
    "softmax": (
        "e = Exp(x)\n t = ReduceSum<keepdims=1>(e)\n y = Div(e, t)", LARGE,
        ["an infinity is 'e' (Exp)", "NaN is 'y' (Div)"],
    ),
    "behind an Identity": ("i = Identity(x)\n l = Log(i)\n y = Neg(l)", NEGATIVE, ["'l' (Log)"]),
    "an input": ("y = Neg(x)", LARGE * np.inf, ["the input 'x' has an infinity"]),
}  # fmt: skip


def write(body, path):
    model = model_of(f"g (float[1,3] x) => (float[1,3] y) {{ {body} }}", 13)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, path)


@pytest.mark.parametrize("case", BODIES)
def test_it_is_named(case, tmp_path):
    body, x, parts = BODIES[case]
    write(body, tmp_path / "m.onnx")
    model = RunnableModel(tmp_path / "m.onnx")
    assert not np.isfinite(model(x)["y"]).all()
    text = model.describe_nonfinite({"x": x})
    assert all(part in text for part in parts), text
    assert text.count("the first layer") == (0 if case == "an input" else len(parts))


def test_it_is_named_in_more_layers_than_are_held_at_once(tmp_path):
    chain = "\n".join(f"v{i + 1} = Neg(v{i})" for i in range(200))
    write(f"v0 = Neg(x)\n {chain}\n l = Log(v200)\n y = Neg(l)", tmp_path / "m.onnx")
    text = RunnableModel(tmp_path / "m.onnx").describe_nonfinite({"x": -NEGATIVE})
    assert "NaN is 'l' (Log)" in text and "end the model at v200, l " in text


def test_the_layers_of_mxnet_have_its_names(tmp_path):
    mx = live_mxnet()
    x = mx.sym.Variable("x")
    symbol = mx.sym.sqrt(mx.sym.log(x, name="logarithm") - 1, name="root") * 2
    symbol.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0000.params"), {})
    model = RunnableModel(tmp_path / "m-symbol.json", inputs={"x": (1, 3)})
    assert "NaN is 'root' (sqrt)" in model.describe_nonfinite({"x": np.float32([[9, 1, 20]])})
    assert "NaN is 'logarithm' (log)" in model.describe_nonfinite({"x": NEGATIVE})


def test_the_command_tells(tmp_path):
    write(BODIES["root"][0], tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=NEGATIVE)
    arguments = ["run", str(tmp_path / "m.onnx"), "--data", str(tmp_path / "in.npz"), "--finite"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and "the first layer with NaN is 's' (Sqrt)" in result.output
