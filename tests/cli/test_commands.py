"""The group of commands: exit codes, messages, and the end of the process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.context import DONE, FAILED, INTERRUPTED, UNREADABLE, USAGE
from serde.io.user_code import Terminated
from testing.onnx_live import model_of
from tests.command import SERDE, list_files, run_command, write_unknown_operators

pytestmark = pytest.mark.usefixtures("digits_here")


class TestExitCodes:
    USAGES = {
        "no command of the name": ("conver",),
        "no such option": ("convert", ".", "-o", "d.onnx", "--fast"),
        "no output": ("convert", "."),
        "a bad shape": ("convert", ".", "-o", "d.onnx", "--input", "data"),
        "a bad size": ("convert", ".", "-o", "d.onnx", "--input", "data=1,-5"),
        "an input the model has not": ("convert", ".", "-o", "d.onnx", "--input", "image=1,1,8,8"),
        "an output the model has not": ("convert", ".", "-o", "d.onnx", "--outputs", "nothing"),
        "a bad rename": ("convert", ".", "-o", "d.onnx", "--rename", "data"),
        "a name renamed twice": (
            "convert", ".", "-o", "d.onnx", "--rename", "data=a", "--rename", "data=b"),
        "a name that is taken": ("convert", ".", "-o", "d.onnx", "--rename", "data=softmax_output"),
        "an opset nobody has": ("convert", ".", "-o", "d.onnx", "--opset", "99"),
        "an IR version nobody has": ("convert", ".", "-o", "d.onnx", "--ir-version", "99"),
        "an opset that is none": ("convert", ".", "-o", "d.onnx", "--opset", "new"),
        "a bad mode": ("convert", ".", "-o", "d.onnx", "--external-data", "maybe"),
        "a bad size of a name": ("convert", ".", "-o", "d.onnx", "--static", "N"),
        "an unknown suffix": ("convert", ".", "-o", "d.bin"),
        "a folder for a file": ("convert", ".", "-o", "folder.onnx"),
        "a folder that is not there": ("convert", ".", "-o", "none/d.onnx"),
        "a format that cannot be written": ("convert", "d.onnx", "-o", "d.other"),
    }  # fmt: skip

    @pytest.mark.parametrize("arguments", USAGES.values(), ids=USAGES)
    def test_two_for_usage(self, arguments):
        Path("folder.onnx").mkdir()
        code, out, err = run_command(*arguments)
        assert (code, out) == (USAGE, "") and err and list_files() == ["folder.onnx"]

    UNREAD = {
        "nothing there": (None, "there is no such file, folder or prefix"),
        "nothing in it": (b"", "the file is empty"),
        "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        "a page": (b"<html><body>404", "an HTML or XML page"),
        "text": (b"hello", "of no known format; installed: "),
        "half a symbol": (b'{"nodes": [{"op": "null"', "not symbol JSON"),
    }

    @pytest.mark.parametrize(("content", "why"), UNREAD.values(), ids=UNREAD)
    def test_three_for_what_cannot_be_read(self, content, why):
        if content is not None:
            Path("m.json").write_bytes(content)
        code, out, err = run_command("convert", "m.json", "-o", "d.onnx")
        assert (code, out) == (UNREADABLE, "") and why in err and err.startswith("serde: ")
        assert "d.onnx" not in list_files()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_three_for_what_may_not_be_read(self):
        os.chmod("digits-symbol.json", 0)
        assert run_command("convert", "digits-symbol.json", "-o", "d.onnx")[0] == UNREADABLE

    def test_damaged_parameters(self):
        data = Path("digits-0010.params").read_bytes()
        Path("digits-0010.params").write_bytes(data[:5000])
        code, _, err = run_command("convert", "digits", "-o", "d.onnx")
        assert code == UNREADABLE and "digits-0010.params, byte " in err

    def test_one_for_what_cannot_be_converted(self):
        code, _, err = run_command(
            "convert", write_unknown_operators(), "-o", "d.onnx", "--input", "data=1,4,2,2"
        )
        assert code == FAILED and "4 node(s) cannot be converted" in err

    def test_one_for_a_mistake_of_ours_without_a_traceback(self, monkeypatch):
        monkeypatch.setattr("serde.api.convert", lambda *a, **k: 1 / 0)
        code, _, err = run_command("convert", ".", "-o", "d.onnx")
        assert code == FAILED
        assert (
            err
            == "serde: internal error: ZeroDivisionError: division by zero (--debug shows where)\n"
        )

    def test_debug_shows_where(self, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["serde", "convert", "none", "-o", "d.onnx", "--debug"])
        result = CliRunner().invoke(main, sys.argv[1:])
        assert result.exit_code == UNREADABLE
        assert "Traceback" in result.stderr and result.stderr.endswith("file, folder or prefix\n")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("convert", "-h")])
def test_help(arguments):
    code, out, err = run_command(*arguments)
    assert "Usage:" in out + err and code == (DONE if arguments else USAGE)


def test_version():
    import serde as package

    assert run_command("--version") == (DONE, f"serde, version {package.__version__}\n", "")


@pytest.mark.parametrize(
    "command, target, place, is_on",
    [
        ("convert", "out.onnx", "serde.api.convert", False),
        ("run", "out.npz", "serde.backends.runner.run_files", True),
    ],
)
def test_the_collector_rests_unless_models_run(monkeypatch, command, target, place, is_on):
    states = []
    monkeypatch.setattr(place, lambda *_, **__: states.append(gc.isenabled()) or sys.exit())
    onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17), "m.onnx")
    run_command(command, "m.onnx", "-o", target)
    assert (states, gc.isenabled()) == ([is_on], True)


def test_the_installed_command_runs():
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    proc = subprocess.run(
        [*SERDE, "convert", ".", "-o", "d.onnx"], capture_output=True, text=True, env=env
    )
    assert (proc.returncode, proc.stderr) == (DONE, "") and "→ d.onnx" in proc.stdout
    proc = subprocess.run([*SERDE, "convert", "x", "-o", "y"], capture_output=True, text=True)
    assert proc.returncode == USAGE


def test_a_reader_that_leaves_is_no_error():
    """``serde ops | head``"""
    process = subprocess.Popen([*SERDE, "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


@pytest.mark.parametrize(
    "signal, code", [(KeyboardInterrupt(), INTERRUPTED), (Terminated(143), 143)]
)
def test_an_error_of_the_cleaning_up_after_a_signal_is_the_signal(monkeypatch, signal, code):
    """``shutil.rmtree`` closes a handle again where Ctrl-C comes as it closes it."""

    def fail(*arguments, **options):
        try:
            raise signal
        finally:
            os.close(-1)

    monkeypatch.setattr("serde.api.convert", fail)
    result = CliRunner().invoke(main, ["convert", ".", "-o", "d.onnx"])
    assert result.exit_code == code and "descriptor" not in result.output


def test_an_interruption_leaves_nothing():
    code = (
        "import os, signal, serde.formats.onnx.writer as w\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # may be ignored outside
        "w._stream = lambda *a: os.kill(os.getpid(), signal.SIGINT)\n"
        "from serde.cli.commands import main; main(['convert', '.', '-o', 'd.onnx'])"
    )
    proc = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert proc.returncode == INTERRUPTED and proc.stderr.strip() == "Aborted!"
    assert list_files() == [] and not list(Path().glob(".*.part"))


class TestEndOfTheProcess:
    """A command ends its process at once, when all is written."""

    def test_what_was_left_to_do_at_exit_is_done(self, tmp_path):
        code = (
            "import atexit, sys; atexit.register(lambda: print('left', flush=False)); "
            "from serde.cli.commands import main; main()"
        )
        command = [sys.executable, "-c", code, "ops", "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.endswith("left\n")
        command[-2:] = ["convert", str(tmp_path / "none"), "-o", str(tmp_path / "a.onnx")]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 3

    def test_the_process_of_a_caller_goes_on(self):
        code = (
            "from serde.cli.commands import main\n"
            "try:\n    main(['formats'])\nexcept SystemExit as end:\n    print('on', end.code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith("on 0\n")

    def test_a_thread_is_waited_for(self):
        code = (
            "import threading, serde.cli.commands as c\n"
            "def work():\n    threading.main_thread().join()\n    print('worked')\n"
            "threading.Thread(target=work).start()\nc.main()"
        )
        command = [sys.executable, "-c", code, "formats"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.endswith("worked\n")


"""What the command says where it is typed with too little."""


def test_the_command_alone_prints_its_help_in_lines():
    done = subprocess.run(SERDE, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    assert done.returncode == USAGE and "\\n" not in printed
    assert "\nCommands:\n" in printed and "\n  convert " in printed
    assert all(name in printed for name in ("MXNet", "ONNX", "PyTorch", "TensorFlow Lite"))
