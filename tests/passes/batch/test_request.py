"""What callers say of the batch."""

from __future__ import annotations

import pytest

from serde.errors import UsageError
from serde.passes.batch.request import Request, find_batch_axes, parse_request, read_request
from testing.onnx_live import ir_of

GRAPH = "g (float[1,4] x, float[2,1,3] h, float r) => (float[1,4] y) { z = Mul(x, r) y = Relu(z) }"


@pytest.mark.parametrize(
    ("batch", "request_"),
    [
        ("N", Request("N", {}, True)),
        (4, Request(4, {}, True)),
        ({"*": "N", "h": 1}, Request("N", {"h": 1}, True)),
        ({"*": "N", "h": (1, "N"), "r": None}, Request("N", {"h": 1, "r": None}, True)),
        ({"x": (0, 3), "h": [1, 3]}, Request(3, {"x": 0, "h": 1}, False)),
    ],
)
def test_requests(batch, request_):
    assert read_request(batch) == request_


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (0, "the least is 1"), (2.5, "is not an integer"), ("2x", "cannot name"), ({}, "one size to all inputs; got none"),
        ({"x": 0}, "one size to all inputs; got none"), ({"x": (0, "N"), "h": (1, "M")}, "got N, M"),
        ({"*": None}, "is not a size"), ({"x": (0, 1, 2)}, "not an axis and a size"), ({"*": 2, "x": -1}, "the least is 0"),
        ({"*": 2, "x": "1"}, "is not an integer"),
    ],
)  # fmt: skip
def test_requests_that_mean_nothing(batch, why):
    with pytest.raises(UsageError, match=why):
        read_request(batch)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("N", ("*", "N")), ("7", ("*", 7)), ("h=1", ("h", (1,))), ("h=1:N", ("h", (1, "N"))),
     ("h=1:8", ("h", (1, 8))), ("r=none", ("r", None)), ("a=b:0=2:N", ("a=b:0", (2, "N"))),
     ("-3", ("*", -3))],
)  # fmt: skip
def test_texts(text, parsed):
    assert parse_request(text) == parsed


@pytest.mark.parametrize(
    "text", ["h=", "h=x", "h=-1", "=1", "h=1:", "h=none:N", "h=²", "h=" + "9" * 5000]
)
def test_texts_that_mean_nothing(text):
    with pytest.raises(UsageError, match="is not N, NAME=AXIS:N or NAME=none"):
        parse_request(text)


@pytest.mark.parametrize("text", ["9" * 5000, "²", "-²", "x=0:" + "9" * 5000])
def test_sizes_that_are_no_numbers_are_no_names_either(text):
    name, value = parse_request(text)
    with pytest.raises(UsageError, match="cannot name"):
        read_request({name: value})


def test_axes_of_a_graph():
    graph = ir_of(GRAPH)
    found = find_batch_axes(graph, read_request({"*": "N", "h": 1, "y": 0}))
    assert found.size == 1 and {v.name: a for v, a in found.inputs.items()} == {"x": 0, "h": 1}
    assert found.outputs == {"y": 0}


@pytest.mark.parametrize(
    ("batch", "why"),
    [("N", "they have 1, 2. Name the axis of an input, or that it has none: --rebatch x=1:N"),
     ({"*": "N", "q": 1}, "no input or output is called 'q'; it has x, h, r, y"),
     ({"*": "N", "h": 3}, "rank 3 has no axis 3"), ({"x": (0, "N"), "h": 2}, "they have 1, 3")],
)  # fmt: skip
def test_axes_that_share_no_batch(batch, why):
    with pytest.raises(UsageError, match=why):
        find_batch_axes(ir_of(GRAPH), read_request(batch))
