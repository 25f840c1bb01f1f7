"""``tests/run.py``: what its options have it set up and run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def script(monkeypatch):
    """The module, with commands that are listed and not run."""
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tests" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.commands = []

    def run(*command, **settings):
        module.commands.append(
            (
                [
                    Path(c).name if "/" in str(c) and "tests" not in str(c) else str(c)
                    for c in command
                ],
                settings,
            )
        )
        return 0

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "must", run)
    monkeypatch.setattr(module.venv, "create", lambda *a, **k: None)
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/chromium")
    for variable in module.LIVE:
        monkeypatch.delenv(variable, raising=False)
    return module


def named(script, word):
    return [c for c, _ in script.commands if word in c]


def test_all(script, tmp_path):
    assert script.main(["--venv", str(tmp_path / "v")]) == 0
    assert len(named(script, "ruff")) == 2 and len(named(script, "mypy")) == 1
    (tests,) = [(c, s) for c, s in script.commands if "pytest" in c]
    assert not [word for word in tests[0] if word in script.FAST]
    assert tests[1].keys() == {*script.LIVE, "PYTHONDONTWRITEBYTECODE"}


def test_fast(script, tmp_path):
    assert script.main(["--fast", "--venv", str(tmp_path / "v")]) == 0
    assert named(script, script.MXNET) == named(script, "mypy") == []
    (tests,) = [(c, s) for c, s in script.commands if "pytest" in c]
    assert set(script.FAST) <= set(tests[0])
    assert tests[1] == {"PYTHONDONTWRITEBYTECODE": "", script.WITHOUT: "1"}
    assert all((ROOT / folder).is_dir() for folder in script.FAST)


def test_set_up_only(script, tmp_path):
    assert script.main(["--setup-only", "--venv", str(tmp_path / "v")]) == 0
    assert named(script, script.MXNET) and not named(script, "pytest") + named(script, "ruff")


@pytest.mark.parametrize(
    "arguments", [["tests/ir/test_graph.py"], ["tests/ir", "-k", "shape", "-x"]]
)
def test_one_file(script, tmp_path, arguments):
    assert script.main(["--venv", str(tmp_path / "v"), *arguments]) == 0
    assert named(script, "ruff") == []
    (tests,) = named(script, "pytest")
    assert tests[-len(arguments) :] == arguments


def test_a_failure_is_told(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(script, "run", lambda *c, **s: int("mypy" in c))
    assert script.main(["--venv", str(tmp_path / "v")]) == 1
    assert capsys.readouterr().out == "failed: types\n"


def test_help():
    done = subprocess.run(
        [sys.executable, ROOT / "tests/run.py", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "--fast" in done.stdout and "--setup-only" in done.stdout
