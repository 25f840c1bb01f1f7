"""Special functions, which ONNX lacks, by their usual approximations."""

from __future__ import annotations

from functools import partial

from serde.decompositions.special import digamma, erfinv, gamma, gammaln
from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads


def read_special(function, g, x: Value):
    """Halves are too coarse to compute in; integers would be cut off below the true one."""
    require(x.type.kind == "f", f"a special function of {x.type.value} numbers")
    if x.type in (DType.FLOAT32, DType.FLOAT64):
        return function(g, x)
    return g.cast_like(function(g, g.cast(x, DType.FLOAT32)), x)


FUNCTIONS = {"digamma": digamma, "erfinv": erfinv, "gamma": gamma, "gammaln": gammaln}
for _name, _function in FUNCTIONS.items():
    reads(_name)(partial(read_special, _function))
