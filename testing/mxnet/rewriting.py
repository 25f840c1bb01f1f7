"""Cases of the reading rules from MXNet to the IR and back to MXNet, run by live MXNet."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np

from serde.errors import SerdeError, Unconvertible
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live as written
from testing.mxnet.cases import Array, Case, _error, _graph, _symbol_json, _tolerance
from testing.mxnet_live import live_mxnet, run_symbol

TABLES = Path(__file__).parents[2] / "tests" / "mxnet" / "ops"  # whose files hold the cases
RIGHT, REFUSED, FAILS, WRONG = "right", "refused", "not run", "wrong"


def every_case() -> list[Case]:
    """Every case of a reading rule."""
    all_cases: list[Case] = []
    for path in sorted(TABLES.glob("test_*.py")):
        cases = getattr(import_module(f"tests.mxnet.ops.{path.stem}"), "CASES", ())
        all_cases += [c for c in cases if isinstance(c, Case)]
    return all_cases


def rewrite(case: Case) -> tuple[str, str]:
    """What becomes of a case written back, and why."""
    expected = case.oracle(case)
    graph = _graph(_symbol_json(case, len(expected)), case, "static")
    try:
        text, arrays = written(from_ir(graph))
    except Unconvertible as error:
        return REFUSED, "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in error.problems))
    except SerdeError as error:
        return REFUSED, str(error)
    mx = live_mxnet()
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    read = set(mx.sym.load_json(text).list_inputs()) - set(held)
    feeds = {f"x{i}": np.atleast_1d(a) for i, a in enumerate(case.inputs) if f"x{i}" in read}
    try:
        got = run_symbol(text, held, feeds)
    except mx.MXNetError as error:
        lines = [s for s in str(error).splitlines() if s.strip() and "[bt]" not in s]
        return FAILS, lines[-1] if lines else ""
    differing = [how for a, b in zip(got, expected, strict=True) if (how := differs(case, a, b))]
    return (WRONG, differing[0]) if differing else (RIGHT, "")


def differs(case: Case, got: Array, expected: Array) -> str:
    """How an output is another; a tensor of no axes is one of shape ``(1,)``."""
    if got.shape != (expected.shape or (1,)) or got.dtype != expected.dtype:
        return f"{got.dtype} {list(got.shape)}, not {expected.dtype} {list(expected.shape)}"
    error = _error(got.reshape(expected.shape), expected)
    return f"off by {error:.2g}" if error > (case.tolerance or _tolerance(expected)) else ""
