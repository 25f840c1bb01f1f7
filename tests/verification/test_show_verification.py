"""A verification in a line, as text, and as a table."""

from __future__ import annotations

import numpy as np

from serde.verification import Verification, compare

X = np.float32([1, 2])
EVIL = "<b>\x1b[2J"


def make(*pairs, **fields):
    outputs = [compare(name, got, X) for name, got in pairs]
    return Verification(True, "mxnet", "random inputs, seed 0", outputs, **fields)


def test_right_outputs():
    shown = make(("y", X), ("z", X), not_compared=["infinite inputs"])
    assert (
        repr(shown) == "<Verification pass: 2 outputs right, against mxnet, random inputs, seed 0>"
    )
    first, second, *_, last = str(shown).splitlines()
    assert first.startswith("pass: 2 outputs") and last == "  not compared: infinite inputs"
    assert second.startswith("  y float32[2]: max_abs 0") and second.endswith(": pass")


def test_wrong_outputs_are_named():
    shown = make(("y", X), ("z", X + 1))
    assert repr(shown).startswith("<Verification FAIL: 'z' of 2 outputs wrong, against mxnet")
    assert "<b>FAIL</b>" in shown._repr_html_() and shown._repr_html_().count("<tr>") == 3


def test_what_was_not_compared():
    shown = Verification(False, "", "random", statement="not compared: MXNet is missing")
    assert repr(shown) == "<Verification not compared: MXNet is missing>"
    assert "<table>" not in shown._repr_html_()


def test_names_are_text():
    shown = make((EVIL, X + 1))
    assert "\x1b" not in str(shown) + repr(shown)
    assert "<b>\\x1b" not in shown._repr_html_() and "&lt;b&gt;" in shown._repr_html_()


def test_many_outputs_are_cut():
    assert str(make(*[(f"y{i}", X) for i in range(50)])).splitlines()[-1] == "  and 30 more"
