"""A sample of the recorded outcomes holds: what was right is neither refused nor wrong today."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from conformance import record
from conformance.matrix import PAIRS, cell_of
from testing.mxnet.int8 import REASON

EACH = 40  # of the cases


@pytest.mark.parametrize("name", [c for c in PAIRS if record.path_of(c).exists()])
def test_what_was_right_is_right(name):
    """Frameworks that are not here skip the test, with the reason, where they are first asked."""
    cell, rows = cell_of(name), record.rows(name)
    if not (cases := cell.cases()):
        pytest.skip("its cases are not in the repository")
    chosen = [case for case in cases if case in rows][::EACH]
    before = {case: cell.outcomes(case, rows[case]) for case in chosen}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        after = {case: cell.outcomes(case, cell.run(case)) for case in chosen}
    for case in chosen:  # what this processor's MXNet is no judge of
        if any(REASON in str(outcome) for outcome in after[case].values()):
            del before[case], after[case]
    assert not record.worse(record.differences(before, after))
    assert len(chosen) > len(rows) // (2 * EACH)
