"""ONNX's node tests, written at other opsets: ONNX Runtime takes what it takes of the source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serde.errors import SerdeError
from testing.node_cases import (
    ONNX_RUNTIME,
    UNOPTIMIZED,
    Case,
    all_cases,
    convert,
    difference,
    freeze,
    onnxruntime_results,
)

OPSETS = (7, 9, 11, 17, 25)
STEP = 23  # of so many tests one is taken
BY_NAME = ("swish", "sequence_map", "loop16", "averagepool",
           "bitwise_and_ui64", "max_float64", "min_uint64", "mod_mixed_sign_int16", "asinh")  # fmt: skip


def faults(case: Case, opsets: tuple[int, ...]) -> Iterator[str]:
    """Where ONNX Runtime is right of the source, and not of what is written at an opset."""
    right = [r for r in (ONNX_RUNTIME, UNOPTIMIZED) if _is_right(case, case.model, r) is None]
    for opset in opsets if right else ():
        try:
            model = convert(case.model, opset)
        except SerdeError:
            continue
        for runtime in right:
            if (fault := _is_right(case, model, runtime)) is not None:
                yield f"{case.name} at {opset}, {runtime}: {fault}"


def _is_right(case: Case, model, runtime: str) -> str | None:
    """What is wrong with what a runtime makes of a model, None if nothing is."""
    for feeds, expected in case.data:
        got = dict(onnxruntime_results(model, feeds)).get(runtime, NotImplementedError("not run"))
        if isinstance(got, Exception):
            return str(got)[:200] or type(got).__name__
        if (how := difference(case, expected, got)) is not None:
            return how
    return None


CASES = [
    c for i, c in enumerate(all_cases())
    if i % STEP == 0 or any(word in c.name for word in BY_NAME)
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_results_load_as_their_sources_do(case: Case) -> None:
    for form in (case, freeze(case)):
        problems = [] if form is None else list(faults(form, OPSETS))
        assert not problems, "\n".join(problems)
