"""Where MXNet can be compared with on products of integers."""

from __future__ import annotations

import pytest

from serde.bridges.int8_products import adds_int8_exactly

REASON = "MXNet adds up products of int8 inexactly on this processor, which has no VNNI"
needs_exact_int8 = pytest.mark.skipif(not adds_int8_exactly(), reason=REASON)
LAYERS = ("_sg_mkldnn_", "_contrib_quantized_conv", "_contrib_quantized_fully_connected")


def skip_inexact(case) -> None:
    """Skip a case of an integer layer where what MXNet computes is not what the layer means."""
    takes_integers = any(x.dtype in ("int8", "uint8") for x in case.inputs)
    if case.op.startswith(LAYERS) and takes_integers and not adds_int8_exactly():
        pytest.skip(REASON)
