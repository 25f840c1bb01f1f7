"""Cast and CastLike at opsets without them, or without some of their element types."""

from __future__ import annotations

import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType
from serde.legalize.convert import lower_to, raise_to_ir
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters import cast, downgrades
from testing.node_cases import verdict
from testing.version_converter.old import Old, X
from testing.version_converter.rules import cases_of, check_rule, count_calls, rules_of


@pytest.mark.parametrize(("version", "op"), rules_of(cast))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize(("name", "expected"), [
    ("INT32", X.astype("int32")), ("DOUBLE", X.astype("float64")), ("BOOL", X.astype(bool)),
])  # fmt: skip
def test_types_by_name(name: str, expected: object) -> None:
    Old("Cast", 1, (X,), {"to": name}, expected).check()


def test_names_of_no_type_are_refused() -> None:
    Old("Cast", 1, (X,), {"to": "FLOATS"}).check_refused("'FLOATS', which is no element type")


def test_cast_like_of_bodies() -> None:
    """In the IR CastLike is Cast; what asks for it is the body of a newer operator."""
    case = cases_of("Swish")[0]
    with count_calls(downgrades[15], "CastLike") as calls:
        graph = lower_to(raise_to_ir(decode(case.model)), 14)
    assert calls and verdict(case, to_proto(graph)) == "right"


@pytest.mark.parametrize(("code", "lowest"), [(16, 13), (17, 19), (22, 21), (23, 23)])
def test_newer_element_types_are_refused(code: int, lowest: int) -> None:
    g = OnnxBuilder("one")
    graph = g.build([g.Cast(g.input("x", DType.FLOAT32, (2,)), to=code)])
    assert lower_to(graph, lowest).nodes
    with pytest.raises(Unconvertible, match=f"opset {lowest} is the lowest"):
        lower_to(graph, lowest - 1)
