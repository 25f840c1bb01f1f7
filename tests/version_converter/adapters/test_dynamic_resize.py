"""Resize to sizes, or by scales, that are computed."""

from __future__ import annotations

from typing import Any

import pytest

from testing.version_converter.resizes import IMAGE, RESIZES, TARGETS, find_region
from testing.version_converter.single import BY_NAME, Single


@pytest.mark.parametrize("attrs", RESIZES, ids=lambda a: "-".join(map(str, a.values())))
def test_resize(attrs: dict[str, Any]) -> None:
    """Every mode, by scales and to sizes."""
    turn = RESIZES.index(attrs)
    for target in (TARGETS[0], TARGETS[1 + turn % 2]):
        operands = (IMAGE, find_region(attrs), *target)
        Single("Resize", operands, attrs, tolerance=1e-4).check((7,), [BY_NAME])
