"""``serde formats`` and ``serde ops``."""

from __future__ import annotations

from click.testing import CliRunner

from serde.cli.commands import main


def lines(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_formats_and_bridges():
    shown = lines("formats")
    assert "onnx: .onnx; read and written" in shown
    assert "bridge tvm: live objects, read as relay" in shown


def test_operators_of_one_format():
    every, own = lines("ops"), lines("ops", "--format", "mxnet")
    assert set(own) < set(every) and "  Convolution" in {
        line.partition("  (")[0] or line for line in own
    } | set(own)
    assert CliRunner().invoke(main, ["ops", "--format", "mxnt"]).exit_code == 2
