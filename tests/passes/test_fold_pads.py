"""A Pad of zeros becomes the pads of the convolution after it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.convolutions import check_operators_left

SPATIAL = [0, 0, 1, 2, 0, 0, 0, 3]
CASES = {  # the nodes, the pads, and the operators that are left
    "zeros": ("p = Pad(x, a) y = Conv(p, w)", SPATIAL, ["Conv"]),
    "pads of its own": ("p = Pad(x, a) y = Conv<pads = [1,1,0,2]>(p, w)", SPATIAL, ["Conv"]),
    "two readers": ("p = Pad(x, a) c = Conv(p, w) d = Conv(p, w) y = Mul(c, d)", SPATIAL,
                    ["Conv", "Mul"]),
    "another number": ("f = Constant<value_float = 1.0>() p = Pad(x, a, f) y = Conv(p, w)", SPATIAL,
                       ["Pad", "Conv"]),
    "edges": ('p = Pad<mode = "edge">(x, a) y = Conv(p, w)', SPATIAL, ["Pad", "Conv"]),
    "of samples": ("p = Pad(x, a) y = Conv(p, w)", [1, 0, 0, 0, 0, 0, 0, 0], ["Pad", "Conv"]),
    "that cut": ("p = Pad(x, a) y = Conv(p, w)", [0, 0, -1, 0, 0, 0, 0, 0], ["Pad", "Conv"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pads(name, tmp_path):
    body, pads, operators = CASES[name]
    weight = np.random.default_rng(0).standard_normal((6, 4, 3, 3), np.float32)
    check_operators_left(body, {"a": np.array(pads), "w": weight}, operators, tmp_path)
