"""A few of the networks of conformance/relay_networks.py, as live TVM writes and computes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.relay.networks import FORMS, STAGES, TOLERANCE, outcome, read, write


@pytest.mark.parametrize("name", ["mlp", "lstm", "synthetic", "gluon/mobilenet0.5"])
def test_numbers_are_those_of_tvm(name: str, tmp_path: Path) -> None:
    write(name, tmp_path)
    errors = {
        (stage, form): outcome(read(tmp_path, stage, form), 17, tmp_path).error
        for stage in STAGES
        for form in FORMS
    }
    assert max(errors.values()) < TOLERANCE, errors
