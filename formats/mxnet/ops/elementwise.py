"""Elementwise operators: unary, binary, with a scalar, comparisons."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.graph import Value
from serde.idioms import cast, cast_like, full_like, is_true, scalar

from ..rules import dtype_of, reads

UNARY = {
    "abs": "Abs",
    "ceil": "Ceil",
    "cos": "Cos",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
BINARY = {
    "broadcast_add": "Add",
    "broadcast_plus": "Add",
    "broadcast_sub": "Sub",
    "broadcast_minus": "Sub",
    "broadcast_mul": "Mul",
    "broadcast_div": "Div",
    "broadcast_maximum": "Max",
    "broadcast_minimum": "Min",
    "broadcast_power": "Pow",
    "elemwise_add": "Add",
    "_add": "Add",
    "_plus": "Add",
    "_Plus": "Add",
    "_grad_add": "Add",
    "elemwise_sub": "Sub",
    "_sub": "Sub",
    "_minus": "Sub",
    "_Minus": "Sub",
    "elemwise_mul": "Mul",
    "_mul": "Mul",
    "_Mul": "Mul",
    "elemwise_div": "Div",
    "_div": "Div",
    "_Div": "Div",
    "_maximum": "Max",
    "_Maximum": "Max",
    "_minimum": "Min",
    "_Minimum": "Min",
    "_power": "Pow",
    "_Power": "Pow",
}
COMPARISONS = {
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "lesser": "Less",
    "lesser_equal": "LessOrEqual",
}
SCALARS = {  # operator: (ONNX's, whether the scalar stands on the left)
    "_plus_scalar": ("Add", False),
    "_PlusScalar": ("Add", False),
    "_minus_scalar": ("Sub", False),
    "_MinusScalar": ("Sub", False),
    "_rminus_scalar": ("Sub", True),
    "_RMinusScalar": ("Sub", True),
    "_mul_scalar": ("Mul", False),
    "_MulScalar": ("Mul", False),
    "_div_scalar": ("Div", False),
    "_DivScalar": ("Div", False),
    "_rdiv_scalar": ("Div", True),
    "_RDivScalar": ("Div", True),
    "_power_scalar": ("Pow", False),
    "_PowerScalar": ("Pow", False),
    "_rpower_scalar": ("Pow", True),
    "_RPowerScalar": ("Pow", True),
    "_maximum_scalar": ("Max", False),
    "_MaximumScalar": ("Max", False),
    "_minimum_scalar": ("Min", False),
    "_MinimumScalar": ("Min", False),
}

reads.rename(UNARY)


def read_binary(op, g, a: Value, b: Value):
    return g[op](a, b)


for _name, _op in BINARY.items():
    reads(_name)(partial(read_binary, _op))


def read_comparison(op, g, a: Value, b: Value):
    """MXNet gives 0 and 1 in the type of its operands."""
    return cast_like(g, g[op](a, b), a)


def read_scalar_comparison(op, g, a: Value, *, scalar: float, is_int: bool = True):
    return cast_like(g, g[op](a, number(g, scalar, a, is_int)), a)


for _name, _op in COMPARISONS.items():
    reads(f"broadcast_{_name}", f"_{_name}")(partial(read_comparison, _op))
    reads(f"_{_name}_scalar")(partial(read_scalar_comparison, _op))


def number(g, value: float, like: Value, is_int: bool):
    """The scalar operand of a node, in the type of its tensor."""
    whole = float(value).is_integer()
    fits = like.type.kind == "f" or whole
    require(fits, f"scalar={value} with {like.type.value} elements")
    return scalar(g, value, like)


def read_scalar(op, left, g, x: Value, *, scalar: float, is_int: bool = True):
    y = number(g, scalar, x, is_int)
    return g[op](y, x) if left else g[op](x, y)


for _name, (_op, _left) in SCALARS.items():
    reads(_name)(partial(read_scalar, _op, _left))


@reads("square")
def read_square(g, x):
    return g.Mul(x, x)


@reads("rsqrt")
def read_rsqrt(g, x):
    return g.Reciprocal(g.Sqrt(x))


@reads("clip")
def read_clip(g, x, *, a_min: float, a_max: float):
    return g.Clip(x, scalar(g, a_min, x), scalar(g, a_max, x))


@reads("Cast", "cast")
def read_cast(g, x, *, dtype: str):
    return cast(g, x, dtype_of(dtype))


@reads("amp_cast")
def read_amp_cast(g, x, *, dtype: str):
    return cast(g, x, dtype_of(dtype))


@reads("where")
def read_where(g, condition, x, y):
    """A condition of one axis chooses whole rows."""
    chosen = is_true(g, condition)
    if condition.rank == 1 and x.rank > 1:
        chosen = g.Unsqueeze(chosen, list(range(1, x.rank)))
    return g.Where(chosen, x, y)


@reads("add_n", "ElementWiseSum", "_ElementWiseSum", "element_wise_sum", ignore=("num_args",))
def read_add_n(g, *xs):
    return xs[0] if len(xs) == 1 else g.Sum(*xs)


@reads("_copy", "identity", "BlockGrad", "stop_gradient", "_identity_with_attr_like_rhs")
def read_identity(g, x, like=None):
    return x


@reads("Dropout", ignore=("p", "axes", "cudnn_off"), only={"mode": ("training",)})
def read_dropout(g, x):
    return x


@reads("zeros_like")
def read_zeros_like(g, x):
    return full_like(g, x, 0)


@reads("ones_like")
def read_ones_like(g, x):
    return full_like(g, x, 1)


@reads("logical_not")
def read_logical_not(g, x):
    return cast_like(g, g.Not(is_true(g, x)), x)


def read_logical(op, g, a, b):
    return cast_like(g, g[op](is_true(g, a), is_true(g, b)), a)


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    reads(f"broadcast_logical_{_name}", f"_logical_{_name}")(partial(read_logical, _op))
