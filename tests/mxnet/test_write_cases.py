"""What the MXNet reader emits comes back; the cell mxnet-operators/mxnet takes all cases."""

from __future__ import annotations

import pytest

from testing.mxnet.int8 import is_inexact
from testing.mxnet.rewriting import FAILS, REFUSED, RIGHT, WRONG, every_case, rewrite
from testing.mxnet_live import live_mxnet

EACH, PARTS = 24, 4
KNOWN = (  # reasons for what is refused
    "without elements",
    "dynamic",
    "must be constant",
    "not known before",
    "to be a constant",
)
# Operators whose cases found something that the writer had wrong.
ALL_OF = ("_mod", "_logical_and_scalar", "_contrib_index_copy", "SequenceLast", "_npx_nonzero")


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_come_back(part):
    live_mxnet()
    outcomes = {RIGHT: 0, REFUSED: 0, FAILS: 0, WRONG: 0}
    for case in every_case()[part::PARTS][::EACH]:
        if is_inexact(case):
            continue
        kind, why = rewrite(case)
        outcomes[kind] += 1
        assert kind not in (WRONG, FAILS), f"{case}: {why}"
        assert kind == RIGHT or any(reason in why for reason in KNOWN), f"{case}: {why}"
    assert outcomes[RIGHT] > 9 * outcomes[REFUSED]


@pytest.mark.parametrize("op", ALL_OF)
def test_all_cases_of_an_operator_come_back(op):
    live_mxnet()
    outcomes = {str(c): rewrite(c) for c in every_case() if c.op == op}
    assert outcomes and all(
        kind == RIGHT or "without elements" in why for kind, why in outcomes.values()
    ), outcomes
