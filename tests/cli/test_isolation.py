"""What ends a command, or the process it runs in: signals, limits, and its parent's end."""

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
from onnx import helper, numpy_helper

from serde.cli import commands, context, sandbox
from serde.errors import MalformedFile
from testing.onnx_live import DIGITS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux ends children with parents")
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


LOST = """
import os, signal, sys, time, weakref
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
from serde.io.signals import exit_on_signals
class Thing: pass
def end(reference):
    os.kill(os.getpid(), int(sys.argv[1]))
with exit_on_signals():
    thing = Thing()
    reference = weakref.ref(thing, end)
    try:
        del thing  # what the callback raises is ignored
        time.sleep(20)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_callback_is_not_lost(number):
    done = subprocess.run([sys.executable, "-c", LOST, str(int(number))], capture_output=True,
                          timeout=15)  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + number, b"")


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_command_leaves_nothing_behind(number, tmp_path, monkeypatch):
    real = os.replace

    def end_before_replacing(old, new, **folders):
        os.kill(os.getpid(), number)
        real(old, new, **folders)

    monkeypatch.setattr(os, "replace", end_before_replacing)
    outside = signal.signal(number, signal.SIG_DFL)  # the tests' own process may ignore it
    try:
        with pytest.raises(SystemExit) as caught:
            commands.main(["convert", str(DIGITS), "-o", str(tmp_path / "t.onnx"), "-q"])
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)
    assert caught.value.code == 128 + number and list(tmp_path.iterdir()) == []
