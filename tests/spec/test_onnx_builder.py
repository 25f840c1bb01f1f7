"""Graphs of ONNX operators as they are built: literals, folding, names, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError, UnsupportedOp
from serde.ir.graph import DType, Node, Value
from serde.spec.composites import DOMAIN
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.weight_origins import mark_weight
from testing.onnx_live import run

F32, I64 = DType.FLOAT32, DType.INT64


def builder():
    g = OnnxBuilder("g")
    return g, g.input("x", F32, ("N", 3))


@pytest.mark.parametrize(("kind", "literal"), [
    (DType.FLOAT16, 2), (DType.FLOAT64, 0.5), (DType.INT8, -3), (DType.UINT64, 7),
])  # fmt: skip
def test_a_literal_is_of_the_type_it_is_tied_to(kind, literal):
    g = OnnxBuilder("g")
    y = g.Add(g.input("x", kind, (3,)), literal)
    constant = g.nodes[-1].inputs[1]
    assert (constant.dtype, y.dtype, constant.array().tolist()) == (kind, kind, literal)


def test_a_literal_that_is_tied_to_nothing_is_of_the_usual_type():
    g, x = builder()
    y = g.Reshape(x, [-1, 1])
    assert g.nodes[-1].inputs[1].dtype is I64 and y.shape == ("N*3", 1)
    assert g.Where(g.input("c", DType.BOOL, ()), 1.5, 0.0).dtype is F32


def test_a_fraction_is_not_tied_to_integers():
    g = OnnxBuilder("g")
    with pytest.raises(ConversionError, match="Add ties 0.5 to int32 elements"):
        g.Add(g.input("x", DType.INT32, (3,)), 0.5)


@pytest.mark.parametrize(("emit", "kind", "message"), [
    (lambda g, x: g.Relu(x, slope=1), TypeError, "Relu has no attribute slope at opset 28"),
    (lambda g, x: g.Relu(x, x), ConversionError, "Relu takes no 2 inputs at opset 28"),
    (lambda g, x: g.NoSuch(x), UnsupportedOp, "NoSuch"),
    (lambda g, x: g.Upsample(x, [1.0, 2.0]), UnsupportedOp, "Upsample"),
])  # fmt: skip
def test_what_the_opset_has_not_is_refused(emit, kind, message):
    g, x = builder()
    with pytest.raises(kind, match=message):
        emit(g, x)
    assert g.nodes == []


def test_operators_are_those_of_the_opset():
    g = OnnxBuilder("g", 9)
    assert g.current_opset == 9 and g.child("body").current_opset == 9
    assert g.Upsample(g.input("x", F32, (2, 3)), np.float32([1, 2])).shape == (2, 6)


def test_constants_are_folded_and_called_after_the_weight():
    """As NumPy computes them."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    g = OnnxBuilder("g")
    w = g.adopt(OnnxBuilder("file").const(array, name="w"))
    y = g.Mul(g.Transpose(w, perm=(1, 0)), 2.0)
    assert g.nodes == [] and y.name == "w/Mul"
    np.testing.assert_array_equal(y.array(), array.T * 2)
    z = g.Add(y, g.adopt(OnnxBuilder("file").const(array.T, name="v")))
    assert z.name == "Add" and z.array().tolist() == (array.T * 3).tolist()


def test_weights_are_kept_within_the_block_only():
    g = OnnxBuilder("g")
    w = mark_weight(g.const(np.ones((2, 3), np.float32)))
    with g.keeping_weights():
        g.Mul(w, 2.0)
    assert len(g.nodes) == 1 and not g.keeps_weights
    assert g.Mul(w, 2.0).tensor is not None and len(g.nodes) == 1


def test_a_call_of_the_same_form_is_resolved_alike():
    """Also with operands of other sizes, whose shapes are inferred anew."""
    g = OnnxBuilder("g")
    for size in (2, 3, "N"):
        x, y = g.input(f"x{size}", F32, (size, 4)), g.input(f"y{size}", F32, (4, 5))
        assert g.Softmax(g.MatMul(x, y), axis=0).shape == (size, 5)
        assert g.Relu(x).shape == (size, 4)
    assert [n.op for n in g.nodes] == ["MatMul", "Softmax", "Relu"] * 3


def test_makers_are_found_through_the_graphs_around():
    g, x = builder()
    y = g.Relu(x)
    inner = g.child("body")
    z = inner.Neg(y)
    assert inner.is_inner and not g.is_inner
    assert inner.maker(y, "Relu") is g.nodes[0] and inner.maker(y, "Neg") is None
    assert g.maker(z, "Neg") is None and g.maker(None, "Neg") is None
    g.take_over(inner)
    assert g.maker(z, "Neg") is g.nodes[-1] is inner.nodes[-1]


def test_nodes_of_other_domains_have_no_types_but_composites():
    g, x = builder()
    first, second = g.foreign("com.acme", "Foo", [x, None], {"a": [1, 2], "b": None}, 2)
    node = g.nodes[-1]
    assert (first.dtype, second.shape, dict(node.attrs)) == (None, None, {"a": (1, 2)})
    (pooled,) = g.composite("FeatureDropout", (x,), {"rate": 0.5})
    assert (g.nodes[-1].domain, pooled.dtype, pooled.shape) == (DOMAIN, F32, ("N", 3))
    (kept,) = g.keep(Node("FeatureDropout", (x,), (Value("k"),), {}, DOMAIN), (x,))
    assert kept.shape == ("N", 3)


@pytest.mark.parametrize("domain", ["", "com.acme"])
def test_operators_of_other_domains_are_not_merged(domain):
    g = OnnxBuilder("g")
    x = g.input("x", F32, (2, 3))
    node = Node("Transpose", (x,), (Value("t", F32, (3, 2)),), {"perm": (1, 0)}, domain)
    (turned,) = g.keep(node, (x,))
    y = g.Transpose(turned, perm=(1, 0))
    assert (y is x) == (not domain)
    assert g.maker(turned, "Transpose") is (None if domain else node)


@pytest.mark.parametrize("opset", [12, 15, 16])
def test_small_integers_of_two_axes_are_folded_in_their_shape(opset):
    g = OnnxBuilder("g", opset)
    table = g.const(np.arange(6).reshape(2, 3))
    mask = g.LessOrEqual(table, g.const(np.int64(2)))
    assert mask.array().tolist() == [[True, True, True], [False, False, False]]


def test_operands_of_resize_that_hold_nothing_are_left_out():
    g = OnnxBuilder("g")
    x, nothing = Value("x", F32, (1, 3, 4, 5)), np.zeros(0, np.float32)
    g.Resize(x, nothing, nothing, np.array([1, 3, 8, 10]))
    assert [v is None for v in g.nodes[-1].inputs] == [False, True, True, False]


def test_what_is_known_of_a_shape_is_folded():
    """A shape of numbers is a constant; one with names is computed."""
    g, x = builder()
    image = g.input("y", F32, (2, "M", 4))
    assert g.Shape(image, start=2).ints() == (4,) and g.Shape(x).tensor is None
    total = g.Mul(g.Shape(image, start=0, end=1), g.Shape(image, start=2, end=3))
    assert total.ints() == (8,)
    y = g.Expand(x, g.Concat(g.Shape(x, start=0, end=1), [3], axis=0))
    assert y is x
    feeds = {"x": np.zeros((1, 3), np.float32), "y": np.zeros((2, 5, 4), np.float32)}
    (got,) = run(g.build([g.Shape(image)]), feeds)
    assert got.tolist() == [2, 5, 4]
