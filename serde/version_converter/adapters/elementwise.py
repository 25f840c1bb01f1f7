"""Arithmetic, comparison and logic, element by element."""

from __future__ import annotations

from functools import partial, reduce

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec import schema
from serde.spec.traits import BROADCASTS

from . import decomposition, downgrades, upgrades
from .common import END, FLOATS, broadcast_shapes, cast, reshape_exactly

CHOSEN_AS_INT64 = {DType.INT16, DType.UINT16, DType.UINT64}  # which its Where has no kernel for


def align_broadcast(op, g, a: Value, b: Value, *, broadcast: int = 0, axis: int | None = None):
    """Before opset 7 ``axis`` was the axis of the first operand where the second one's begin."""
    if broadcast and axis is not None:
        require(-a.rank <= axis < a.rank, f"axis {axis} of an operand of {a.rank} axes")
        behind = a.rank - b.rank - (axis % a.rank)
        with g.at_opset(13):
            b = g.Unsqueeze(b, list(range(b.rank, b.rank + behind))) if behind > 0 else b
    return g[op](a, b)


for _op in BROADCASTS:
    if schema.first_version(_op) == 1 and "broadcast" in schema.operator(_op, 6).attributes:
        upgrades[7](_op)(partial(align_broadcast, _op))


def drop_consumed_inputs(op, g, *operands: Value, consumed_inputs: Ints | None = None, **rest):
    """``consumed_inputs`` of opset 1 was a note for the memory planner."""
    return g[op](*operands, **rest)


for _op in (
    "Abs Add Ceil Clip Div Dropout Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log "
    "Max Mean Min Mul Neg PRelu Reciprocal Relu Selu Sigmoid Sqrt Sub Sum Tanh "
    "BatchNormalization".split()
):
    upgrades[6](_op)(partial(drop_consumed_inputs, _op))


@upgrades[7]("Gemm")
def gemm_always_broadcasts(g, a: Value, b: Value, c: Value, *, broadcast: int, **rest):
    return g.Gemm(a, b, c, **rest)


@downgrades[11]("Gemm")
def gemm_with_bias(g, a: Value, b: Value, c=None, **rest):
    """The third operand was required before opset 11."""
    return g.Gemm(a, b, g.const(0, a.type) if c is None else c, **rest)


def integer_extreme(op, g, *operands: Value):
    """Max and Min of integers, which they took from opset 12 on, chosen by comparing."""
    if operands[0].dtype in FLOATS or len(operands) == 1:
        return g[op](*operands)
    return reduce(partial(choose_by_comparing, g, op), operands)


def choose_by_comparing(g, op: str, a: Value, b: Value):
    """The larger or the smaller."""
    with g.at_opset(11):
        is_chosen = (g.Greater if op == "Max" else g.Less)(a, b)
        if a.dtype in FLOATS:
            is_chosen = g.Or(is_chosen, g.Not(is_number(g, a)))
        return choose(g, is_chosen, a, b)


def choose(g, condition: Value, x: Value, y: Value):
    """Where in integers that ONNX Runtime chooses among; those of uint64 have the same bits."""
    kind = DType.INT64 if x.type in CHOSEN_AS_INT64 else x.type
    return cast(g, g.Where(condition, cast(g, x, kind), cast(g, y, kind)), x.type)


def equalize_shapes(op, g, *operands: Value):
    """Before opset 8 all operands had one shape."""
    if len({v.shape if v.is_static else id(v) for v in operands}) > 1:
        with g.at_opset(8):
            shape = broadcast_shapes(g, *operands)
            operands = tuple(g.Expand(v, shape) for v in operands)
    return g[op](*operands)


def extreme_of_one_shape(op, g, *operands: Value):
    """Before opset 8 ONNX Runtime took no float64 either."""
    if operands[0].dtype is not DType.FLOAT64 or len(operands) == 1:
        return equalize_shapes(op, g, *operands)
    return reduce(partial(choose_by_comparing, g, op), operands)


for _op in ("Max", "Min"):
    downgrades[12](_op)(partial(integer_extreme, _op))
    downgrades[8](_op)(partial(extreme_of_one_shape, _op))
downgrades[8]("Mean")(partial(equalize_shapes, "Mean"))


@downgrades[8]("Sum")
def sum_by_adding(g, *operands: Value):
    return reduce(g.Add, operands)


def compare_or_equal(strict, g, a: Value, b: Value):
    """``a`` beyond ``b``, or equal to it: false where either is NaN."""
    return g.Or(g[strict](a, b), g.Equal(a, b))


decomposition(12, "GreaterOrEqual")(partial(compare_or_equal, "Greater"))
decomposition(12, "LessOrEqual")(partial(compare_or_equal, "Less"))


def is_number(g, x: Value):
    """Whether each element is anything but NaN."""
    return g.Or(g.Less(x, 1.0), g.Greater(x, 0.0))


@downgrades[19]("Equal")
def equal_strings(g, a: Value, b: Value):
    """Before opset 19 only Unique compared strings: equal ones get the same index."""
    if a.dtype is not DType.STRING:
        return g.Equal(a, b)
    with g.at_opset(20):
        shape = broadcast_shapes(g, a, b)
        flat = [g.Reshape(g.Expand(v, shape), [-1]) for v in (a, b)]
        *_, numbers, _ = g.Unique(g.Concat(*flat, axis=0), sorted=0, outputs=4)
        count = g.Shape(flat[0])
        halves = g.Slice(numbers, [0], count, [0], [1]), g.Slice(numbers, count, [END], [0], [1])
        return reshape_exactly(g, g.Equal(*halves), shape)


@downgrades[11]("Equal")
def equal_floats(g, a: Value, b: Value):
    """Equal took no floats before opset 11, and no integers narrower than 32 bits."""
    if a.dtype not in (*FLOATS, DType.UINT64):
        return g.Equal(a, b)
    unequal = g.Or(g.Less(a, b), g.Greater(a, b))
    if a.dtype is DType.UINT64:
        return g.Not(unequal)
    return g.And(g.Not(unequal), g.And(is_number(g, a), is_number(g, b)))


def split_int64(g, x: Value):
    """A 64-bit integer as two float64: how many times 2³², and what is left."""
    times = 2**32
    high = g.Div(x, times)
    return [cast(g, v, DType.FLOAT64) for v in (high, g.Sub(x, g.Mul(high, times)))]


def compare_integers(op, g, a: Value, b: Value):
    """Before opset 9 only floats had an order: compare 64-bit integers in two halves."""
    if a.dtype not in (DType.INT64, DType.UINT64):
        return g[op](a, b)
    (a_high, a_low), (b_high, b_low) = split_int64(g, a), split_int64(g, b)
    tied = g.Equal(g.Div(a, 2**32), g.Div(b, 2**32)) if a.dtype is DType.INT64 else None
    if tied is None:
        tied = g.Not(g.Or(g.Less(a_high, b_high), g.Greater(a_high, b_high)))
    return g.Or(g[op](a_high, b_high), g.And(tied, g[op](a_low, b_low)))


for _op in ("Greater", "Less"):
    downgrades[9](_op)(partial(compare_integers, _op))


@downgrades[9]("MatMul")
def matmul_of_integers(g, a: Value, b: Value):
    """Before opset 9 only floats were multiplied so: add up products of 64-bit integers."""
    if a.dtype not in (DType.INT64, DType.UINT64):
        return g.MatMul(a, b)
    with g.at_opset(13):
        gone = [i for i, v in ((-2, a), (-1, b)) if v.rank == 1]
        a, b = (g.Unsqueeze(v, [i]) if v.rank == 1 else v for v, i in ((a, 0), (b, 1)))
        rows, columns = g.Unsqueeze(a, [a.rank]), g.Unsqueeze(b, [b.rank - 2])
        y = g.ReduceSum(g.Mul(rows, columns), [max(a.rank, b.rank) - 1], keepdims=0)
        return g.Squeeze(y, gone) if gone else y


@decomposition(9, "Sign")
def sign(g, x: Value):
    zero = g.const(0, x.type)
    return g.Sub(cast(g, g.Greater(x, zero), x.type), cast(g, g.Less(x, zero), x.type))


@decomposition(9, "IsNaN")
def is_nan(g, x: Value):
    return g.Not(is_number(g, x))


@decomposition(10, "IsInf")
def is_infinite(g, x: Value, *, detect_negative: int, detect_positive: int):
    """Only infinities stay out of reach of the largest finite number."""
    most = float({DType.FLOAT16: 65504.0, DType.FLOAT64: 1.7976931348623157e308}.get(
        x.type, 3.4028234663852886e38
    ))  # fmt: skip
    up, down = g.Greater(x, most), g.Less(x, -most)
    if detect_negative and detect_positive:
        return g.Or(up, down)
    if detect_negative or detect_positive:
        return up if detect_positive else down
    return g.And(up, down)


@decomposition(11, "Round")
def round_half_to_even(g, x: Value):
    """Up from the floor by more than half, or by a half where the floor is odd."""
    low = g.Floor(x)
    over = g.Sub(x, low)
    odd = g.Greater(g.Sub(low, g.Mul(g.Floor(g.Mul(low, 0.5)), 2.0)), 0.5)
    tied = g.And(g.Not(g.Less(over, 0.5)), odd)
    return g.Add(low, cast(g, g.Or(g.Greater(over, 0.5), tied), x.type))


@decomposition(9, "Where")
def where_by_gathering(g, condition: Value, x: Value, y: Value):
    """Lay both choices side by side and gather one of each pair: exact for every element type."""
    shape = broadcast_shapes(g, condition, x, y)
    pairs = [g.Reshape(g.Expand(v, shape), [-1, 1]) for v in (y, x)]
    count = g.Reshape(g.Size(g.Expand(condition, shape)), [1])
    first = g.Mul(g.Range(0, g.Squeeze(count, [0]), 1), 2)
    chosen = g.Reshape(g.Expand(cast(g, condition, DType.INT64), shape), [-1])
    flat = g.Reshape(g.Concat(*pairs, axis=1), [-1])
    picked = g.Gather(flat, g.Add(first, chosen), axis=0)
    return reshape_exactly(g, picked, shape)


@downgrades[12]("Pow")
def power_of_one_type(g, x: Value, y: Value):
    """Before opset 12 base and exponent were floats of one type."""
    power_dtype = DType.FLOAT64 if DType.FLOAT64 in (x.dtype, y.dtype) else DType.FLOAT32
    if x.dtype is y.dtype and x.dtype in FLOATS:
        return g.Pow(x, y)
    exact = x.dtype in FLOATS and x.dtype is not DType.FLOAT64
    power_dtype = power_dtype if exact else DType.FLOAT64
    return cast(g, g.Pow(cast(g, x, power_dtype), cast(g, y, power_dtype)), x.dtype)


def floor_mod(g, a: Value, b: Value):
    """``a`` less the multiple of ``b`` below it; for floats with the special cases of opset 28."""
    rest = trunc_mod(g, a, b)
    if a.type.kind == "u":
        return rest
    zero = g.const(0, a.type)
    against = g.And(g.Xor(g.Less(rest, zero), g.Less(b, zero)), g.Not(g.Equal(rest, zero)))
    return choose(g, against, g.Add(rest, b), rest)


def trunc_mod(g, a: Value, b: Value):
    """``a`` less the multiple of ``b`` nearer to 0."""
    if a.dtype not in FLOATS:
        return g.Sub(a, g.Mul(g.Div(a, b), b))
    return g.Mod(a, b, fmod=1)


@downgrades[28]("Mod")
def modulus_of_floats(g, a: Value, b: Value, *, fmod: int):
    """Before opset 28 floats had only the remainder that takes the dividend's sign."""
    if fmod or a.dtype not in FLOATS:
        return g.Mod(a, b, fmod=fmod)
    return floor_mod(g, a, b)


@decomposition(10, "Mod")
def modulus(g, a: Value, b: Value, *, fmod: int):
    if a.dtype not in FLOATS:
        return trunc_mod(g, a, b) if fmod else floor_mod(g, a, b)
    x, y = (cast(g, v, DType.FLOAT64) for v in (a, b))
    rest = remainder(g, x, g.Abs(y))
    sign = g.Sub(1.0, g.Mul(cast(g, g.Less(x, 0.0), DType.FLOAT64), 2.0))
    return cast(g, g.Mul(rest, sign), a.type)


def remainder(g, x: Value, y: Value):
    """What subtracting ``y`` leaves of the size of ``x``: long division, each step of it exact.

    A first loop doubles the divisor as long as it fits, a second one halves it and subtracts.
    """
    shape = broadcast_shapes(g, x, y)
    rest, step = g.Abs(g.Expand(x, shape)), g.Expand(y, shape)
    up, down = g.child("doubled"), g.child("subtracted")
    most = g.const(2200, DType.INT64)  # there are fewer powers of two than that

    for body in (up, down):
        body.input("i", DType.INT64, ()), body.input("go", DType.BOOL, ())
    grown = up.input("step", DType.FLOAT64, step.shape)
    twice = up.Add(grown, grown)
    fits = up.And(up.Not(up.Less(rest, twice)), up.Greater(twice, grown))
    some = up.Greater(flat_sum(up, fits), 0.5)
    graph = up.build([some, up.Where(fits, twice, grown)])
    largest = g.Loop(most, True, step, body=graph)

    left, part = (down.input(n, DType.FLOAT64, step.shape) for n in ("rest", "step"))
    more = down.Greater(part, step)
    some = down.Greater(flat_sum(down, more), 0.5)
    reduced = down.Where(down.Less(left, part), left, down.Sub(left, part))
    graph = down.build([some, reduced, down.Where(more, down.Mul(part, 0.5), part)])
    rest, _ = g.Loop(most, True, rest, largest, body=graph, outputs=2)
    real = g.And(g.Less(g.Sub(x, x), 1.0), g.Greater(y, 0.0))
    return g.Where(real, rest, g.Div(g.Sub(x, x), g.Sub(y, y)))  # not a number


def flat_sum(g, x: Value):
    """How many elements are true."""
    return g.ReduceSum(g.Reshape(cast(g, x, DType.FLOAT32), [-1]), [0], keepdims=0)
