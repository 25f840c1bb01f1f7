"""Where MXNet can be compared with on products of integers."""

from __future__ import annotations

import pytest

from serde.bridges.int8_products import adds_int8_exactly

REASON = "MXNet adds up products of int8 inexactly on this processor, which has no VNNI"
needs_exact_int8 = pytest.mark.skipif(not adds_int8_exactly(), reason=REASON)
LAYERS = ("_sg_mkldnn_", "_contrib_quantized_conv", "_contrib_quantized_fully_connected")


def is_inexact(case) -> bool:
    """Whether a case is of an integer layer whose meaning MXNet does not compute here."""
    takes_integers = any(x.dtype in ("int8", "uint8") for x in case.inputs)
    return case.op.startswith(LAYERS) and takes_integers and not adds_int8_exactly()


def skip_inexact(case) -> None:
    """Skip such a case."""
    if is_inexact(case):
        pytest.skip(REASON)
