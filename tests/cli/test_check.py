"""``serde check``: what stands in the way, all at once."""

from __future__ import annotations

import json

import onnx
import pytest

from serde.cli.context import DONE, FAILED, UNREADABLE
from testing.onnx_live import model_of
from tests.command import list_files, run_command, write_unknown_operators

pytestmark = pytest.mark.usefixtures("digits_here")


def test_what_stands_in_the_way_all_at_once():
    code, out, err = run_command(
        "check", write_unknown_operators(), "--to", "onnx", "--input", "data=1,4,2,2"
    )
    assert (code, err) == (FAILED, "")
    title, *groups = out.splitlines()
    assert title == "odd-symbol.json: 4 node(s) cannot be converted to onnx:"
    assert sorted(groups) == sorted([
        "  NoSuchOp ×1 ('n1'): mxnet → ir has no rule for NoSuchOp. Attributes: a=1",
        "  AlsoNone ×1 ('n2'): mxnet → ir has no rule for AlsoNone",
        "  NeitherThis ×1 ('n3'): mxnet → ir has no rule for NeitherThis. Attributes: k=x",
        "  LRN ×1 ('lrn'): unknown attribute new_attribute; the operator takes alpha, beta, knorm, "
        "nsize. Attributes: new_attribute=7, nsize=5",
        "  What has no rule can be given one (rules= in Python), be kept (--custom-domain or "
        "--keep-domain), or be cut off (--outputs).",
    ])  # fmt: skip
    assert list_files() == ["odd-symbol.json"]


def test_the_same_as_json():
    code, out, _ = run_command(
        "check", write_unknown_operators(), "--json", "--input", "data=1,4,2,2"
    )
    problems = {p["op"]: p for p in json.loads(out)["problems"]}
    assert code == FAILED and len(problems) == 4
    assert problems["LRN"] == {
        "op": "LRN", "attrs": {"new_attribute": "7", "nsize": "5"}, "names": ["lrn"],
        "reason": "unknown attribute new_attribute; the operator takes alpha, beta, knorm, nsize",
        "stage": "mxnet → ir",
    }  # fmt: skip


def test_a_model_that_converts():
    code, out, _ = run_command("check", ".")
    assert code == DONE and out.startswith(".: everything converts to onnx\n")
    assert "Conv ×2" in out and list_files() == []


def test_an_opset_that_cannot_say_it():
    onnx.save(model_of("g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }"), "a.onnx")
    code, out, _ = run_command("check", "a.onnx", "--opset", 19)
    assert code == FAILED and "StringConcat ×1 ('y'): " in out and "opset 20 is the lowest" in out
    assert run_command("check", "a.onnx", "--opset", 20)[0] == DONE


def test_a_source_that_cannot_be_read():
    assert run_command("check", "nothing")[0] == UNREADABLE
