"""What callers say of inputs and outputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde import pipeline
from serde.errors import UsageError
from serde.ir.graph import DType, Graph, Node, Value
from serde.legalize.convert import lower_to
from serde.passes.cut_inputs import cut, cut_inputs, parse_spec, rename, spec_of, with_inputs
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import decode_text, ir_of, model_of, run, run_model

F16, F32 = DType.FLOAT16, DType.FLOAT32


@pytest.mark.parametrize(
    ("text", "name", "shape", "dtype"),
    [
        ("data=1,3,224,224", "data", (1, 3, 224, 224), None),
        ("data=N,3,H,W", "data", ("N", 3, "H", "W"), None),
        ("data=N,3:float16", "data", ("N", 3), F16),
        ("data=(N, 3)", "data", ("N", 3), None),
        ("data=[2,?]", "data", (2, None), None),
        ("data=-1,4", "data", (None, 4), None),
        ("data=:float16", "data", None, F16),
        ("data=()", "data", (), None),
        ("a.b/c:0=2", "a.b/c:0", (2,), None),
        ("data=N*2,T+1", "data", ("N*2", "T+1"), None),
    ],
)
def test_specs_of_the_command_line(text, name, shape, dtype):
    assert parse_spec(text) == (name, (shape, dtype))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("data", "is not NAME=DIMS"),
        ("=1,2", "is not NAME=DIMS"),
        ("data=1,-2", "-2 is no size"),
        ("data=", "is not NAME=DIMS"),
        ("data=0,3", "0 is no size: give 1 or more"),
        ("data=None,3", "'None' is no size: write \\? for an unknown size"),
        ("data=N,nan", "'nan' is no size"),
        (f"data={2**63}", "does not fit in 64 bits"),
        ("data=1.5", "'1.5' cannot name a dimension"),
        ("data=1,a;b", "'a;b' cannot name a dimension"),
        ("data=1:float31", "'float31' is no element type"),
        ("data=" + "a" * 65, "cannot name a dimension"),
    ],
)
def test_bad_specs_are_refused(text, why):
    with pytest.raises(UsageError, match=why):
        parse_spec(text)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ((1, 3), ((1, 3), None)),
        (["N", None], (("N", None), None)),
        (("N", -1), (("N", None), None)),
        (((1, 3), "float16"), ((1, 3), F16)),
        ((None, np.float16), (None, F16)),
        (([], "float32"), ((), F32)),
        (np.zeros((2, 3), np.float16), ((2, 3), F16)),
        ((1, 3, 4), ((1, 3, 4), None)),
        ((np.int64(2), np.int32(3)), ((2, 3), None)),
        ((None, None), ((None, None), None)),
        ((None, 4), ((None, 4), None)),
        ((None, "N"), ((None, "N"), None)),
        (("N", None), (("N", None), None)),
        ([None, "N"], ((None, "N"), None)),
        ((None, "float16"), (None, F16)),
        ((None, DType.FLOAT16), (None, F16)),
        (((1, 2), None), ((1, 2), None)),
        (((None, None), "float16"), ((None, None), F16)),
        (np.zeros((0, 3), np.float16), ((0, 3), F16)),
        ((0, 3), ((0, 3), None)),
    ],
)
def test_specs_of_the_api(spec, expected):
    assert spec_of("data", spec) == expected


@pytest.mark.parametrize(
    "spec",
    [
        None,
        3,
        "1,3",
        {1, 2},
        ((1, 2), "float31"),
        ((1.5,),),
        (-2,),
        (1.5, 2),
        (2**63,),
        ("None", 3),
    ],
)
def test_bad_specs_of_the_api_are_refused(spec):
    with pytest.raises(UsageError, match="input 'data'"):
        spec_of("data", spec)


BODY = """
g (float[N,4] x, float[N,4] z) => (float[N,4] y)
{ a = Relu(x)
  b = Add(a, z)
  y = Neg(b) }
"""


def ends(graph):
    return [v.name for v in graph.inputs], [v.name for v in graph.outputs]


class TestWithInputs:
    def test_shapes_and_types_are_taken_over_and_the_rest_stays(self):
        graph = with_inputs(decode_text(BODY), {"x": (2, 4), "z": (None, "float16")})
        assert [(v.name, v.shape, v.dtype) for v in graph.inputs] == [
            ("x", (2, 4), F32), ("z", ("N", 4), F16),
        ]  # fmt: skip
        assert "Relu(%x)" in str(graph)

    def test_nothing_given_changes_nothing(self):
        graph = decode_text(BODY)
        assert with_inputs(graph, None) is with_inputs(graph, {}) is graph

    def test_a_container_stays_one(self):
        graph = decode_text("g (seq(float[2]) s, int64 i) => (float[2] y) { y = SequenceAt(s, i) }")
        assert with_inputs(graph, {"s": (3,)}).inputs[0].container == ("sequence",)

    @pytest.mark.parametrize(
        ("specs", "why"),
        [
            ({"data": (1,)}, "the model has no input 'data'; it has 'x', 'z'"),
            ({"x": (1, 2, 3)}, "input 'x' has 2 dimensions in the model, 3 here"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, specs, why):
        with pytest.raises(UsageError, match=why):
            with_inputs(decode_text(BODY), specs)


class TestCut:
    @pytest.mark.parametrize(
        ("outputs", "inputs", "nodes"),
        [
            (["b"], ["x", "z"], 2),
            (["a"], ["x"], 1),
            (["y", "a"], ["x", "z"], 3),
            (["x"], ["x"], 0),
            (None, ["x", "z"], 3),
        ],
    )
    def test_only_what_the_outputs_need_is_left(self, outputs, inputs, nodes):
        graph = cut(decode_text(BODY), outputs)
        assert ends(graph) == (inputs, outputs or ["y"]) and len(graph.nodes) == nodes

    def test_layers_are_named_as_in_mxnet_or_by_their_node(self):
        body = "g (float[2] x) => (float[2] y) { fc1_output = Relu(x)\n y = Neg(fc1_output) }"
        assert ends(cut(decode_text(body), ["fc1"]))[1] == ["fc1_output"]
        graph = decode_text(BODY)
        node = graph.nodes[1]
        object.__setattr__(node, "name", "layer")
        assert ends(cut(graph, ["layer"]))[1] == ["b"]

    def test_an_unknown_name_is_refused_with_what_is_near(self):
        with pytest.raises(
            UsageError,
            match=r"no layer or value 'fc2' \(did you mean 'fc1'\?\); `serde inspect --values`",
        ):
            cut(decode_text("g (float[2] x) => (float[2] fc1) { fc1 = Relu(x) }"), ["fc2"])
        with pytest.raises(UsageError, match="no layer or value 'quite'; "):
            cut(decode_text(BODY), ["quite"])

    def test_a_name_of_several_is_refused(self):
        x = Value("x", DType.FLOAT32, (2,))
        y = [Value(name, DType.FLOAT32, (2,)) for name in ("a", "a", "b")]
        layers = zip(y, (x, *y), ("one", "two", "two"), strict=False)
        nodes = tuple(Node("Relu", (of,), (to,), name=name) for to, of, name in layers)
        graph = Graph("g", (x,), (y[-1],), nodes)
        assert [v.name for v in cut(graph, ["b"]).outputs] == ["b"]
        for name in ("a", "two"):
            with pytest.raises(UsageError, match=f"computes 2 values called '{name}': give the"):
                cut(graph, [name])
        with pytest.raises(UsageError, match="computes 2 values called 'a'"):
            cut_inputs(graph, ["a"])

    def test_the_front_is_cut_off_as_well(self):
        graph = cut_inputs(ir_of(BODY), ["b"])
        assert ends(graph) == (["b"], ["y"]) and [n.op for n in graph.nodes] == ["Neg"]
        with pytest.raises(UsageError, match="also depend on input 'z': name it as well"):
            cut_inputs(ir_of(BODY), ["a"])
        assert ends(cut_inputs(ir_of(BODY), ["a", "z"]))[0] == ["a", "z"]


class TestRename:
    def feeds(self, *names):
        return {n: np.full((1, 4), i + 1, np.float32) for i, n in enumerate(names)}

    @pytest.mark.parametrize(
        ("names", "inputs", "outputs"),
        [
            ({"x": "data"}, ["data", "z"], ["y"]),
            ({"y": "prob", "x": "data"}, ["data", "z"], ["prob"]),
            ({"x": "z", "z": "x"}, ["z", "x"], ["y"]),
            ({"x": "y", "y": "x"}, ["y", "z"], ["x"]),
            ({"x": "x"}, ["x", "z"], ["y"]),
            (None, ["x", "z"], ["y"]),
        ],
    )
    def test_new_names_keep_the_order_and_the_numbers(self, names, inputs, outputs):
        graph = rename(ir_of(BODY), names)
        assert ends(graph) == (inputs, outputs)
        lowered = lower_to(graph, 17)
        assert ends(lowered) == (inputs, outputs)
        (y,) = run(graph, self.feeds(*inputs), 17)
        np.testing.assert_array_equal(y, np.full((1, 4), -3.0))

    @pytest.mark.parametrize(
        ("names", "why"),
        [
            ({"x": "y"}, "'y' is empty, or that of another"),
            ({"x": "n", "z": "n"}, "'n' is empty, or that of another"),
            ({"x": ""}, "'' is empty, or that of another"),
            ({"b": "n"}, "no input or output is called 'b'"),
            ({"w": "n"}, "no input or output is called 'w'"),
        ],
    )
    def test_clashes_are_refused(self, names, why):
        with pytest.raises(UsageError, match=why):
            rename(ir_of(BODY), names)

    def test_an_input_that_is_an_output_keeps_both_ends(self):
        graph = ir_of("g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)\n z = Identity(x) }")
        renamed = rename(graph, {"x": "in", "z": "out"})
        assert ends(lower_to(renamed, 17)) == (["in"], ["y", "out"])

    def test_an_output_of_a_constant_is_renamed(self):
        graph = ir_of("g (float[2] x) => (int64[1] s) { s = Shape(x) }")
        assert ends(lower_to(rename(graph, {"s": "size"}), 17))[1] == ["size"]

    @pytest.mark.parametrize("old", ["x", "y"])
    def test_a_constant_without_a_name_of_the_source_gives_way(self, old):
        g = OnnxBuilder("g")
        x = g.input("x", DType.FLOAT32, (2,))
        first = g.Add(x, g.const(np.float32([1, 2]), name="ones"))
        y = g.Mul(first, g.const(np.float32([3, 3]), name="ones"))
        y.name = "y"
        graph = rename(g.build([y]), {old: "ones"})
        assert ends(graph) == (["ones"], ["y"]) if old == "x" else (["x"], ["ones"])
        (z,) = run(graph, {graph.inputs[0].name: np.float32([1, 1])}, 17)
        np.testing.assert_array_equal(z, [6, 9])

    @pytest.mark.parametrize("old", ["x", "y"])
    def test_a_value_within_a_subgraph_gives_way(self, old):
        graph = rename(ir_of(
            "g (float[2] x, bool c) => (float[2] y) { y = If (c) <"
            "then_branch = t () => (float[2] u) { inner = Exp(x)\n u = Neg(inner) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        ), {old: "inner"})  # fmt: skip
        assert "inner" in {*ends(graph)[0], *ends(graph)[1]}
        feeds = {graph.inputs[0].name: np.float32([1, 2]), "c": np.array(True)}
        np.testing.assert_allclose(run(graph, feeds)[0], -np.exp(np.float32([1, 2])), rtol=1e-6)

    def test_an_original_name_inside_gives_way(self):
        graph = rename(ir_of(BODY), {"x": "b"})
        assert ends(graph)[0][0] == "b"
        (y,) = run(graph, self.feeds(*ends(graph)[0]), 17)
        np.testing.assert_array_equal(y, np.full((1, 4), -3.0))

    def test_values_read_in_subgraphs_are_renamed_there(self):
        graph = rename(ir_of(
            "g (float[2] x, bool c) => (float[2] y) { y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(x) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        ), {"x": "data", "y": "out"})  # fmt: skip
        (y,) = run(graph, {"data": np.float32([1, 2]), "c": np.array(True)})
        assert y.tolist() == [-1, -2]

    def test_the_value_keeps_what_is_known_of_it(self):
        graph = ir_of("g (seq(float[2]) s) => (int64 n) { n = SequenceLength(s) }")
        (renamed,) = rename(graph, {"s": "t"}).inputs
        assert (renamed.container, renamed.shape) == (("sequence",), (2,))
        assert isinstance(renamed, Value)


# Cutting a file

LOST = """g (float[N,2,3] x) => (float[N,6] y) <int64[1] n = {6}, int64 z = {0}, int64[1] a = {0}> {
    b = Relu(x) c = Identity(b) s = Shape(c) t = Gather(s, z) u = Unsqueeze(t, a)
    v = Concat<axis=0>(u, n) w = Reshape(c, v) k = Constant<value_float = 2.0>() y = Mul(w, k)
}"""


@pytest.mark.parametrize("name", list("bcstuvwky"))
def test_every_value_that_is_listed_can_be_cut(tmp_path, name):
    """Also one that conversion folds, or finds to be another."""
    onnx.save(model_of(LOST), tmp_path / "a.onnx")
    listed = [v.name for n in pipeline.read(tmp_path / "a.onnx")[0].nodes for v in n.outputs]
    assert name in listed
    ends = ["x", name] if name not in "bcwy" else [name]
    for options in ({"outputs": [name]}, {"cut_inputs": ends}):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)
        done = onnx.load(tmp_path / "b.onnx")
        onnx.checker.check_model(done, full_check=True)
        whole_inputs = [] if name == "k" else ["x"]
        assert [v.name for v in done.graph.input] == options.get("cut_inputs", whole_inputs)
        assert [v.name for v in done.graph.output] == options.get("outputs", ["y"])
    reader = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model_of(LOST)))
    x = np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32)
    whole = {"b": np.maximum(x, 0), "c": np.maximum(x, 0), "s": np.array([4, 2, 3]),
             "t": np.array(4), "u": np.array([4]), "v": np.array([4, 6]),
             "w": np.maximum(x, 0).reshape(4, 6), "k": np.float32(2),
             "y": np.maximum(x, 0).reshape(4, 6) * 2, "x": x}  # fmt: skip
    feeds = {e: np.asarray(whole[e]) for e in ends}
    (got,) = run_model(done, feeds)
    (expected,) = run_model(reader.extract_model(ends, ["y"]), feeds)
    np.testing.assert_array_equal(got, expected)


def test_one_of_several_results(tmp_path):
    text = "g (float[4,2] x) => (float[2,2] y) { a, b = Split<axis=0>(x) y = Add(a, b) }"
    onnx.save(model_of(text, 13), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", cut_inputs=["x", "a"])
    x, a = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((2, 2), np.float32)
    (got,) = run_model(onnx.load(tmp_path / "b.onnx"), {"x": x, "a": a})
    np.testing.assert_array_equal(got, a + x[2:])


def test_an_output_that_an_operator_has_to_have_keeps_a_name(tmp_path):
    text = (
        "g (float[4] x) => (float[2] y) <int64[1] k = {2}> {"
        " a, b = TopK(x, k) c = Cast<to=1>(b) y = Add(a, c) }"
    )
    onnx.save(model_of(text, 13), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", cut_inputs=["x", "a"])
    x, a = np.float32([3, 9, 1, 7]), np.float32([10, 20])
    (got,) = run_model(onnx.load(tmp_path / "b.onnx"), {"x": x, "a": a})
    np.testing.assert_array_equal(got, [11, 23])


@pytest.mark.parametrize("name", ["b", "c", "w"])
def test_sizes_are_fixed_before_the_cut(tmp_path, name):
    onnx.save(model_of(LOST), tmp_path / "a.onnx")
    graph = serde.load(tmp_path / "a.onnx", cut_inputs=[name], static={"N": 4})
    assert graph.inputs[0].shape == ((4, 6) if name == "w" else (4, 2, 3))
    assert not graph.notes


def test_expressions_of_dimensions_are_fixed(tmp_path):
    text = """g (float[B,P] p, float[B,S] s) => (float[B,T] y) { y = Concat<axis=1>(p, s) }"""
    model = model_of(text)
    names = ("past_sequence_length", "past_sequence_length + sequence_length")
    for value, dim in zip(model.graph.input, names, strict=True):
        value.type.tensor_type.shape.dim[1].dim_param = dim
    onnx.save(model, tmp_path / "a.onnx")
    sizes = {"B": 1, "past_sequence_length": 3, "sequence_length": 2}
    graph = serde.load(tmp_path / "a.onnx", static=sizes)
    assert [v.shape for v in (*graph.inputs, *graph.outputs)] == [(1, 3), (1, 5), (1, 8)]
    with pytest.raises(UsageError, match="no dimension is called length"):
        serde.load(tmp_path / "a.onnx", static={"length": 1})


FUNCTIONS = """<opset_import: ["" : 18], domain: "local"> F (a) => (b) { t = Exp(a) b = Neg(t) }
<opset_import: ["" : 18], domain: "local"> G (a) => (b) { t = Exp(a) b = Identity(t) }
<opset_import: ["" : 18, "local" : 1], domain: "local"> H (a) => (b) { b = local.F(a) }"""
CALLS = {  # the value to begin at is ``i``
    "behind a function": "f = local.CALLED(x) i = Identity(f) y = Relu(i)",
    "behind two copies": "f = local.CALLED(x) e = Identity(f) i = Identity(e) y = Relu(i)",
    "the result of a function": "i = local.CALLED(x) e = Identity(i) y = Relu(e)",
    "between functions": "f = local.CALLED(x) i = Dropout(f) y = local.F(i)",
    "in front of one": "i = Identity(x) y = local.CALLED(i)",
}


@pytest.mark.parametrize("called", ["F", "G", "H"])
@pytest.mark.parametrize("place", CALLS)
def test_copies_around_functions_can_be_cut(tmp_path, place, called):
    nodes = CALLS[place].replace("CALLED", called)
    head = '<ir_version: 9, opset_import: ["" : 18, "local" : 1]> m '
    text = head + f"(float[2] x) => (float[2] i, float[2] y) {{ {nodes} }} {FUNCTIONS}"
    source = onnx.parser.parse_model(text)
    feeds = {"x": np.array([0.5, -2], np.float32)}
    i, y = run_model(source, feeds)
    del source.graph.output[0]
    onnx.save(source, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", cut_inputs=["i"])
    result = onnx.load(tmp_path / "b.onnx")
    assert [v.name for v in result.graph.input] == ["i"]
    np.testing.assert_allclose(run_model(result, {"i": i})[0], y)
