"""The page of MXNet's kernels says what MXNet does; operators that it lists have rules for both."""

from __future__ import annotations

from conformance.mxnet_kernels import DIFFER, HEAD, PAGE, compare, page
from serde.formats.mxnet.ops.output_layers import plain_kernels
from testing.mxnet_live import live_mxnet


def test_the_page_is_what_mxnet_computes():
    """Run ``python -m conformance.mxnet_kernels`` after a change of cases."""
    live_mxnet()
    results = list(compare())
    assert {r.case.op for r in results if r.kind == DIFFER} == set(plain_kernels.rules)
    assert rows(PAGE.read_text().splitlines()) == rows(list(page(results)))


def rows(lines):
    """The operators that are not the same: how many are changes with every new case."""
    return lines[lines.index(HEAD) :]
