"""Rule tables: how attributes are bound, how rules are entered, and what is refused."""

from __future__ import annotations

import pytest

from serde.errors import (
    ConversionError,
    Unconvertible,
    UnsupportedAttribute,
    UnsupportedOp,
    require,
)
from serde.ir.builder import Builder
from serde.ir.graph import Graph, Node, Value
from serde.rewrite.rules import Hint, RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder
from tests.rewrite.toy import F32, graph_of, table


def bind(attrs, registry=None):
    registry = registry or table()
    return registry.bind(registry.rules["Conv"], "Conv", attrs)


class TestBinding:
    def test_attributes_are_parsed_to_the_type_of_their_default_or_annotation(self):
        attrs = {"kernel": "(3,3)", "stride": "(2, 2)", "num_group": "4", "eps": "0.5",
                 "bias": "True"}  # fmt: skip
        assert bind(attrs) == {
            "kernel": (3, 3), "stride": (2, 2), "num_group": 4, "eps": 0.5, "bias": True,
        }  # fmt: skip

    def test_what_is_left_out_is_left_to_the_signature(self):
        assert bind({"kernel": "(3,)"}) == {"kernel": (3,)}

    def test_a_required_attribute_is_required(self):
        with pytest.raises(ConversionError, match="attribute 'kernel' is required"):
            bind({})

    def test_an_undeclared_attribute_is_refused_with_all_others(self):
        with pytest.raises(
            UnsupportedAttribute, match="unknown attribute dilate, zoom; the operator takes"
        ):
            bind({"kernel": "(3,)", "zoom": "1", "dilate": "2"})

    def test_a_lenient_operator_may_have_any(self):
        registry = table(lenient={"Conv"})
        assert bind({"kernel": "(3,)", "zoom": "1"}, registry) == {"kernel": (3,)}
        assert bind({"kernel": "(3,)", "zoom": "1"}, registry.merge({})) == {"kernel": (3,)}

    def test_ignored_and_hidden_attributes_are_not(self):
        assert bind({"kernel": "(3,)", "workspace": "9", "__lr_mult__": "1"}) == {"kernel": (3,)}

    def test_an_undeclared_attribute_at_its_default_says_nothing(self):
        registry = table(defaults=lambda op: {"dilate": "1"})
        assert bind({"kernel": "(3,)", "dilate": "1"}, registry) == {"kernel": (3,)}
        with pytest.raises(UnsupportedAttribute, match="dilate=2 is not supported"):
            bind({"kernel": "(3,)", "dilate": "2"}, registry)

    def test_only_supported_values_pass(self):
        assert bind({"kernel": "(3,)", "layout": "NCHW"}) == {"kernel": (3,)}
        with pytest.raises(UnsupportedAttribute, match="layout=NHWC; supported: NCHW, None"):
            bind({"kernel": "(3,)", "layout": "NHWC"})


class TestRegistration:
    def test_an_operator_has_one_rule(self):
        registry = table()
        with pytest.raises(ValueError, match="toy → ir: abs already has a rule"):
            registry.rename({"abs": "Sign"})

    def test_a_rule_of_several_operators_is_given_which_one(self):
        registry = RuleTable("toy → ir")

        @registry.for_each(("Sin", "Cos"))
        def read_function(op, g, x):
            return g[op](x)

        @registry.for_each({"plus": "Add", "minus": "Sub"}, ignore=("axis",))
        def read_binary(op, g, a, b):
            return g[op](a, b)

        graph = graph_of(("Cos", "x", "y", {}), ("minus", "y x", "z", {"axis": 1}))
        assert [n.op for n in registry.rewrite(graph, OnnxBuilder("g")).nodes] == ["Cos", "Sub"]
        assert registry.rules["plus"].operands == (2, 2)

    def test_a_table_is_extended_in_a_copy(self):
        registry = table()
        more = registry.extend({"abs": lambda g, x: g.Sign(x), "new": lambda g, x: g.Exp(x)})
        graph = graph_of(("abs", "x", "y", {}), ("new", "y", "z", {}))
        assert [n.op for n in more.rewrite(graph, OnnxBuilder("g")).nodes] == ["Sign", "Exp"]
        assert "new" not in registry and "new" in more
        with pytest.raises(Unconvertible):
            registry.rewrite(graph, OnnxBuilder("g"))

    def test_rules_cannot_be_changed_from_outside(self):
        with pytest.raises(TypeError):
            table().rules["abs"] = None


def test_a_fallback_takes_what_has_no_rule():
    registry = RuleTable("copy", fallback=keep)
    registry("abs")(lambda b, x: b.absolute(x))
    graph = graph_of(("abs", "x", "y", {}), ("Foo", "y", "z", {"k": "1"}))
    ops = [n.op for n in registry.rewrite(graph, Builder("g")).nodes]
    assert ops == ["abs", "Foo"]  # rules of a table with a fallback are of its own domain
    own = RuleTable("copy")
    own("abs")(lambda b, x: b.absolute(x))
    with pytest.raises(Unconvertible):
        own.rewrite(graph, Builder("g"))


class TestHints:
    x, y = Value("x", F32, (2,)), Value("y")

    def rules(self):
        registry = table()

        @registry("scale")
        def read_scale(g, x, *, by: int = 2, exact: Hint[bool] = False):
            return g.Neg(x) if exact else g.Relu(x)

        return registry

    def convert_ops(self, table, attrs):
        node = Node("scale", (self.x,), (self.y,), attrs, "toy", "a")
        graph = Graph("g", (self.x,), (self.y,), (node,), "toy")
        return [n.op for n in table.rewrite(graph, OnnxBuilder("g")).nodes]

    def test_a_rule_is_given_the_hints_of_its_node(self):
        assert self.convert_ops(self.rules(), {"by": "3"}) == ["Relu"]
        hinted = self.rules().with_hints({self.y: {"exact": True}})
        assert self.convert_ops(hinted, {"by": "3"}) == ["Neg"]
        assert self.convert_ops(self.rules().with_hints({Value("y"): {"exact": True}}), {}) == [
            "Relu"
        ]

    def test_a_hint_is_no_attribute(self):
        assert set(self.rules().rules["scale"].attributes) == {"by"}
        with pytest.raises(Unconvertible, match="unknown attribute exact; the operator takes by"):
            self.convert_ops(self.rules(), {"exact": "True"})


def test_a_refusal_is_told_without_running_the_rule():
    registry = table()
    x = Value("x")
    for op, attrs, kind in [
        ("abs", {}, None),
        ("Foo", {}, UnsupportedOp),
        ("abs", {"a": 1}, UnsupportedAttribute),
    ]:
        refusal = registry.refusal(Node(op, (x,), (Value("y"),), attrs, "toy"))
        assert (type(refusal) if refusal else None) is kind


def test_require_refuses_in_the_users_words():
    require(True, "not raised")
    with pytest.raises(ConversionError, match="grouped deconvolution"):
        require(0, "grouped deconvolution")
