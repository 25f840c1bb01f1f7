"""Errors: one tree, located where they arise."""

from __future__ import annotations

import serde
from serde import errors
from serde.errors import (
    ConversionError,
    MalformedFile,
    MissingDependency,
    Problem,
    Unconvertible,
    locate_error,
)
from serde.ir.graph import Source

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


def test_other_errors_of_ours_are_let_through_as_they_are():
    error = MalformedFile("m.onnx", "broken", "byte 7")
    assert locate_error(error, "a → b", NODE) is error
    assert str(error) == "m.onnx, byte 7: broken" and str(MalformedFile("a", "b")) == "a: b"


def test_a_missing_framework_is_an_import_error():
    assert issubclass(MissingDependency, ImportError)


def test_an_error_without_a_node_says_only_why():
    assert str(ConversionError("why")) == "why"


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
