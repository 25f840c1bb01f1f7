"""Functions of a module, or of an ONNX model, as globals of the module that is written."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import serde
from serde.errors import UsageError
from serde.formats.relay.decode import read_module
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from testing.relay.tvm_live import ask
from tests.relay.test_relay_functions import PROGRAMS, X, graph

FEEDS = {"x": X, "n": np.array(2, np.int32)}


def run_tvm(path, names, folder):
    """What TVM makes of a module without parameters."""
    np.savez(folder / "in.npz", **{n: FEEDS[n] for n in names})
    kind = "json" if path.suffix == ".json" else "text"
    ask("run", [kind, path.read_text()], f"{folder}/in.npz", f"{folder}/out.npz")
    with np.load(folder / "out.npz") as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


@pytest.mark.parametrize("form", ["relay", "json"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_globals_stay_and_compute_the_same(name, form, tmp_path):
    text, functions, expected = PROGRAMS[name]
    new_graph = from_ir(graph(text))
    path = tmp_path / f"m.{form}"
    encode(new_graph, path)
    assert set(read_module(path).functions) == {"main", *functions}
    actual = run_tvm(path, [v.name for v in new_graph.inputs], tmp_path)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_globals_come_back_through_onnx(tmp_path):
    """With the names of their parameters, for the file tells that they are a Relay module's."""
    serde.save(graph(PROGRAMS["calls within calls"][0]), tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "m.relay")
    functions = read_module(tmp_path / "m.relay").functions
    assert [p.name for p in functions["f"].params] == ["a", "b"]
    assert [p.name for p in functions["twice"].params] == ["y"]
    serde.convert(tmp_path / "m.onnx", tmp_path / "plain.relay", functions="inline")
    assert list(read_module(tmp_path / "plain.relay").functions) == ["main"]


def scaled_model():
    """A model with a function ``main`` that takes an attribute, called with two values of it."""
    leak = helper.make_node("LeakyRelu", ["a"], ["d"])
    leak.attribute.append(onnx.AttributeProto(
        name="alpha", ref_attr_name="by", type=onnx.AttributeProto.FLOAT))  # fmt: skip
    body = [leak, helper.make_node("Neg", ["d"], ["e"])]
    opset = helper.make_opsetid("", 18)
    function = helper.make_function("own", "main", ["a"], ["e"], body, [opset], attributes=["by"])
    calls = [
        helper.make_node("main", ["x"], ["p"], domain="own", by=0.5),
        helper.make_node("main", ["p"], ["q"], domain="own", by=0.25),
        helper.make_node("main", ["q"], ["z"], domain="own", by=0.5),
    ]
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xz"]
    main = helper.make_graph(calls, "g", ends[:1], ends[1:])
    imports = [opset, helper.make_opsetid("own", 1)]
    return helper.make_model(main, opset_imports=imports, functions=[function], ir_version=10)


def test_functions_of_onnx_that_take_attributes(tmp_path):
    """One global for each value of the attribute, and none that is called as the whole is."""
    onnx.save(scaled_model(), tmp_path / "m.onnx")
    path = tmp_path / "m.json"
    serde.convert(tmp_path / "m.onnx", path, functions="keep")
    assert sorted(read_module(path).functions) == ["main", "main_1", "main_2"]
    (actual,) = run_tvm(path, ["x"], tmp_path)
    expected = X
    for by in (0.5, 0.25, 0.5):
        expected = -np.where(expected < 0, expected * by, expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    serde.convert(tmp_path / "m.onnx", path)
    assert list(read_module(path).functions) == ["main"]


def test_refuses_what_is_no_choice():
    with pytest.raises(UsageError, match="functions='some' is not one of keep, all, inline"):
        from_ir(graph(PROGRAMS["calls within calls"][0]), functions="some")
