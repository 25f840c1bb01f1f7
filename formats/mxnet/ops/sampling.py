"""Operators that draw random numbers.

They are in a table of their own, as nothing is read of them unless asked for. Each takes ``draw``
first, see ``distributions``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.geometry import Ints
from serde.graph import DType, Value
from serde.idioms import cast, cast_like, shape_from, size_of, sizes_of, steps
from serde.rules import RuleTable

from ..rules import Floats, dtype_of
from . import distributions as d

draws = RuleTable("mxnet → ir")
GIVEN = ("ctx",)


def typed(g, x: Value, dtype: str):
    return cast(g, x, DType.FLOAT32 if dtype == "None" else dtype_of(dtype))


def drawn(function, draw, g, shape, dtype: str, *numbers):
    """Numbers of one distribution."""
    require(shape, "no shape is given")
    return typed(g, function(draw, g, shape, *(g.const(n, DType.FLOAT32) for n in numbers)), dtype)


def drawn_like(function, draw, g, x: Value, *numbers):
    """As many as ``x`` has, in its type."""
    found = function(draw, g, sizes_of(g, x), *(g.const(n, DType.FLOAT32) for n in numbers))
    return cast_like(g, found, x)


@draws("_random_uniform", ignore=GIVEN)
def read_uniform(draw, g, *, low=0.0, high=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.uniform, draw, g, shape, dtype, low, high)


@draws("_random_normal", ignore=GIVEN)
def read_normal(draw, g, *, loc=0.0, scale=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.normal, draw, g, shape, dtype, loc, scale)


@draws("_random_gamma", ignore=GIVEN)
def read_gamma(draw, g, *, alpha=1.0, beta=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.gamma, draw, g, shape, dtype, alpha, beta)


@draws("_random_exponential", ignore=GIVEN)
def read_exponential(draw, g, *, lam=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.exponential, draw, g, shape, dtype, lam)


@draws("_random_poisson", ignore=GIVEN)
def read_poisson(draw, g, *, lam=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.poisson, draw, g, shape, dtype, lam)


@draws("_random_negative_binomial", ignore=GIVEN)
def read_negative_binomial(draw, g, *, k=1, p=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.negative_binomial, draw, g, shape, dtype, k, p)


@draws("_random_generalized_negative_binomial", ignore=GIVEN)
def read_generalized(draw, g, *, mu=1.0, alpha=1.0, shape: Ints = (), dtype="None"):
    return drawn(d.generalized_negative_binomial, draw, g, shape, dtype, mu, alpha)


@draws("_random_uniform_like")
def read_uniform_like(draw, g, x, *, low=0.0, high=1.0):
    return drawn_like(d.uniform, draw, g, x, low, high)


@draws("_random_normal_like")
def read_normal_like(draw, g, x, *, loc=0.0, scale=1.0):
    return drawn_like(d.normal, draw, g, x, loc, scale)


@draws("_random_gamma_like")
def read_gamma_like(draw, g, x, *, alpha=1.0, beta=1.0):
    return drawn_like(d.gamma, draw, g, x, alpha, beta)


@draws("_random_exponential_like")
def read_exponential_like(draw, g, x, *, lam=1.0):
    return drawn_like(d.exponential, draw, g, x, lam)


@draws("_random_poisson_like")
def read_poisson_like(draw, g, x, *, lam=1.0):
    return drawn_like(d.poisson, draw, g, x, lam)


@draws("_random_negative_binomial_like")
def read_negative_binomial_like(draw, g, x, *, k=1, p=1.0):
    return drawn_like(d.negative_binomial, draw, g, x, k, p)


@draws("_random_generalized_negative_binomial_like")
def read_generalized_like(draw, g, x, *, mu=1.0, alpha=1.0):
    return drawn_like(d.generalized_negative_binomial, draw, g, x, mu, alpha)


@draws("_random_randint", ignore=GIVEN)
def read_randint(draw, g, *, low: int, high: int, shape: Ints = (), dtype="None"):
    """From ``low`` to below ``high``."""
    require(0 < high - low <= 1 << 24, f"numbers from {low} to {high}, finer than the noise")
    require(shape, "no shape is given")
    noise = g.Floor(g.Mul(draw(g, "uniform", shape), float(high - low)))
    whole = cast(g, noise, DType.INT32 if dtype == "None" else dtype_of(dtype))
    return g.Add(whole, low)


def read_sample(function, draw, g, a, *, shape: Ints = (), dtype="None"):
    return for_each(function, draw, g, shape, dtype, a)


def read_sample_two(function, draw, g, a, b, *, shape: Ints = (), dtype="None"):
    return for_each(function, draw, g, shape, dtype, a, b)


def for_each(function, draw, g, shape: Ints, dtype: str, *parameters):
    """``shape`` numbers for each parameter, behind the parameters' own axes."""
    sizes = [*sizes_of(g, parameters[0]), *shape]
    rank = parameters[0].rank
    spread = (
        g.Unsqueeze(cast(g, p, DType.FLOAT32), list(range(rank, rank + len(shape))))
        for p in parameters
    )
    return typed(g, function(draw, g, sizes, *spread), dtype)


for _name in ("exponential", "poisson"):
    draws(f"_sample_{_name}")(partial(read_sample, getattr(d, _name)))
for _name in ("uniform", "normal", "gamma", "negative_binomial", "generalized_negative_binomial"):
    draws(f"_sample_{_name}")(partial(read_sample_two, getattr(d, _name)))


@draws("_sample_multinomial")
def read_sample_multinomial(draw, g, x, *, shape: Ints = (), get_prob=False, dtype="int32"):
    """Places along the last axis, as likely as ``x`` says, and the logarithms of that."""
    count = int(np.prod(shape, dtype=np.int64))
    sizes = sizes_of(g, x)[:-1]
    found = d.places(draw, g, sizes, cast(g, x, DType.FLOAT32), count)
    final = [*sizes, *shape] or [1]
    y = g.Reshape(cast(g, found, dtype_of(dtype)), shape_from(g, final))
    if not get_prob:
        return y
    chances = g.Log(g.GatherElements(x, found, axis=x.rank - 1))
    return y, g.Reshape(chances, shape_from(g, final))


@draws("_shuffle")
def read_shuffle(draw, g, x):
    """Along the first axis."""
    count = size_of(g, x, 0)
    order = g.TopK(draw(g, "uniform", [count]), shape_from(g, [count]), axis=0, outputs=2)[1]
    return g.Gather(x, order, axis=0)


def numpy_drawn(function, draw, g, size: Ints | None, operands, numbers, before=False):
    """Numbers of the shape of all parameters, or ``size``, or with ``before`` both in a row.

    A parameter is an operand where its attribute is None.
    """
    given = iter(cast(g, x, DType.FLOAT32) for x in operands if x is not None)
    full = [next(given) if n is None else g.const(n, DType.FLOAT32) for n in numbers]
    common = full[0]
    for value in full[1:]:
        common = g.Add(common, value)
    sizes = sizes_of(g, common)
    if size is not None:
        sizes = [*size, *sizes] if before else list(size)
    return function(draw, g, sizes, *full)


def read_numpy_uniform(
    before, draw, g, a=None, b=None, *, low: float | None, high: float | None,
    size: Ints | None = None, dtype="float32",
):  # fmt: skip
    return typed(g, numpy_drawn(d.uniform, draw, g, size, (a, b), (low, high), before), dtype)


def read_numpy_normal(
    before, draw, g, a=None, b=None, *, loc: float | None, scale: float | None,
    size: Ints | None = None, dtype="float32",
):  # fmt: skip
    return typed(g, numpy_drawn(d.normal, draw, g, size, (a, b), (loc, scale), before), dtype)


for _end, _before in (("", False), ("_n", True)):
    draws(f"_npi_uniform{_end}", ignore=GIVEN)(partial(read_numpy_uniform, _before))
    draws(f"_npi_normal{_end}", ignore=GIVEN)(partial(read_numpy_normal, _before))


@draws("_npi_gamma", ignore=GIVEN)
def read_numpy_gamma(
    draw, g, a=None, b=None, *, shape: float | None, scale: float | None,
    size: Ints | None = None, dtype="float32",
):  # fmt: skip
    return typed(g, numpy_drawn(d.gamma, draw, g, size, (a, b), (shape, scale)), dtype)


def read_located(
    function, draw, g, a=None, b=None, *, loc: float | None, scale: float | None,
    size: Ints | None = None,
):  # fmt: skip
    return numpy_drawn(function, draw, g, size, (a, b), (loc, scale))


def read_scaled(function, draw, g, a=None, *, scale: float | None = 1.0, size: Ints | None = None):
    return numpy_drawn(function, draw, g, size, (a,), (scale,))


def read_shaped(function, draw, g, x=None, *, a: float | None = None, size: Ints | None = None):
    return numpy_drawn(function, draw, g, size, (x,), (a,))


for _rule, _functions in (
    (read_located, {"gumbel": d.gumbel, "logistic": d.logistic}),
    (read_scaled, {"exponential": d.scaled_exponential, "rayleigh": d.rayleigh}),
    (read_shaped, {"pareto": d.pareto, "weibull": d.weibull}),
):
    for _name, _function in _functions.items():
        draws(f"_npi_{_name}", ignore=GIVEN)(partial(_rule, _function))
draws("_npi_powerd")(partial(read_shaped, d.power))


@draws("_npi_bernoulli", ignore=GIVEN)
def read_bernoulli(
    draw, g, x=None, *, prob: float | None, logit: float | None, size: Ints | None = None,
    dtype="float32", is_logit: bool,
):  # fmt: skip
    """1 with a probability, which may be given as a logit."""

    def below(draw, g, sizes, chance):
        chance = g.Sigmoid(chance) if is_logit else chance
        return g.Less(draw(g, "uniform", sizes), chance)

    chance = logit if is_logit else prob
    return typed(g, numpy_drawn(below, draw, g, size, (x,), (chance,)), dtype)


@draws("_npi_choice", ignore=GIVEN)
def read_choice(
    draw, g, x=None, y=None, *, a: int | None, size: Ints | None, replace=True, weighted=False
):
    """Places among ``a``, or along the first operand; the last operand holds their chances."""
    operands = [v for v in (x, y) if v is not None]
    chances = operands.pop() if weighted else None
    count = size_of(g, operands[0], 0) if a is None else a
    shape, number = size or (), int(np.prod(size or (), dtype=np.int64))
    if replace and chances is not None:
        found = d.places(draw, g, [], cast(g, chances, DType.FLOAT32), number)
    elif replace:
        most = cast(g, shape_from(g, [count]), DType.FLOAT32)
        found = g.Floor(g.Mul(draw(g, "uniform", [number]), most))
    else:
        keys = draw(g, "uniform", [count])
        if chances is not None:  # the least waiting times: Efraimidis and Spirakis (2006)
            keys = g.Div(g.Log(g.Max(keys, d.TINY)), cast(g, chances, DType.FLOAT32))
        found = g.TopK(keys, [number], axis=0, outputs=2)[1]
    return g.Reshape(cast(g, found, DType.INT64), list(shape))


@draws("_npi_multinomial")
def read_numpy_multinomial(
    draw, g, x=None, *, n: int, pvals: Floats | None = None, size: Ints | None = None
):
    """How often each of some cases comes in ``n`` trials."""
    chances = g.const(pvals, DType.FLOAT32) if x is None else cast(g, x, DType.FLOAT32)
    shape = size or ()
    found = d.places(draw, g, [], chances, n * int(np.prod(shape, dtype=np.int64)))
    trials = g.Reshape(found, [*shape, n, 1])
    count = size_of(g, chances, 0)
    hit = g.Equal(trials, steps(g, count))
    return g.ReduceSum(cast(g, hit, DType.INT64), [len(shape)], keepdims=0)
