"""The codes that say named sizes to MXNet's Reshape, in live MXNet."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.mxnet.ops.shape import reshape_codes
from testing.mxnet_live import live_mxnet

SIZES = {"M": 6, "M*6": 36}


@pytest.mark.parametrize(
    ("own", "sizes"),
    [
        ((5, 2, 2, "M"), (5, 1, 1, 2, 2, "M")),
        ((4, "M"), (2, 2, "M")),
        ((4, 6, "M"), (2, 2, "M*6")),
        (("M", 4), (1, "M", 2, 2)),
    ],
)
def test_codes_say_the_sizes(own, sizes):
    """MXNet writes what -1 stands for to another place behind -4."""
    codes = reshape_codes(own, sizes)
    assert codes is not None
    numbers = [[SIZES.get(d, d) for d in shape] for shape in (own, sizes)]
    x = live_mxnet().nd.array(np.zeros(numbers[0], np.float32))
    assert list(x.reshape(codes).shape) == numbers[1]
