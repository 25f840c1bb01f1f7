"""Proof of a conversion: source and result on the same inputs, compared output by output."""

from __future__ import annotations

from serde.verification.compare_outputs import OutputComparison, compare
from serde.verification.compare_results import Verification, compare_result, compare_run_layers
from serde.verification.compare_runtimes import run_source, verify, verify_conversion
from serde.verification.random_inputs import make_random_inputs
from serde.verification.turned_ends import TurnedEnds

__all__ = [
    "OutputComparison",
    "TurnedEnds",
    "Verification",
    "compare",
    "compare_result",
    "compare_run_layers",
    "make_random_inputs",
    "run_source",
    "verify",
    "verify_conversion",
]
