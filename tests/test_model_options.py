"""Options of some of many models, from a file."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.api.migrate import migrate
from serde.api.migrate.model_options import OF_CONVERT, choose_options, read_config
from serde.cli.commands import main
from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.io.toml import read_toml
from serde.plugins import get_format, read_classes, written_formats
from serde.plugins.options import merge_options
from testing.cpu_limit import limit_cpu
from testing.onnx_live import model_of

TOML = """
["*"]
opset = 13
["vision/*-symbol.json"]
input = ["data=N,3,H,W:float16", "mask=N,4"]
match-params = true
outputs = "fc1, fc2"
params = "w.params"
static = { N = 2 }
["vision/last*"]
opset = 17
inputs = { data = "N,3", other = [1, 2] }
set_inputs = { rate = 16000 }
rtol = 1e-3
"""
EXPECTED = {
    "a.onnx": {"opset": 13},
    "vision/first-symbol.json": {
        "opset": 13, "inputs": {"data": [["N", 3, "H", "W"], "float16"], "mask": ["N", 4]},
        "match_params": True, "outputs": ["fc1", "fc2"], "params": "w.params", "static": {"N": 2},
    },
    "vision/last-symbol.json": {
        "opset": 17, "inputs": {"data": ["N", 3], "other": [1, 2]}, "match_params": True,
        "outputs": ["fc1", "fc2"], "params": "w.params", "static": {"N": 2},
        "set_inputs": {"rate": 16000}, "rtol": 1e-3,
    },
}  # fmt: skip
ONNX = get_format("onnx")


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", ["toml", "json", "yaml"])
def test_tables_apply_in_their_order(suffix, tmp_path):
    path = write(tmp_path / f"models.{suffix}", TOML)
    if suffix != "toml":  # JSON is YAML
        pytest.importorskip("yaml" if suffix == "yaml" else "json")
        path.write_text(json.dumps(read_toml(path)[1]))
    tables = read_config(path, ONNX)
    for relative, options in EXPECTED.items():
        files = {"params": str(tmp_path / "w.params")} if "params" in options else {}
        assert choose_options(tables, relative) == options | files
    assert [t.pattern for t in read_config({"*": {"opset": 13}}, ONNX)] == ["*"]


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("[a]\nopset = 'x'", UsageError, "'a': --opset"),
        ("[a]\nspeed = 1", UsageError, "'a': there is no option 'speed'"),
        ("[a]\nopsett = 1", UsageError, "there is no option 'opsett'; did you mean opset"),
        ("[a]\nverify = 1", UsageError, "--verify=1 is not one of outputs, layers"),
        ("[a]\nrtol = 'x'", UsageError, "--rtol"),
        ("[a]\nrules = 1", UsageError, "there is no option 'rules'"),
        ("[a]\ninput = 'data'", UsageError, "not NAME=DIMS"),
        ("[a]\nweights = 'int4'", UsageError, "is not one of fp16, bf16, int8"),
        ("[a]\nparams = 1", UsageError, "give the name of a file"),
        ('[a]\nlabels = "\\u0000"', UsageError, "is the name of no file"),
        ("[a]\nimages = 1", UsageError, "--images|images=1 is not a mapping"),
        ("[a]\ninput = 5", UsageError, "--input=5 is not a mapping"),
        ("[a]\ninput = [[1]]", UsageError, "--input"),
        ("[a]\nfp16 = 'no'", UsageError, "--fp16='no' is neither True nor False"),
        ("[a]\ntvm = 0.10", UsageError, "--tvm=0.1 is no text: give it in quotes"),
        ("a = 1", UsageError, "'a' is 1: give a table of options"),
        ("[a", MalformedFile, "not TOML"),
    ],
)
def test_what_means_nothing_is_refused(text, error, reason, tmp_path):
    with pytest.raises(error, match=reason):
        read_config(write(tmp_path / "m.toml", text), ONNX)


def test_images_that_are_null_are_none():
    (table,) = read_config({"*": {"images": None, "mean": {"x": 1}}}, ONNX)
    assert table.options == {"images": {"mean": {"x": 1}}}


def test_other_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"end it with \.toml, \.json"):
        read_config(write(tmp_path / "m.txt", ""), ONNX)
    with pytest.raises(MalformedFile, match="there is no such file"):
        read_config(tmp_path / "absent.toml", ONNX)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingDependency, match="pip install pyyaml, or write TOML or JSON"):
        read_config(write(tmp_path / "m.yaml", ""), ONNX)


def test_each_model_has_its_own(tmp_path):
    for name in ("a", "b"):
        text = "g (float[N,3] x) => (float[N,3] y) { h = Relu(x)\n y = Tanh(h) }"
        (tmp_path / "in").mkdir(exist_ok=True)
        onnx.save(model_of(text, 17, 8), tmp_path / "in" / f"{name}.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones((5, 3), np.float32))
    config = write(
        tmp_path / "m.toml",
        '["a*"]\nopset = 12\noutputs = ["h"]\ndata = "data.npz"\n[none]\nopset = 9\n',
    )
    arguments = ["migrate", tmp_path / "in", "-o", tmp_path / "out", "--jobs", "1",
                 "--config", config]  # fmt: skip
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    assert "verified" in result.output and "passed over none: the pattern of" in result.output
    a, b = (onnx.load(tmp_path / "out" / f"{n}.onnx") for n in "ab")
    assert (a.opset_import[0].version, b.opset_import[0].version) == (12, 17)
    assert ([o.name for o in a.graph.output], [o.name for o in b.graph.output]) == (["h"], ["y"])
    config.write_text('["b*"]\nopset = 11\n')
    again = migrate([tmp_path / "in"], tmp_path / "out", config=config, jobs=1)
    assert again.resumed == 0  # both have other options than before
    assert migrate([tmp_path / "in"], tmp_path / "out", config=config, jobs=1).resumed == 2


def test_a_refusal_tells_of_the_file(tmp_path):
    (tmp_path / "in").mkdir()
    nodes = [{"op": "null", "name": "x", "inputs": []},
             {"op": "Flatten", "name": "y", "inputs": [[0, 0, 0]]}]  # fmt: skip
    symbol = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}
    write(tmp_path / "in" / "m-symbol.json", json.dumps(symbol))
    arguments = ["migrate", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--jobs", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and "are given in a file: --config FILE" in result.output
    config = write(tmp_path / "m.json", json.dumps({"m-*": {"input": "x=N,3,4"}}))
    assert CliRunner().invoke(main, [*arguments, "--config", str(config)]).exit_code == 0


@pytest.mark.parametrize(("suffix", "text"), [
    ("toml", ".".join("a" * 20_000) + " = 1"), ("toml", "a = " + "{b=" * 3000),
    ("toml", '"*" = {opset = 0x' + "f" * 5000 + "}"), ("json", '{"*": {"opset": ' + "9" * 5000 + "}}"),
    ("yaml", '"*": {opset: ' + "1:" * 20_000 + "1}"), ("yaml", '"*": {opset: 0x' + "f" * 5000 + "}"),
    ("yaml", '"*": [' + "1," * 500_000 + "]"), ("yaml", '"*":\n' + "- - 1\n" * 100_000),
    ("yaml", '"*": {' + "a: {" * 20_000), ("yaml", "a: " + "b" * (1 << 20)),
    ("yaml", '"*": {3: 4}'), ("yaml", '"*": {null: 4}'), ("yaml", "a: &a [*a]"),
])  # fmt: skip
def test_what_no_table_needs_is_refused_quickly(suffix, text, tmp_path):
    if suffix == "yaml":
        pytest.importorskip("yaml")
    path = write(tmp_path / f"models.{suffix}", text)
    with limit_cpu(1), pytest.raises((MalformedFile, UsageError)):
        read_config(path, ONNX)


# What the command says of the whole run, and where results and reports go.
OF_RUN = {"output", "to", "report", "quiet", "debug", "isolate", "verify-strict", "max-seconds",
          "max-memory", "max-file-size"}  # fmt: skip
OF_KIND = {"flag": True, "text": "a", "file": "a.npz", "integer": 1, "number": 0.1, "names": "a,b",
           "types": "a=1,2", "sizes": "a=1", "values": {"a": 1}, "renames": "a=b",
           "texts": "a=b", "batch": 2}  # fmt: skip
OF_IMAGES = {"mean": "a=1,2,3", "std": "a=2", "scale": "a=0.1", "bgr": "a", "layout": "a=NHWC:uint8",
             "labels": ["a"]}  # fmt: skip


def sample_of(name, known):
    if name in OF_IMAGES:
        return OF_IMAGES[name]
    if name == "from":
        return "onnx"
    choices = [*known[name].list_choices().values()]
    return choices[0] if choices and known[name].kind != "names" else (
        choices[:1] if choices else OF_KIND[known[name].kind]
    )  # fmt: skip


def test_every_option_of_convert_can_be_given_for_some_models():
    for target in map(get_format, written_formats()):
        classes = [*read_classes(), target.write_options, *OF_CONVERT]
        known = {o.all_flags[0].lstrip("-"): o for o in merge_options(classes).values()}
        others = {f.lstrip("-") for n in written_formats() for o in merge_options(
            [get_format(n).write_options]).values() for f in o.all_flags} - known.keys()  # fmt: skip
        for option in main.commands["convert"].params:
            name = option.opts[-1].removeprefix("--")
            if name in OF_RUN | others or option.opts[0] == "source":
                continue
            if name == "cut-outputs":
                name = "outputs"
            assert read_config({"*": {name: sample_of(name, known)}}, target)[0].options, name


def test_a_model_is_compared_or_prepared_for_images_by_its_own_options(tmp_path):
    text = "g (float[N,3,4,4] image) => (float[N,2] y) <int64[2] a = {2, 3}, float[3,2] w = {1,2,3,4,5,6}> "
    text += "{ m = ReduceMean<keepdims=0>(image, a) y = MatMul(m, w) }"
    for name in ("a", "b"):
        onnx.save(model_of(text, 18, 8), tmp_path / f"{name}.onnx")
    (tmp_path / "labels.txt").write_text("cat\n\ndog\n")
    config = write(
        tmp_path / "c.toml",
        """
    ["a.onnx"]
    verify = "layers"
    mean = "image=127.5"
    scale = { image = 0.5 }
    labels = "labels.txt"
    from = "onnx"
    """,
    )
    found = migrate([str(tmp_path)], str(tmp_path / "out"), jobs=1, config=config)
    assert [row.status for row in found.rows] == ["verified", "converted"]
    labelled = onnx.load(tmp_path / "out/a.onnx")
    assert [v.name for v in labelled.graph.output] == ["y", "label"]
