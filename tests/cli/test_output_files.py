"""Options that name a file to write: none destroys a file of another kind that is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import TargetRefused
from serde.plugins import get_format, written_formats

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOREIGN = "# what a user wrote\n"
ENDS_LIKE_NOTHING_ELSE = ("-symbol.json",)  # a file of this name is a model, or is damaged
# What is typed for each option that names one file, and endings of the file.
CASES = {
    "check --report": (("check", "digits"), ("", ".html", ".md", ".json")),
    "compare --report": (("compare", "digits.onnx", "digits.onnx"), ("", ".html", ".md", ".json")),
    "convert --output": (
        ("convert", "digits", "--input", "data=1,1,8,8"),
        tuple(
            s
            for name in written_formats()
            for s in get_format(name).suffixes
            if s not in ENDS_LIKE_NOTHING_ELSE
        ),
    ),
    "convert --report": (("convert", "digits", "-o", "d.onnx"), ("", ".html", ".md", ".json")),
    "join --output": (("join", "digits.onnx", "next.onnx"), (".relay", ".py")),
    "partition --svg": (("partition", "digits", "-o", "d", "--backend", "opset 17"), ("", ".svg")),
    "repair --output": (("repair", "digits.onnx"), ("", ".txt")),
    "run --output": (("run", "digits.onnx", "--data", "test.npz"), (".npz",)),
    "view --output": (("view", "digits", "--no-browser"), (".html",)),
    "wrap --output": (("wrap", "digits.onnx", "--post", "post.py:f"), (".relay", ".py")),
}
FOLDERS = {"migrate --output", "partition --output"}  # tests of theirs look into folders


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for path in (EXAMPLES / "digits").glob("*[snz]"):
        shutil.copy(path, tmp_path)
    (tmp_path / "post.py").write_text("def f(x):\n    return x + 1\n")
    monkeypatch.chdir(tmp_path)
    serde.convert("digits", "digits.onnx")
    serde.save(
        serde.trace(lambda softmax_output: softmax_output * 2, (("N", 10), "float32")), "next.onnx"
    )


def run(*arguments):
    result = CliRunner().invoke(main, [*arguments])
    return result.exit_code, result.output


def test_every_option_that_names_a_file_to_write_has_a_case():
    named = {
        f"{name} {parameter.opts[-1]}"
        for name, command in main.commands.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and {"-o", "--report", "--svg"} & {*parameter.opts}
    }
    assert named == CASES.keys() | FOLDERS


@pytest.mark.parametrize(
    ("case", "suffix"), [(case, s) for case, (_, suffixes) in CASES.items() for s in suffixes]
)
def test_a_file_of_another_kind_stays(case, suffix):
    place = Path(f"precious{suffix}")
    place.write_text(FOREIGN)
    code, output = run(*CASES[case][0], case.partition(" ")[2], str(place))
    assert (code, place.read_text()) == (2, FOREIGN), output
    assert f"{place} is there, and is no " in output
    assert "write to another name, or move it away" in output


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_the_same_kind_and_an_empty_one_are_replaced(case):
    arguments, suffixes = CASES[case]
    for suffix in suffixes:
        place = Path(f"again{suffix}")
        place.touch()
        for _ in range(2):
            code, output = run(*arguments, case.partition(" ")[2], str(place))
            assert code == 0, output
            assert place.stat().st_size


def test_calls_of_python_destroy_nothing_either():
    Path("train.py").write_text(FOREIGN)
    Path("notes.md").write_text(FOREIGN)
    with pytest.raises(TargetRefused, match="is no report of serde"):
        serde.check("digits").save("notes.md")
    with pytest.raises(TargetRefused, match="is no model of PyTorch"):
        serde.convert("digits", "train.py")
    with pytest.raises(TargetRefused, match="is no model of PyTorch"):
        serde.save(serde.load("digits"), "train.py")
    assert Path("train.py").read_text() == Path("notes.md").read_text() == FOREIGN
