"""Errors: one tree, located where they arise."""

from __future__ import annotations

import traceback

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import serde
from serde import errors
from serde.errors import (
    ConversionError,
    MalformedFile,
    MissingDependency,
    Problem,
    Unconvertible,
    UsageError,
    locate_error,
)
from serde.ir.graph import Source
from testing.onnx_live import model_of

NODE = Source("mxnet", "Convolution", "conv0")


def test_every_error_is_a_serde_error_and_is_in_the_tree_of_the_module():
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    for kind in kinds:
        assert issubclass(kind, errors.SerdeError)
        assert kind.__name__ in (errors.__doc__ or "") and kind.__doc__
        if kind is not errors.SerdeError:
            assert kind.__name__ in serde.__all__


def test_an_error_is_located_once_at_the_innermost_node():
    error = locate_error(ConversionError("why"), "c → d", NODE)
    assert locate_error(error, "a → b", Source("mxnet", "_cond", "c0")) is error
    assert (error.stage, error.source) == ("c → d", NODE)
    assert str(error) == "mxnet node 'conv0' (Convolution): why"
    assert error.reason == "why"


def test_a_stray_exception_becomes_one_with_a_node():
    stray = KeyError("axis")
    error = locate_error(stray, "a → b", NODE)
    assert isinstance(error, ConversionError) and error.__cause__ is stray
    assert str(error).endswith("(Convolution): fails with KeyError: 'axis'")


def test_a_value_of_another_kind_is_no_stray_exception():
    for value in (1, 1.0, True, "a", (1,), [1], {}):
        with pytest.raises(AttributeError) as caught:
            value.ranked_shape
        error = locate_error(caught.value, "a → b", NODE)
        assert f"of a kind that it does not take, {type(value).__name__}" in str(error)


def test_other_errors_of_ours_are_let_through_as_they_are():
    error = MalformedFile("m.onnx", "broken", "byte 7")
    assert locate_error(error, "a → b", NODE) is error
    assert str(error) == "m.onnx, byte 7: broken" and str(MalformedFile("a", "b")) == "a: b"


def test_a_missing_framework_is_an_import_error():
    assert issubclass(MissingDependency, ImportError)


def test_an_error_without_a_node_says_only_why():
    assert str(ConversionError("why")) == "why"


def test_a_very_long_line_keeps_its_beginning_and_its_end():
    names = ", ".join(f"x{at}" for at in range(20_000))
    text = str(UsageError(f"inputs are {names}: give one"))
    assert len(text) < 5000 and text.startswith("inputs are x0, x1")
    assert text.endswith("x19998, x19999: give one")
    problems = [Problem("Foo", {f"a{at}": at for at in range(20_000)}, "no rule", ("a",))]
    lines = str(Unconvertible("ir → x", problems)).splitlines()
    assert len(lines) == 2 and max(map(len, lines)) < 5000 and lines[1].endswith("a19999=19999")


def test_problems_count_and_print():
    problem = Problem("Foo", {"k": (1, 2)}, "no rule", ("a", "b"))
    assert (problem.count, str(problem)) == (2, "Foo ×2 ('a', 'b'): no rule. Attributes: k=(1, 2)")


def test_a_reason_of_many_operators_is_told_once():
    ops = ("Conv", "Relu", "Conv", "Add", "Gemm")
    problems = [Problem(op, {"at": i}, "no float16", (f"n{i}",)) for i, op in enumerate(ops)]
    alone = Problem("Cast", {"to": 1}, "no casts", ("c",))
    lines = str(Unconvertible("ir → x", [alone, *problems])).splitlines()
    assert lines == [
        "ir → x: 6 node(s) cannot be converted:",
        "  Cast ×1 ('c'): no casts. Attributes: to=1",
        "  Conv ×2, Relu ×1, Add ×1, Gemm ×1 ('n0', 'n1', 'n2', 'n3', 'n4'): no float16",
    ]
    few = str(Unconvertible("ir → x", problems[:3])).splitlines()[1:]
    assert few == [f"  {p}" for p in problems[:3]]


class TestTracebacks:
    """They end at the user's call: with the frame of one function of serde behind it."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("SERDE_DEBUG", raising=False)
        onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 13), "a.onnx")

    def frames(self, call):
        with pytest.raises(errors.SerdeError) as raised:
            call()
        error = raised.value
        shown = "".join(traceback.format_exception(error))
        assert "During handling" not in shown and "direct cause" not in shown
        return [f.name for f in traceback.extract_tb(error.__traceback__)][2:]  # of this test

    @pytest.mark.parametrize("call", [
        lambda: serde.convert("none.onnx", "b.onnx"), lambda: serde.load("a.onnx", inputs={"z": (1,)}),
        lambda: serde.run("a.onnx", {"x": np.zeros(9, np.float32)}), lambda: serde.load("a.onnx")("text", 1),
        lambda: serde.prepare("a.onnx")(z=1), lambda: serde.partition("a.onnx", "no-such-backend"),
        lambda: serde.check("a.onnx", to="nothing"), lambda: serde.verify("a.onnx", "none.onnx"),
    ])  # fmt: skip
    def test_of_calls(self, call):
        assert self.frames(call) == ["call"]

    def test_code_of_users_that_is_called_stays(self):
        def inner(x):
            return np.linalg.eig(x)

        def code(x):
            return inner(x)

        assert self.frames(lambda: serde.trace(code, (2, 2))) == ["call", "code", "inner"]

    def test_all_of_it_on_demand(self, monkeypatch):
        monkeypatch.setenv("SERDE_DEBUG", "1")
        with pytest.raises(errors.SerdeError) as raised:
            serde.run("a.onnx", {"x": np.zeros(9, np.float32)})
        assert len(traceback.extract_tb(raised.value.__traceback__)) > 4
        assert raised.value.__cause__ is not None


def test_a_node_without_operands_is_told_what_it_lacks():
    """Whatever the operator of ONNX; that of Transpose was an ``IndexError`` of Python."""
    for schema in onnx.defs.get_all_schemas():
        if schema.domain or not schema.min_input:
            continue
        node = helper.make_node(schema.name, [], [f"y{k}" for k in range(schema.min_output or 1)])
        output = helper.make_tensor_value_info("y0", TensorProto.UNDEFINED, None)
        graph = helper.make_graph([node], "g", [], [output])
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", schema.since_version)]
        )
        with pytest.raises(errors.SerdeError) as refusal:
            serde.load(model)
        assert "fails with" not in str(refusal.value), schema.name
