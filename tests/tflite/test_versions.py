"""Files declare the least versions, as LiteRT asks, and are limited to those of a release."""

from __future__ import annotations

import pytest

from serde.errors import Unconvertible, UsageError
from serde.formats.tflite.from_ir import from_ir
from serde.formats.tflite.versions import find_release, find_version, read_releases
from testing.onnx_live import ir_of

NODES = {  # body, operator, version, release
    "float": ("g (float[2,3] x) => (float[] y) { y = Add(x, x) }", "ADD", 1, "1.5"),
    "int64": ("g (int64[2,3] x) => (int64[] y) { y = Add(x, x) }", "ADD", 4, "2.6"),
    "five axes": (
        "g (float[2,1,1,2,3] x) => (float[] y) <int64[10] p = {0,0,0,1,0,0,0,0,0,0}> { y = Pad(x, p) }",
        "PAD", 4, "2.6",
    ),
    "quantized": (
        """g (float[2,3] x) => (float[] y) <float s = {0.5}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) b = Mul(a, a)
        c = QuantizeLinear(b, s, z) y = DequantizeLinear(c, s, z) }""", "MUL", 2, "1.14",
    ),
    "half": ("g (float16[2] x) => (float[] y) { y = Cast<to=1>(x) }", "CAST", 5, None),
    "repeated": (
        "g (float[2,1] x) => (float[] y) <int64[2] s = {2,3}> { y = Expand(x, s) }",
        "BROADCAST_TO", 2, "2.5",
    ),
    "gelu": ("g (float[2] x) => (float[] y) { y = Gelu(x) }", "GELU", 1, "2.9"),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_versions_are_the_least(name: str) -> None:
    body, op, version, release = NODES[name]
    (node,) = [n for n in from_ir(ir_of(body)).nodes if n.op == op]
    assert (find_version(node), find_release(node)) == (version, release)


def test_what_a_release_lacks_is_decomposed() -> None:
    graph = ir_of(NODES["gelu"][0])
    older = from_ir(graph, tflite="2.8")
    assert "GELU" not in older.operators() and "GELU" in from_ir(graph, tflite="2.9").operators()
    assert all(find_release(n) is not None for n in older.nodes)


@pytest.mark.parametrize(
    ("name", "release"), [("int64", "2.5"), ("half", "2.10"), ("repeated", "2.4")]
)
def test_what_a_release_lacks_is_refused(name: str, release: str) -> None:
    body, op, version, _ = NODES[name]
    with pytest.raises(Unconvertible, match=f"{op} of version {version}"):
        from_ir(ir_of(body), tflite=release)


@pytest.mark.parametrize("text", ["3.0", "2", "2.x", ""])
def test_other_releases_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no release"):
        from_ir(ir_of(NODES["float"][0]), tflite=text)


def test_releases_grow_with_versions() -> None:
    for op, releases in read_releases().items():
        numbers = [tuple(map(int, r.split("."))) for r in releases]
        assert all(1 <= major <= 2 for major, _ in numbers), op
