"""Sizes of inputs that must be equal for a model to run."""

from __future__ import annotations

import pytest

from serde.formats.mxnet.infer_shapes.equal_sizes import find_equal_sizes
from serde.ir.graph import Node, Value
from testing.mxnet_live import live_mxnet


def variables(**shapes):
    return {Value(n): s for n, s in shapes.items()}


def find_groups(*nodes, **shapes):
    """Groups of the sizes of inputs; a node is its operator, operands, result and attributes."""
    inputs = variables(**shapes)
    values = {v.name: v for v in inputs}
    made = []
    for op, operands, result, attrs in nodes:
        out = values.setdefault(result, Value(result))
        made.append(Node(op, tuple(values[n] for n in operands), (out,), attrs, name=result))
    return sorted(sorted(group) for group in find_equal_sizes(made, inputs))


@pytest.mark.parametrize(("nodes", "shapes", "groups"), [
    ([("elemwise_add", "ab", "y", {})], {"a": ("N", "M"), "b": ("N2", "M2")},
     [["M", "M2"], ["N", "N2"]]),
    ([("elemwise_add", "ab", "y", {}), ("elemwise_add", "yc", "z", {})],
     {"a": ("N",), "b": ("N2",), "c": ("N3",)}, [["N", "N2", "N3"]]),
    ([("broadcast_add", "ab", "y", {})], {"a": ("N", "M"), "b": ("N2", "M2")}, []),
    ([("Concat", "ab", "y", {"dim": "1", "num_args": "2"})],
     {"a": ("N", "C"), "b": ("N2", "C2")}, [["N", "N2"]]),
    ([("transpose", "a", "t", {"axes": "(1, 0)"}), ("elemwise_mul", "tb", "y", {})],
     {"a": ("N", "M"), "b": ("M2", "N2")}, [["M", "M2"], ["N", "N2"]]),
    ([("RNN", "xpsc", "y", {"mode": "lstm", "state_size": "2", "num_layers": "1"})],
     {"x": ("T", "N", 3), "p": (64,), "s": (1, "N2", 2), "c": (1, "N3", 2)}, [["N", "N2", "N3"]]),
    ([("elemwise_add", "ab", "y", {})], {"a": ("N",), "b": ("2*M",)}, []),
])  # fmt: skip
def test_sizes_that_meet_in_an_axis_are_equal(nodes, shapes, groups):
    assert find_groups(*nodes, **shapes) == groups


def test_mxnet_refuses_what_is_not_equal():
    """The sizes of one name are those that MXNet's own inference takes equal only."""
    mx = live_mxnet()
    names = ("data", "parameters", "state", "state_cell")
    layer = mx.sym.RNN(*map(mx.sym.var, names), mode="lstm", state_size=2, num_layers=1)
    for batch, is_taken in ((4, True), (5, False)):
        shapes = {"data": (3, 4, 3), "state": (1, batch, 2), "state_cell": (1, batch, 2)}
        if is_taken:
            assert layer.infer_shape(**shapes)[1]
        else:
            with pytest.raises(mx.MXNetError):
                layer.infer_shape(**shapes)
