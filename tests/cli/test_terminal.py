"""What people see on a terminal: colours, groups of options, completion, progress, next steps."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from serde.api import Stage
from serde.cli import progress
from serde.cli.commands import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples" / "digits")
RED, GREEN = "\x1b[31m", "\x1b[32m"


def serde(*arguments, **extra):
    result = CliRunner().invoke(main, [str(a) for a in arguments], **extra)
    assert "Traceback" not in result.output
    return result.exit_code, result.output


class TestColours:
    def test_pass_and_fail_are_coloured_on_a_terminal_only(self, tmp_path):
        convert = ("convert", DIGITS, "-o", tmp_path / "d.onnx")
        serde(*convert)
        arguments = ("compare", tmp_path / "d.onnx", tmp_path / "d.onnx")
        code, out = serde(*arguments, color=True)
        assert code == 0 and f"{GREEN}pass" in out
        code, out = serde(*arguments)
        assert code == 0 and "\x1b" not in out

    def test_no_color_turns_them_off(self, tmp_path):
        code, out = serde("convert", DIGITS, "-o", tmp_path / "d.onnx", color=True)
        assert "\x1b[36mnext" in out
        code, out = serde(
            "convert", DIGITS, "-o", tmp_path / "d.onnx", color=True, env={"NO_COLOR": "1"}
        )
        assert code == 0 and "\x1b" not in out and "next: onnxruntime" in out


@pytest.mark.parametrize(
    ("target", "arguments", "step"),
    [
        ("d.onnx", [], "onnxruntime.InferenceSession('d.onnx')"),
        ("d.onnx", ["--profile", "tensorrt"], "trtexec --onnx=d.onnx --saveEngine=d.engine"),
        ("d.onnx", ["--profile", "openvino"], "ovc d.onnx"),
        ("d.onnx", ["--profile", "relax", "--input", "data=1,1,8,8"],
         "tvm.relax.frontend.onnx.from_onnx(onnx.load('d.onnx'))"),
        ("d-symbol.json", ["--write-epoch", "3"], "mxnet.model.load_checkpoint('d', 3)"),
        ("d.relay", [], "tvm.relay.fromtext(open('d.relay').read())"),
        ("d.json", [], "tvm.ir.load_json(open('d.json').read())"),
    ],
)  # fmt: skip
def test_the_next_step_runs_the_result(tmp_path, monkeypatch, target, arguments, step):
    monkeypatch.chdir(tmp_path)
    code, out = serde("convert", DIGITS, "-o", target, *arguments)
    assert code == 0 and f"next: {step}\n" in out
    code, out = serde("convert", DIGITS, "-o", target, "-q", *arguments)
    assert code == 0 and "next" not in out


def test_help_groups_the_options():
    code, out = serde("convert", "--help")
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
    code, out = serde(*arguments)
    assert code == 2 and meant in out


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_the_script_is_printed_and_installed(self, tmp_path, monkeypatch, shell):
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        code, script = serde("completion", shell)
        assert code == 0 and "_SERDE_COMPLETE" in script
        code, out = serde("completion", shell, "--install")
        (place,) = (p for p in tmp_path.rglob("*") if p.is_file())
        assert code == 0 and str(place) in out and place.read_text().strip() == script.strip()

    def test_bash_completes_commands_and_options(self, tmp_path):
        if shutil.which("bash") is None:
            pytest.skip("no bash")
        words = {"COMP_WORDS": "serde conv", "COMP_CWORD": "1", "_SERDE_COMPLETE": "bash_complete"}
        command = [
            sys.executable,
            "-c",
            "from serde.cli.commands import main; main(prog_name='serde')",
        ]
        proc = subprocess.run(
            command, env={**os.environ, **words}, capture_output=True, text=True, check=False
        )
        assert proc.stdout.split() == ["plain,convert"]


class TestProgress:
    def test_bytes_that_are_written_are_counted(self, tmp_path):
        (tmp_path / ".m.onnx.x1.part").write_bytes(bytes(1000))
        (tmp_path / "other.onnx").write_bytes(bytes(5000))
        assert progress.count_written(tmp_path / "m.onnx") == 1000
        seen, ended = [], threading.Event()
        thread = progress.watch(tmp_path / "m.onnx", ended, lambda n: (seen.append(n), ended.set()))
        thread.join(10)
        assert seen == [1000]

    def test_a_bar_shows_bytes_of_large_models(self, tmp_path, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress.show_stages(quiet=False) as show:
            show("read")
            show(Stage("write", str(tmp_path / "m.onnx"), 1 << 30))
        assert "write …" in terminal.getvalue() and "1.0 GiB" in terminal.getvalue()

    def test_nothing_is_shown_without_a_terminal(self, capsys):
        with progress.show_stages(quiet=False) as show:
            show("read")
        assert capsys.readouterr() == ("", "")
