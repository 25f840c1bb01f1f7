"""Arguments that mean nothing, on the command line and in Python; output of any encoding."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde import api
from serde.cli.commands import main
from testing.onnx_live import ir_of, model_of, run_model

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
DONE, FAILED, USAGE, UNREADABLE, SYSTEM = 0, 1, 2, 3, 5
SERDE = [sys.executable, "-c", "from serde.cli.commands import main; main()"]
OTHER = "g (float[N,3] a, float[N,3] b) => (float[N,3] z) { z = Add(a, b) }"
SCALED = "g (float[N,3] x, float k) => (float[N,3] y) { y = Mul(x, k) }"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of(SCALED, 17, 8), "scaled.onnx")
    onnx.save(model_of(OTHER, 17, 8), "other.onnx")
    return tmp_path


def command(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result.exit_code, result.output


NONSENSE = {
    "a batch below 0": ("--rebatch", "-3"),
    "a batch of 0": ("--rebatch", "0"),
    "a batch beyond 64 bits": ("--rebatch", 2**63),
    "a batch that is no name": ("--rebatch", "a;b"),
    "no batch": ("--rebatch", ""),
    "a named size of 0": ("--static", "H=0"),
    "a named size below 0": ("--static", "H=-1"),
    "a named size beyond 64 bits": ("--static", f"H={2**63}"),
    "a named size twice": ("--static", "H=8", "--static", "H=8"),
    "a dimension of 0": ("--input", "data=0,1,8,8"),
    "a dimension None": ("--input", "data=None,1,8,8"),
    "a dimension beyond 64 bits": ("--input", f"data={2**63},1,8,8"),
    "no shape": ("--input", "data="),
    "an input twice": ("--input", "data=1,1,8,8", "--input", "data=2,1,8,8"),
    "no outputs": ("--outputs", ""),
    "outputs of no name": ("--outputs", ","),
    "an output twice": ("--outputs", "fc1,fc1"),
    "no cut": ("--cut-inputs", ""),
    "a time limit of nothing": ("--max-seconds", "10"),
    "a memory limit of nothing": ("--max-memory", "100"),
    "a time limit of 0": ("--isolate", "--max-seconds", "0"),
    "a memory limit too small to begin": ("--isolate", "--max-memory", "1"),
    "a memory limit beyond numbers": ("--isolate", "--max-memory", "9" * 20),
    "a time limit beyond numbers": ("--isolate", "--max-seconds", "9" * 20),
    "a time limit that is none": ("--isolate", "--max-seconds", "nan"),
    "a file size of 0": ("--isolate", "--max-file-size", "0"),
    "a file size of nothing": ("--max-file-size", "10"),
    "a memory limit below 0": ("--isolate", "--max-memory", "-5"),
    "a value of nothing": ("--set-input", "data"),
    "a value that is none": ("--set-input", "data=much"),
    "a value of another rank": ("--set-input", "data=[[1,2]]", "--input", "data=1,1,8,8"),
    "a value of no input": ("--set-input", "image=1"),
    "an input set twice": ("--set-input", "data=1", "--set-input", "data=1"),
    "a name for two dimensions": ("--static", "Q=3"),
    "an opset of 0": ("--opset", "0"),
    "an opset below 0": ("--opset", "-17"),
    "an epoch below 0": ("--epoch", "-1"),
    "a new name that is no text": ("--rename", "data=\udcff"),
    "a dimension that is no text": ("--input", "data=\udcff,1,8,8"),
    "a custom domain that is no text": ("--custom-domain", "\udcff"),
    "an IR version of 0": ("--ir-version", "0"),
    "a report that is the model": ("--report", "d.onnx"),
}


@pytest.mark.parametrize("arguments", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(arguments):
    code, output = command("convert", "digits", "-o", "d.onnx", *arguments)
    assert code == USAGE, output
    assert "internal error" not in output and "Traceback" not in output
    assert not Path("d.onnx").exists()


def test_an_empty_source_is_refused():
    assert command("convert", "", "-o", "d.onnx")[0] == USAGE


def test_data_implies_a_comparison():
    np.savez("x.npz", x=np.float32([[1, 2, 3]]), k=np.float32(2))
    code, output = command("convert", "scaled.onnx", "-o", "s.onnx", "--data", "x.npz")
    assert code == DONE and "verification against onnx, the inputs given" in output


ARGUMENTS = {
    "inputs that are text": ({"inputs": "data=N,8"}, "inputs='data=N,8' is not a mapping, such as"),
    "outputs that are text": ({"outputs": "fc"}, "outputs='fc' is not a list of names"),
    "no outputs": ({"outputs": []}, r"outputs=\[\] names nothing"),
    "an output twice": ({"outputs": ["fc1", "fc1"]}, r"outputs=\['fc1', 'fc1'\] has 'fc1' twice"),
    "an opset that is text": ({"opset": "13"}, "opset='13' is not an integer"),
    "an opset that is a float": ({"opset": 13.0}, "opset=13.0 is not an integer"),
    "an opset that is true": ({"opset": True}, "opset=True is not an integer"),
    "an IR version that is text": ({"ir_version": "8"}, "ir_version='8' is not an integer"),
    "an unknown option": ({"opsets": 13}, "no argument 'opsets'; did you mean opset"),
    "another unknown option": ({"qqq": 13}, "no argument 'qqq'"),
    "a batch of 0": ({"rebatch": 0}, "rebatch=0: the least is 1"),
    "a batch that is a float": ({"rebatch": 2.5}, "rebatch=2.5 is not an integer"),
    "static sizes as a list": ({"static": [1]}, r"static=\[1\] is not a mapping"),
    "a static size of 0": ({"static": {"N": 0}}, "the least is 1"),
    "a size below 0": ({"inputs": {"data": (-3, 1, 8, 8)}}, "-3 is no size"),
    "names that are text": ({"rename": "a=b"}, "rename='a=b' is not a mapping"),
    "values that are text": ({"set_inputs": "k=1"}, "set_inputs='k=1' is not a mapping"),
    "an epoch that is text": ({"epoch": "3"}, "epoch='3' is not an integer"),
}


@pytest.mark.parametrize(("options", "why"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_of_python(options, why):
    with pytest.raises(serde.UsageError, match=why):
        serde.convert("digits-symbol.json", "d.onnx", **options)
    assert not Path("d.onnx").exists()


class TestGraphs:
    def test_a_graph_converts(self):
        graph = serde.load("digits-symbol.json", inputs={"data": ("N", 1, 8, 8)})
        report = serde.convert(graph, "g.onnx", opset=13, static={"N": 2})
        assert report.source_format == "onnx" and report.source == graph.name
        serde.convert("digits-symbol.json", "m.onnx", opset=13, inputs={"data": (2, 1, 8, 8)})
        x = np.random.default_rng(0).normal(size=(2, 1, 8, 8)).astype(np.float32)
        both = [run_model(onnx.load(n), {"data": x})[0] for n in ("g.onnx", "m.onnx")]
        np.testing.assert_array_equal(*both)

    def test_a_graph_of_a_format_converts(self):
        graph, _ = api.read("digits-symbol.json")
        report = serde.convert(graph, "g.onnx")
        assert report.source_format == "mxnet" and report.operators["Conv"] == 2

    def test_a_graph_is_checked_and_loaded(self):
        graph = ir_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
        assert serde.check(graph).ok
        assert serde.load(graph, inputs={"x": (4, 3)}).outputs[0].shape == (4, 3)

    def test_a_graph_takes_no_parameters(self):
        graph = ir_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
        with pytest.raises(serde.UsageError, match="takes no option params= here"):
            serde.load(graph, params="x.params")


class TestSetInput:
    @pytest.mark.parametrize("value", ["2.5", "-3", "1e3"])
    def test_a_number_is_folded(self, value):
        code, output = command(
            "convert", "scaled.onnx", "-o", "s.onnx", "--set-input", f"k={value}"
        )
        assert code == DONE, output
        model = onnx.load("s.onnx")
        assert [i.name for i in model.graph.input] == ["x"]
        x = np.float32([[1, -2, 3]])
        np.testing.assert_array_equal(run_model(model, {"x": x})[0], x * np.float32(value))

    def test_an_array_gives_its_sizes_to_names(self):
        np.save("x.npy", np.ones((4, 3), np.float32))
        code, output = command("convert", "scaled.onnx", "-o", "s.onnx", "--set-input", "x=x.npy")
        assert code == DONE and "output y: float32 (4, 3)" in output

    def test_an_input_of_mxnet(self):
        code, output = command("convert", "digits", "-o", "d.onnx", "--set-input", "data=0.5",
                               "--input", "data=1,1,8,8")  # fmt: skip
        assert code == DONE, output
        assert not onnx.load("d.onnx").graph.input


class TestVerification:
    """Sources with inputs that were set, and Graphs, are compared as well."""

    def test_inputs_that_were_set(self):
        code, output = command("convert", "scaled.onnx", "-o", "s.onnx", "--set-input", "k=2.5",
                               "--verify-strict")  # fmt: skip
        assert code == DONE and ": pass" in output, output

    def test_inputs_of_mxnet_that_were_set(self):
        np.save("x.npy", np.ones((2, 1, 8, 8), np.float32))
        code, output = command("convert", "digits", "-o", "d.onnx", "--set-input", "data=x.npy",
                               "--input", "data=2,1,8,8", "--verify-strict")  # fmt: skip
        assert code == DONE and ": pass" in output, output

    def test_a_graph(self):
        graph = serde.load("digits-symbol.json", inputs={"data": ("N", 1, 8, 8)})
        comparison = serde.convert(graph, "g.onnx", opset=11, verify=True).verification
        assert comparison.done and comparison.ok

    def test_a_graph_of_a_framework_is_not(self):
        graph, _ = api.read("digits-symbol.json")
        comparison = serde.convert(graph, "g.onnx", verify=True).verification
        assert not comparison.done and "convert the mxnet file instead" in comparison.statement


DRAWING = {
    "nodes": [{"op": "_random_uniform", "name": "noise", "inputs": [], "attrs": {"shape": "(2,3)"}}],
    "arg_nodes": [], "heads": [[0, 0, 0]],
}  # fmt: skip


@pytest.mark.parametrize(
    "command, lacks",
    [("compare m-symbol.json m-symbol.json", "compare"), ("join m-symbol.json m-symbol.json -o j.onnx", "join"),
     ("convert m-symbol.json -o m.onnx", ""), ("check m-symbol.json", "")],
)  # fmt: skip
def test_advice_of_an_option_that_the_command_lacks_tells_which_has_it(
    command, lacks, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("m-symbol.json").write_text(json.dumps(DRAWING))
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 1 and "--random input" in result.output
    line = (
        f"--random is an option of serde convert: convert the model first, and {lacks} the result\n"
    )
    assert result.output.endswith(line) == bool(lacks)
    assert ("an option of" in result.output) == bool(lacks)


ZEROS = np.zeros((1, 3), np.float32)
MISTAKES = {  # what people type, and what they are told
    "sizes with an x": ("convert scaled.onnx -o s.onnx --input x=1x3", "separated by commas, as in"),
    "no element type": ("convert scaled.onnx -o s.onnx --input x=1,3:f33", "such as float32, float16"),
    "a number for many": ("convert scaled.onnx -o s.onnx --set-input x=5", "set its sizes by --input"),
    "outputs without inputs": ("convert scaled.onnx -o s.onnx --expected x.npz", "give --data too"),
    "a file as a folder": ("convert scaled.onnx -o scaled.onnx/s.onnx", "scaled.onnx is no folder"),
    "a folder as a file": ("convert scaled.onnx -o .", ". is a folder: name a file in it, that ends"),
    "a profile as a format": ("convert scaled.onnx -o s.onnx --to tensorrt",
                              "it is a profile of onnx: --profile tensorrt"),
    "another name of a profile": ("convert scaled.onnx -o s.onnx --to trt",
                                  "it is a profile of onnx: --profile tensorrt"),
    "another suffix": ("convert scaled.onnx -o s.pt", ".py (PyTorch)"),
    "the suffix of another": ("convert scaled.onnx -o s.tflite --to onnx", "end it with .onnx"),
    "code that is not there": ("wrap scaled.onnx -o s.onnx --pre p.py:f", "p.py: there is no such file"),
    "an option of another format": ("convert scaled.onnx -o s.tflite --opset 9",
                                    "; it takes --channels-last, --profile, --tflite"),
    "options that a command lacks": ("check scaled.onnx --to relay --opset 9",
                                     "relay takes no option --opset here; it takes none\n"),
    "models that nothing connects": ("join scaled.onnx other.onnx -o s.onnx",
                                     "say which are connected, as --connect y=a"),
    "models that do not fit": ("join scaled.onnx scaled.onnx -o s.onnx --connect y=k",
                               "the first model's y: float32[N,3] does not fit the second one's k"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "advice"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_with_what_to_do(line, advice):
    np.savez("x.npz", x=ZEROS)
    before = sorted(os.listdir())
    code, output = command(*line.split())
    assert code == USAGE and advice in output
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("name", ["float", "fp32"])
def test_float_is_that_of_onnx(name):
    assert command("convert", "scaled.onnx", "-o", "s.onnx", "--input", f"x=2,3:{name}")[0] == DONE


CALLS = {
    "a target of nothing": (lambda: serde.convert("scaled.onnx", None), "convert() takes the path of a"),
    "a source of nothing": (lambda: serde.load(None), "a NoneType: a model is the path of a file, a Graph"),
    "a path for a graph": (lambda: serde.save("scaled.onnx", "s.onnx"), "save() takes a Graph, as serde.load"),
    "a graph by its path": (lambda: serde.select("scaled.onnx", ["y"]), "and not 'scaled.onnx'"),
    "the type first": (lambda: serde.convert("scaled.onnx", "s.onnx", inputs={"x": ("float32", (2, 3))}),
                       "give a shape, as (2, 3), or with its type, ((2, 3), 'uint8')"),
    "an array for all": (lambda: serde.convert("scaled.onnx", "s.onnx", data=ZEROS), "a mapping by name"),
    "data of another type": (
        lambda: serde.convert("scaled.onnx", "s.onnx", data={"x": ZEROS, "k": np.float64(2)}),
        "the input 'k' is float32, and not float64: convert the array with .astype('float32')"),
    "an array of another shape": (lambda: serde.run("scaled.onnx", {"x": ZEROS.T, "k": 2.0}),
                                  "the input 'x' is (N, 3), and not (3, 1)"),
    "images by input": (lambda: serde.convert("scaled.onnx", "s.onnx", images={"mean": 3}), "mean=3 is not a"),
    "a number for code": (lambda: serde.wrap("scaled.onnx", pre=3), "3 is neither a function nor"),
    "outputs without inputs": (lambda: serde.convert("scaled.onnx", "s.onnx", expected={"y": ZEROS}),
                               "give data= too"),
    "models that nothing connects": (lambda: serde.compose("scaled.onnx", "other.onnx"),
                                     "say which are connected, as connections={'y': 'a'}"),
    "text for threads": (lambda: serde.prepare("scaled.onnx", threads="2"), "threads='2' is not an integer"),
    "the name of others": (lambda: serde.convert("scaled.onnx", "s.onnx", opset_version=13), "mean opset?"),
    "a name of none": (lambda: serde.check("scaled.onnx", qqq=1), "and the options of docs/reference/cli.md"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "advice"), CALLS.values(), ids=CALLS)
def test_a_wrong_call_is_answered_with_what_to_do(call, advice):
    with pytest.raises(serde.SerdeError) as caught:
        call()
    assert advice in str(caught.value) and "\n" not in str(caught.value)
    assert not Path("s.onnx").exists()


def test_two_graphs_are_compared_by_their_names():
    graph = serde.load("scaled.onnx")
    assert serde.compare(graph, "scaled.onnx").first == graph.name
