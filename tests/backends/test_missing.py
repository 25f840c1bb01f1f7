"""The operators that would save most parts, were they taken."""

from __future__ import annotations

import json

import onnx
import pytest
from click.testing import CliRunner

from serde.backends.partition import check_backend, partition
from serde.cli.commands import main
from serde.legalize.target import Target
from testing.onnx_live import ir_of

BODY = (
    "g (float[2] x) => (float[2] y) { a = Relu(x) b = Sin(a) c = Relu(b) d = Sin(c) e = Relu(d) "
    "f = Tan(e) y = Relu(f) }"
)
RELU = {"Relu": {}}


def test_the_operator_that_saves_most_is_first():
    report = check_backend(ir_of(BODY), Target("t", 17, RELU))
    assert report.parts == len(partition(ir_of(BODY), Target("t", 17, RELU)).accelerator_parts) == 4
    assert [tuple(m) for m in report.missing] == [("Sin", 2, 2), ("Tan", 1, 1)]


@pytest.mark.parametrize("more", [{"Sin": {}}, {"Sin": {}, "Tan": {}}])
def test_what_it_says_is_what_such_a_backend_gets(more):
    report = check_backend(ir_of(BODY), Target("t", 17, RELU))
    split = partition(ir_of(BODY), Target("t", 17, {**RELU, **more}))
    assert len(split.accelerator_parts) == report.missing[len(more) - 1].parts


def test_nothing_is_said_where_nothing_helps():
    assert not check_backend(
        ir_of(BODY), Target("t", 17, {"Relu": {}, "Sin": {}, "Tan": {}})
    ).missing
    assert not check_backend(ir_of(BODY), Target("t", 17, {"Abs": {}})).missing


def test_the_command_prints_it(tmp_path):
    model = f'<ir_version: 8, opset_import: ["": 17]> {BODY}'
    onnx.save(onnx.parser.parse_model(model), tmp_path / "m.onnx")
    description = tmp_path / "b.toml"
    description.write_text('name = "t"\nopset = 17\n[[operators]]\nnames = ["Relu"]\n')
    command = ["check", str(tmp_path / "m.onnx"), "--backend", str(description)]
    text = CliRunner().invoke(main, command).output
    assert "4 parts at least; with Sin (×2) 2, and with Tan (×1) 1" in text
    document = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert document["missing"][0] == {"op": "Sin", "parts": 2, "nodes": 2}


def test_the_last_axis_is_told_by_name(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(
        'name = "x"\nopset = 17\n[[operators]]\nnames = ["Softmax"]\nattributes.axis = ["last"]\n'
    )
    for axis, is_taken in ((1, False), (2, True), (-1, True)):
        body = f"g (float[2,3,4] x) => (float[2,3,4] y) {{ y = Softmax<axis = {axis}>(x) }}"
        report = check_backend(ir_of(body), path)
        assert (report.share_of_nodes == 1) is is_taken
