"""Densities of distributions."""

from __future__ import annotations

from functools import partial

from testing.mxnet.cases import case, f32, f64, ints, of, operator_test, refuses, u8

P = "_random_pdf_"
positive = partial(f32, low=0.2, high=3)
share = partial(f32, low=0.2, high=0.8)
D = positive(2, 4, 3)
D = D / D.sum(-1, keepdims=True)
FAMILIES = {  # the samples, and what the parameters are
    "uniform": (f32, partial(f32, low=-3, high=-1), positive),
    "normal": (f32, f32, positive),
    "gamma": (positive, positive, positive),
    "exponential": (positive, positive),
    "poisson": (ints, positive),
    "negative_binomial": (ints, partial(ints, low=1), share),
    "generalized_negative_binomial": (ints, positive, positive),
}


def at(name, *shape, kind="float32", **attrs):
    sample, *parameters = FAMILIES[name]
    params = [p(*shape[:1], seed=i) for i, p in enumerate(parameters, 1)]
    return case(P + name, *(x.astype(kind) for x in (sample(*shape), *params)), **attrs)


CASES = [
    *(at(n, 2, 4, is_log=is_log) for n in FAMILIES for is_log in (False, True)),
    *(at(n, 2, 4, 3) for n in FAMILIES),
    *(at(n, 3, 2, kind="float64") for n in FAMILIES),
    case(P + "normal", f32(2, 3, 2), f32(2, 3), positive(2, 3)),
    case(P + "uniform", of([[-1, 0.5, 2, 3, 1]]), of([0]), of([2])),
    case(P + "gamma", of([[-1, 0, 2]]), of([2]), of([2])),
    case(P + "exponential", of([[-1, 0, 2]]), of([2])),
    case(P + "poisson", of([[-1, 0, 2, 1.5]]), of([2])),
    *(case(P + "dirichlet", D, positive(2, 3), is_log=is_log) for is_log in (False, True)),
    case(P + "dirichlet", D[0, 0], positive(3)),
    case(P + "dirichlet", f64(4, 3, low=0.1), f64(4, 3, low=0.1)),
    case(P + "dirichlet", of([[0.5, 0.5, 0]]), of([[1, 2, 1]])),
    refuses(P + "poisson", u8(2, 3), u8(2), says="the density at uint8 numbers"),
]
test_densities = operator_test(CASES)
