"""Modules TVM 0.17 wrote: both forms say the same, and both are written back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from serde.formats.relay import ast
from serde.formats.relay.json.reader import parse_json, read_json
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.text.parser import parse_text, read_text
from serde.formats.relay.text.printer import print_text
from testing.relay.compare import SIX_DIGITS, difference

DATA = Path(__file__).with_name("data")
NAMES = sorted(p.stem for p in DATA.glob("*.json"))
RESPELLED = {"gname-dash": "functions", "ref-basic": "annotation"}  # for TVM's parser to read it


def code(text):
    return text.partition("#[metadata]")[0].strip()


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_are_the_same_module(name):
    text, json = read_text(DATA / f"{name}.txt"), read_json(DATA / f"{name}.json")
    assert difference(text, json, SIX_DIGITS) is None


@pytest.mark.parametrize("name", NAMES)
def test_prints_what_tvm_prints(name):
    module = read_json(DATA / f"{name}.json")
    assert code(print_text(module, like_tvm=True)) == code((DATA / f"{name}.txt").read_text())


@pytest.mark.parametrize("form", ["txt", "json"])
@pytest.mark.parametrize("name", NAMES)
def test_round_trips(name, form):
    module = (read_text if form == "txt" else read_json)(DATA / f"{name}.{form}")
    text = print_text(module)
    again = parse_text(text)
    assert print_text(again) == text
    assert (difference(module, again) is not None) == (name in RESPELLED)
    assert difference(module, parse_json(to_json(module))) is None


def test_files(tmp_path):
    module = read_json(DATA / "adt-own.json")
    (tmp_path / "m.txt").write_text(print_text(module))
    (tmp_path / "m.json").write_text(to_json(module))
    assert difference(read_text(tmp_path / "m.txt"), module) is None
    assert difference(read_json(tmp_path / "m.json"), module) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("exp(%x)", "tanh(%x)"),
        ("exp(%x)", "exp(exp(%x))"),
        ("f(%x, 1f)", "f(%x, 2f)"),
        ("f(%x, a=1)", "f(%x, a=2)"),
        ("f(%x, a=1)", "f(%x, a=1f)"),
        ("f(%x, %y)", "f(%y, %x)"),
        ("let %a: int8 = %x; %a", "let %a: int16 = %x; %a"),
        ("%0 = f(%x); g(%0, %0)", "g(f(%x), f(%x))"),
        ("(%x, %y).0", "(%x, %y).1"),
        ("match (%x) { _ => 1 }", "match? (%x) { _ => 1 }"),
        ("match (%x) { _ => 1 }", "match (%x) { %a => 1 }"),
        ("exp(%x) /* ty=int8 */", "exp(%x) /* ty=int16 */"),
    ],
)
def test_the_comparison_tells_modules_apart(a, b):
    left, right = (parse_text(f"def @main(%x, %y) {{ {body} }}") for body in (a, b))
    assert difference(left, right) is not None
    assert difference(left, left) is None


def test_what_only_the_metadata_can_say():
    """Strings with quotes, numbers without a suffix, named dimensions, devices."""
    n = ast.DimVar("n")
    type_ = ast.TensorType((n, n, None), "float32")
    device = ast.VirtualDevice(2, 1, memory_scope="global")
    x = ast.Var("x", type_, device=device)
    values = {"a": 'say "a"', "b": ast.Imm(3, "uint8"), "c": ast.Imm(float("inf"), "float64")}
    call = ast.Call(ast.Op("f"), (x,), ast.Attrs("", values))
    module = ast.Module({"main": ast.Function((x,), call, attrs={"d": {"e": (1, None)}})})
    text = print_text(module)
    again = parse_text(text)
    assert difference(module, again) is None
    assert print_text(again) == text
    shape = again.functions["main"].params[0].annotation.shape
    assert shape[0] is shape[1] and shape[2] is None


def test_operands_of_arange_are_told_twice_in_text_only():
    module = parse_text('def @main(%n) { arange(0i64, %n, 1i64, start=%n, dtype="int64") }')
    attrs = module.functions["main"].body.attrs
    assert dict(attrs.values) == {"dtype": "int64"}
    text = print_text(module)
    assert "start=meta[relay.Constant][0], stop=%n, step=meta[relay.Constant][1]" in text
    assert print_text(parse_text(text)) == text
    assert difference(module, parse_json(to_json(module))) is None
