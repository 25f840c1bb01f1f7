"""What a conversion reports, and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import serde
from serde.api.report import Report
from serde.api.report.data import count_operators, report_suffix
from serde.errors import Problem, UsageError
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.verification import OutputComparison, Verification, compare
from testing.onnx_live import DIGITS, ir_of
from tests.command import show_command
from tests.layer_chains import layer_chain, make_report

ROOT = Path(__file__).resolve().parents[3]

SCHEMA = json.loads((ROOT / "docs/reference/report.schema.json").read_text())


def test_only_documented_options_are_reported(tmp_path):
    path = tmp_path / "r.json"
    show_command("convert", DIGITS, "-o", tmp_path / "d.onnx", "--opset", 13, "--report", path,
            "--external-data", "never", "--profile", "tensorrt", "--static", "N=1",
            "--static", "H=8", "--static", "W=8")  # fmt: skip
    report = json.loads(path.read_text())
    assert report["options"] == {
        "external_data": "never", "opset": 13, "profile": "tensorrt",
        "static": {"N": 1, "H": 8, "W": 8},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float32(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), True),
        (float("inf"), None), (DType.BFLOAT16, "bfloat16"), (b"\xff", "\\xff"),
        (Tensor.of(np.zeros((2, 3), np.int8)), "int8[2,3]"), (frozenset("ba"), ["a", "b"]),
        (np.zeros(2, np.float16), "float16[2]"), (Path("a"), "a"), ((1, (2,)), [1, [2]]),
    ],
)  # fmt: skip
def test_values_in_json(value, shown):
    report = Report("a", "b", "mxnet", "onnx", options={"k": value})
    assert json.loads(report.to_json())["options"] == {"k": shown}


def test_objects_are_not_reported():
    report = Report("a", "b", "mxnet", "onnx", options={"k": object()})
    with pytest.raises(TypeError, match="holds no object"):
        report.to_json()


class TestJson:
    def test_it_follows_its_schema(self, tmp_path):
        verified = serde.convert(DIGITS, tmp_path / "d.onnx", inputs={"data": (1, 1, 8, 8)})
        bad = compare("y", np.float32([1, 2]), np.float32([1, 3]))
        verified.verification = Verification(True, "mxnet", "random", [bad])
        refused = make_report(layer_chain(2), problems=[Problem("Neg", {"k": 1}, "why", ("a",))])
        for report in (verified, refused):
            read = json.loads(report.to_json())
            jsonschema.validate(read, SCHEMA)
        assert json.loads(verified.to_json())["verification"]["outputs"][0]["worst"] == {
            "index": [1], "value": 2.0, "expected": 3.0,
        }  # fmt: skip

    def test_the_schema_and_the_page_name_every_field(self):
        read = json.loads(make_report(layer_chain(1)).to_json())
        assert set(SCHEMA["required"]) == set(SCHEMA["properties"]) == set(read)
        page = (ROOT / "docs/reference/report.md").read_text()
        assert [name for name in read if f"`{name}`" not in page] == []
        own = SCHEMA["$defs"]["comparison"]["required"]
        assert set(own) == set(OutputComparison.__dataclass_fields__)
        assert [name for name in own if f"`{name}`" not in page] == []


def report():
    entry = Report("a", "b.onnx", "mxnet", "onnx")
    entry.describe(ir_of(
        "g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}>"
        "{ a = Add(x, w)\n b = Neg(a)\n y = Neg(b) }"
    ))  # fmt: skip
    return entry


def test_a_report_describes_the_result():
    entry = report()
    assert entry.inputs == [{"name": "x", "dtype": "float32", "shape": "(N, 2)"}]
    assert entry.outputs == [{"name": "y", "dtype": "float32", "shape": "(N, 2)"}]
    assert entry.operators == {"Neg": 2, "Add": 1} and list(entry.operators) == ["Neg", "Add"]
    assert (entry.parameters, entry.weight_bytes, entry.ok) == (2, 8, True)


def test_a_report_is_not_ok_with_problems_or_wrong_numbers():
    entry = report()
    entry.problems = [Problem("Foo", {}, "no rule", ("a",))]
    assert not entry.ok
    entry = report()
    bad = OutputComparison("y", (1,), "float32", 1, 1, 1, 0, 0, False)
    entry.verification = Verification(True, "mxnet", "random", [bad])
    assert not entry.ok
    entry.verification = Verification(False, "", "random", statement="could not be run")
    assert entry.ok


def strict(text):
    """Read JSON as any other reader would: NaN is none."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_report_is_strict_json(tmp_path):
    import numpy as np

    entry = report()
    entry.problems = [Problem("Foo", {"k": (1, 2), "t": Tensor.of(np.zeros(2))}, "why", ("a", "b"))]
    nan = float("nan")
    bad = OutputComparison(
        "y", (1,), "float32", nan, nan, nan, nan, float("inf"), False, "NaN elsewhere"
    )
    entry.verification = Verification(True, "mxnet", "random", [bad])
    path = tmp_path / "report.json"
    entry.save(path)
    read = strict(path.read_text())
    assert read["ok"] is False and read["operators"] == {"Neg": 2, "Add": 1}
    assert read["problems"][0]["op"] == "Foo" and read["problems"][0]["names"] == ["a", "b"]
    assert read["problems"][0]["attrs"]["k"] == [1, 2]
    assert read["verification"]["outputs"][0]["max_abs"] is None
    assert read["verification"]["outputs"][0]["reason"] == "NaN elsewhere"


def test_a_report_cannot_be_written_over_a_folder(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        report().save(tmp_path)


@pytest.mark.parametrize(("path", "kind"), [
    ("r.html", "html"), ("r.HTM", "html"), ("r.md", "md"), ("r.markdown", "md"), ("r.json", "json"),
    ("r", "json"), (Path("a.b") / "r", "json"),
])  # fmt: skip
def test_the_suffix_tells_the_kind(path, kind):
    assert report_suffix(path) == kind


def test_another_suffix_is_refused():
    with pytest.raises(UsageError, match=r"'r.txt': end it with .html, .md, .json"):
        report_suffix("r.txt")


def test_an_operator_of_another_domain_has_it_in_its_name():
    x, y, z = (Value(n, DType.FLOAT32, ()) for n in "xyz")
    nodes = (Node("Neg", (x,), (y,)), Node("Neg", (y,), (z,), domain="mine"))
    assert count_operators(Graph("g", (x,), (z,), nodes)) == {"Neg": 1, "mine:Neg": 1}


def test_large_weights_are_not_kept_for_a_picture(monkeypatch):
    graph = ir_of("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    for most, is_kept in ((8, True), (7, False)):
        monkeypatch.setattr("serde.api.report.data.MOST_KEPT", most)
        made = make_report(graph)
        assert isinstance(made.drawn, Graph) is is_kept and made.outline.node_count == 1
