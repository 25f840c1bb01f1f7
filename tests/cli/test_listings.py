"""``serde formats`` and ``serde ops``."""

from __future__ import annotations

from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.context import DONE, USAGE
from tests.command import run_command


def lines(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_operators_of_one_format():
    every, own = lines("ops"), lines("ops", "--format", "mxnet")
    assert set(own) < set(every) and "  Convolution" in {
        line.partition("  (")[0] or line for line in own
    } | set(own)
    assert CliRunner().invoke(main, ["ops", "--format", "mxnt"]).exit_code == 2


def test_operators():
    code, out, _ = run_command("ops")
    assert code == DONE and "mxnet → ir: " in out and "\n  Convolution" in out
    code, out, _ = run_command("ops", "--markdown", "--format", "mxnet")
    assert code == DONE and out.startswith("# Operators\n") and "| `Convolution` |" in out
    assert run_command("ops", "--format", "caffe")[0] == USAGE


def test_formats():
    code, out, _ = run_command("formats")
    assert code == DONE
    assert "onnx: .onnx; read and written" in out.splitlines()
    assert any(line.startswith("mxnet: -symbol.json; read") for line in out.splitlines())
    assert "bridge tvm: live objects, read as relay" in out.splitlines()
    assert "bridge mxnet: live objects, read as mxnet" in out.splitlines()
