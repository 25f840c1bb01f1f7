"""Processes with limits: they end in time, and say how."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from serde.io.child_process import describe_crash, run_child


def python(code):
    return [sys.executable, "-c", code]


def test_the_exit_code_and_what_it_said():
    code, errors = run_child(
        python("import sys; sys.exit(sys.stdin.read() + '!')"), 60, text="no", apart=True
    )
    assert (code, errors) == (1, "no!\n")


def test_its_environment():
    code, _ = run_child(python("import os; raise SystemExit(int(os.environ['CODE']))"), 60,
                        env={**os.environ, "CODE": "7"})  # fmt: skip
    assert code == 7


def test_one_that_takes_too_long_is_stopped():
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"stopped after 0\.5 seconds"):
        run_child(python("import time; time.sleep(60)"), 0.5, apart=True)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("kind", ["CORE", "DATA", "CPU", "FSIZE"])
def test_lower_limits_of_the_caller_stay(kind):
    resource = pytest.importorskip("resource")
    code = f"""
import resource
from serde.io.child_process import limit_process
kind = resource.RLIMIT_{kind}
low = 0 if {kind!r} == "CORE" else 1 << 30
resource.setrlimit(kind, (low // 2, low))
limit_process(1 << 20, 1 << 31, 1 << 20)
assert resource.getrlimit(kind) == (low // 2, low)
resource.setrlimit(kind, (low // 4, low // 2))
limit_process(1 << 20, 1 << 31, 1 << 20)
"""
    assert hasattr(resource, f"RLIMIT_{kind}")
    assert run_child(python(code), 60) == (0, "")


def test_a_crash_has_the_name_of_its_signal():
    code, _ = run_child(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), 60)
    assert code == -signal.SIGKILL and describe_crash(code) == "SIGKILL"
    assert describe_crash(-99) == "signal 99"
