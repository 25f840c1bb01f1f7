"""``serde partition``, ``serde check --backend`` and ``serde backend check``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.partition_commands import parse_runtimes
from testing.onnx_live import DIGITS, model_of
from tests.command import run_command


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--verify --runtime part=onnxruntime", "no part is called 'part'"),
        ("--verify --runtime accelerator=none", "no runtime is called 'none'"),
        ("--verify --runtime accelerator=mxnet", "a file of onnx, which mxnet does not run"),
        ("--runtime accelerator=onnxruntime", "give --verify too"),
        ("--data none.npz", "there is no such file"),
        ("--svg none/parts.svg", "does not exist"),
    ],
)
def test_nothing_is_written_where_the_parts_cannot_be_verified(tmp_path, options, why):
    folder = tmp_path / "parts"
    line = ["partition", str(DIGITS), "--backend", "examples/backends/toy.toml", "-o", str(folder)]
    result = CliRunner().invoke(main, [*line, *options.split()])
    assert result.exit_code and why in result.output and not folder.exists()
    assert CliRunner().invoke(main, line).exit_code == 0
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    assert CliRunner().invoke(main, [*line, *options.split(), "--max-parts", "1"]).exit_code
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == before


def test_the_commands(tmp_path):
    folder, picture = tmp_path / "parts", tmp_path / "parts.svg"
    line = ["partition", str(DIGITS), "-o", str(folder), "--backend", "examples/backends/toy.toml"]
    result = CliRunner().invoke(
        main, [*line, "--verify", "--svg", str(picture), "--max-parts", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "1 for toy of 2 parts" in result.output and result.output.count("pass") == 1
    assert picture.read_text().count("<rect") == 3
    np.savez(tmp_path / "x.npz", data=np.zeros((1, 1, 8, 8), np.float32))
    line = ["run", str(folder), "--data", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz")]
    result = CliRunner().invoke(main, [*line, "--runtime", "accelerator=onnxruntime"])
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "y.npz") as outputs:
        assert outputs["softmax_output"].shape == (1, 10)


WRONG = """name = "x"
opset = 17
[[operators]]
names = ["Relu", "Convv"]
[[operators]]
names = ["Softmax"]
attributes.axis = ["lst"]
"""


def test_a_description_is_checked_line_by_line(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(WRONG)
    done = CliRunner().invoke(main, ["backend", "check", str(path)])
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        f"{path}, line 4: opset 17 has no operator 'Convv'; did you mean Conv?",
        f"{path}, line 7: axis has no axis 'lst'; did you mean last?",
    ]
    path.write_text(WRONG.replace("Convv", "Conv").replace("lst", "last"))
    done = CliRunner().invoke(main, ["backend", "check", str(path)])
    assert done.exit_code == 0 and "x has 3 operators of opset 17" in done.output


SINES = "g (float[N,3] x) => (float[N,3] y) { t = Relu(x) u = Sin(t) y = Relu(u) }"
RELUS = 'name = "r"\nopset = 17\n[[operators]]\nnames = ["Relu"]\n'


@pytest.fixture
def sines(tmp_path, monkeypatch):
    """A model of which a backend takes two nodes of three, and its description."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of(SINES, 17, 8), "m.onnx")
    Path("r.toml").write_text(RELUS)


def test_what_a_backend_takes_is_told_by_operator(sines):
    code, out, _ = run_command("check", "m.onnx", "--backend", "r.toml")
    first, *lines = out.splitlines()
    assert code == 0 and first.startswith("m.onnx: r takes 66.7% of the nodes, ")
    assert "  Relu ×2: 2 taken" in lines and "  Sin ×1: not taken" in lines
    code, out, _ = run_command("check", "m.onnx", "--backend", "r.toml", "--json")
    document = json.loads(out)
    assert document["source"] == "m.onnx" and document["share_of_nodes"] == pytest.approx(2 / 3)
    assert {row["op"]: row["offloaded"] for row in document["operators"]} == {"Relu": 2, "Sin": 0}


def test_parts_and_their_operators_are_printed(sines):
    code, out, _ = run_command("partition", "m.onnx", "-o", "p", "--backend", "r.toml")
    first, *parts = out.splitlines()
    assert code == 0 and first.startswith("m.onnx → p: 2 for r of 3 parts, ")
    assert [line.split(":")[1].split(",")[0] for line in parts] == [" 1 nodes"] * 3


@pytest.mark.parametrize("pair", ["accelerator", "=onnxruntime", "remainder=", ""])
def test_a_runtime_is_named_by_role(sines, pair):
    command = ("partition", "m.onnx", "-o", "p", "--backend", "r.toml", "--verify")
    code, _, err = run_command(*command, "--runtime", pair)
    assert code == 2 and f"{pair!r} is not ROLE=NAME" in err and not Path("p").exists()
    assert parse_runtimes(("a=b", "c=d=e")) == {"a": "b", "c": "d=e"}


def test_the_name_of_a_description_gives_way_to_a_file_of_that_name(sines):
    code, out, _ = run_command("backend", "check", "openvino")
    assert code == 0 and out.startswith("openvino: openvino has ")
    Path("openvino").write_text(RELUS)
    code, out, _ = run_command("backend", "check", "openvino")
    assert code == 0 and out.startswith("openvino: r has 1 operators of opset 17")
