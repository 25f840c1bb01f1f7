"""Commands in a process of their own, with limits, that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper, numpy_helper

from serde.cli import context, sandbox
from serde.cli.commands import main
from serde.cli.context import DONE, FAILED, UNREADABLE, USAGE
from serde.errors import MalformedFile
from testing.onnx_live import DIGITS, model_of
from tests.command import SERDE, list_files, write_unknown_operators

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux ends children with parents")


@pytest.mark.usefixtures("digits_here")
class TestIsolation:
    """In a process of its own; what it prints goes where this process prints."""

    def run(self, *arguments):
        return subprocess.run([*SERDE, *arguments], capture_output=True, text=True)

    def test_it_does_what_it_does_otherwise(self):
        proc = self.run("convert", ".", "-o", "d.onnx", "--isolate")
        assert (proc.returncode, proc.stderr) == (DONE, "") and "→ d.onnx" in proc.stdout
        assert list_files() == ["d.onnx"]

    def test_exit_codes_come_through(self):
        assert self.run("inspect", "nothing", "--isolate").returncode == UNREADABLE
        assert self.run("check", write_unknown_operators(), "--isolate", "--input", "data=1,4,2,2"
                        ).returncode == FAILED  # fmt: skip

    @pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
    def test_memory_is_limited(self):
        """Sparse tensors of one number each claim 2 GiB of zeros; the libraries alone fit."""
        model = model_of("g (float[1] x) => (float[1] y) { y = Relu(x) }")
        indices = onnx.numpy_helper.from_array(np.zeros(1, np.int64))
        for i in range(32):
            values = onnx.numpy_helper.from_array(np.ones(1, np.float32), f"s{i}")
            model.graph.sparse_initializer.add(values=values, indices=indices, dims=[1 << 24])
        onnx.save(model, "sparse.onnx")
        limits = ("--isolate", "--max-memory", "900", "--max-growth", "4096")
        proc = self.run("convert", "sparse.onnx", "-o", "d.onnx", *limits)
        assert proc.returncode == FAILED and "more memory than there is" in proc.stderr
        assert not Path("d.onnx").exists() and "Traceback" not in proc.stderr

    def test_time_is_limited(self):
        proc = self.run("convert", ".", "-o", "d.onnx", "--isolate", "--max-seconds", "0")
        assert proc.returncode in (USAGE, UNREADABLE) and "Traceback" not in proc.stderr
        assert list_files() == []


@pytest.mark.usefixtures("digits_here")
@pytest.mark.parametrize("owner, text", [(None, "\nAborted!\n"), (context.LIMITED, "")])
def test_an_interruption_is_told_once(owner, text, monkeypatch):
    """By the command that the user started, which may have run another for it."""

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("serde.api.convert", interrupt)
    result = CliRunner().invoke(main, ["convert", ".", "-o", "d.onnx"], obj=owner)
    assert (result.exit_code, result.stderr) == (context.INTERRUPTED, text)


# A process that runs another within limits, which prints its id and waits.
PARENT = """
import signal
for number in (signal.SIGTERM, signal.SIGHUP):  # which may be ignored where the tests are started
    signal.signal(number, signal.SIG_DFL)
from serde.cli import sandbox
sandbox.START = '''
import sys, os, time; sys.path.append(sys.argv.pop(1))
from serde.cli import sandbox
def wait(**options):
    print(os.getpid(), flush=True)
    time.sleep(60)
sandbox.begin(wait)
'''
from serde.io.signals import exit_on_signals
with exit_on_signals():
    sandbox.run_limited([], "m.onnx")
"""


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_child_ends_with_its_parent(number):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.send_signal(number)
    parent.wait(20)
    parent.stdout.close()
    end = time.monotonic() + 10
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(child)


def test_nothing_is_imported_as_the_environment_says(tmp_path, monkeypatch, capfd):
    for name in ("onnx", "sitecustomize", "usercustomize", "click", "numpy", "serde"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "onnx.py"))
    monkeypatch.chdir(tmp_path)
    assert sandbox.run_limited(["inspect", str(DIGITS)], str(DIGITS)) == context.DONE
    assert "Convolution" in capfd.readouterr().out and not (tmp_path / "ran").exists()


def test_processor_time_is_limited_by_itself(monkeypatch):
    burning = "\nsandbox.begin(lambda **options: [None for _ in iter(int, 1)])"
    monkeypatch.setattr(sandbox, "START", sandbox.START.partition("from serde")[0]
                        + "from serde.cli import sandbox" + burning)  # fmt: skip
    run = sandbox.run_child  # which would stop it by the clock
    monkeypatch.setattr(sandbox, "run_child", lambda command, seconds: run(command, 100))
    with pytest.raises(MalformedFile, match="too much processor time: --max-seconds allows more"):
        sandbox.run_limited([], "m.onnx", seconds=1)


def test_the_size_of_files_is_limited(tmp_path):
    weights = np.ones((1024, 1024), np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", 1, [1, 1024])],
        [value("y", 1, [1, 1024])], [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
              tmp_path / "m.onnx")  # fmt: skip
    target = tmp_path / "t.onnx"
    arguments = ["convert", str(tmp_path / "m.onnx"), "-o", str(target)]
    assert sandbox.run_limited(arguments, "m.onnx", file_size=1) == context.SYSTEM
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]
    assert sandbox.run_limited(arguments, "m.onnx", file_size=8) == context.DONE
