"""Names, Builder and OnnxBuilder."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError, UnsupportedOp
from serde.ir.builder import Builder, Names, normalize_attribute
from serde.ir.graph import EMPTY, DType, Node, Source, Tensor, Value
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import decode_text

F32, I64 = DType.FLOAT32, DType.INT64


def onnx_builder(**inputs):
    """An OnnxBuilder and inputs of it, each of a shape or ``(type, shape)``."""
    g = OnnxBuilder("g")
    typed = {n: s if s and isinstance(s[0], DType) else (F32, s) for n, s in inputs.items()}
    return g, *(g.input(name, *type_) for name, type_ in typed.items())


@pytest.mark.parametrize(("number", "dtype"), [(1 << 64, I64), (300, DType.UINT8)])
def test_a_number_that_a_type_does_not_hold_is_refused(number, dtype):
    with pytest.raises(ConversionError, match=f"a number that {dtype.value} does not hold"):
        OnnxBuilder("g").const(number, dtype)


class TestNames:
    def test_a_stem_is_used_bare_then_numbered(self):
        names = Names()
        assert [names.fresh("a") for _ in range(3)] == ["a", "a_1", "a_2"]

    def test_a_counter_does_not_run_into_adopted_names(self):
        names = Names()
        names.claim("a_1")
        names.claim("a_2")
        assert [names.fresh("a") for _ in range(3)] == ["a", "a_3", "a_4"]

    def test_reserved_names_go_to_what_bears_them_in_the_source(self):
        names = Names()
        names.reserved.add("conv0")
        assert names.fresh("conv0") == "conv0_1"
        assert names.claim("conv0") == "conv0"
        assert names.claim("conv0") == "conv0_2"

    def test_no_value_is_nameless(self):
        names = Names()
        assert names.claim("") == "value" and names.fresh("") == "_1"

    def test_relabelling_gives_the_old_name_back_and_takes_no_taken_one(self):
        names = Names()
        a, b = Value(names.fresh("a")), Value(names.fresh("b"))
        names.relabel(a, "b")
        assert a.name == "a"
        names.relabel(a, "c")
        names.relabel(b, "a")
        assert (a.name, b.name) == ("c", "a")
        names.relabel(b, "")
        assert b.name == "a"

    def test_many_nodes_of_one_stem_take_linear_time(self):
        class Counting(set):
            lookups = 0

            def __contains__(self, name):
                Counting.lookups += 1
                return super().__contains__(name)

        names = Names()
        names.used = Counting()
        for _ in range(1000):
            names.fresh("x")
        assert "x_999" in names.used and Counting.lookups < 5000


class TestBuilder:
    def test_calls_emit_nodes_named_after_their_source(self):
        g = Builder("g")
        x = g.input("x", F32, (2,))
        with g.at(Source("mxnet", "Activation", "act0")):
            y = g.nn.relu(x, alpha=2, beta=None)
        z = g["_contrib_box_nms"](y)
        assert (y.name, z.name) == ("act0/nn.relu", "_contrib_box_nms")
        first, second = g.nodes
        assert (first.op, first.name, first.attrs) == ("nn.relu", "act0", {"alpha": 2})
        assert first.sources == (Source("mxnet", "Activation", "act0"),) and second.sources == ()

    def test_several_outputs_come_as_a_tuple(self):
        g = Builder("g")
        assert len(g.split(g.input("x"), outputs=3)) == 3
        assert isinstance(g.one(g.input("y")), Value)
        assert g.none(g.input("z"), outputs=0) == ()

    def test_private_names_are_no_operators(self):
        with pytest.raises(AttributeError):
            Builder("g")._repr_html_  # what notebooks ask every object

    def test_a_constant_is_adopted_while_its_name_is_free(self):
        g = Builder("g")
        w = Value("w", F32, (1,), Tensor.of(np.zeros(1, np.float32)))
        assert g.adopt(w) is w
        again = g.adopt(Value("w", F32, (1,), w.tensor))
        assert again.name == "w_1" and again.tensor is w.tensor

    def test_a_subgraph_shares_names_and_origin_but_not_nodes(self):
        g = Builder("g")
        with g.at(Source("mxnet", "_cond", "c0")):
            inner = g.child("then")
            g.input("x")
            y = inner.relu(inner.input("x"))
        assert inner.inputs[0].name == "x_1" and y.name == "c0/relu"
        assert g.nodes == [] and len(inner.nodes) == 1

    def test_a_node_is_kept_as_it_is_while_its_operands_are(self):
        w = Value("w", F32, (1,), Tensor.of(np.zeros(1, np.float32)))
        node = Node("Foo", (w,), (Value("y"),), EMPTY, "custom", "n")
        g = Builder("g")
        assert g.keep(node, (w,)) == node.outputs and g.nodes == [node]
        (other,) = g.keep(node, (w,))
        assert other is not node.outputs[0] and other.name == "y_1"
        (third,) = g.keep(node, (g.input("x"),))
        assert g.nodes[-1].domain == "custom" and third.name == "y_2"

    @pytest.mark.parametrize(
        ("value", "held"),
        [
            ([1, [2, 3]], (1, (2, 3))),
            (range(3), (0, 1, 2)),
            (True, 1),
            (np.bool_(False), 0),
            (np.float32(0.5), 0.5),
            (np.int64(3), 3),
            ("s", "s"),
        ],
    )
    def test_attributes_are_held_as_plain_python(self, value, held):
        assert normalize_attribute(value) == held and type(normalize_attribute(value)) is type(held)


class TestOnnxBuilder:
    def test_an_unknown_operator_is_refused_by_name(self):
        g, x = onnx_builder(x=(2,))
        with pytest.raises(UnsupportedOp, match="opset 28 has no operator 'Rellu'"):
            g.Rellu(x)

    def test_a_newer_operator_is_refused_with_the_opset_that_has_it(self):
        with pytest.raises(
            UnsupportedOp, match="13 has no operator 'Gelu'; opset 20 is the lowest"
        ):
            OnnxBuilder("g", 13).Gelu(Value("x", F32, (2,)))

    def test_an_unknown_attribute_is_a_mistake_in_the_rule(self):
        g, x = onnx_builder(x=(2,))
        with pytest.raises(TypeError, match="LeakyRelu has no attribute slope at opset 28"):
            g.LeakyRelu(x, slope=0.1)

    @pytest.mark.parametrize(
        ("op", "inputs", "why"),
        [
            ("Conv", 1, "input size 1 not in range"),
            ("Relu", 2, "takes no 2 inputs"),
            ("MatMul", 1, "input size 1 not in range"),
        ],
    )
    def test_a_wrong_number_of_operands_is_refused(self, op, inputs, why):
        g, x = onnx_builder(x=(1, 2, 4, 4))
        with pytest.raises(ConversionError, match=why):
            g[op](*[x] * inputs)

    def test_operands_that_cannot_be_are_refused(self):
        g, x, w = onnx_builder(x=(2, 3), w=(4, 5))
        with pytest.raises(ConversionError, match=r"Add rejects its inputs: .*Incompatible dim"):
            g.Add(x, w)

    def test_types_are_inferred_as_nodes_are_made(self):
        g, x = onnx_builder(x=("N", 3, 8, 8))
        y = g.Conv(x, g.const(np.zeros((4, 3, 3, 3), np.float32)), pads=(1, 1, 1, 1))
        assert (y.dtype, y.shape) == (F32, ("N", 4, 8, 8))
        assert g.Cast(y, to=7).dtype is I64
        values, places = g.TopK(y, [2], axis=1, outputs=2)
        assert (values.shape, places.dtype) == (("N", 2, 8, 8), I64)

    def test_trailing_absent_operands_are_dropped_and_inner_ones_kept(self):
        g, x = onnx_builder(x=(2,))
        g.Clip(x, None, None)
        g.Clip(x, None, 1.0)
        assert [len(n.inputs) for n in g.nodes] == [1, 3] and g.nodes[1].inputs[1] is None

    @pytest.mark.parametrize(
        ("kind", "literal", "held"),
        [
            (DType.FLOAT16, 2, DType.FLOAT16),
            (DType.FLOAT64, 0.5, DType.FLOAT64),
            (DType.BFLOAT16, 1.5, DType.BFLOAT16),
            (DType.INT32, 3, DType.INT32),
            (DType.UINT8, np.float32(1), F32),  # an array has a type of its own
            (F32, [1, 2], F32),
            (F32, range(2), F32),
            (F32, True, F32),
        ],
    )
    def test_a_literal_has_the_type_the_schema_ties_it_to(self, kind, literal, held):
        g, x = onnx_builder(x=(kind, (2,)))
        if held is not kind:
            with pytest.raises(ConversionError, match="takes operands of one type"):
                g.Add(x, literal)
            return
        g.Add(x, literal)
        assert g.nodes[0].inputs[1].dtype is held

    @pytest.mark.parametrize(
        ("op", "literals", "held"),
        [
            ("Unsqueeze", ([0],), I64),
            ("Reshape", ([-1],), I64),
            ("Gather", (1,), I64),
            ("Tile", (range(2, 4),), I64),
            ("Squeeze", ([],), None),  # needs no node
        ],
    )
    def test_an_untied_literal_is_int64(self, op, literals, held):
        g, x = onnx_builder(x=(2, 3))
        g[op](x, *literals)
        assert [n.inputs[1].dtype for n in g.nodes] == ([held] if held else [])

    def test_a_fraction_is_no_integer_operand(self):
        g, x = onnx_builder(x=(I64, (2,)))
        with pytest.raises(ConversionError, match="ties 0.5 to int64"):
            g.Mul(x, 0.5)

    def test_literals_of_an_operand_of_unknown_type_are_float32_or_int64(self):
        g = OnnxBuilder("g")
        x = g.input("x")
        g.Add(x, 0.5)
        g.Add(x, 2)
        assert [n.inputs[1].dtype for n in g.nodes] == [F32, I64]

    def test_what_is_known_is_folded_and_makes_no_node(self):
        g, x = onnx_builder(x=(2, 3, 4))
        ends = g.Gather(g.Shape(x), [0, 2])
        assert ends.ints() == (2, 4) and g.nodes == []

    def test_foreign_nodes_have_their_domain_and_no_types(self):
        g, x = onnx_builder(x=(2,))
        (y,) = g.foreign("mxnet", "Custom", [x, None], {"op_type": "mine", "unset": None})
        node = g.nodes[0]
        assert (node.domain, node.op, node.attrs) == ("mxnet", "Custom", {"op_type": "mine"})
        assert y.dtype is None and node.inputs == (x, None)


class TestNamesThroughRules:
    """What the driver makes of names: the source's stay, nothing loses its own."""

    table = RuleTable("toy → ir")
    table("Pass")(lambda g, x: x)
    table("Two")(lambda g, x: g.Neg(g.Relu(x)))
    table("Shape2")(lambda g, x: g.Shape(x))
    table("Twice")(lambda g, x: (r := g.Relu(x), r))

    def rewrite(self, nodes, outputs, shape=("N", 2)):
        """``nodes`` as (op, input, outputs…) over an input ``x``."""
        values = {"x": Value("x", F32, shape)}
        body = []
        for op, operand, *names in nodes:
            results = tuple(values.setdefault(n, Value(n)) for n in names)
            body.append(Node(op, (values[operand],), results, EMPTY, "toy", f"node_{names[0]}"))
        from serde.ir.graph import Graph

        graph = Graph("g", (values["x"],), tuple(values[o] for o in outputs), tuple(body), "toy")
        return str(self.table.rewrite(graph, OnnxBuilder("g"))).splitlines()[1:]

    def test_a_rule_that_passes_its_input_through_does_not_rename_it(self):
        assert self.rewrite([("Two", "x", "a"), ("Pass", "a", "b"), ("Two", "b", "c")], "c") == [
            "  %node_a/Relu: float32[N,2] = Relu(%x)",
            "  %a: float32[N,2] = Neg(%node_a/Relu)",
            "  %node_c/Relu: float32[N,2] = Relu(%a)",
            "  %c: float32[N,2] = Neg(%node_c/Relu)",
            "  return %c",
        ]

    def test_an_output_keeps_its_name_where_a_rule_passes_its_input_through(self):
        assert self.rewrite([("Two", "x", "a"), ("Pass", "a", "b")], "b") == [
            "  %node_a/Relu: float32[N,2] = Relu(%x)",
            "  %b: float32[N,2] = Neg(%node_a/Relu)",
            "  return %b",
        ]

    def test_an_output_that_is_an_input_gets_an_identity(self):
        assert self.rewrite([("Pass", "x", "y")], "y") == [
            "  %y: float32[N,2] = Identity(%x)",
            "  return %y",
        ]

    def test_an_output_that_is_a_constant_gets_an_identity(self):
        assert self.rewrite([("Shape2", "x", "y")], "y", (3, 2)) == [
            "  %y: int64[2] = Identity([3, 2])",
            "  return %y",
        ]

    def test_outputs_that_share_a_value_get_names_of_their_own(self):
        nodes = [("Two", "x", "a"), ("Pass", "a", "b"), ("Twice", "a", "c", "d")]
        assert self.rewrite(nodes, "abcd") == [
            "  %node_a/Relu: float32[N,2] = Relu(%x)",
            "  %a: float32[N,2] = Neg(%node_a/Relu)",
            "  %c: float32[N,2] = Relu(%a)",
            "  %b: float32[N,2] = Identity(%a)",
            "  %d: float32[N,2] = Identity(%c)",
            "  return %a, %b, %c, %d",
        ]

    def test_a_name_of_the_source_is_not_taken_by_a_value_in_between(self):
        nodes = [("Two", "x", "a"), ("Two", "a", "node_a/Relu")]
        assert self.rewrite(nodes, ["node_a/Relu"])[:3] == [
            "  %node_a/Relu_1: float32[N,2] = Relu(%x)",
            "  %a: float32[N,2] = Neg(%node_a/Relu_1)",
            "  %node_node_a/Relu/Relu: float32[N,2] = Relu(%a)",
        ]


def test_rewriting_leaves_the_source_graph_as_it_was():
    from serde.legalize.convert import lower_to, raise_to_ir

    source = decode_text(
        "g (float[N,3] x) => (float[N,3] y, float[N,3] z)"
        "{ a = Relu(x)\n y = Dropout(a)\n z = Identity(a) }",
        opset=12,
    )
    before = str(source)
    raised = raise_to_ir(source)
    assert str(source) == before
    text = str(raised)
    for opset in (7, 13, 21):
        lower_to(raised, opset)
        assert str(raised) == text
