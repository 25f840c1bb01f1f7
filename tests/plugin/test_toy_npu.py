"""The target that docs/how-to/add-a-target.md declares: executed, legalized for, and installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import defs, helper, numpy_helper, shape_inference

import serde as serde_api
from serde import plugins
from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType
from serde.pipeline import load
from serde.plugins import targets
from testing.onnx_live import model_of, run_model

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/add-a-target.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(PAGE)
SOURCE = "\n\n".join(text for language, text in BLOCKS if language == "python")
COMMANDS = "".join(text for language, text in BLOCKS if language == "sh").splitlines()
NPU: dict = {}
exec(compile(SOURCE, "toy_npu.py", "exec"), NPU)


def make_model(body, opset=17, **shapes):
    """The model ``body`` spells; inputs that are listed with a shape become random weights."""
    model, rng = model_of(body, opset, 8 if opset < 18 else 10), np.random.default_rng(0)
    for value in list(model.graph.input):
        if (shape := shapes.get(value.name)) is None:
            continue
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = rng.uniform(0.2, 1.0, shape) * rng.choice([-1, 1], shape)
        array = np.abs(array) if value.name.startswith("v") else array  # a variance
        model.graph.initializer.append(numpy_helper.from_array(array.astype(dtype), value.name))
        model.graph.input.remove(value)
    return model


def legalize_model(model, folder):
    onnx.save(model, folder / "model.onnx")
    return NPU["for_toy_npu"](str(folder / "model.onnx"))


def feeds_of(model):
    rng = np.random.default_rng(1)
    return {
        v.name: rng.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim]).astype(
            helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
        )
        for v in model.graph.input
    }


def assert_supported(model):
    """Every node, by its schema and onnx's own inference, is one the page's table lists."""
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    graph = shape_inference.infer_shapes(model, strict_mode=True).graph
    types = {v.name: v.type.tensor_type for v in (*graph.input, *graph.value_info, *graph.output)}
    assert all(d.HasField("dim_value") for t in types.values() for d in t.shape.dim)
    codes = {n: t.elem_type for n, t in types.items()}
    codes |= {i.name: i.data_type for i in graph.initializer}
    supported = {
        op: {tie: {d.numpy for d in dtypes} for tie, dtypes in ties.items()}
        for op, ties in NPU["SUPPORTED"].items()
    }
    for node in graph.node:
        schema, legal = defs.get_schema(node.op_type, 17), supported[node.op_type]
        for formals, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
            for i, name in enumerate(names):
                tie = formals[min(i, len(formals) - 1)].type_str
                dtype = helper.tensor_dtype_to_np_dtype(codes[name]) if name else None
                assert not name or dtype in legal.get(tie, [dtype]), (node.op_type, name, dtype)
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        assert set(attrs.get("dilations", [1])) == {1}
        assert NPU["is_symmetric"](attrs.get("pads", []))


CASES = {
    "CNN": (
        make_model(
            """g (float[2,3,16,16] x, float[8,3,3,3] w, float[8] b, float[8] s, float[8] t,
                  float[8] m, float[8] v, float[8,1,3,3] dw, float[5,8] fc, float[5] fb)
               => (float[2,5] y) {
                 c = Conv<strides=[2,2], auto_pad="SAME_UPPER">(x, w, b)
                 n = BatchNormalization(c, s, t, m, v)
                 h = HardSwish(n)
                 d = Conv<group=8, pads=[1,1,1,1]>(h, dw)
                 e = HardSigmoid<alpha=0.3, beta=0.4>(d)
                 r = Add(h, e)
                 p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
                 a = GlobalAveragePool(p)
                 f = Flatten(a)
                 z = Gemm<transB=1, alpha=0.5, beta=2.0>(f, fc, fb)
                 y = Softmax(z) }""",
            w=(8, 3, 3, 3), b=8, s=8, t=8, m=8, v=8, dw=(8, 1, 3, 3), fc=(5, 8), fb=5,
        ),
        {"Pad", "Conv", "MaxPool", "AveragePool", "MatMul", "Min", "Exp"},
        1e-5,
    ),
    "transformer": (
        make_model(
            """g (float[2,6,8] x, float[8,8] q, float[8,8] k, float[8] s, float[8] b)
               => (float[2,6,8] y, float[2,6,8] z) {
                 n = LayerNormalization(x, s, b)
                 l = MatMul(n, q)
                 r = MatMul(n, k)
                 t = Transpose<perm=[0,2,1]>(r)
                 a = MatMul(l, t)
                 p = Softmax<axis=1>(a)
                 o = MatMul(p, n)
                 u = Gelu(o)
                 y = Add(u, x)
                 z = Gelu<approximate="tanh">(y) }""",
            20, q=(8, 8), k=(8, 8), s=8, b=8,
        ),
        {"Erf", "Tanh", "ReduceSum", "ReduceMax", "Sqrt", "Transpose"},
        1e-5,
    ),
    "LSTM": (
        make_model(
            """g (float[5,2,4] x, float[2,12,4] w, float[2,12,3] r, float[2,24] b)
               => (float[5,2,2,3] y, float[2,2,3] h, float[2,2,3] c) {
                 y, h, c = LSTM<hidden_size=3, direction="bidirectional">(x, w, r, b) }""",
            w=(2, 12, 4), r=(2, 12, 3), b=(2, 24),
        ),
        {"MatMul", "Sigmoid", "Tanh", "Concat"},
        1e-5,
    ),
    "float16": (
        make_model(
            """g (float16[1,2,8,8] x, float16[4,2,3,3] w) => (float16[4,36] y) {
                 c = Conv(x, w)
                 r = Relu(c)
                 t = Transpose<perm=[1,0,2,3]>(r)
                 y = Flatten(t) }""",
            w=(4, 2, 3, 3),
        ),
        {"Cast", "Conv", "Relu", "Transpose", "Reshape"},
        2e-3,  # two units in the last place of float16
    ),
    "int8": (
        make_model(
            """g (float[1,2,6,6] x, float[3,2,2,2] w) => (float[1,3,2,2] y)
               <float scale = {0.05}, int8 zero = {3}> {
                 q = QuantizeLinear(x, scale, zero)
                 p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(q)
                 t = Transpose<perm=[0,1,3,2]>(p)
                 f = DequantizeLinear(t, scale, zero)
                 y = Conv(f, w) }""",
            w=(3, 2, 2, 2),
        ),
        {"QuantizeLinear", "DequantizeLinear", "Conv", "MaxPool"},
        1e-5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_gets_its_own_operators_and_the_same_numbers(name, tmp_path):
    model, expected, tolerance = CASES[name]
    new_model = to_proto(legalize_model(model, tmp_path))
    onnx.checker.check_model(new_model, full_check=True)
    assert_supported(new_model)
    assert expected <= {n.op_type for n in new_model.graph.node}
    feeds = feeds_of(model)
    for a, b in zip(run_model(new_model, feeds), run_model(model, feeds), strict=True):
        assert a.dtype == b.dtype and np.abs(b).max() > 0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def test_what_has_no_effect_is_dropped(tmp_path):
    """The factor and the summand of constant statistics are constants, and factors of 1 none."""
    model = make_model(
        """g (float[2,3,4,4] x, float[3] s, float[3] b, float[3] m, float[3] v, float[48,5] w)
           => (float[2,5] y) {
             n = BatchNormalization(x, s, b, m, v)
             f = Flatten(n)
             y = Gemm(f, w) }""",
        s=3, b=3, m=3, v=3, w=(48, 5),
    )  # fmt: skip
    graph = legalize_model(model, tmp_path)
    assert [n.op for n in graph.nodes] == ["Mul", "Add", "Reshape", "MatMul"]


NO = {
    "dilations": (
        "g (float[1,2,9,9] x, float[2,2,3,3] w) => (float[1,2,5,5] y) "
        "{ y = Conv<dilations=[2,2]>(x, w) }",
        ["Conv ×1 ('y'): toy-npu has no Conv with dilations"],
    ),
    "all at once": (
        "g (float[1,2,9,9] x) => (float[1,2,9,9] z) "
        "{ y = MaxPool<kernel_shape=[2,2], pads=[0,0,1,1]>(x) z = Sin(y) }",
        [
            "MaxPool ×1 ('y'): toy-npu has no MaxPool with asymmetric pads",
            "Sin ×1 ('z'): toy-npu has no Sin",
        ],
    ),
    "dynamic shapes": (
        "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
        [
            "input ×1 ('x'): 'x' has the shape (N, 3); toy-npu takes static shapes only: give "
            "numbers (--static, --input)"
        ],
    ),
    "an element type": (
        "g (double[2,3] x) => (double[2,3] y) { a = Relu(x) y = Transpose(a) }",
        ["Relu ×1 ('a'): toy-npu has no Relu of float64 elements"],
    ),
    "another element type": (
        "g (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {3}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
        ["QuantizeLinear ×1 ('q'): toy-npu has no QuantizeLinear of uint8 elements"],
    ),
    "what a rule requires": (
        "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y) "
        "{ y, mo, vo = BatchNormalization<training_mode=1>(x, s, b, m, v) }",
        ["BatchNormalization ×1 ('y'): training_mode=1: export the model for inference"],
    ),
    "control flow": (
        "g (bool c, float[2] x) => (float[2] y) { y = If (c) <"
        "then_branch = t () => (float[2] u) { u = Relu(x) }, "
        "else_branch = e () => (float[2] v) { v = Exp(x) }> }",
        ["If ×1 ('y'): toy-npu gathers by one constant only"],
    ),
    "operators of others": (
        "g (float[2] x) => (float[2] y) { y = Tan(x) }",
        ["Tan ×1 ('y'): toy-npu has no Tan"],
    ),
}


@pytest.mark.parametrize("name", NO)
def test_what_it_cannot_take_is_refused_by_layer(name, tmp_path):
    body, reasons = NO[name]
    with pytest.raises(Unconvertible) as error:
        legalize_model(model_of(body, 17, 8), tmp_path)
    assert error.value.stage == "ir → toy-npu"
    messages = [str(p).partition(". Attributes")[0] for p in error.value.problems]
    assert len(messages) == len(reasons)
    assert all(a.startswith(b) for a, b in zip(messages, reasons, strict=True)), messages


def test_sequences_are_refused_where_there_are_only_tensors():
    from dataclasses import replace

    from serde.ir.graph import Value

    sequence = Value("s", DType.FLOAT32, None, container=("sequence",))
    assert NPU["TARGET"].illegal_value(sequence) is None
    without = replace(NPU["TARGET"], sequences=False)
    assert without.illegal_value(sequence) == "'s' is a sequence; toy-npu has tensors only"


def test_the_page_counts_its_operators():
    assert f"an accelerator with {len(NPU['SUPPORTED'])} operators" in PAGE


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the page's module and entry point, as an installer leaves them."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "toy_npu.py").write_text(SOURCE)
    info = folder / "toy_npu-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-npu\nVersion: 1.0\n")
    (entry,) = [text for language, text in BLOCKS if language == "toml"]
    group, line = re.fullmatch(r'\[project\.entry-points\."(.+)"\]\n(.+)\n', entry).groups()
    (info / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    return folder


@pytest.fixture
def serde(site, tmp_path):
    """Run the command with the package installed; there is a CNN of a dynamic batch, and another."""
    model = onnx.ModelProto()
    model.CopyFrom(CASES["CNN"][0])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, tmp_path / "model.onnx")
    onnx.save(model_of(NO["dilations"][0], 17, 8), tmp_path / "dilated.onnx")
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(line):
        command = [sys.executable, "-c", "from serde.cli.commands import main; main()"]
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            [*command, *line.split()[1:]], capture_output=True, text=True, env=env, cwd=tmp_path
        )

    return run


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_run(serde, tmp_path, line):
    done = serde(line)
    assert done.returncode == 0, done.stdout + done.stderr
    if "-o" in line:
        assert done.stdout.endswith(": pass\n")
        assert_supported(onnx.load(tmp_path / "model-npu.onnx"))
    else:
        assert "everything converts to toy-npu" in done.stdout


def test_the_command_refuses_by_layer_and_lists_what_there_is(serde):
    assert COMMANDS
    done = serde("serde check dilated.onnx --to toy-npu")
    assert done.returncode == 1
    assert "Conv ×1 ('y'): toy-npu has no Conv with dilations" in done.stdout
    done = serde("serde check model.onnx --to toy-npu")
    assert done.returncode == 1 and "toy-npu takes static shapes only" in done.stdout
    done = serde("serde convert model.onnx -o y.onnx --profile npu")
    assert done.returncode == 2
    assert "tract, toy-npu, " in done.stderr and "; did you mean npu-static?" in done.stderr
    done = serde("serde convert model.onnx -o y.onnx --profile toy-npu --opset 13 --static N=1")
    assert done.returncode == 2 and "the profile toy-npu is known with opset 17 only" in done.stderr


def test_the_consumer_of_the_page_writes_for_the_target(monkeypatch, tmp_path):
    consumer = NPU["CONSUMER"]
    entries, mine = plugins._entries, {"toy-npu": None}
    monkeypatch.setattr(
        plugins, "_entries", lambda group: mine if group == "serde.targets" else entries(group)
    )
    load = plugins._load
    monkeypatch.setattr(
        plugins, "_load", lambda g, n: consumer if g == "serde.targets" else load(g, n)
    )
    assert targets.get_consumer("toy-npu").get_target() is NPU["TARGET"]
    onnx.save(CASES["CNN"][0], tmp_path / "m.onnx")
    report = serde_api.convert(tmp_path / "m.onnx", tmp_path / "n.onnx", profile="toy-npu")
    assert_supported(onnx.load(tmp_path / "n.onnx"))
    step = targets.describe_next_step("onnx", "n.onnx", report.options)
    assert step == "toy-npu-compile n.onnx"


def test_the_sentence_about_python_is_so(site, tmp_path):
    model = CASES["LSTM"][0]
    onnx.save(model, tmp_path / "model.onnx")
    (call,) = re.findall(r"From Python it is `(serde\.convert\(.*\))`", PAGE)
    env = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run(
        [sys.executable, "-c", f"import serde; {call}"], cwd=tmp_path, env=env, check=True
    )
    new_model = onnx.load(tmp_path / "model-npu.onnx")
    assert_supported(new_model)
    assert load(str(tmp_path / "model-npu.onnx")).inputs[0].shape == (5, 2, 4)
