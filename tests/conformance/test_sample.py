"""A sample of the recorded outcomes holds: what was right is neither refused nor wrong today."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from conformance import record
from conformance.matrix import CELLS, outcomes, source_of, target_of

EACH = 40  # of the cases


@pytest.mark.parametrize("cell", [c for c in CELLS if record.path_of(c).exists()])
def test_what_was_right_is_right(cell):
    """Frameworks that are not here skip the test, with the reason, where they are first asked."""
    source, target = source_of(cell), target_of(cell)
    before = record.read(record.path_of(cell).read_text(encoding="utf-8"), target.variants)
    names = [n for n in source.cases() if n in before][::EACH]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        after = {name: outcomes(source, target, name) for name in names}
    assert not record.worse(record.differences(before, after))
    assert len(names) > len(before) // (2 * EACH)
