"""Convolutions and their transposes."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import (
    case,
    f16,
    f32,
    f64,
    in_float32,
    live,
    operator_test,
    refuses,
    without_onednn,
)

S = {1: (9,), 2: (9, 8), 3: (6, 5, 7)}
FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}

FIXED = "target_shape needs to know the sizes"


def as_channels_first(case):
    """MXNet has channels last on GPUs only: move them and what it computes."""
    x, w, *b = (case.inputs[0], case.inputs[1], *case.inputs[2:])
    attrs = {k: v for k, v in case.attrs.items() if k != "layout"}
    (y,) = live(case.but(inputs=(np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1), *b), attrs=attrs))
    return [np.moveaxis(y, 1, -1)]


def conv(n, make=f32, kernel=None, group=1, bias=True, channels=4, filters=6, **attrs):
    kernel = kernel or (3, 2, 3)[:n]
    w = make(filters, channels // group, *kernel)
    xs = last(attrs, make(2, channels, *S[n]), w, *([make(filters)] if bias else []))
    return case(
        "Convolution",
        *xs,
        kernel=kernel,
        num_filter=filters,
        **({"num_group": group} if group > 1 else {}),
        **({} if bias else {"no_bias": True}),
        **attrs,
    )


def deconv(
    n, make=f32, kernel=None, group=1, bias=False, channels=4, filters=6, sizes=None, **attrs
):
    kernel = kernel or (3, 2, 4)[:n]
    w = make(channels, filters // group, *kernel)
    xs = last(
        attrs, make(2, channels, *(sizes or (4, 5, 3)[:n])), w, *([make(filters)] if bias else [])
    )
    return case(
        "Deconvolution",
        *xs,
        kernel=kernel,
        num_filter=filters,
        **({"num_group": group} if group > 1 else {}),
        **({"no_bias": False} if bias else {}),
        **attrs,
    )


def last(attrs, x, w, *b):
    if not attrs.get("layout", "").endswith("C"):
        return (x, w, *b)
    return (
        np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        np.ascontiguousarray(np.moveaxis(w, 1, -1)),
        *b,
    )


def rep(n, *v):
    return tuple(v[:n])


CASES = [
    *(conv(n) for n in S),
    *(conv(n, bias=False) for n in S),
    *(conv(n, stride=rep(n, 2, 1, 2), pad=rep(n, 1, 2, 0)) for n in S),
    *(conv(n, dilate=rep(n, 2, 2, 1), pad=rep(n, 1, 0, 2)) for n in S),
    *(conv(n, group=2, pad=rep(n, 1, 1, 1)) for n in S),
    *(conv(n, group=4, filters=4) for n in S),
    *(conv(n, layout=FIRST[n]) for n in S),
    *(conv(n, layout="None") for n in S),
    conv(2, kernel=(1, 1), workspace=512, cudnn_tune="off", cudnn_off=True),
    conv(2, make=f64).but(gap="Conv of float64"),
    conv(2, make=f16).but(oracle=in_float32),
    conv(2).but(params=()),
    *(deconv(n) for n in S),
    *(deconv(n, bias=True) for n in S),
    *(deconv(n, stride=rep(n, 2, 3, 2), pad=rep(n, 1, 0, 2)) for n in S),
    *(deconv(n, stride=rep(n, 2, 3, 2), pad=rep(n, 1, 1, 1), adj=rep(n, 1, 2, 0)) for n in S),
    *(deconv(n, dilate=rep(n, 2, 2)) for n in (1, 2)),
    *(deconv(n, group=2, stride=rep(n, 2, 2, 2)) for n in S),
    *(
        deconv(n, stride=rep(n, 2, 2), target_shape=rep(n, 8, 10)).but(
            oracle=without_onednn, fixed=FIXED
        )
        for n in (1, 2)
    ),
    *(
        deconv(n, stride=rep(n, 2, 2), target_shape=rep(n, 7, 9)).but(
            oracle=without_onednn, fixed=FIXED
        )
        for n in (1, 2)
    ),
    *(
        deconv(
            n, stride=rep(n, 2, 2), pad=rep(n, 1, 1), adj=rep(n, 1, 1), target_shape=rep(n, 8, 9)
        ).but(oracle=without_onednn, fixed=FIXED)
        for n in (1, 2)
    ),
    deconv(2, kernel=(4, 4), stride=(2, 2), pad=(1, 1), group=4, filters=4),
    deconv(2, layout="NCHW"),
    deconv(2, make=f64).but(gap="ConvTranspose of float64"),
    deconv(2, make=f16).but(oracle=in_float32),
    deconv(2, target_shape=(0, 0), stride=(2, 2)),
    *(
        conv(n, layout=LAST[n], stride=rep(n, 2, 1, 2), pad=rep(n, 1, 2, 0)).but(
            oracle=as_channels_first
        )
        for n in (2, 3)
    ),
    *(
        deconv(n, layout=LAST[n], stride=rep(n, 2, 3, 2), pad=rep(n, 1, 0, 2)).but(
            oracle=as_channels_first
        )
        for n in S
    ),
    conv(2, stride=(2, 1), pad=(1, 2)).but(op="Convolution_v1"),
    refuses(
        "Deconvolution",
        f32(1, 2, 3, 3),
        f32(2, 3, 2, 2),
        kernel=(2, 2),
        num_filter=3,
        target_shape=(4, 0),
        says="target_shape=(4, 0)",
    ),
    refuses(
        "Deconvolution",
        f32(1, 2, 3, 3),
        f32(2, 3, 2, 2),
        kernel=(2, 2),
        num_filter=3,
        target_shape=(9, 9),
        says="target_shape=(9, 9) is larger than the output can be",
    ),
    refuses(
        "Deconvolution",
        f32(1, 2, 3, 3),
        f32(2, 3, 2, 2),
        kernel=(2, 2),
        num_filter=3,
        dilate=(2, 2),
        target_shape=(4, 4),
        says="dilate=(2, 2)",
    ),
    refuses(
        "Convolution",
        f32(1, 2, 3, 3),
        f32(2, 2, 2, 2),
        kernel=(2, 2),
        num_filter=2,
        layout="CHWN",
        says="layout='CHWN' is unknown",
    ),
    refuses(
        "Convolution",
        f32(1, 2, 3, 3),
        f32(2, 2, 2, 2),
        kernel=(2, 2),
        num_filter=2,
        stride=(2,),
        says="(2,) does not fit the kernel (2, 2)",
    ),
    *(
        case(
            "Convolution_v1",
            f32(2, 4, 7, 6),
            f32(6, 4 // n, 3, 2),
            *b,
            kernel="(3, 2)",
            num_filter=6,
            num_group=n,
            **a,
        )
        for n, b, a in (
            (1, [f32(6)], {}),
            (2, [f32(6)], {"stride": "(2, 1)", "pad": "(1, 0)"}),
            (1, [], {"no_bias": True, "dilate": "(2, 1)"}),
        )
    ),
]

test_convolution = operator_test(CASES)
