"""What commands print of a conversion, and of a comparison."""

from __future__ import annotations

import pytest

from serde.api.report import Report
from serde.api.report.data import SHOWN_OPERATORS
from serde.cli.context import DONE, SYSTEM
from serde.cli.show import save_report, show_model, show_not_compared
from serde.verification import Verification
from testing.onnx_live import DIGITS
from tests.command import show_command


@pytest.mark.parametrize(
    ("target", "arguments", "step"),
    [
        ("d.onnx", [], "onnxruntime.InferenceSession('d.onnx')"),
        ("d.onnx", ["--profile", "tensorrt"], "trtexec --onnx=d.onnx --saveEngine=d.engine"),
        ("d.onnx", ["--profile", "openvino"], "ovc d.onnx"),
        ("d.onnx", ["--profile", "relax", "--input", "data=1,1,8,8"],
         "tvm.relax.frontend.onnx.from_onnx(onnx.load('d.onnx'))"),
        ("d-symbol.json", ["--write-epoch", "3"], "mxnet.model.load_checkpoint('d', 3)"),
        ("d.relay", [], "tvm.relay.fromtext(open('d.relay').read())"),
        ("d.json", [], "tvm.ir.load_json(open('d.json').read())"),
    ],
)  # fmt: skip
def test_the_next_step_runs_the_result(tmp_path, monkeypatch, target, arguments, step):
    monkeypatch.chdir(tmp_path)
    code, out = show_command("convert", DIGITS, "-o", target, *arguments)
    assert code == 0 and f"next: {step}\n" in out
    code, out = show_command("convert", DIGITS, "-o", target, "-q", *arguments)
    assert code == 0 and "next" not in out


def make_report(ops):
    report = Report("a", "b", "mxnet", "onnx", operators=dict.fromkeys(ops, 2), parameters=1500,
                    weight_bytes=6000)  # fmt: skip
    report.inputs = [{"name": "x", "dtype": None, "shape": "(N, 3)"}]
    return report


def test_a_model_is_shown_with_a_few_of_its_operators(capsys):
    show_model(make_report([f"Op{i}" for i in range(SHOWN_OPERATORS + 3)]))
    first, nodes, weights = capsys.readouterr().out.splitlines()
    assert first == "  input  x: (unknown type) (N, 3)"
    assert nodes.startswith("  nodes  30: Op0 ×2, ") and nodes.endswith("Op11 ×2 and 3 more")
    assert weights == "  weights 1,500 numbers, 6.0 KB"


@pytest.mark.parametrize(("error", "code"), [(None, DONE), (OSError(28, "No space left"), SYSTEM)])
def test_a_report_that_the_system_refuses_is_told_with_what_is_done(capsys, tmp_path, error, code):
    class Refused:
        def save(self, path):
            if error is not None:
                raise error

    assert save_report(Refused(), None, "it is done") == DONE
    assert save_report(Refused(), "r.html", "it is done") == code
    err = capsys.readouterr().err
    assert ("r.html: No space left. The report is not written; it is done." in err) == bool(code)


def test_what_was_not_compared_is_shown_always_where_nothing_was(capsys):
    left_out = ["not compared: y is random"]
    done = Verification(True, "onnx", "random", not_compared=left_out)
    show_not_compared(done, shown=False)
    assert capsys.readouterr().err == ""
    show_not_compared(done, shown=True)
    assert capsys.readouterr().err == "verification: not compared: y is random\n"
    show_not_compared(
        Verification(False, "", "", statement="not compared: no runtime"), shown=False
    )
    assert capsys.readouterr().err == "verification: not compared: no runtime\n"
