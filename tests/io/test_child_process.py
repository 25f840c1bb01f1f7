"""Processes with limits: they end in time, and say how."""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from serde.io.child_process import child_environment, describe_crash, run_child


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


def test_the_encoding_of_the_terminal_is_not_that_of_processes(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "utf-16")
    code, errors = run_child(python("import sys; sys.exit('\xfc' + sys.stdin.read())"), 60,
                             text="\xe9", env=child_environment(A="1"), apart=True)  # fmt: skip
    assert (code, errors) == (1, "\xfc\xe9\n")


def test_all_that_is_read_of_processes_is_of_one_encoding():
    """Those whose output the package reads get that environment."""
    root = Path(__file__).resolve().parents[2]
    for path in [p for package in ("serde", "bridges") for p in (root / package).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in ("subprocess.run", "subprocess.Popen") and path.stem != "child_process":
                env = {k.arg: ast.unparse(k.value) for k in node.keywords}.get("env", "")
                assert env.startswith("child_environment("), path


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
