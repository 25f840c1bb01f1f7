"""Signatures made of declared options; messages that name what the caller can give."""

from __future__ import annotations

import inspect
import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import (
    Listing,
    MalformedFile,
    Problem,
    SerdeError,
    Unconvertible,
    UnknownArgument,
    UsageError,
)
from serde.plugins import installed_formats
from serde.plugins.keywords import list_flags, respell
from serde.plugins.options import list_options
from testing.onnx_live import model_of

READING = {"inputs", "static", "fp16", "epoch", "entry", "keep_domain"}
WRITING = {"opset", "profile", "rename", "mxnet", "external_data"}
TAKEN = {
    "load": READING, "save": WRITING, "convert": READING | WRITING | {"verify", "data"},
    "check": READING | WRITING | {"to"}, "partition": READING | {"min_nodes", "max_parts"},
    "export": READING | WRITING, "import_": READING, "verify": READING | {"expected"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"), tmp_path / "a.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result.exit_code, result.stderr


def test_signatures_are_read_as_they_are_written():
    """No default is an object that people cannot write."""
    functions = [f for f in (getattr(serde, n) for n in serde.__all__) if inspect.isroutine(f)]
    assert len(functions) > 10
    for function in functions:
        for parameter in inspect.signature(function).parameters.values():
            assert not re.search(r"<.* at 0x|lambda", repr(parameter.default)), function.__name__


@pytest.mark.parametrize("name", TAKEN)
def test_a_signature_shows_the_options(name):
    shown = inspect.signature(getattr(serde, name))
    assert shown.parameters.keys() >= TAKEN[name]
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.parameters.values())
    for parameter in shown.parameters.values():
        assert parameter.annotation is not parameter.empty
    assert shown.return_annotation is not shown.empty
    required = [n for n, p in shown.parameters.items() if p.default is p.empty]
    shown.bind(*required, **dict.fromkeys(TAKEN[name]))
    for others in (READING, WRITING - {"rename"}):  # a verification pairs renamed ends too
        assert not shown.parameters.keys() & others or TAKEN[name] >= others


FUNCTIONS = {n for n in serde.__all__ if inspect.isfunction(getattr(serde, n))}


@pytest.mark.parametrize("name", sorted(FUNCTIONS - {"trace"}))  # which passes them on
def test_an_unknown_argument_is_said_of_the_function_that_was_called(name):
    function = getattr(serde, name)
    required = [n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty
                and p.kind is not p.VAR_POSITIONAL]  # fmt: skip
    with pytest.raises(TypeError, match=rf"{name}\(\) .*'zzz'"):
        function(*[lambda *x: None] * len(required), zzz=1)


def test_a_model_runs_with_the_options_that_tell_what_of_its_files_is_meant():
    shown = inspect.signature(serde.prepare).parameters
    every = {n: o for f in installed_formats() for n, o in list_options(f.read_options).items()}
    assert {"params", "outputs", "epoch", "entry"} < shown.keys()
    assert {n for n, o in every.items() if o.is_run} == shown.keys() & every.keys()


def test_every_option_of_every_format_is_shown():
    shown = inspect.signature(serde.convert).parameters
    for fmt in installed_formats():
        declared = {**list_options(fmt.read_options), **list_options(fmt.write_options)}
        assert declared.keys() <= shown.keys()


def test_the_declared_default_is_shown():
    assert inspect.signature(serde.partition).parameters["min_nodes"].default == 1


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            lambda: serde.load("a.onnx", input={"x": (1, 3)}),
            r"load\(\) .* 'input'; did you mean inputs",
        ),
        (lambda: serde.load("a.onnx", opset=13), r"'opset'; it is one of save\(\) and convert\(\)"),
        (lambda: serde.load("a.onnx", from_format="onnx"), "'from_format'; did you mean format"),
        (lambda: serde.save(None, "b.onnx", profil="tract"), "did you mean profile"),
        (lambda: serde.convert("a.onnx", "b.onnx", zzz=9), "'zzz'; it takes source, target"),
        (lambda: serde.check("a.onnx", optset=9), "did you mean opset"),
        (lambda: serde.load("a.onnx", options={"static": {"N": 1}}), "has no argument 'options'"),
        (lambda: serde.partition("a.onnx", "openvino", min_node=2), "did you mean min_nodes"),
        (lambda: serde.verify("a.onnx", "a.onnx", dta="x"), "did you mean data"),
        (lambda: serde.compose("a.onnx", "a.onnx", kep=["y"]), "did you mean keep"),
        (lambda: serde.wrap("a.onnx", prae="f"), "did you mean pre"),
        (
            lambda: serde.prepare("a.onnx", thread=1),
            r"prepare\(\) .* 'thread'; did you mean threads",
        ),
        (lambda: serde.run("a.onnx", {}, fp16=True), r"run\(\) .* 'fp16'; it is one of load\(\)"),
    ],
)
def test_an_unknown_argument_is_a_type_error_that_suggests(folder, call, why):
    with pytest.raises(TypeError, match=why) as caught:
        call()
    assert isinstance(caught.value, serde.UsageError)


CASES = {  # of one message: what Python is told, and the command
    "unknown word": (
        {"weights": "int3"}, ["--weights", "int3"],
        "weights='int3' is not one of fp16, bf16, int8", "'--weights': 'int3' is not one of fp16, bf16, int8",
    ),
    "a profile": (
        {"profile": "trt"}, ["--profile", "trt"],
        "profile='trt' is not one of .*; did you mean tensorrt", "did you mean tensorrt",
    ),
    "a size": (
        {"static": {"N": 0}}, ["--static", "N=0"],
        "^static=N=0: the least is 1$", "serde: --static=N=0: the least is 1\n",
    ),
    "advice": (
        {"profile": "npu-static"}, ["--profile", "npu-static"],
        r"give its sizes \(inputs=, static=\)$", "give its sizes (--input, --static)\n",
    ),
    "another format's": (
        {"epoch": 1}, ["--epoch", "1"],
        "takes no option epoch= here; it takes keep_domain=", "takes no option --epoch here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_message_names_what_its_reader_can_give(folder, name):
    keywords, flags, in_python, in_command = CASES[name]
    with pytest.raises(serde.UsageError, match=in_python):
        serde.convert("a.onnx", "b.onnx", **keywords)
    code, shown = command("convert", "a.onnx", "-o", "b.onnx", *flags)
    assert code == 2 and in_command in shown


def test_a_target_of_a_check_is_named(folder):
    with pytest.raises(serde.UsageError, match="^to='trt' is not one of .*; did you mean tensorrt"):
        serde.check("a.onnx", to="trt")


def test_problems_and_reports_name_arguments(folder):
    body = "g (float[N,3] x, float[1,3] w) => (float[N,3] y) { y = Add(x, w) }"
    onnx.save(model_of(body), "s.onnx")
    report = serde.check("s.onnx", to="qnn")
    assert any("static=, inputs=" in p.reason for p in report.problems)
    with pytest.raises(Unconvertible, match=r"\(static=, inputs=\)") as caught:
        serde.convert("s.onnx", "b.onnx", profile="qnn")
    assert any("static=" in p.reason for p in caught.value.report.problems)
    assert (
        "(--static, --input)" in command("convert", "s.onnx", "-o", "b.onnx", "--profile", "qnn")[1]
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("give numbers (--static, --input)", "give numbers (static=, inputs=)"),
        ("say which with --from", "say which with from_format="),
        ("pip install --no-deps mxnet", "pip install --no-deps mxnet"),
        ("x--input", "x--input"),
        ("with --hash, --write-epoch 3", "with hash_weights=, write_epoch=3"),
        ("as in --input x=6,5?", "as in inputs={'x': (6, 5)}?"),
        ("--input x=6", "inputs={'x': (6,)}"),
        ("as --input x=6 --input y=N --input z=1", "as inputs={'x': (6,), 'y': ('N',), 'z': (1,)}"),
        ("(--static N=…, --input)", "(static={'N': '…'}, inputs=)"),
        ("--rebatch x=1:N.", "rebatch={'x': (1, 'N')}."),
        ("--rebatch x=1", "rebatch={'x': 1}"),
        ("with --random onnx the runtime", "with random='onnx' the runtime"),
        ("--random=onnx draws them", "random=onnx draws them"),
        ("give --fp16 as well", "give fp16= as well"),
        ("--static=N=0: the least is 1", "static=N=0: the least is 1"),
        ("give --fp32.", "give fp32=."),
        ("--inputs", "--inputs"),
    ],
)
def test_flags_are_respelled(text, told):
    error = respell(MalformedFile("a", text))
    assert str(error) == f"a: {told}"
    assert str(respell(MalformedFile("a", Listing(["head", text])))) == f"a: head\n{told}"
    problem = Unconvertible("s", [Problem("Add", {}, text, ("y",))])
    respell(problem)
    assert problem.problems[0].reason == told and told in str(problem)


def test_flags_stand_for_the_arguments_of_a_function():
    assert list_flags(["source", "format"])["--from"] == "format"
    assert list_flags(["from_format", "to"])["--to"] == "to"


def test_notes_of_a_graph_name_arguments(folder):
    x = np.zeros((1, 1, 8, 8), np.float32)
    graph = serde.trace(lambda a: a + 1, x)
    assert respell(graph) is graph


def test_an_unknown_argument_is_of_both_kinds():
    assert issubclass(UnknownArgument, TypeError) and issubclass(UnknownArgument, serde.UsageError)


SCALARS = {  # options as NumPy computes them
    "convert": {"opset": np.int64(13), "verify": np.True_, "rtol": np.float32(1e-3),
                "static": {"N": np.int64(4)}, "fp16": np.False_},
    "check": {"opset": np.int8(13), "to": np.str_("onnx")},
    "verify": {"seed": np.int32(1), "atol": np.float16(1e-3)},
    "compare": {"layers": np.False_, "seed": np.int64(3)},
    "partition": {"max_parts": np.int64(1), "min_nodes": np.uint8(1)},
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_of_numpy_are_options(name, folder):
    more = {"convert": ["b.onnx"], "verify": ["a.onnx"], "compare": ["a.onnx"],
            "partition": ["opset 13"]}.get(name, [])  # fmt: skip
    known = inspect.signature(getattr(serde, name)).parameters
    options = {n: v for n, v in SCALARS[name].items() if n in known}
    assert options
    assert getattr(serde, name)("a.onnx", *more, **options)
    if name == "convert":
        (value,) = onnx.load("b.onnx").graph.input
        assert [d.dim_value for d in value.type.tensor_type.shape.dim] == [4, 3]


def test_a_text_is_no_array(folder):
    """The name of a file, say."""
    for inputs in ("in.npz", {"x": "in.npz"}, {"x": np.array(["a"])}):
        with pytest.raises(UsageError, match="takes float32, and not .*np.load reads"):
            serde.run("a.onnx", inputs)


def test_a_profile_is_no_format(folder):
    with pytest.raises(SerdeError, match="it is a profile of onnx: profile='tensorrt'"):
        serde.convert("a.onnx", "b.onnx", to_format="tensorrt")
