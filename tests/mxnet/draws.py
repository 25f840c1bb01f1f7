"""Draws of MXNet's samplers, enough of them to know the distribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

COUNT = 20_000


class Drawing(NamedTuple):
    """A sampler's operands and attributes; ``keep`` is how many numbers it gives for each."""

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]


def numbers(*values: float) -> Any:
    return np.array(values, "float32")


def draw_shape(**attrs: Any) -> Drawing:
    return Drawing((), {"shape": f"({COUNT},)", **attrs})


def like(**attrs: Any) -> Drawing:
    return Drawing((np.zeros((COUNT // 4, 4), "float32"),), attrs)


def each(*parameters: Any, **attrs: Any) -> Drawing:
    return Drawing(parameters, {"shape": f"({COUNT},)", **attrs})


def draw(*operands: Any, size: str = f"({COUNT},)", **attrs: Any) -> Drawing:
    return Drawing(operands, {"size": size, **attrs})


UNIFORM = {"low": -1.5, "high": 3}
NORMAL = {"loc": 2, "scale": 0.5}
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "uniform": [{}, UNIFORM],
    "normal": [{}, NORMAL],
    "gamma": [{}, {"alpha": 0.4, "beta": 2}, {"alpha": 7.5, "beta": 0.5}],
    "exponential": [{}, {"lam": 4}],
    "poisson": [{}, {"lam": 0.3}, {"lam": 150}],
    "negative_binomial": [{}, {"k": 3, "p": 0.4}],
    "generalized_negative_binomial": [{}, {"mu": 2, "alpha": 0.3}, {"mu": 5, "alpha": 0}],
}
TWO = {
    "uniform": (numbers(0, -2), numbers(1, 5)),
    "normal": (numbers(0, 10), numbers(1, 0.1)),
    "gamma": (numbers(0.3, 4), numbers(2, 0.5)),
    "negative_binomial": (numbers(1, 6), numbers(0.7, 0.3)),
    "generalized_negative_binomial": (numbers(2, 9), numbers(0.5, 0.1)),
}
BY_LOGIT = {"prob": None, "logit": 0.3, "is_logit": True}
BY_CHANCE = {"prob": 0.3, "logit": None, "is_logit": False}
CHANCES = numbers(0.1, 0.2, 0.7)
LOCATED = [draw(**NORMAL), draw(numbers(1, 5), loc=None, scale=2, size=f"({COUNT}, 2)")]
DRAWN: dict[str, list[Drawing]] = {
    **{f"_random_{k}": [draw_shape(**a) for a in v] for k, v in PARAMETERS.items()},
    **{f"_random_{k}_like": [like(**a) for a in v] for k, v in PARAMETERS.items()},
    **{f"_sample_{k}": [each(*v), each(v[0][:1], v[1][:1])] for k, v in TWO.items()},
    "_sample_exponential": [each(numbers(0.5, 4))],
    "_sample_poisson": [each(numbers(0.5, 40))],
    "_random_randint": [draw_shape(low=-3, high=9), draw_shape(low=0, high=2, dtype="int64")],
    "_sample_multinomial": [each(CHANCES), each(np.stack([CHANCES, CHANCES[::-1]]))],
    "_npi_uniform": [draw(**UNIFORM), draw(numbers(0, 9), low=None, high=9, size=f"({COUNT}, 2)")],
    "_npi_normal": LOCATED,
    "_npi_uniform_n": [draw(**UNIFORM), draw(numbers(0, 9), low=None, high=10)],
    "_npi_normal_n": [draw(**NORMAL), draw(numbers(0, 9), numbers(1, 2), loc=None, scale=None)],
    "_npi_gamma": [draw(shape=0.4, scale=2), draw(numbers(3), shape=None, scale=2)],
    "_npi_gumbel": LOCATED,
    "_npi_logistic": LOCATED,
    "_npi_exponential": [draw(scale=2), draw(numbers(3), scale=None)],
    "_npi_rayleigh": [draw(scale=2), draw(numbers(3), scale=None)],
    "_npi_pareto": [draw(a=12), draw(numbers(9), a=None)],
    "_npi_powerd": [draw(a=2), draw(numbers(0.5), a=None)],
    "_npi_weibull": [draw(a=2), draw(numbers(0.9), a=None)],
    "_npi_bernoulli": [
        draw(**BY_CHANCE), draw(**BY_LOGIT, dtype="int32"),
        draw(numbers(0.2), **{**BY_CHANCE, "prob": None}),
    ],
    "_npi_choice": [
        draw(a=5), draw(a=3 * COUNT, replace=False), draw(CHANCES, a=3, weighted=True),
        draw(numbers(4, 5, 6, 7), a=None),
        draw(np.arange(1, 1 + 2 * COUNT, dtype="float32"), a=2 * COUNT, weighted=True,
             replace=False),
    ],
    "_npi_multinomial": [draw(CHANCES, n=10), draw(n=3, pvals="(0.25, 0.75)")],
    "_shuffle": [Drawing((np.arange(COUNT, dtype="float32"),), {})],
}  # fmt: skip
