"""Signals that end a process: nothing is left behind, and none is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from serde.cli import commands
from testing.onnx_live import DIGITS, model_of

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux ends children with parents")


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


UNMADE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from serde.cli.commands import main
class Thing:
    def __init__(self):
        if sys.argv[1] != "0":
            os.kill(os.getpid(), int(sys.argv[1]))
        self.part = 1
    def __del__(self):
        print("removed", file=sys.stderr)
        self.part if sys.argv[1] != "0" else self.no_part
real = os.replace
os.replace = lambda *paths, **folders: (Thing(), real(*paths, **folders))
main(sys.argv[2:])
"""


@ON_LINUX
@pytest.mark.parametrize("number", [0, signal.SIGINT, signal.SIGTERM])
def test_objects_that_a_signal_left_unmade_say_nothing(number, tmp_path):
    """Their ``__del__`` fails, as that of asyncio's loops, of which Python tells otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", UNMADE, str(int(number)), "convert", DIGITS, "-o", "t.onnx", "-q"],
        capture_output=True, text=True, timeout=30, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert "removed" in done.stderr
    assert ("Traceback" in done.stderr) is (number == 0)


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


AGAIN = """
import os, signal, sys, weakref
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from serde.cli.commands import main
from serde.io.temporary_folder import TemporaryFolder
again, where, *arguments = sys.argv[1:]
def send(*ignored):
    os.kill(os.getpid(), int(again))
def send_before(function):
    return lambda *paths, **folders: (send(), function(*paths, **folders))
def interrupt(*ignored, **folders):
    if where == "at exit":
        weakref.finalize(used, send)
    else:
        os.rmdir, os.unlink = send_before(os.rmdir), send_before(os.unlink)
    os.kill(os.getpid(), signal.SIGINT)
used, os.replace = TemporaryFolder(), interrupt
sys.argv[1:] = arguments
main()
"""


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", ["at exit", "while files are removed"])
def test_a_second_signal_leaves_nothing_behind(number, where, tmp_path):
    paths = os.pathsep.join(filter(None, sys.path))
    model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(int(number)), where, "convert", "-", "-o", "t.onnx"],
        input=model.SerializeToString(), capture_output=True, timeout=30, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": os.fspath(tmp_path)},
    )  # fmt: skip
    assert done.returncode in (130, 128 + number) and b"Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
