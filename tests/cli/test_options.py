"""The command's options: help texts that fit, words that are completed, and lists made late."""

from __future__ import annotations

import re

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from serde import plugins
from serde.cli.commands import main
from serde.plugins import written_formats
from serde.plugins.targets import consumer_names
from testing.onnx_live import DIGITS
from tests.command import show_command
from tests.plugin.every_format import SLATE

COLUMNS = 80


def run(*arguments):
    result = CliRunner().invoke(main, arguments, terminal_width=COLUMNS)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["", *sorted(main.commands)])
def test_help_fits_a_terminal_and_cuts_nothing(name):
    code, text = run(*filter(None, [name]), "--help")
    assert code == 0 and max(map(len, text.splitlines())) <= COLUMNS
    assert "..." not in text.replace("[ARGS]...", "").replace("SOURCES...", "")
    assert "None" not in text  # a bound that there is none of


def test_every_command_is_summed_up_in_full():
    text = " ".join(run("--help")[1].split())
    for command in main.commands.values():
        summary = " ".join((command.help or "").partition("\n\n")[0].split()).rstrip(".")
        assert summary in text


def complete(*arguments):
    *before, incomplete = arguments
    completer = ShellComplete(main, {}, "serde", "_SERDE_COMPLETE")
    return [item.value for item in completer.get_completions([*before], incomplete)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("convert", "m", "--profile", "t"), ["tensorrt", "tract", "tflite-micro"]),
        (("convert", "m", "--profile", "onnx"), ["onnxruntime"]),
        (("convert", "m", "--to", ""), ["mxnet", "onnx", "relay", "tflite", "torch"]),
        (("convert", "m", "--from", "m"), ["mxnet"]),
        (("check", "m", "--to", "re"), ["relay", "relax"]),
        (("check", "m", "--backend", "q"), ["qnn"]),
        (("partition", "m", "--backend", "op"), ["openvino"]),
        (("partition", "m", "--remainder", ""), ["mxnet", "onnx", "relay", "tflite", "torch"]),
        (("convert", "m", "--weights", "f"), ["fp16"]),
        (("migrate", "m", "--to", "o"), ["onnx"]),
    ],
)
def test_words_are_completed(arguments, words):
    assert complete(*arguments) == words


@pytest.mark.parametrize(
    "arguments",
    [("convert", "m"), ("convert", "m", "-o", "x"), ("partition", "m", "--backend", "my"),
     ("convert", "m", "--params", "p"), ("compare", "a", "b"), ("migrate", "f")],
)  # fmt: skip
def test_files_are_completed_by_the_shell(arguments):
    completer = ShellComplete(main, {}, "serde", "_SERDE_COMPLETE")
    kinds = {i.type for i in completer.get_completions([*arguments[:-1]], arguments[-1])}
    assert kinds == {"file"}


def test_a_format_of_a_plugin_is_offered_everywhere(monkeypatch, tmp_path):
    entries, load = plugins._entries, plugins._load
    mine = {**entries("serde.formats"), "slate": None}
    monkeypatch.setattr(
        plugins, "_entries", lambda group: mine if group == "serde.formats" else entries(group)
    )
    monkeypatch.setattr(plugins, "_load", lambda g, n: SLATE if n == "slate" else load(g, n))
    assert complete("convert", "m", "--to", "s") == ["slate"]
    assert complete("partition", "m", "--remainder", "s") == ["slate"]
    assert complete("check", "m", "--to", "s") == ["slate"]
    assert "slate" in run("convert", "--help")[1]


def test_help_names_what_is_installed():
    text = " ".join(run("convert", "--help")[1].split())
    assert f"[{', '.join(consumer_names())}]" in text
    assert f"[{', '.join(written_formats())}]" in text


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("--profile", "trt", "did you mean tensorrt?"),
        ("--profile", "TensorRT", "did you mean tensorrt?"),
        ("--to", "onx", "did you mean onnx?"),
        ("--from", "mxnett", "did you mean mxnet?"),
        ("--weights", "fp61", "did you mean fp16?"),
        ("--opset", "x", "not a valid int"),
    ],
)
def test_an_unknown_word_is_answered_with_one_that_is_known(
    tmp_path, monkeypatch, flag, value, why
):
    monkeypatch.chdir(tmp_path)
    code, text = run("convert", "m.onnx", "-o", "n.onnx", flag, value)
    assert code == 2 and why in text


def test_every_option_is_documented():
    for name, command in main.commands.items():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (name, option.name)


def test_help_groups_the_options():
    code, out = show_command("convert", "--help")
    titles = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert code == 0
    formats = ["MXNet", "ONNX", "Relay", "TensorFlow Lite", "PyTorch"]
    assert titles == ["Options", "Verification", "Images", *formats, "Limits"]
    parts = dict(zip(titles, re.split(r"^[A-Z][\w ]+:$", out, flags=re.MULTILINE)[1:], strict=True))
    assert "--expected" in parts["Verification"] and "--nms" in parts["MXNet"]
    assert "--max-memory" in parts["Limits"] and "--opset" in parts["ONNX"]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["convrt"], "convert"),
        (["convert", "x", "--opse", "3", "-o", "y.onnx"], "--opset"),
        (["convert", DIGITS, "-o", "y.onnx", "--to", "onx"], "did you mean onnx?"),
        (["convert", DIGITS, "-o", "y.onnx", "--profile", "relx"], "did you mean relax?"),
        (["convert", DIGITS, "-o", "y.onnx", "--outputs", "fc11"], "fc1"),
    ],
)
def test_a_misspelt_name_is_answered_by_a_like_one(tmp_path, monkeypatch, arguments, meant):
    monkeypatch.chdir(tmp_path)
    code, out = show_command(*arguments)
    assert code == 2 and meant in out
