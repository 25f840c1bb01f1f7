"""Operators that draw random numbers.

They are in a table of their own, as nothing is read of them unless asked for. Each takes ``draw``
first, see ``distributions``.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints, axes_of
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable
from serde.spec.schema import ELEMENT_TYPES

from ...rules import Floats, dtype_of
from ...target import TYPES, writes
from . import distributions as d

draws = RuleTable("mxnet → ir")
IGNORED = ("ctx",)
OPERAND, REQUIRED = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty


def cast_to(g, x: Value, dtype: str):
    return g.cast(x, DType.FLOAT32 if dtype == "None" else dtype_of(dtype))


def with_attribute_parameters(rule, function, numbers):
    """``rule`` for a distribution, with its numbers as attributes: their names, with defaults.

    ``rule`` takes the distribution and its numbers first. Where it takes any operands, they stand
    for numbers that are None.
    """

    def read(*operands, **attrs):
        values = [attrs.pop(n, default) for n, default in numbers.items()]
        return rule(function, values, *operands, **attrs)

    places = [Parameter(f"x{i}", OPERAND, default=None) for i in range(len(numbers))]
    declared: list[Parameter] = []
    kind: Any = float
    for parameter in [*signature(rule, eval_str=True).parameters.values()][2:]:
        optional = parameter.kind is Parameter.VAR_POSITIONAL
        declared += places if optional else [parameter]
        kind = float | None if optional else kind
    for name, default in numbers.items():
        its = int if isinstance(default, int) else kind
        declared.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=its))
    read.__signature__ = Signature(declared)  # type: ignore[attr-defined]
    return read


def read_fixed(function, numbers, draw, g, *, shape: Ints = (), dtype="None"):
    """Numbers of one distribution."""
    require(shape, "no shape is given")
    return cast_to(
        g, function(draw, g, shape, *(g.const(n, DType.FLOAT32) for n in numbers)), dtype
    )


def read_like(function, numbers, draw, g, x):
    """As many as ``x`` has, in its type."""
    y = function(draw, g, g.sizes_of(x), *(g.const(n, DType.FLOAT32) for n in numbers))
    return g.cast_like(y, x)


@draws("_random_randint", ignore=IGNORED)
def read_randint(draw, g, *, low: int, high: int, shape: Ints = (), dtype="None"):
    """From ``low`` to below ``high``."""
    require(0 < high - low <= 1 << 24, f"numbers from {low} to {high}, finer than the noise")
    require(shape, "no shape is given")
    noise = g.Floor(g.Mul(draw(g, "uniform", shape), float(high - low)))
    integers = g.cast(noise, DType.INT32 if dtype == "None" else dtype_of(dtype))
    return g.Add(integers, low)


def read_sample(function, draw, g, a, *, shape: Ints = (), dtype="None"):
    return draw_for_each(function, draw, g, shape, dtype, a)


def read_sample_two(function, draw, g, a, b, *, shape: Ints = (), dtype="None"):
    return draw_for_each(function, draw, g, shape, dtype, a, b)


def draw_for_each(function, draw, g, shape: Ints, dtype: str, *parameters):
    """``shape`` numbers for each parameter, behind the parameters' own axes."""
    sizes = [*g.sizes_of(parameters[0]), *shape]
    rank = parameters[0].rank
    spread = (
        g.Unsqueeze(g.cast(p, DType.FLOAT32), list(range(rank, rank + len(shape))))
        for p in parameters
    )
    return cast_to(g, function(draw, g, sizes, *spread), dtype)


DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"low": 0.0, "high": 1.0},
    "normal": {"loc": 0.0, "scale": 1.0},
    "gamma": {"alpha": 1.0, "beta": 1.0},
    "exponential": {"lam": 1.0},
    "poisson": {"lam": 1.0},
    "negative_binomial": {"k": 1, "p": 1.0},
    "generalized_negative_binomial": {"mu": 1.0, "alpha": 1.0},
}
for _name, _numbers in DISTRIBUTIONS.items():
    _function = getattr(d, _name)
    _sample = read_sample if len(_numbers) == 1 else read_sample_two
    draws(f"_random_{_name}", ignore=IGNORED)(
        with_attribute_parameters(read_fixed, _function, _numbers)
    )
    draws(f"_random_{_name}_like")(with_attribute_parameters(read_like, _function, _numbers))
    draws(f"_sample_{_name}")(partial(_sample, _function))


@draws("_sample_multinomial", "_sample_categorical")
def read_sample_multinomial(draw, g, x, *, shape: Ints = (), get_prob=False, dtype="int32"):
    """Places along the last axis, as likely as ``x`` says, and the logarithms of that."""
    count = int(np.prod(shape, dtype=np.int64))
    sizes = g.sizes_of(x)[:-1]
    indices = d.draw_indices(draw, g, sizes, g.cast(x, DType.FLOAT32), count)
    final = [*sizes, *shape] or [1]
    y = g.Reshape(g.cast(indices, dtype_of(dtype)), g.shape_from(final))
    if not get_prob:
        return y
    chances = g.Log(g.GatherElements(x, indices, axis=x.rank - 1))
    return y, g.Reshape(chances, g.shape_from(final))


@draws("Dropout:always", ignore=("mode", "cudnn_off"))
def read_lasting_dropout(draw, g, x, *, p=0.5, axes: Ints = ()):
    """Dropout that goes on after training; what it drops, it drops all along ``axes``."""
    require(0 <= p < 1, f"p={p} of all numbers are to be dropped")
    shared = axes_of(axes, x.rank)
    sizes = [1 if a in shared else g.size_of(x, a) for a in range(x.rank)]
    kept = g.cast_like(g.GreaterOrEqual(draw(g, "uniform", sizes), p), x)
    return g.Mul(x, g.Div(kept, 1 - p))


@draws("_shuffle")
def read_shuffle(draw, g, x):
    """Along the first axis."""
    count = g.size_of(x, 0)
    order = g.TopK(draw(g, "uniform", [count]), g.shape_from([count]), axis=0, outputs=2)[1]
    return g.Gather(x, order, axis=0)


def draw_numpy(function, draw, g, size: Ints | None, operands, numbers, before=False):
    """Numbers of the shape of all parameters, or ``size``, or with ``before`` both in a row.

    A parameter is an operand where its attribute is None. In MXNet 2.0 a size of -2 in front stands
    for the shape of the parameters.
    """
    if size is not None and size[:1] == (-2,):
        size, before = size[1:], True
    tensors = iter(g.cast(x, DType.FLOAT32) for x in operands if x is not None)
    full = [next(tensors) if n is None else g.const(n, DType.FLOAT32) for n in numbers]
    common = full[0]
    for value in full[1:]:
        common = g.Add(common, value)
    sizes = g.sizes_of(common)
    if size is not None:
        sizes = [*size, *sizes] if before else list(size)
    return function(draw, g, sizes, *full)


def read_sized(function, numbers, draw, g, *operands, size: Ints | None = None):
    return draw_numpy(function, draw, g, size, operands, numbers)


def read_typed(function, numbers, draw, g, *operands, size: Ints | None = None, dtype="float32"):
    return cast_to(g, draw_numpy(function, draw, g, size, operands, numbers), dtype)


def read_rows(function, numbers, draw, g, *operands, size: Ints | None = None, dtype="float32"):
    return cast_to(g, draw_numpy(function, draw, g, size, operands, numbers, before=True), dtype)


RANGE, LOCATED = dict.fromkeys(("low", "high"), REQUIRED), dict.fromkeys(("loc", "scale"), REQUIRED)
NUMPY: dict[str, Any] = {
    "uniform": (read_typed, d.uniform, RANGE),
    "uniform_n": (read_rows, d.uniform, RANGE),
    "normal": (read_typed, d.normal, LOCATED),
    "normal_n": (read_rows, d.normal, LOCATED),
    "gamma": (read_typed, d.gamma, dict.fromkeys(("shape", "scale"), REQUIRED)),
    "gumbel": (read_sized, d.gumbel, LOCATED),
    "logistic": (read_sized, d.logistic, LOCATED),
    "exponential": (read_sized, d.scaled_exponential, {"scale": 1.0}),
    "rayleigh": (read_sized, d.rayleigh, {"scale": 1.0}),
    "pareto": (read_sized, d.pareto, {"a": None}),
    "powerd": (read_sized, d.power, {"a": None}),
    "weibull": (read_sized, d.weibull, {"a": None}),
}
for _name, (_rule, _function, _numbers) in NUMPY.items():
    draws(f"_npi_{_name}", ignore=IGNORED)(with_attribute_parameters(_rule, _function, _numbers))


@draws("_npi_bernoulli", ignore=IGNORED)
def read_bernoulli(
    draw, g, x=None, *, prob: float | None, logit: float | None, size: Ints | None = None,
    dtype="float32", is_logit: bool,
):  # fmt: skip
    """1 with a probability, which may be given as a logit."""

    def below(draw, g, sizes, chance):
        chance = g.Sigmoid(chance) if is_logit else chance
        return g.Less(draw(g, "uniform", sizes), chance)

    chance = logit if is_logit else prob
    return cast_to(g, draw_numpy(below, draw, g, size, (x,), (chance,)), dtype)


@draws("_npi_choice", ignore=IGNORED)
def read_choice(
    draw, g, x=None, y=None, *, a: int | None, size: Ints | None, replace=True, weighted=False
):
    """Places among ``a``, or along the first operand; the last operand holds their chances."""
    operands = [v for v in (x, y) if v is not None]
    chances = operands.pop() if weighted else None
    count = g.size_of(operands[0], 0) if a is None else a
    shape, number = size or (), int(np.prod(size or (), dtype=np.int64))
    if replace and chances is not None:
        indices = d.draw_indices(draw, g, [], g.cast(chances, DType.FLOAT32), number)
    elif replace:
        most = g.cast(g.shape_from([count]), DType.FLOAT32)
        indices = g.Floor(g.Mul(draw(g, "uniform", [number]), most))
    else:
        keys = draw(g, "uniform", [count])
        if chances is not None:  # the least waiting times: Efraimidis and Spirakis (2006)
            keys = g.Div(g.Log(g.Max(keys, d.TINY)), g.cast(chances, DType.FLOAT32))
        indices = g.TopK(keys, [number], axis=0, outputs=2)[1]
    return g.Reshape(g.cast(indices, DType.INT64), list(shape))


@draws("_npi_multinomial")
def read_numpy_multinomial(
    draw, g, x=None, *, n: int, pvals: Floats | None = None, size: Ints | None = None
):
    """How often each of some cases comes in ``n`` trials."""
    chances = g.const(pvals, DType.FLOAT32) if x is None else g.cast(x, DType.FLOAT32)
    shape = size or ()
    indices = d.draw_indices(draw, g, [], chances, n * int(np.prod(shape, dtype=np.int64)))
    trials = g.Reshape(indices, [*shape, n, 1])
    count = g.size_of(chances, 0)
    hit = g.Equal(trials, g.index_range(count))
    return g.ReduceSum(g.cast(hit, DType.INT64), [len(shape)], keepdims=0)


def write_fixed(function, numbers, s, *, dtype, shape):
    kind = ELEMENT_TYPES[dtype]
    require(kind.kind == "f" and kind in TYPES, f"random numbers of {kind.value} elements")
    name, attributes = function
    return s[name](**dict(zip(attributes, numbers, strict=True)), shape=shape, dtype=kind.value)


def write_like(function, numbers, s, x, *, dtype: int | None = None):
    """Random numbers in the shape of ``x``; MXNet seeds all of them together."""
    kind = x.type if dtype is None else ELEMENT_TYPES[dtype]
    require(kind.kind == "f", f"random numbers of {kind.value} elements")
    like = s.Cast(x, dtype=kind.value)
    name, attributes = function
    if s.release.has(f"{name}_like"):
        return s[f"{name}_like"](like, **dict(zip(attributes, numbers, strict=True)))
    none = s.zeros_like(like)  # before MXNet 1.3 one number for each of the parameters
    parameters = [s["_plus_scalar"](none, scalar=v) for v in numbers]
    return s[name.replace("_random", "_sample")](*parameters, dtype=kind.value)


# The numbers of ONNX's distributions, and their names in MXNet.
NOISE = {"Uniform": {"low": "low", "high": "high"}, "Normal": {"mean": "loc", "scale": "scale"}}
for _kind, _names in NOISE.items():
    _function = f"_random_{_kind.lower()}", tuple(_names.values())
    _numbers = dict.fromkeys(_names, REQUIRED)
    for _op, _rule in {f"Random{_kind}": write_fixed, f"Random{_kind}Like": write_like}.items():
        writes(_op, ignore=("seed",))(with_attribute_parameters(_rule, _function, _numbers))


@writes("Multinomial", ignore=("seed",))
def write_multinomial(s, x, *, dtype, sample_size):
    """ONNX has logarithms of the chances, MXNet the chances."""
    kind = ELEMENT_TYPES[dtype]
    require(kind in (DType.INT32, DType.INT64), f"{kind.value} samples")
    chances = s.softmax(x, axis=1)
    drawn = s["_sample_multinomial"](chances, shape=(sample_size,), dtype="int32")
    return s.Cast(drawn, dtype=kind.value)
