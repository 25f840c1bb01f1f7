"""The start of the command, as a module and as a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from serde.__main__ import INTERRUPTED
from testing.onnx_live import DIGITS


@pytest.mark.parametrize(
    "module",
    ["serde.cli.commands", "click", "serde.cli.convert", "numpy", "onnx.onnx_cpp2py_export"],
)
def test_an_interruption_of_an_import_is_told_in_a_word(module, tmp_path):
    """Also where the module is an extension, whose C++ would abort the process."""
    code = f"""
import os, runpy, signal, sys
class Interrupter:
    def find_spec(self, name, *more):
        if name == {module!r} and self in sys.meta_path:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupter())
sys.argv[:1] = ["serde"]
runpy.run_module("serde", run_name="__main__")
"""
    arguments = ["convert", str(DIGITS), "-o", str(tmp_path / "d.onnx"), "--verify"]
    command = [sys.executable, "-c", code, *arguments]
    proc = subprocess.run(command, capture_output=True, text=True)
    assert (proc.returncode, proc.stderr.strip()) == (INTERRUPTED, "Aborted!")
