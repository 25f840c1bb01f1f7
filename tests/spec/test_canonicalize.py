"""Canonical forms: what the standard leaves implicit is written out, and means the same."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import IR_OPSET, DType
from serde.legalize.convert import raise_to_ir
from serde.spec import canonicalize, schema
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import AXES_OPERANDS, AXIS
from testing.onnx_live import decode_text, model_of, run, run_model

F32 = DType.FLOAT32


def emit(op, shapes, attrs=None, consts=()):
    """The node a call makes, of inputs of ``shapes`` and constants of zeros behind them."""
    g = OnnxBuilder("g")
    inputs = [g.input(f"x{i}", F32, s) for i, s in enumerate(shapes)]
    inputs += [g.const(np.zeros(s, np.float32)) for s in consts]
    g[op](*inputs, **(attrs or {}))
    return g.nodes[-1]


IMAGE = ("N", 2, 8, 9)
IMPLIED = [  # operator, shapes of inputs, of constants, attributes given, attributes written
    ("Conv", [IMAGE], [(4, 2, 3, 2)], {},
     {"kernel_shape": (3, 2), "strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0),
      "group": 1}),
    ("Conv", [IMAGE], [(4, 2, 3, 3)], {"auto_pad": "VALID", "strides": (2, 2)},
     {"strides": (2, 2), "pads": (0, 0, 0, 0), "auto_pad": None}),
    ("Conv", [IMAGE], [(4, 2, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
     {"pads": (0, 1, 1, 1), "auto_pad": None}),
    ("Conv", [IMAGE], [(4, 2, 3, 3)], {"auto_pad": "SAME_LOWER", "strides": (2, 2)},
     {"pads": (1, 1, 0, 1), "auto_pad": None}),
    ("Conv", [("N", 2, "H", "W")], [(4, 2, 4, 4)], {"auto_pad": "SAME_UPPER"},
     {"pads": (1, 1, 2, 2), "auto_pad": None}),
    ("Conv", [("N", 2, "H", 9)], [(4, 2, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
     {"pads": None, "auto_pad": "SAME_UPPER"}),
    ("Conv", [("N", 2, 7)], [(4, 2, 3)], {"dilations": (2,), "auto_pad": "SAME_UPPER"},
     {"pads": (2, 2), "kernel_shape": (3,)}),
    ("ConvTranspose", [IMAGE], [(2, 4, 3, 3)], {},
     {"kernel_shape": (3, 3), "output_padding": (0, 0), "pads": (0, 0, 0, 0)}),
    ("ConvTranspose", [(1, 2, 8, 9)], [(2, 4, 3, 3)],
     {"strides": (2, 2), "auto_pad": "SAME_UPPER"},
     {"pads": (0, 0, 1, 1), "auto_pad": None}),
    ("ConvTranspose", [(1, 2, 8, 9)], [(2, 4, 3, 3)],
     {"strides": (2, 2), "output_shape": (16, 18)},
     {"pads": (1, 1, 0, 0), "output_shape": None}),
    ("ConvTranspose", [("N", 2, 8, 9)], [(2, 4, 3, 3)],
     {"strides": (2, 2), "output_shape": (18, 20), "auto_pad": "VALID"},
     {"pads": (0, 0, 0, 0), "output_padding": (1, 1), "output_shape": None}),
    ("ConvTranspose", [("N", 2, "H", 9)], [(2, 4, 3, 3)],
     {"strides": (2, 2), "output_shape": (16, 18)}, {"output_shape": (16, 18)}),
    ("MaxPool", [IMAGE], [], {"kernel_shape": (2, 2)},
     {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0), "ceil_mode": 0,
      "storage_order": 0}),
    ("AveragePool", [IMAGE], [], {"kernel_shape": (2, 2), "auto_pad": "SAME_LOWER"},
     {"pads": (1, 1, 0, 0), "count_include_pad": 0, "dilations": (1, 1)}),
    ("LpPool", [IMAGE], [], {"kernel_shape": (2, 2)}, {"p": 2, "pads": (0, 0, 0, 0)}),
    ("DeformConv", [IMAGE, (4, 2, 3, 3), ("N", 18, 6, 7)], [], {}, {"offset_group": 1}),
    ("Transpose", [IMAGE], [], {}, {"perm": (3, 2, 1, 0)}),
    ("Softmax", [IMAGE], [], {}, {"axis": 3}),
    ("LayerNormalization", [IMAGE], [(9,)], {}, {"axis": 3, "epsilon": 1e-5, "stash_type": 1}),
    ("ArgMax", [IMAGE], [], {"axis": -2}, {"axis": 2, "keepdims": 1, "select_last_index": 0}),
    ("Concat", [IMAGE, IMAGE], [], {"axis": -3}, {"axis": 1}),
    ("LeakyRelu", [IMAGE], [], {}, {"alpha": 0.01}),
    ("Gemm", [("N", 4)], [(4, 5)], {}, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "consts", "attrs", "written"), IMPLIED)
def test_implied_attributes_are_written_out(op, shapes, consts, attrs, written):
    node = emit(op, shapes, attrs, consts)
    assert {n: node.attrs.get(n) for n in written} == written
    missing = schema.operator(op).defaults.keys() - node.attrs.keys()
    assert missing <= {"auto_pad"}


def test_every_implied_rule_and_every_axis_is_of_an_operator_the_ir_has_or_had():
    for op in {*canonicalize.IMPLIED, *AXIS, *AXES_OPERANDS}:
        opsets = [v for v in range(1, IR_OPSET + 1) if schema.find(op, v)]
        assert opsets, op
    for op in AXIS:
        versions = [o for v in range(1, IR_OPSET + 1) if (o := schema.find(op, v))]
        assert any("axis" in o.attributes for o in versions), op
    for op, at in AXES_OPERANDS.items():
        assert schema.operator(op).inputs[at].name == "axes", op


def test_every_operator_with_one_axis_attribute_counts_it_from_the_front():
    """An operator new to the standard must be listed in AXIS, or here with the reason."""
    other = {
        "ConcatFromSequence": "its input is a sequence",
        "OneHot": "its axis counts those of the output",
    }
    for op in schema.names(IR_OPSET):
        if "axis" in schema.operator(op).attributes and op not in AXIS:
            assert op in other, op


@pytest.mark.parametrize(
    ("op", "operands", "at", "axes"),
    [
        ("Slice", [[0], [1]], 3, (0,)),
        ("Slice", [[0, 1], [1, 2], [-1, -3]], 3, (3, 1)),
        ("Squeeze", [[-3]], 1, (1,)),
        ("Unsqueeze", [[-1, 0]], 1, (5, 0)),
        ("Pad", [[1, 1], 0.0, [-2]], 3, (2,)),
        ("ReduceSum", [[-1, 1]], 1, (3, 1)),
        ("ReduceMax", [[2]], 1, (2,)),
    ],
)
def test_listed_axes_count_from_the_front(op, operands, at, axes):
    g = OnnxBuilder("g")
    g[op](g.input("x", F32, ("N", 1, 8, 9)), *operands)
    assert g.nodes[0].inputs[at].ints() == axes


def test_slice_has_all_five_operands():
    g = OnnxBuilder("g")
    g.Slice(g.input("x", F32, ("N", 8)), [1, 2], [3, 4])
    assert [v.ints() for v in g.nodes[0].inputs[1:]] == [(1, 2), (3, 4), (0, 1), (1, 1)]


def test_slice_of_computed_bounds_has_all_five_operands():
    g = OnnxBuilder("g")
    n = g.Shape(g.input("y", F32, ("N",)))
    g.Slice(g.input("x", F32, ("M", 8)), [0], n)
    assert [v.ints() for v in g.nodes[-1].inputs[3:]] == [(0,), (1,)]


def conv_case(op, sizes, weight, attrs):
    spatial = ",".join(map(str, sizes))
    shape = ",".join(map(str, weight))
    return (
        f"g (float[1,2,{spatial}] x, float[{shape}] w) => (float[] y) {{ y = {op}<{attrs}>(x, w) }}"
    )


def pool_case(op, sizes, attrs):
    return f"g (float[1,2,{','.join(map(str, sizes))}] x) => (float[] y) {{ y = {op}<{attrs}>(x) }}"


# An output larger than the kernel fills: no pads say that, where the size is not asked for.
LARGER = (
    'auto_pad="SAME_LOWER"', "output_shape=[10, 12]", 'auto_pad="SAME_UPPER", output_shape=[10, 12]'
)  # fmt: skip
KINDS = ("SAME_UPPER", "SAME_LOWER", "VALID")
SAME_NUMBERS = [
    *(conv_case("Conv", (7, 6), (3, 2, k, 2), f'auto_pad="{kind}", strides=[{s}, 1]')
      for kind in KINDS for k in (1, 2, 3) for s in (1, 2, 3)),
    conv_case("Conv", (9, 9), (3, 2, 3, 3), 'auto_pad="VALID", dilations=[2, 1]'),
    *(pool_case(op, (7, 6), f'kernel_shape=[{k}, 2], auto_pad="{kind}", strides=[2, 1]')
      for op in ("MaxPool", "AveragePool", "LpPool") for kind in KINDS for k in (2, 3)),
    *(conv_case("ConvTranspose", (5, 4), (2, 3, 3, 3), f"strides=[2, 3], {rest}")
      for rest in ('auto_pad="SAME_UPPER"', 'auto_pad="SAME_LOWER"', 'auto_pad="VALID"',
                   "output_shape=[10, 12]", "output_shape=[9, 11]", "output_padding=[1, 0]",
                   'auto_pad="SAME_UPPER", output_shape=[9, 11]')),
    *(conv_case("ConvTranspose", (5, 4), (2, 3, 3, 2), f"strides=[2, 3], {rest}")
      for rest in LARGER),
]  # fmt: skip


@pytest.mark.parametrize("body", SAME_NUMBERS)
def test_explicit_windows_compute_what_implied_ones_do(body):
    """ONNX Runtime runs the model as it is, and as the IR spells it."""
    rng = np.random.default_rng(0)
    source = decode_text(body, 17)
    feeds = {v.name: rng.standard_normal(v.static_shape, np.float32) for v in source.inputs}
    model = model_of(body, 17)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (expected,) = run_model(model, feeds)
    ir = raise_to_ir(source)
    larger = "[2,3,3,2]" in body and "output_shape" not in body
    assert ("pads" in ir.nodes[0].attrs) is not larger
    (got,) = run(ir, feeds, 17)
    assert got.shape == ir.outputs[0].shape == expected.shape
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("listed", ["first", "last", "step", "first last step"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_operands_of_range_have_no_axes(listed: str, is_constant: bool) -> None:
    """ONNX Runtime takes lists of one element; onnx refuses such constants."""
    numbers = {"first": 1, "last": 9, "step": 3}
    shapes = {n: (1,) if n in listed else () for n in numbers}
    g = OnnxBuilder("g")
    x = g.input("x", DType.INT64, ())
    operands = [
        g.const(np.full(shape, numbers[n])) if is_constant else g.input(n, DType.INT64, shape)
        for n, shape in shapes.items()
    ]
    operands[0] = g.Mul(operands[0], x)
    y = g.Range(*operands)
    (node,) = (n for n in g.nodes if n.op == "Range")
    assert y.rank == 1 and all(v.shape == () for v in node.inputs)
    feeds = {"x": np.array(1), **{n: np.full(s, numbers[n]) for n, s in shapes.items()}}
    graph = g.build([y])
    feeds = {v.name: feeds[v.name] for v in graph.inputs}
    assert run(graph, feeds)[0].tolist() == [1, 4, 7]
