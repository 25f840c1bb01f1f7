"""Attributes that changed nothing but where they are given: notes that went, and operands."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import Value

from . import above, below
from .reduction import SINCE

# Attributes that have no effect on what the operators of the other version compute.
DROPPED = (
    # ``round_mode`` concerns float8_e8m0, and ``saturate`` the 8-bit floats, which are as new.
    (below[24], "round_mode", ("Cast",)),
    (below[19], "saturate", ("Cast",)),
    (above[7], "broadcast", ("Gemm",)),  # it always does since
    # The number of outputs says the same; a Dropout is converted to be run, not to be trained.
    (above[7], "is_test", ("BatchNormalization", "Dropout")),
    (above[7], "output_sequence", ("RNN", "GRU", "LSTM")),  # the first output is always computed
    # A note for the memory planner.
    (
        above[6],
        "consumed_inputs",
        "Abs Add BatchNormalization Ceil Clip Div Dropout Elu Exp Floor HardSigmoid "
        "InstanceNormalization LeakyRelu Log Max Mean Min Mul Neg PRelu Reciprocal Relu Selu "
        "Sigmoid Sqrt Sub Sum Tanh".split(),
    ),
)
# Lists of integers that became the last operand.
OPERANDS = {("Squeeze", 13): "axes", ("Unsqueeze", 13): "axes", ("Reshape", 5): "shape"}
OPERANDS |= dict.fromkeys(SINCE.items(), "axes")


def drop_attribute(op, g, *operands: Value, outputs=1, **rest):
    return g[op](*operands, outputs=outputs, **rest)


def attribute_as_operand(op, name, g, x: Value, **attrs):
    given = attrs.pop(name, None)
    return g[op](x, None if given is None else list(given), **attrs)


for _table, _name, _ops in DROPPED:
    for _op in _ops:
        _table(_op, ignore=(_name,))(partial(drop_attribute, _op))
for (_op, _version), _name in OPERANDS.items():
    above[_version](_op, ignore=("consumed_inputs",))(partial(attribute_as_operand, _op, _name))
