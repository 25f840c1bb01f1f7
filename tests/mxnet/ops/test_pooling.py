"""Pooling."""

from __future__ import annotations

import itertools

from testing.mxnet.cases import case, f16, f32, f64, operator_test, refuses, without_onednn

S = {1: (9,), 2: (9, 8), 3: (6, 5, 7)}
TYPES = ("max", "avg", "sum", "lp")


def pool(n, t, make=f32, sizes=None, **attrs):
    extra = {"p_value": 2} if t == "lp" else {}
    return case("Pooling", make(2, 3, *(sizes or S[n])), pool_type=t, **{**extra, **attrs})


def rep(n, *v):
    return tuple(v[:n])


CASES = [
    *(pool(n, t, kernel=rep(n, 2, 3, 2)) for n in S for t in TYPES),
    *(pool(n, t, kernel=rep(n, 2, 3, 2), stride=rep(n, 2, 2, 3)) for n in S for t in TYPES),
    *(
        pool(n, t, kernel=rep(n, 2, 3, 3), stride=rep(n, 2, 3, 2), pad=rep(n, 1, 1, 1))
        for n in S
        for t in TYPES
    ),
    *(
        pool(
            n,
            t,
            kernel=rep(n, 2, 3, 3),
            stride=rep(n, 2, 3, 2),
            pad=rep(n, 1, 1, 1),
            count_include_pad=c,
        )
        for n in S
        for t in TYPES
        for c in (True, False)
    ),
    *(
        pool(n, t, kernel=rep(n, 2, 3, 3), stride=rep(n, 2, 3, 2), pooling_convention="full")
        for n in S
        for t in TYPES
    ),
    *(
        pool(
            n,
            t,
            kernel=rep(n, 2, 3, 3),
            stride=rep(n, 2, 3, 2),
            pad=rep(n, 1, 1, 1),
            pooling_convention="full",
            count_include_pad=c,
        )
        for n in S
        for t in TYPES
        for c in (True, False)
    ),
    *(pool(n, t, global_pool=True) for n in S for t in TYPES),
    *(
        pool(
            n,
            t,
            global_pool=True,
            kernel=rep(n, 2, 2, 2),
            stride=rep(n, 2, 2, 2),
            pad=rep(n, 1, 1, 1),
        )
        for n in S
        for t in TYPES
    ),
    *(
        pool(n, t, kernel=rep(n, 2, 3, 2), layout=layout)
        for n, layout in ((1, "NCW"), (2, "NCHW"), (3, "NCDHW"))
        for t in TYPES
    ),
    *(
        case(
            "Pooling",
            f32(2, *S[n], 3),
            kernel=rep(n, 2, 3, 2),
            pool_type=t,
            layout=layout,
            **({"p_value": 2} if t == "lp" else {}),
        )
        for n, layout in ((1, "NWC"), (2, "NHWC"), (3, "NDHWC"))
        for t in TYPES
    ),
    *(
        case(
            "Pooling",
            f32(2, *S[n], 3),
            global_pool=1,
            pool_type=t,
            layout=layout,
            **({"p_value": 2} if t == "lp" else {}),
        )
        for n, layout in ((1, "NWC"), (2, "NHWC"), (3, "NDHWC"))
        for t in TYPES
    ),
    *(pool(2, "lp", p_value=p, kernel=(2, 3)) for p in (1, 2, 3)),
    *(pool(2, "lp", p_value=p, global_pool=1) for p in (1, 2, 3)),
    case("Pooling", f32(2, 3, 4, 5), kernel=(2, 2)),
    *(
        pool(2, t, kernel=(2, 3), stride=(2, 2), pad=(1, 1), pooling_convention=c).but(
            op="Pooling_v1"
        )
        for t in ("max", "avg", "sum")
        for c in ("valid", "full")
    ),
    *(
        pool(2, t, global_pool=True, kernel=(2, 2)).but(op="Pooling_v1")
        for t in ("max", "avg", "sum")
    ),
    refuses(
        "Pooling", f32(1, 2, 9), kernel=(3,), stride=(2,), pooling_convention="same", says="same"
    ),
    *(pool(2, t, kernel=(3, 3), make=f16) for t in TYPES),
    *(
        pool(2, t, kernel=(3, 3), make=f64).but(gap="" if t == "max" else "pooling of float64")
        for t in TYPES
    ),
    refuses("Pooling", f32(1, 2, 9), kernel=(3,), pool_type="lp", says="p_value=None"),
    refuses("Pooling", f32(1, 2, 9), kernel=(3,), pool_type="lp", p_value=4, says="p_value=4"),
    refuses(
        "Pooling",
        f32(1, 2, 9),
        kernel=(3,),
        pool_type="stochastic",
        says="pool_type='stochastic' is unknown",
    ),
    refuses("Pooling", f32(1, 2, 9), kernel=(3,), layout="CWN", says="layout='CWN' is unknown"),
    *(  # the last window lies wholly behind the input
        pool(n, t, sizes=(m,) * n, kernel=(1,) * n, stride=(3,) * n, pooling_convention="full")
        for n, t, m in itertools.product((1, 2), ("avg", "sum"), (5, 6))
    ),
    refuses(
        "Pooling",
        f32(1, 2, 5, 5, 5),
        kernel=(1,) * 3,
        stride=(3,) * 3,
        pool_type="avg",
        pooling_convention="full",
        says="a window that lies outside",
    ),
    *(  # pads that reach the kernel; oneDNN takes none of them
        pool(
            n,
            t,
            sizes=(5, 4, 3)[:n],
            kernel=(2,) * n,
            stride=(s,) * n,
            pad=(p,) * n,
            pooling_convention=c,
            count_include_pad=i,
        ).but(oracle=without_onednn)
        for n, t in itertools.product((1, 2, 3), ("avg", "max"))
        for s, p, c, i in itertools.product((1, 2), (2, 3), ("valid", "full"), (True, False))
        if (t == "max" and i) or (t == "avg" and (n < 3 or (p == 2 and s == 1)))
    ),
    *(
        case("Pooling", f32(2, 3, 9), kernel=(2,), pad=(3,), stride=(2,), pool_type=kind, **a)
        for kind, a in (("sum", {}), ("lp", {"p_value": 2}))
    ),
    refuses("Pooling", f32(2, 3, 9), kernel=(2,), pad=(-1,), says="pad=(-1,)"),
]
test_pooling = operator_test(CASES)


def grid():
    """Every way a window can meet the end of a line, thinned out."""
    every = itertools.product(
        range(1, 10), range(1, 5), range(1, 5), range(3), TYPES, ("valid", "full"), (0, 1)
    )
    for n, (size, k, s, p, t, convention, include) in enumerate(every):
        if n % 23 == 0 and p < k <= size + 2 * p and (s <= k or t in ("max", "sum")):
            yield pool(
                1,
                t,
                sizes=(size,),
                kernel=(k,),
                stride=(s,),
                pad=(p,),
                pooling_convention=convention,
                count_include_pad=bool(include),
            )


test_grid = operator_test(list(grid()))
