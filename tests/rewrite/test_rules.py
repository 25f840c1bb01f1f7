"""Rule tables: how attributes are bound, what is refused, and the one loop over nodes."""

from __future__ import annotations

from functools import partial

import pytest
from onnx import parser

from serde.errors import (
    ConversionError,
    Unconvertible,
    UnsupportedAttribute,
    UnsupportedOp,
    require,
)
from serde.formats.onnx.reader import decode
from serde.formats.onnx.to_ir import to_ir
from serde.ir.builder import Builder
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.rewrite.rules import Hint, Rule, RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder

F32 = DType.FLOAT32


def parse(kind, raw):
    """Attributes as text, as MXNet writes them."""
    readers = {int: int, float: float, str: str, bool: "True".__eq__,
               Ints: lambda t: tuple(int(i) for i in t.strip("()").split(",") if i)}  # fmt: skip
    return readers[kind](raw)


def table(**options):
    registry = RuleTable("toy → ir", parse=parse, hidden=lambda n: n.startswith("__"), **options)

    @registry("Conv", ignore=("workspace",), only={"layout": ("NCHW", "None")})
    def read_conv(
        g, x, w, b=None, *, kernel: Ints, stride=(1, 1), num_group=1, eps=1e-3, bias=True
    ):
        return g.Relu(x)

    registry.rename({"abs": "Abs", "neg": "Neg"})
    registry("split", "chunk")(lambda g, x, *, n=2: g.Split(x, num_outputs=n, outputs=n))
    registry("stack")(lambda g, *xs, axis=0: g.Concat(*xs, axis=axis))
    return registry


def graph_of(*nodes, outputs=None, inputs=None):
    """``nodes`` as (op, operands, outputs, attributes) by names; what nothing makes is an input."""
    values, toy_nodes = {}, []
    for op, operands, results, attrs in nodes:
        ins = tuple(values.setdefault(n, Value(n, F32, ("N", 4))) for n in operands.split())
        outs = tuple(values.setdefault(n, Value(n)) for n in results.split())
        toy_nodes.append(Node(op, ins, outs, attrs, "toy", results.split()[0],
                              (Source("toy", op, results.split()[0]),)))  # fmt: skip
    computed = {v for n in toy_nodes for v in n.outputs}
    ends = (outputs or nodes[-1][2]).split()
    heads = tuple(v for v in values.values() if v not in computed)
    return Graph("g", heads, tuple(values[n] for n in ends), tuple(toy_nodes), "toy")


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

    def test_the_signature_is_read_once(self):
        rule = table().rules["Conv"]
        assert rule.operands == (2, 3) and rule.attributes["kernel"].is_required
        assert Rule.of(lambda g, *xs, axis=0: None).operands == (1, None)
        assert Rule.of(partial(lambda op, g, x: None, "Relu")).operands == (1, 1)


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


class TestRewriting:
    def problems(self, *nodes, registry=None, **options):
        with pytest.raises(Unconvertible) as caught:
            (registry or table()).rewrite(graph_of(*nodes, **options), OnnxBuilder("g"))
        assert caught.value.stage == "toy → ir"
        return [(p.op, dict(p.attrs), p.count, p.names, p.reason) for p in caught.value.problems]

    def test_what_cannot_be_converted_is_reported_all_at_once_and_grouped(self):
        layout = {"kernel": "(1,)", "layout": "NHWC"}
        why = "layout=NHWC; supported: NCHW, None"
        assert self.problems(
            ("Foo", "x", "f1", {}),
            ("Conv", "x w", "c1", layout),
            ("Foo", "x", "f2", {}),
            ("Bar", "x", "b1", {"k": "1"}),
            ("Bar", "x", "b2", {"k": "2"}),
            ("abs", "x", "y", {}),
        ) == [
            ("Foo", {}, 2, ("f1", "f2"), "toy → ir has no rule for Foo"),
            ("Conv", layout, 1, ("c1",), why),
            ("Bar", {"k": "1"}, 1, ("b1",), "toy → ir has no rule for Bar"),
            ("Bar", {"k": "2"}, 1, ("b2",), "toy → ir has no rule for Bar"),
        ]

    def test_annotations_do_not_tell_nodes_apart(self):
        assert [p[2] for p in self.problems(
            ("Foo", "x", "a", {"__m__": "1"}), ("Foo", "x", "b", {"__m__": "2"}),
        )] == [2]  # fmt: skip

    def test_what_reads_a_failure_is_not_reported_unless_it_fails_itself(self):
        assert [p[0] for p in self.problems(
            ("Foo", "x", "a", {}),
            ("abs", "a", "b", {}),
            ("neg", "b", "c", {"odd": "1"}),
            ("Baz", "c", "d", {}),
            ("abs", "d", "y", {}),
        )] == ["Foo", "neg", "Baz"]  # fmt: skip

    def test_the_message_names_operators_configurations_counts_and_nodes(self):
        nodes = [("Foo", "x", f"f{i}", {"k": "1"}) for i in range(7)]
        with pytest.raises(Unconvertible) as caught:
            table().rewrite(graph_of(*nodes), OnnxBuilder("g"))
        assert str(caught.value) == (
            "toy → ir: 7 node(s) cannot be converted:\n"
            "  Foo ×7 ('f0', 'f1', 'f2', 'f3', 'f4', …): toy → ir has no rule for Foo. Attributes: k=1\n"
            "  What has no rule can be given one (rules= in Python), be kept (--custom-domain or "
            "--keep-domain), or be cut off (--outputs)."
        )

    @pytest.mark.parametrize(
        ("op", "operands", "why"),
        [
            ("abs", "x z", "Abs takes no 2 inputs at opset 28"),
            ("Conv", "x", "has 1 inputs where 2 to 3 belong"),
            ("Conv", "x w b c", "has 4 inputs where 2 to 3 belong"),
            ("split", "x z", "has 2 inputs where 1 belong"),
        ],
    )
    def test_a_wrong_number_of_operands_is_refused(self, op, operands, why):
        attrs = {"kernel": "(1,)"} if op == "Conv" else {}
        assert [p[4] for p in self.problems((op, operands, "y", attrs))] == [why]

    def test_an_output_the_rule_does_not_make_is_refused(self):
        assert [p[4] for p in self.problems(("abs", "x", "y mean var", {}))] == [
            "output 'mean', 'var' has no equivalent"
        ]

    def test_a_mistake_in_a_rule_is_reported_with_its_node(self):
        registry = table()
        registry("broken")(lambda g, x: 1 / 0)
        assert [p[4] for p in self.problems(("broken", "x", "y", {}), registry=registry)] == [
            "fails with ZeroDivisionError: division by zero. Its operands may not fit it: float32 (N, 4)"
        ]

    def test_a_value_nothing_computes_is_refused(self):
        x, y = Value("x", F32, (2,)), Value("y")
        graph = Graph("g", (), (y,), (Node("abs", (x,), (y,), {}, "toy", "n"),), "toy")
        with pytest.raises(Unconvertible, match="reads 'x', which nothing before it computes"):
            table().rewrite(graph, OnnxBuilder("g"))

    def test_results_take_the_names_and_missing_types_of_what_they_stand_for(self):
        registry = table()
        registry("opaque")(lambda g, x: g.foreign("toy", "Opaque", [x], {}))
        graph = graph_of(("opaque", "x", "y", {}), ("split", "x", "p q", {"n": "2"}))
        graph.nodes[0].outputs[0].dtype = F32
        done = registry.rewrite(graph, OnnxBuilder("g"))
        assert [(v.name, v.dtype) for n in done.nodes for v in n.outputs] == [
            ("y", F32), ("p", F32), ("q", F32),
        ]  # fmt: skip

    def test_nodes_carry_their_source_and_inputs_keep_name_type_and_order(self):
        done = table().rewrite(graph_of(("abs", "x", "y", {})), OnnxBuilder("g"))
        (node,) = done.nodes
        assert (node.name, node.sources) == ("y", (Source("toy", "abs", "y"),))
        assert [(v.name, v.shape) for v in done.inputs] == [("x", ("N", 4))]

    def test_a_fallback_takes_what_has_no_rule(self):
        registry = RuleTable("copy", fallback=keep)
        registry("abs")(lambda b, x: b.absolute(x))
        graph = graph_of(("abs", "x", "y", {}), ("Foo", "y", "z", {"k": "1"}))
        ops = [n.op for n in registry.rewrite(graph, Builder("g")).nodes]
        assert ops == ["abs", "Foo"]  # rules of a table with a fallback are of its own domain
        own = RuleTable("copy")
        own("abs")(lambda b, x: b.absolute(x))
        with pytest.raises(Unconvertible):
            own.rewrite(graph, Builder("g"))

    def test_metadata_functions_and_imports_go_along(self):
        graph = graph_of(("abs", "x", "y", {}))
        graph = Graph("g", graph.inputs, graph.outputs, graph.nodes, "toy",
                      metadata={"k": "v"}, imports={"d": 1})  # fmt: skip
        done = table().rewrite(graph, OnnxBuilder("g"))
        assert (done.metadata, done.imports) == ({"k": "v"}, {"d": 1})

    def test_the_source_is_not_changed(self):
        graph = graph_of(("Conv", "x w", "c", {"kernel": "(1,)"}), ("abs", "c", "y", {}))
        before = str(graph)
        table().rewrite(graph, OnnxBuilder("g"))
        assert str(graph) == before

    def test_a_very_deep_graph_is_no_recursion(self):
        nodes = [("abs", f"v{i}", f"v{i + 1}", {}) for i in range(3000)]
        registry = RuleTable("t")
        registry.rename({"abs": "absolute"})
        assert len(registry.rewrite(graph_of(*nodes), Builder("g")).nodes) == 3000


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


@pytest.mark.parametrize("outputs", ["iy", "yi", "fiy"])
def test_a_rewritten_graph_keeps_its_names(outputs):
    """Also where its nodes are taken over, and their results get the name of an output."""
    results = ", ".join(f"float[2] {name}" for name in outputs)
    text = f"""<ir_version: 9, opset_import: ["" : 28, "own" : 1]> g (float[2] x) => ({results})
    {{ f = own.F(x) i = Identity(f) y = Relu(i) }}"""
    graph = decode(parser.parse_model(text))
    done = str(to_ir(graph, keep_domain=["own"]))
    assert [v.name for n in graph.nodes for v in n.outputs] == ["f", "i", "y"]
    assert str(to_ir(graph, keep_domain=["own"])) == done and done.endswith(
        "return " + ", ".join(f"%{name}" for name in outputs)
    )
