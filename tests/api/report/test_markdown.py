"""Reports as Markdown."""

from __future__ import annotations

import re

import numpy as np
import pytest

from serde.api.report.comparison_report import ComparisonReport
from serde.api.report.markdown import escape_marks, make_table, show_verification
from serde.verification import Verification, compare
from tests.layer_chains import EVIL, layer_chain, make_report


def test_markdown_is_no_markup_of_names():
    report = make_report(layer_chain(1, EVIL), notes=["a | b *c*"])
    text = report.to_markdown()
    assert not re.search(r"(?<!\\)<img", text) and r"a \| b \*c\*" in text
    rows = [r for r in text.splitlines() if r.startswith("|")]
    assert "| Neg | 1 | Neg | 1 |" in rows
    names = "\x1b[2J<img src=x>", "a\n# b`c`"
    text = ComparisonReport(*names, Verification(True, "onnx", "random", [])).to_markdown()
    assert text.splitlines()[1] == r"# \\x1b\[2J\<img src=x\> and a # b\`c\`"


@pytest.mark.parametrize(("cell", "text"), [
    ("a|b", r"a\|b"), ("a\nb\t c", "a b c"), (12, "12"), (r"a\b", r"a\\b"), ("<a>[b](c)", r"\<a\>\[b\](c)"),
    ("\x1b[2J", r"\\x1b\[2J"),
])  # fmt: skip
def test_no_text_ends_a_cell_or_begins_markup(cell, text):
    assert escape_marks(cell) == text


def test_a_table_has_a_line_for_each_row():
    assert [*make_table(("a", "b"), [(1, "x"), ("y", 2)])] == [
        "| a | b |", "|---|---|", "| 1 | x |", "| y | 2 |",
    ]  # fmt: skip


def test_outputs_are_listed_with_what_was_not_compared():
    outputs = [compare(n, np.float32([x]), np.float32([1])) for n, x in (("y", 1), ("z", 2))]
    done = Verification(True, "mxnet", "random", outputs, not_compared=["w is <random>"])
    lines = [*show_verification(done)]
    assert "Against mxnet, random." in lines and r"* not compared: w is \<random\>" in lines
    rows = [line.split(" | ")[:2] for line in lines if line.startswith(("| y", "| z"))]
    assert rows == [["| y", "pass"], ["| z", "FAIL (off by 1)"]]
    assert "cannot run" in [*show_verification(Verification(False, "", "", statement="cannot run"))]
