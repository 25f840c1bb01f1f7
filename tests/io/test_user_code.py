"""Code of users that exits: an error with its line, and neither silence nor the end of serde."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import Unconvertible, UsageError
from serde.formats.onnx.reader import decode
from serde.frontends.wrap import find_function
from serde.io.user_code import Terminated, refuse_exits
from serde.plugins import get_format
from serde.rewrite.driver import rewrite
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import DIGITS, model_of

EXITS = {
    "a code": "sys.exit(3)",
    "no code": "sys.exit()",
    "a success": "raise SystemExit(0)",
    "a message": "sys.exit('done')",
    "a builtin": "__import__('builtins').exit(4)",
    "a parser": "__import__('argparse').ArgumentParser().parse_args(['--no'])",
}


@pytest.mark.parametrize("what", EXITS)
@pytest.mark.parametrize("at_import", [True, False])
def test_a_script_that_exits_is_named_with_its_line(tmp_path, what, at_import):
    path = tmp_path / "pre.py"
    head, body = (EXITS[what], "return x") if at_import else ("", EXITS[what])
    path.write_text(f"import sys\n{head}\ndef f(x):\n    {body}\n")
    line = 2 if at_import else 4
    target = str(tmp_path / "o.onnx")
    result = CliRunner().invoke(main, ["wrap", str(DIGITS), "-o", target, "--pre", f"{path}:f"])
    assert result.exit_code == 2 and not os.path.exists(target)
    assert f"{path}, line {line}: the code exits with SystemExit" in result.output


@pytest.mark.parametrize("by", ["sys.stdout.close()", "os.close(1)", "sys.stdout.detach()",
                                "setattr(sys, 'stdout', object())"])  # fmt: skip
@pytest.mark.parametrize("at_import", [True, False])
def test_a_script_that_closes_the_output_is_told(tmp_path, by, at_import):
    """Before anything is written: the command could not say what became of it."""
    head, body = (by, "return x") if at_import else ("", f"{by}; return x")
    (tmp_path / "pre.py").write_text(f"import os, sys\n{head}\ndef f(x):\n    {body}\n")
    command = [sys.executable, "-m", "serde", "wrap", DIGITS, "-o", "o.onnx", "--pre", "pre.py:f"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (
        2, "serde: the user's code closed the standard output, sys.stdout: let it leave that open\n"
    )  # fmt: skip
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("error", ["GeneratorExit", "BaseExceptionGroup('g', [OSError()])",
                                   "type('Own', (BaseException,), {})('why')"])  # fmt: skip
@pytest.mark.skipif(sys.version_info < (3, 11), reason="no such groups")
def test_no_error_of_a_script_is_a_traceback(tmp_path, error):
    (tmp_path / "pre.py").write_text(f"def f(x):\n    raise {error}\n")
    command = [sys.executable, "-m", "serde", "wrap", DIGITS, "-o", "o.onnx", "--pre", "pre.py:f"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("serde: ")
    assert "Traceback" not in done.stderr and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("error", ["ValueError('why')", "KeyError('a')", "StopIteration", "GeneratorExit",
                                   "np.linalg.LinAlgError('b')"])  # fmt: skip
def test_a_script_that_fails_is_named_with_its_line(tmp_path, error):
    path = tmp_path / "pre.py"
    path.write_text(f"import numpy as np\ndef f(x):\n    raise {error}\n")
    command = ["wrap", str(DIGITS), "-o", str(tmp_path / "o.onnx"), "--pre", f"{path}:f"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1 and not (tmp_path / "o.onnx").exists()
    assert f"{path}, line 3: the code fails with " in result.output
    assert "internal error" not in result.output


@pytest.mark.parametrize("raised", ["ValueError(1)", "SystemExit(1)"])
def test_an_error_that_cannot_say_what_it_is_has_its_name(tmp_path, raised):
    path = tmp_path / "pre.py"
    path.write_text(
        f"class E(Exception):\n    def __str__(self):\n        raise {raised}\n"
        "def f(x):\n    raise E\n"
    )
    command = ["wrap", str(DIGITS), "-o", str(tmp_path / "o.onnx"), "--pre", f"{path}:f"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1 and f"{path}, line 5: the code fails with E\n" in result.output


CALLED = {  # what no graph can record, though it is a function, and what is said
    "os:system": "os:system: the code fails with TypeError: expected str",
    "math:sin": "math:sin: the code fails with TypeError: ",
    "builtins:dict": "dict tells no parameters: call it in a function",
    "os:getcwd": "(trace): the result output is a str",
    "builtins:print": "(trace): the result output is a NoneType",
    "pre.py:f": "pre.py:f: the code fails with AttributeError: ",
}  # fmt: skip


@pytest.mark.parametrize("place", CALLED)
@pytest.mark.parametrize("flag", ["--pre", "--post"])
def test_what_fails_is_the_function_that_was_named(tmp_path, monkeypatch, place, flag):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pre.py").write_text("def f(x):\n    return x.nothing\n")
    result = CliRunner().invoke(main, ["wrap", str(DIGITS), "-o", "o.onnx", flag, place])
    assert "internal error" not in result.output
    assert CALLED[place] in result.output or "post takes" in result.output, result.output


@pytest.mark.parametrize("code", [b"def f(x:", b"# coding: none-such\n", b"  x\ny", b"\xff"])
def test_a_script_that_is_no_python_is_named(tmp_path, code):
    path = tmp_path / "pre.py"
    path.write_bytes(code)
    command = ["wrap", str(DIGITS), "-o", str(tmp_path / "o.onnx"), "--pre", f"{path}:f"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2 and f"{path} cannot be imported: " in result.output


@pytest.mark.parametrize("place", [".pre:f", "..:f", ":f", "pre"])
def test_a_place_that_is_no_module_is_refused(tmp_path, place):
    command = ["wrap", str(DIGITS), "-o", str(tmp_path / "o.onnx"), "--pre", place]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2 and "is not module:function" in result.output


@pytest.mark.parametrize("error", ["BrokenPipeError", "TimeoutError", "OSError"])
def test_an_error_of_the_system_without_a_text_has_its_name(tmp_path, error):
    path = tmp_path / "pre.py"
    path.write_text(f"def f(x):\n    raise {error}\n")
    command = ["wrap", str(DIGITS), "-o", str(tmp_path / "o.onnx"), "--pre", f"{path}:f"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 5 and f"serde: {error}" in result.output


def test_a_script_that_changes_the_folder_moves_no_file(tmp_path):
    weights = np.ones((300, 4), np.float32)
    text = "g (float[2,300] x) => (float[2,4] y) <float[300,4] w> { y = MatMul(x, w) }"
    model = model_of(text, 17, 8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    (tmp_path / "elsewhere").mkdir()
    body = f"import os\nos.chdir({str(tmp_path / 'elsewhere')!r})\ndef f(x):\n    return x * 2\n"
    (tmp_path / "pre.py").write_text(body)
    command = [sys.executable, "-m", "serde", "wrap", "m.onnx", "-o", "o.onnx", "--pre", "pre.py:f"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o.onnx").exists() and not [*(tmp_path / "elsewhere").iterdir()]


def test_a_traced_function_that_exits(tmp_path):
    def function(x):
        sys.exit(5)

    with pytest.raises(UsageError, match=r"test_user_code.py, line \d+: .* SystemExit\(5\)"):
        serde.trace(function, (2, 3))


def test_a_rule_that_exits_is_reported_of_its_node():
    table = RuleTable("to the IR", "onnx")

    @table("Relu")
    def read_relu(g, x):
        sys.exit(6)

    graph = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
    source = decode(graph)
    with pytest.raises(Unconvertible) as caught:
        rewrite(table, source, OnnxBuilder("g"))
    (problem,) = caught.value.problems
    assert problem.op == "Relu"
    assert re.search(r"test_user_code.py, line \d+: .* SystemExit\(6\)", problem.reason)


@pytest.mark.parametrize("stage", ["decode", "to_ir", "from_ir", "encode"])
def test_a_format_that_exits(tmp_path, monkeypatch, stage):
    graph = serde.load(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8))
    serde.save(graph, tmp_path / "m.onnx")
    own = get_format("onnx")

    def exit_at_once(*args, **options):
        sys.exit(7)

    changed = replace(own, **{stage: exit_at_once})
    monkeypatch.setattr("serde.pipeline.get_format", lambda name: changed)
    with pytest.raises(UsageError, match=r"SystemExit\(7\)"):
        read = serde.load(tmp_path / "m.onnx", format="onnx")
        serde.save(read, tmp_path / "o.onnx", format="onnx")
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, Terminated, GeneratorExit, ValueError])
def test_other_ends_stay_what_they_are(error):
    with pytest.raises(error), refuse_exits():
        raise error


@pytest.mark.skipif(os.name != "posix", reason="no such signal")
def test_a_signal_ends_a_script_that_waits(tmp_path):
    path = tmp_path / "pre.py"
    path.write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-m", "serde", "wrap", DIGITS, "-o", "o.onnx", "--pre", f"{path}:f"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + signal.SIGTERM and "exits" not in done.stderr


def test_modules_that_do_not_exit_are_found():
    assert find_function("numpy:square") is np.square
    assert re.match(r"\d+\.", np.__version__)
