"""``serde.compare`` compares models of any formats."""

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde.api.model_comparison import compare
from serde.cli.commands import main
from testing.onnx_live import model_of

TEXT = '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,3] y) {{ {} }}'


def write(folder, name, body):
    path = folder / name
    onnx.save(onnx.parser.parse_model(TEXT.format(body)), path)
    return path


def test_equal_models_agree_and_others_do_not(tmp_path):
    first = write(tmp_path, "a.onnx", "z = Relu(x) y = Exp(z)")
    same = write(tmp_path, "b.onnx", "r = Relu(x) y = Exp(r)")
    other = write(tmp_path, "c.onnx", "z = Abs(x) y = Exp(z)")
    assert compare(first, same).ok
    differing = compare(first, other)
    assert not differing.ok
    assert "Abs" in str(differing) or "z" in str(differing)


def test_a_tolerance_lets_models_differ(tmp_path):
    first = write(tmp_path, "a.onnx", "y = Relu(x)")
    shift = "c = Constant<value_float = 0.001>() r = Relu(x) y = Add(r, c)"
    second = write(tmp_path, "b.onnx", shift)
    data = {"x": np.ones((2, 3), np.float32)}
    assert not serde.compare(first, second, data=data, layers=False).ok
    assert serde.compare(first, second, data=data, layers=False, atol=0.01).ok


def test_models_of_other_inputs_are_refused(tmp_path):
    first = write(tmp_path, "a.onnx", "y = Relu(x)")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3] x, float[3] z) => (float[3] y) '
        "{ y = Add(x, z) }"
    )
    onnx.save(model, tmp_path / "b.onnx")
    with pytest.raises(serde.UsageError):
        compare(first, tmp_path / "b.onnx")


def test_shapes_of_the_second_model(tmp_path):
    model = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    onnx.save(model, tmp_path / "a.onnx")
    path = tmp_path / "a.onnx"
    assert serde.compare(path, path, other_inputs={"x": (3, 3)}).ok
    assert serde.compare(path, path, inputs={"x": (3, 3)}, other_inputs={"x": (3, 3)}).ok
    with pytest.raises(serde.UsageError, match=r"\(2, 3\) in the first model and \(3, 3\)"):
        serde.compare(path, path, inputs={"x": (2, 3)}, other_inputs={"x": (3, 3)})


@pytest.fixture
def two_epochs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = [{"op": "null", "name": n, "inputs": []} for n in ("data", "fc_weight", "fc_bias")]
    nodes += [{"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"},
               "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
              {"op": "tanh", "name": "out", "inputs": [[3, 0, 0]]}]  # fmt: skip
    symbol = {"nodes": nodes, "arg_nodes": [0, 1, 2], "heads": [[4, 0, 0]]}
    (tmp_path / "m-symbol.json").write_text(json.dumps(symbol))
    for epoch in (3, 12):
        arrays = {"fc_weight": np.full((2, 4), epoch / 10, np.float32), "fc_bias": np.zeros(2)}
        with open(f"m-{epoch:04}.params", "wb") as file:
            np.savez(file, **{n: a.astype(np.float32) for n, a in arrays.items()})
    serde.convert("m", "third.onnx", epoch=3)


FILES = [
    ("m", "third.onnx", {"epoch": 3}, {}, True), ("m", "third.onnx", {"epoch": 12}, {}, False),
    ("m", "third.onnx", {}, {}, False), ("third.onnx", "m", {}, {"epoch": 3}, True),
    ("third.onnx", "m", {}, {"epoch": 12}, False), ("m", "m", {"epoch": 3}, {"epoch": 12}, False),
    ("m", "m", {"epoch": 3}, {"epoch": 3}, True),
    ("m", "m", {"epoch": 3, "outputs": ["fc"]}, {"epoch": 3, "outputs": ["fc"]}, True),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "options", "other", "same"), FILES)
def test_each_model_is_read_by_its_own_options(two_epochs, first, second, options, other, same):
    found = serde.compare(first, second, **options, other=other)
    assert found.done and found.ok is same
    names = [v.name for v in found.outputs]
    assert names == (["fc_output"] if "outputs" in options else ["out_output"])
    flags = [f"--{n}={v}" for n, v in options.items() if n != "outputs"]
    flags += [f"--other-{n}={v}" for n, v in other.items() if n != "outputs"]
    if "outputs" not in options:
        result = CliRunner().invoke(main, ["compare", first, second, *flags])
        assert result.exit_code == (0 if same else 1), result.output


def test_an_option_that_no_model_is_read_with_is_refused(two_epochs):
    with pytest.raises(TypeError, match="no argument 'epok'; did you mean epoch"):
        serde.compare("m", "m", other={"epok": 3})
    with pytest.raises(TypeError, match="no argument 'opset'"):
        serde.compare("m", "m", opset=13)
