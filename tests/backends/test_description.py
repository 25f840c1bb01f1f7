"""Backend files: what they mean, and one clear error for each thing that is wrong in one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from serde.backends.description import backend_names, documented_names, get_backend, read_backend
from serde.backends.judge import judge_nodes
from serde.backends.partition import check_backend, partition
from serde.backends.runner import run
from serde.cli.commands import main
from serde.errors import MalformedFile, UsageError
from serde.legalize.target import Target
from serde.plugins.targets import get_consumer
from testing.onnx_live import DIGITS, ir_of

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "examples" / "backends" / "toy.toml"
HEAD = 'name = "t"\nopset = 17\n'


def backend_of(tmp_path, entries, head=HEAD):
    path = tmp_path / "b.toml"
    path.write_text(f"{head}{entries}")
    return read_backend(path)


def entry(op, *lines):
    return "\n".join(("[[operators]]", f'names = ["{op}"]', *lines, ""))


@pytest.mark.parametrize("name", documented_names())
def test_ready_descriptions_name_their_document(name):
    backend = get_backend(name)
    assert backend.name == name and len(backend.target.supports) > 40
    assert backend.documentation.startswith("https://") and backend.version and backend.date


def test_a_backend_is_a_name_an_opset_a_file_or_a_target():
    assert get_backend("opset 13").target.opset == get_backend("opset13").target.opset == 13
    assert get_backend(TOY).name == get_backend(str(TOY)).name == "toy"
    target = Target("mine", 17, {"Relu": {}})
    assert get_backend(target).target is target
    assert get_backend(get_backend(target)).target is target


def test_profiles_are_backends_where_they_are_of_a_table():
    assert {"relax", "tract", "coreml"} <= {*backend_names()}
    assert not {"generic", "npu-static"} & {*backend_names()}
    assert get_backend("tract").prepare is not get_backend("coreml").prepare
    for name in ("generic", "npu-static"):
        with pytest.raises(UsageError, match=f"{name} takes every operator of its opset"):
            get_backend(name)


CONV = "g (float[1,2,5,5] x, float[2,2,3,3] v) => (float[1,2,3,3] y)"
WEIGHT = f"<float[2,2,3,3] w = {{{', '.join(['1'] * 36)}}}>"
DYNAMIC = "g (float[N,2] x) => (float[N,2] y) { y = Relu(x) }"
GATHER = "g (uint8[3] x, int64[2] i) => (uint8[2] y) { y = Gather(x, i) }"
WHERE = "g (bool[3] c, uint8[3] x) => (uint8[3] y) { y = Where(c, x, x) }"
LEGALITY = [  # an operator, its keys, the graph, and why it is not taken, None where it is
    ("Relu", [], DYNAMIC, None),
    ("Relu", ["types = ['float32']"], DYNAMIC, None),
    ("Relu", ["types = { T = ['float16'] }"], DYNAMIC, "t has no Relu of float32 elements. It takes float16: cast to one that holds the numbers"),
    ("Gather", ["types = ['float32', 'int32']"], GATHER, "as Cast: t has no Cast"),
    ("Gather", ["types = ['uint8', 'int64']"], GATHER, None),
    ("Where", ["types = ['float32', 'bool']"], WHERE, "as Cast: t has no Cast"),
    ("Relu", ["ranks = 4"], DYNAMIC, "t has no Relu with 'X' of another rank than 4: 'x' has the shape (N, 2). Reshape the data"),
    ("Relu", ["ranks = [1, 2]"], DYNAMIC, None),
    ("Relu", ["dynamic_shapes = false"], DYNAMIC, "t has no Relu with sizes by name: 'x' has the shape (N, 2). Give numbers (--static, --input)"),
    ("Relu", ["sizes.X.1 = { most = 1 }"], DYNAMIC,
     "t has no Relu with axis 1 of 'X' more than 1, or dynamic: 'x' has the shape (N, 2)"),
    ("Relu", ["sizes.X.0 = { most = 1 }"], DYNAMIC,
     "t has no Relu with axis 0 of 'X' more than 1, or dynamic: 'x' has the shape (N, 2)"),
    ("Relu", ["sizes.X.-1 = { multiple_of = 2 }"], DYNAMIC, None),
    ("Relu", ["sizes.X.elements = { least = 1 }"], DYNAMIC,
     "t has no Relu with elements of 'X' less than 1, or dynamic: 'x' has the shape (N, 2)"),
    ("Conv", ["constant = ['W']"], f"{CONV} {{ y = Conv(x, v) }}", "t has no Conv with computed 'W': 'v'. Make it a constant, or give static sizes (--static)"),
    ("Conv", ["constant = ['W']"], f"{CONV} {WEIGHT} {{ y = Conv(x, w) }}", None),
    ("Conv", ["absent = ['B']"], f"{CONV} <float[2] b = {{1, 2}}> {{ y = Conv(x, v, b) }}",
     "t has no Conv with the optional 'B': 'b'. Leave it out where the model is exported"),
    ("Conv", ["attributes.dilations = [1]"],
     "g (float[1,1,5,5] x, float[1,1,2,2] v) => (float[1,1,3,3] y)"
     "{ y = Conv<dilations=[2,2]>(x, v) }", "t has no Conv with 'dilations' other than 1: [2, 2]. Change dilations where the model is exported"),
    ("Conv", ["attributes.pads = { symmetric = true }"],
     "g (float[1,1,5,5] x, float[1,1,2,2] v) => (float[1,1,5,5] y)"
     "{ y = Conv<pads=[1,1,0,0]>(x, v) }", "t has no Conv with 'pads' other at both ends: [1, 1, 0, 0]. Change pads where the model is exported"),
    ("MaxPool", ["attributes.kernel_shape = { most = 2 }"],
     "g (float[1,1,5,5] x) => (float[1,1,3,3] y) { y = MaxPool<kernel_shape=[3,3]>(x) }",
     "t has no MaxPool with 'kernel_shape' more than 2: [3, 3]. Change kernel_shape where the model is exported"),
    ("QuantizeLinear", ["zero = ['y_zero_point']"],
     "g (float[2] x) => (uint8[2] y) <float s = {1}, uint8 z = {3}> {y = QuantizeLinear(x, s, z)}",
     "t has no QuantizeLinear with 'y_zero_point' other than constant zeros: 'z'. Quantize the model with zeros for it"),
    ("Erf", [], DYNAMIC, "t has no Relu"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "lines", "graph", "reason"), LEGALITY)
def test_keys_limit_what_is_taken(tmp_path, op, lines, graph, reason):
    (verdict,) = judge_nodes(ir_of(graph), backend_of(tmp_path, entry(op, *lines)).target).values()
    assert verdict.reason == reason


def test_element_types_are_those_of_all_tensors_but_constants(tmp_path):
    head = f"{HEAD}element_types = ['float32']\n"
    backend = backend_of(tmp_path, entry("Cast") + entry("Gather"), head)
    gather = ir_of("g (float[3] x) => (float[1] y) <int64[1] i = {1}> { y = Gather(x, i) }")
    assert [v.reason for v in judge_nodes(gather, backend.target).values()] == [None]
    cast = ir_of("g (float[3] x) => (int32[3] y) { y = Cast<to=6>(x) }")
    (verdict,) = judge_nodes(cast, backend.target).values()
    assert (
        verdict.reason == "t has no Cast with other element types: 'y' is int32. It takes float32"
    )


LEGALIZED = [  # what a backend lists, a graph, and what it gets in place of its node
    ("Mul Add", "g (float[1,2,3] x) => (float[1,2,3] y) <float[2] s = {1, 2}> "
     "{ y = BatchNormalization(x, s, s, s, s) }", ("Mul", "Add")),
    ("MatMul Add", "g (float[1,2] x, float[2,2] w) => (float[1,2] y) <float[2] b = {1, 2}>"
     "{ y = Gemm(x, w, b) }", ("MatMul", "Add")),
    ("Reshape", "g (float[1,2,3] x) => (float[1,6] y) { y = Flatten(x) }", ("Reshape",)),
    ("Reshape", "g (float[1,2] x) => (float[2] y) <int64[1] a = {0}> { y = Squeeze(x, a) }",
     ("Reshape",)),
    ("Reshape", "g (float[2] x) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze(x, a) }",
     ("Reshape",)),
    ("Div", "g (float[2] x) => (float[2] y) { y = Reciprocal(x) }", ("Div",)),
    ("Mul", "g (float[2] x) => (float[2] y) { y = Neg(x) }", ("Mul",)),
    ("Add", "g (float[2] x) => (float[2] y) { y = Sum(x, x, x) }", ("Add",)),
    ("Mul Add Max Min", "g (float[2] x) => (float[2] y) { y = HardSigmoid(x) }",
     ("Mul", "Add", "Min", "Max")),
    ("ReduceMean", "g (float[1,2,3] x) => (float[1,2,1] y) { y = GlobalAveragePool(x) }",
     ("ReduceMean",)),
    ("ReduceMax", "g (float[1,2,3] x) => (float[1,2,1] y) { y = GlobalMaxPool(x) }",
     ("ReduceMax",)),
    ("Div Erf Add Mul Sqrt", "g (float[2] x) => (float[2] y) { y = Gelu(x) }",
     ("Div", "Erf", "Add", "Mul")),
]  # fmt: skip


@pytest.mark.parametrize(("listed", "graph", "operators"), LEGALIZED)
def test_operators_that_are_not_listed_are_legalized(tmp_path, listed, graph, operators):
    backend = backend_of(tmp_path, "".join(map(entry, listed.split())))
    (verdict,) = judge_nodes(ir_of(graph), backend.target).values()
    assert verdict.is_legalized and set(verdict.operators) == set(operators)


WRONG = [  # a file, and the end of the message
    ("name = 3\nopset = 17\noperators = []", "line 1: name is to be a string"),
    ("nam = 't'\nname = 't'\nopset = 17\noperators = []",
     "line 1: there is no key 'nam'; did you mean name?"),
    ("name = 't'\nopset = 99\noperators = []", "line 2: opset is to be one of 7 to 28"),
    ("name = 't'\noperators = []", "the key 'opset' is missing"),
    ("name = 't'\nopset = 17\n", "the key 'operators' is missing"),
    ("name = 't'\nopset = = 17\n", "not TOML: Invalid value (at line 2, column 9)"),
    (HEAD + entry("Relu") + entry("Cnov"),
     "line 6: opset 17 has no operator 'Cnov'; did you mean Conv?"),
    (HEAD + entry("Relu") + entry("Relu"), "line 6: Relu is listed twice"),
    (HEAD + entry("Conv", "rnks = 4"),
     "line 5: operators have no key 'rnks'; did you mean ranks?"),
    (HEAD + entry("Conv", "constant = ['X', 'V']"),
     "line 5: constant: Conv has no operand 'V'"),
    (HEAD + entry("Conv", "attributes.dilation = [1]"),
     "line 5: Conv has no attribute 'dilation'; did you mean dilations?"),
    (HEAD + entry("Conv", "types = ['flaot32']"),
     "line 5: there is no element type 'flaot32'; did you mean float32?"),
    (HEAD + entry("Conv", "types.U = ['float32']"), "line 5: Conv has no type variable 'U'"),
    (HEAD + entry("Conv", "types = ['string']"), "line 5: Conv has none of these element types"),
    (HEAD + entry("Conv", "ranks = 'four'"), "line 5: ranks is to be a number or a list of numbers"),
    (HEAD + entry("Conv", "sizes.X.first = { most = 3 }"),
     "line 5: 'first' is to be the number of an axis, last, or elements"),
    (HEAD + entry("Conv", "sizes.X.0 = { must = 3 }"),
     "line 5: there is no limit 'must'; did you mean most?"),
    (HEAD + entry("Conv", "sizes.X.0 = { most = '3' }"),
     "line 5: most is to be an integer, not '3'"),
    (HEAD + entry("Conv", "sizes.X.0 = { multiple_of = 0 }"),
     "line 5: multiple_of is to be positive, not 0"),
    (HEAD + entry("Conv", "attributes.group = { most = true }"),
     "line 5: most is to be an integer, not True"),
    (HEAD + entry("Conv", "attributes.pads = { symmetric = 1 }"),
     "line 5: symmetric is to be true or false"),
    (HEAD + entry("Conv", "attributes.group = ['one']"),
     "line 5: group has no value 'one': it is an integer"),
    (HEAD + entry("Conv", "attributes.auto_pad = { most = 3 }"),
     "line 5: auto_pad is a string: list the values that it takes"),
    (HEAD + entry("Constant", "attributes.value = [1]"),
     "line 5: value is a tensor or a graph, which has no constraints here"),
    (HEAD + "[[operators]]\nnames = []\n", "line 4: names is empty"),
    *((HEAD + f"[[operators]]\nnames = [{name}]\n",
       "line 3: an entry of operators is a table with a list of names")
      for name in ("{ a = 1 }", "['Conv']", "3", "true")),
    (HEAD + entry("Conv", "types = [{}]"), "line 5: there is no element type {}"),
    *((HEAD + entry("Conv", f"types = [{name}]"), f"line 5: there is no element type {shown}")
      for name, shown in (("['int8']", "['int8']; did you mean int8?"), ("3", "3"))),
    ("name = ''\nopset = 17\noperators = []", "line 1: name is empty"),
    (HEAD + "[[operators]]\nranks = 4\n", "line 3: an entry of operators is a table with a list of names"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_file_that_is_wrong_is_one_error_with_its_line(tmp_path, text, message):
    path = tmp_path / "b.toml"
    path.write_text(text)
    with pytest.raises(MalformedFile) as error:
        read_backend(path)
    separator = ", " if message.startswith("line") else ": "
    assert str(error.value) == f"{path}{separator}{message}"


def test_all_that_is_wrong_in_a_file_is_listed_in_the_order_of_its_lines(tmp_path):
    """Keys and operators that are right do not hide those that are not."""
    path = tmp_path / "b.toml"
    lines = [
        "name = 't'", "opset = 17", "nam = 3",
        "[[operators]]", "names = ['Cnov', 'Conv', 'Gemm']", "rnks = 4", "constant = ['V']",
        "[[operators]]", "names = ['Conv']", "types = ['flaot32']",
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    result = CliRunner().invoke(main, ["backend", "check", str(path)])
    places = [line.partition(": ")[0] for line in result.output.splitlines()]
    assert places == [f"{path}, line {n}" for n in (3, 5, 6, 7, 7, 9)]
    result = CliRunner().invoke(main, ["backend", "check", "tensorrt"])
    assert result.output.startswith("tensorrt: tensorrt has ") and result.exit_code == 0
    with pytest.raises(MalformedFile, match="no key 'nam'.* serde backend check lists 5 more"):
        read_backend(path)


def test_names_that_nothing_bears_are_refused_with_a_suggestion(tmp_path):
    with pytest.raises(
        UsageError, match=r"no backend is called 'tensort'; did you mean tensorrt\?"
    ):
        get_backend("tensort")
    with pytest.raises(UsageError, match="opset 99 is not one of 7 to 28"):
        get_backend("opset 99")
    with pytest.raises(UsageError):
        get_backend("opset " + "9" * 5000)
    with pytest.raises(UsageError, match="a backend is a name, a TOML file or a Target"):
        get_backend(3)
    with pytest.raises(MalformedFile, match="there is no such file"):
        get_backend(str(tmp_path / "none.toml"))


def test_the_report_tells_what_is_taken_and_why_not():
    report = check_backend(DIGITS, TOY)
    rows = {r.op: r for r in report.rows}
    assert rows["Softmax"].reasons == {"toy has no Softmax": ["softmax"]}
    assert rows["BatchNormalization"].legalized == 2
    assert list(rows["BatchNormalization"].operators) == ["Mul", "Add"]
    assert report.share_of_nodes == 11 / 12 and report.share_of_multiply_adds == 1


def test_the_command_prints_the_report():
    result = CliRunner().invoke(main, ["check", str(DIGITS), "--backend", str(TOY)])
    assert result.exit_code == 0, result.output
    first, *_, last = result.output.splitlines()
    assert first.endswith("toy takes 91.7% of the nodes, 100.0% of the multiply-adds")
    assert last == "    not taken ×1 ('softmax'): toy has no Softmax"
    result = CliRunner().invoke(main, ["check", str(DIGITS), "--backend", str(TOY), "--json"])
    assert json.loads(result.output)["share_of_nodes"] == 11 / 12


def test_subgraphs_of_what_is_not_taken_are_looked_into():
    graph = ir_of(
        "g (bool c, float[2] x) => (float[2] y) { y = If (c) <"
        "then_branch = t () => (float[2] a) { a = Relu(x) },"
        "else_branch = e () => (float[2] b) { b = Erf(x) }> }"
    )
    report = check_backend(graph, Target("t", 17, {"Relu": {}}))
    assert {r.op: r.offloaded for r in report.rows} == {"If": 0, "Relu": 1, "Erf": 0}


@pytest.mark.parametrize("name", ["openvino", "tensorrt"])
def test_what_the_profile_takes_holds_where_a_document_differs(name):
    backend = get_backend(name)
    assert backend.target is get_consumer(name).get_target()
    assert backend.documented is not None and backend.documentation


def test_a_documented_operator_that_is_computed_wrongly_is_not_taken():
    backend = get_backend("openvino")
    assert backend.target.source == "measured" and backend.documented.source == "documented"
    assert "DFT" in backend.documented.supports and "DFT" not in backend.target.supports
    graph = ir_of("g (float[1,8,1] x) => (float[1,8,2] y) { y = DFT(x) }")
    assert "DFT" in judge_nodes(graph, backend.documented)[graph.nodes[0]].operators
    assert "DFT" not in judge_nodes(graph, backend.target)[graph.nodes[0]].operators


@pytest.mark.parametrize("name", ["mnn", "ncnn", "onnxruntime", "tract"])
def test_consumers_are_backends_by_their_names(name, tmp_path):
    assert name in backend_names() and get_backend(name).target.source == "measured"
    graph = ir_of("g (float[1,2,6,6] x) => (float[1,2,3,3] y) "
                  "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }")  # fmt: skip
    split = partition(graph, name)
    assert len(split.accelerator_parts) == 1
    split.save(tmp_path / "parts")
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6), np.float32)
    y = run(tmp_path / "parts", {"x": x})["y"]
    np.testing.assert_array_equal(y, x.reshape(1, 2, 3, 2, 3, 2).max((3, 5)))


def test_axes_that_may_be_dynamic_are_listed(tmp_path):
    backend = backend_of(tmp_path, entry("Relu", "dynamic_shapes = { X = [0] }"))
    for shape, is_taken in (("N,3", True), ("3,N", False), ("3,3", True)):
        graph = ir_of(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}")
        assert judge_nodes(graph, backend.target)[graph.nodes[0]].is_taken is is_taken
